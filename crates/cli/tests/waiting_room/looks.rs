//! How the page looks and what it is made of, in every scene: nothing from elsewhere, nothing too wide, one heading,
//! and keys that go where the eye goes.

use crate::browser::{Browser, Driver, Look, TAB};
use crate::gallery::{SALE, page, path, reply, scenes, ticket};
use crate::page::{Room, Ticket, TicketState, Visitor};
use crate::proxy::Site;
use holdfast_engine::clock::wall;
use serde_json::json;

/// Goes to the page as a scene has it, and checks what holds for every one of them.
fn visit(site: &Site, browser: &Browser, scene: &str) {
    browser.go(&site.url(&path()));
    let shown = browser.run("return document.body.dataset.scene");
    assert!(scene.starts_with(shown.as_str().unwrap()), "{shown} instead of {scene}");
    assert_eq!(browser.texts("h1").len(), 1, "{scene} has one heading");
    assert_eq!(browser.texts("main").len(), 1);
    let text = browser.texts("body").concat();
    assert!(!text.contains(['{', '}']) && !text.contains("null") && !text.contains("undefined"), "{scene}: {text}");
    let too_wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.run(too_wide), 0, "{scene} is wider than its window");
}

/// No script, no style, no picture, nothing at all from another place, and nothing that the policy forbids.
fn is_self_contained(site: &Site, browser: &Browser, scene: &str) {
    let own = |url: &String| url.starts_with(&site.url("/wait/")) || url.starts_with(&site.url("/v1/sales/"));
    let foreign: Vec<String> = browser.requests().into_iter().filter(|u| !own(u) && u != "data:,").collect();
    assert_eq!(foreign, Vec::<String>::new(), "{scene}");
    // The site of this test has no queue.
    let complaints: Vec<String> = browser.complaints().into_iter().filter(|c| !c.contains("404")).collect();
    assert_eq!(complaints, Vec::<String>::new(), "{scene}");
}

#[test]
fn every_scene_is_whole_in_every_light_and_at_every_width() {
    let Some(driver) = Driver::start() else { return };
    let site = Site::alone();
    let looks = [
        ("desktop-light", Look::desktop()),
        ("desktop-dark", Look::desktop().dark()),
        ("phone-light", Look::phone()),
        ("phone-dark", Look::phone().dark().still()),
    ];
    for (name, look) in looks {
        // Without the script the page stays in its scene, as it was rendered.
        let browser = driver.open(&look.without_script());
        for (scene, page) in scenes() {
            site.reply("GET", &path(), reply(&page));
            visit(&site, &browser, scene);
            is_self_contained(&site, &browser, scene);
            browser.screenshot(&format!("{scene}-{name}"));
        }
    }
}

/// Title and slots as the server wrote them, and as they are: empty where both agree.
const DIFFERENCES: &str = "return fetch(location.href).then((r) => r.text()).then((text) => {
    const written = new DOMParser().parseFromString(text, 'text/html');
    const all = (d) => [d.title, ...[...d.querySelectorAll('[data-slot]')].map((e) => e.textContent)];
    const now = all(document);
    return all(written).flatMap((was, at) => was === now[at] ? [] : [was + ' / ' + now[at]]);
})";

#[test]
fn the_script_leaves_a_scene_as_it_was_rendered() {
    let Some(driver) = Driver::start() else { return };
    let site = Site::alone();
    let browser = driver.open(&Look::phone());
    for (scene, page) in scenes().into_iter().filter(|(scene, _)| *scene != "join") {
        site.reply("GET", &path(), reply(&page));
        visit(&site, &browser, scene);
        assert_eq!(browser.run(DIFFERENCES), json!([]), "{scene}");
        is_self_contained(&site, &browser, scene);
        browser.screenshot(&format!("{scene}-phone-script"));
    }
    // Server and script have the same words for every wait.
    let etas = [
        (0, 59),
        (20, 60),
        (50, 119),
        (480, 480),
        (1199, 1200),
        (1300, 1201),
        (3000, 5400),
        (3000, 5401),
        (99_000, 200_000),
    ];
    let (now, etas) = (wall().millis(), etas.map(Some).into_iter().chain([None]));
    for (eta, ahead) in etas.flat_map(|eta| [(eta, 0), (eta, 1)]) {
        let ticket = Ticket { eta, ahead: Some(ahead), ..ticket(TicketState::Waiting, now) };
        site.reply("GET", &path(), reply(&page(Visitor::Holding(ticket), Room::Open, now)));
        browser.go(&site.url(&path()));
        assert_eq!(browser.run(DIFFERENCES), json!([]), "{eta:?}");
    }
}

#[test]
fn the_keyboard_reaches_everything_in_the_order_of_the_page() {
    let Some(driver) = Driver::start() else { return };
    let site = Site::alone();
    let browser = driver.open(&Look::desktop());
    let stops = |scene: &str| {
        let (_, page) = scenes().into_iter().find(|(name, _)| *name == scene).unwrap();
        site.reply("GET", &path(), reply(&page));
        browser.go(&site.url(&path()));
        let mut stops = Vec::new();
        loop {
            browser.press(TAB);
            let stop = browser.focused();
            if stop.starts_with("body") || stops.contains(&stop) {
                return stops;
            }
            stops.push(stop);
        }
    };
    assert_eq!(stops("waiting"), ["summary: Leave the line", "summary: Why by lot, and how to check it"]);
    assert_eq!(stops("turn"), ["button: Go to the shop", "summary: Why by lot, and how to check it"]);
    assert_eq!(stops("missed"), ["button: Join again, at the back", "summary: Why by lot, and how to check it"]);
    browser.screenshot("focus-missed");
}

#[test]
fn the_draw_explains_itself() {
    let Some(driver) = Driver::start() else { return };
    let site = Site::alone();
    let browser = driver.open(&Look::phone());
    let (_, page) = scenes().into_iter().find(|(name, _)| *name == "prequeue").unwrap();
    site.reply("GET", &path(), reply(&page));
    browser.go(&site.url(&path()));
    assert!(!browser.shows(".wr-how p"));
    browser.click(".wr-how summary");
    browser.sees(".wr-how p.wr-code", page.commitment.unwrap());
    let link = browser.run("return document.querySelector('.wr-how a').getAttribute('href')");
    assert_eq!(link, format!("/v1/sales/{SALE}/draw"));
    browser.screenshot("draw-phone");
}
