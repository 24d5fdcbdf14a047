//! What the script does with what it is told, without a reload: the server is played by the test.

use crate::browser::{Browser, Driver, ENTER, Look, PATIENCE};
use crate::gallery::{QUEUE, page, path, reply, tell, ticket, ticket_path, told};
use crate::page::{Room, Ticket, TicketState, Visitor, WaitPage};
use crate::proxy::{Reply, Site};
use crate::support::{eventually, with};
use holdfast_engine::clock::wall;
use serde_json::json;

/// A site whose page is that of somebody who waits, and a browser on it.
fn waiting(driver: &Driver) -> (Site, Browser) {
    let now = wall().millis();
    let site = Site::alone();
    site.reply("GET", &path(), reply(&page(Visitor::Holding(ticket(TicketState::Waiting, now)), Room::Open, now)));
    site.reply("GET", "/shop", Reply::html("<h1>The shop</h1>"));
    tell(&site, &told("waiting"));
    let browser = driver.open(&Look::phone());
    browser.go(&site.url(&path()));
    browser.run("window.wasHere = true");
    (site, browser)
}

/// A time as the API tells it, so far from now; whole seconds are enough here.
fn soon(browser: &Browser, seconds: i64) -> String {
    browser.run(&format!("return new Date(Date.now() + {seconds}000).toISOString()")).as_str().unwrap().to_owned()
}

#[test]
fn the_line_moves_without_a_reload_until_the_shop_is_reached() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = waiting(&driver);
    browser.sees(".wr-number", "1,234");
    tell(&site, &with(with(told("waiting"), "position", 8), "ahead", 7));
    browser.sees(".wr-number", "8");
    assert_eq!(browser.title(), "8 in line – The Winter Chair");
    browser.until("return document.getElementById('wr-live').textContent.includes('position 8')");
    tell(
        &site,
        &with(
            with(told("waiting"), "eta", json!({"known": false})),
            "stock",
            json!({"state": "low", "likely_gone_before_turn": true}),
        ),
    );
    browser.sees("dd", "unknown yet");
    browser.sees(".wr-note", "probably be sold out");
    tell(&site, &with(told("waiting"), "room", "held"));
    browser.sees("h1", "Everything is reserved");
    tell(&site, &with(told("waiting"), "room", "paused"));
    browser.sees("h1", "The sale is paused");
    tell(&site, &with(told("turn"), "claim_by", soon(&browser, 50)));
    browser.sees("h1", "It is your turn");
    browser.sees(".wr-number", "0:4");
    assert_eq!(browser.title(), "Your turn – The Winter Chair");
    assert!(!browser.shows(".wr-stub"));
    browser.until("return document.getElementById('wr-live').textContent.startsWith('It is your turn.')");
    assert_eq!(browser.run("return window.wasHere"), true);
    site.reply("POST", &ticket_path("/claim"), Reply::json(200, &json!({"pass": "a.b+c/d=", "expires_at": null})));
    browser.click("section:not([hidden]) [data-action=claim] button");
    browser.sees("h1", "The shop");
    assert_eq!(browser.url(), site.url("/shop?sku=CHAIR&waiting_room_pass=a.b%2Bc%2Fd%3D"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn whoever_comes_is_in_line_at_once_and_can_leave_and_come_back() {
    let Some(driver) = Driver::start() else { return };
    let now = wall().millis();
    let site = Site::alone();
    site.reply("GET", &path(), reply(&page(Visitor::New, Room::Open, now)));
    site.reply("POST", QUEUE, Reply::json(201, &told("waiting")));
    tell(&site, &told("waiting"));
    site.reply("DELETE", &ticket_path(""), Reply::new(204));
    let browser = driver.open(&Look::desktop());
    browser.go(&site.url(&path()));
    browser.sees("h1", "You are in line");
    assert_eq!(site.count("POST", QUEUE), 1);
    browser.click(".wr-leave summary");
    browser.click(".wr-leave button");
    browser.sees("h1", "You have left the line");
    // The focus does not stay on a button that is gone.
    assert_eq!(browser.focused(), "h1: You have left the line");
    browser.run("document.querySelector('section:not([hidden]) button').focus()");
    browser.press(ENTER);
    browser.sees("h1", "You are in line");
    assert_eq!(site.count("POST", QUEUE), 2);
}

#[test]
fn a_turn_that_cannot_be_taken_yet_says_so_and_can_be_tried_again() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = waiting(&driver);
    let turn = with(told("turn"), "claim_by", soon(&browser, 50));
    tell(&site, &turn);
    let claim = ticket_path("/claim");
    let button = "section:not([hidden]) [data-action=claim] button";
    for (status, words) in
        [(202, "It is not quite your turn yet."), (503, "The shop is busy."), (429, "The shop is busy.")]
    {
        browser.misses("[aria-busy=true]");
        site.reply("POST", &claim, Reply::json(status, &json!({})).header("retry-after", "1"));
        browser.click(button);
        browser.sees("#wr-trouble", words);
    }
    browser.misses("[aria-busy=true]");
    tell(&site, &with(told("expired"), "claim_by", soon(&browser, -1)));
    site.reply("POST", &claim, Reply::json(410, &json!({})));
    browser.sees("h1", "Your turn has passed");
    assert!(!browser.shows("#wr-trouble"));
}

#[test]
fn the_script_asks_at_the_pace_it_is_told_and_slower_when_it_is_not_answered() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = waiting(&driver);
    let asked = || site.count("GET", &ticket_path(""));
    eventually("it asks", PATIENCE, || (asked() >= 3).then_some(()));
    site.reply("GET", &ticket_path(""), Reply::json(503, &json!({})).header("retry-after", "1"));
    browser.sees("#wr-trouble", "does not answer");
    tell(&site, &with(told("waiting"), "poll_after_ms", 600_000));
    browser.misses("#wr-trouble");
    let before = asked();
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert_eq!(asked(), before, "nothing is asked before its time");
}

