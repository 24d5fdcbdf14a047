//! The whole way, with nothing played: a browser, the example shop, the web server in front, and Holdfast behind it.

use crate::browser::{Browser, Driver, Look};
use crate::proxy::Site;
use crate::support::{Server, encoded, eventually, holdfast};
use holdfast_engine::clock::wall;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::tempdir;

const SOON: Duration = Duration::from_secs(20);

struct Drop {
    server: Server,
    site: Site,
}

fn in_seconds(seconds: i64) -> String {
    let at = Duration::from_millis(u64::try_from(wall().millis() + seconds * 1000).unwrap());
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + at).to_string()
}

/// A shop with one SKU, and a room that lets one in at a time.
fn open(units: u64, starts_at: Option<&str>) -> Drop {
    let mut command = holdfast();
    command.env("HOLDFAST_TRUSTED_PROXIES", "127.0.0.1");
    let server = Server::with_command(command, &Arc::new(tempdir().unwrap()), &[]);
    server.stock("CHAIR", units);
    server.put("/v1/sales/winter-chair", &sale(starts_at)).is(201);
    let site = Site::before(server.port);
    Drop { server, site }
}

fn sale(starts_at: Option<&str>) -> Value {
    json!({"skus": ["CHAIR"], "title": "The Winter Chair", "starts_at": starts_at, "waiting_room":
        {"max_active": 1, "admit_per_second": 50, "turn_seconds": 60, "prequeue_seconds": 7200}})
}

impl Drop {
    fn others(&self, count: usize) -> Vec<String> {
        let join = || self.server.post("/v1/sales/winter-chair/queue", &json!({})).is(201)["ticket"].clone();
        (0..count).map(|_| join().as_str().unwrap().to_owned()).collect()
    }

    fn other(&self, ticket: &str) -> Value {
        self.server.get(&format!("/v1/sales/winter-chair/queue/{ticket}")).is(200)
    }

    /// A shopper at the door of the shop.
    fn visit(&self, driver: &Driver, look: &Look) -> Browser {
        let browser = driver.open(look);
        browser.go(&self.site.url("/?sale=winter-chair&sku=CHAIR"));
        browser.click("#buy");
        browser
    }

    /// Whoever is let in before this shopper buys at once, so that the line moves.
    fn serve_others(&self, others: &[String]) {
        for ticket in others {
            let path = format!("/v1/sales/winter-chair/queue/{ticket}/claim");
            let state = self.other(ticket)["state"].clone();
            if state == "turn" {
                self.server.touch(&path).is(200);
            }
            if state == "turn" || state == "admitted" {
                assert_eq!(self.server.delete(&format!("/v1/sales/winter-chair/queue/{ticket}")).status, 204);
            }
        }
    }
}

#[test]
fn joined_before_the_start_drawn_let_in_and_bought() {
    let Some(driver) = Driver::start() else { return };
    let shop = open(20, Some(&in_seconds(3600)));
    let others = shop.others(3);
    let browser = shop.visit(&driver, &Look::phone());
    browser.sees("h1", "The sale starts soon");
    browser.sees("p", "by lot");
    browser.screenshot("whole-prequeue-phone");
    let ticket = browser.run("return document.cookie");
    assert_eq!(ticket, "", "no script reads the cookie of the ticket");
    // Not before the page was seen, however busy the machine is.
    shop.server.put("/v1/sales/winter-chair", &sale(Some(&in_seconds(2)))).is(200);
    eventually("the shopper's turn", SOON * 6, || {
        shop.serve_others(&others);
        browser.texts("h1").iter().any(|h1| h1.contains("It is your turn")).then_some(())
    });
    browser.screenshot("whole-turn-phone");
    browser.click("section:not([hidden]) [data-action=claim] button");
    browser.sees("#message", "It is your turn");
    assert!(!browser.url().contains("waiting_room_pass"), "{}", browser.url());
    browser.click("#buy");
    browser.sees("#left", ":");
    assert_eq!(shop.server.counters("CHAIR"), (19, 1, 0));
    browser.click("#pay");
    browser.sees("#bought", "is confirmed");
    assert_eq!(shop.server.counters("CHAIR"), (19, 0, 1));
    let home = shop.site.url("/");
    let strangers: Vec<_> = browser.requests().into_iter().filter(|url| !url.starts_with(&home)).collect();
    assert_eq!(strangers, Vec::<String>::new(), "nobody else is told who waits");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn whoever_waits_is_told_when_all_is_gone() {
    let Some(driver) = Driver::start() else { return };
    let shop = open(1, None);
    let first = shop.others(1).remove(0);
    eventually("a turn", SOON, || (shop.other(&first)["state"] == "turn").then_some(()));
    let browser = shop.visit(&driver, &Look::desktop().dark());
    browser.sees("h1", "You are in line");
    browser.sees(".wr-note", "probably be sold out");
    browser.screenshot("whole-waiting-dark");
    let pass = shop.server.touch(&format!("/v1/sales/winter-chair/queue/{first}/claim")).is(200);
    let cart = json!({"order_id": "O1", "items": [{"sku": "CHAIR", "quantity": 1}]});
    let call =
        crate::support::Call::new("POST", "/v1/holds").header("Waiting-Room-Pass", pass["pass"].as_str().unwrap());
    let hold = call.json(&cart).to(&shop.server).is(201);
    browser.sees("h1", "Everything is reserved");
    shop.server.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    browser.sees("h1", "Sold out");
    browser.screenshot("whole-sold-out-dark");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_way_is_the_same_without_a_script() {
    let Some(driver) = Driver::start() else { return };
    let shop = open(5, None);
    let first = shop.others(1).remove(0);
    eventually("a turn", SOON, || (shop.other(&first)["state"] == "turn").then_some(()));
    let browser = driver.open(&Look::phone().without_script());
    browser.go(&shop.site.url("/wait/winter-chair?return_url=%2Fback%3Fa%3Db"));
    browser.click("section:not([hidden]) [data-action=join] button");
    browser.sees("h1", "You are in line");
    browser.screenshot("whole-waiting-plain");
    shop.serve_others(&[first]);
    // The page refreshes itself.
    browser.sees("h1", "It is your turn");
    browser.click("section:not([hidden]) [data-action=claim] button");
    let url = eventually("the shop", SOON, || Some(browser.url()).filter(|url| url.contains("/back")));
    assert!(url.contains("/back?a=b&waiting_room_pass=ey"), "{url}");
}

#[test]
fn nobody_is_sent_to_a_stranger() {
    let shop = open(5, None);
    let page = |query: &str| shop.server.get(&format!("/wait/winter-chair{query}"));
    for stranger in ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"] {
        let page = page(&format!("?return_url={}", encoded(stranger)));
        assert_eq!(page.status, 200);
        assert!(!page.text().contains("evil.example") && !page.text().contains("alert(1)"), "{stranger}");
    }
    let plain = page("");
    for (name, value) in
        [("cache-control", "no-store"), ("x-robots-tag", "noindex"), ("referrer-policy", "same-origin")]
    {
        assert_eq!(plain.header(name), Some(value));
    }
    assert!(plain.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert_eq!(shop.server.get("/wait/nothing").status, 404);
}