#[test]
fn a_stream_tells_sooner_and_is_not_needed() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = waiting(&driver);
    assert_eq!(site.count("GET", &ticket_path("/events")), 0, "nobody listens who was not asked to");
    let now = wall().millis();
    let patient = Ticket { poll_after_ms: 600_000, ..ticket(TicketState::Waiting, now) };
    let listening = WaitPage { events: true, ..page(Visitor::Holding(patient), Room::Open, now) };
    site.reply("GET", &path(), reply(&listening));
    tell(&site, &with(told("turn"), "claim_by", soon(&browser, 50)));
    let stream = Reply::text("text/event-stream", "event: turn\ndata: {}\n\n");
    site.reply("GET", &ticket_path("/events"), stream);
    browser.reload();
    browser.sees("h1", "It is your turn");
}

#[test]
fn what_is_over_is_not_asked_any_more() {
    let Some(driver) = Driver::start() else { return };
    let ends = [
        (Reply::json(200, &with(told("waiting"), "room", "sold_out")), "Sold out"),
        (Reply::json(200, &with(told("waiting"), "room", "closed")), "The sale has ended"),
        (Reply::json(200, &told("expired")), "Your place has lapsed"),
        (Reply::json(200, &told("done")), "Your visit is over"),
        (Reply::json(410, &json!({})), "Your place has lapsed"),
        (Reply::json(404, &json!({})), "We do not know this ticket"),
    ];
    for (end, heading) in ends {
        let (site, browser) = waiting(&driver);
        site.reply("GET", &ticket_path(""), end);
        browser.sees("h1", heading);
        let before = site.count("GET", &ticket_path(""));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert_eq!(site.count("GET", &ticket_path("")), before, "{heading}");
    }
}

#[test]
fn the_start_is_told_in_the_shoppers_own_time() {
    let Some(driver) = Driver::start() else { return };
    let now = wall().millis();
    let site = Site::alone();
    let starts_at = 1_795_978_800_000; // 19:00 UTC, 20:00 in Zurich.
    let early = WaitPage {
        opens_at: Some(starts_at + now),
        starts_at: Some(starts_at),
        ..page(Visitor::New, Room::Prequeue, now)
    };
    site.reply("GET", &path(), reply(&early));
    let browser = driver.open(&Look::phone());
    browser.go(&site.url(&path()));
    browser.until("return /(20:00|8:00\\sPM)/.test(document.querySelector('section:not([hidden]) [data-time=starts_at]').textContent)");
}
