//! The example shop, with Holdfast played by the test: every answer it can get, in words.

use crate::browser::{Browser, Driver, Look};
use crate::proxy::{Reply, STOREFRONT, Site};
use crate::support::with;
use serde_json::{Value, json};

const HOLD: &str = "/v1/holds/01890a5d-ac96-774b-bcce-b302099a8057";

fn hold(status: &str, expires_at: &Value) -> Value {
    json!({"id": HOLD.rsplit('/').next(), "order_id": "web-1", "status": status, "expires_at": expires_at})
}

fn shop(driver: &Driver, waiting_room: &Value) -> (Site, Browser) {
    let site = Site::alone();
    site.reply("GET", "/", Reply::html(STOREFRONT));
    site.reply("GET", "/wait/winter-chair", Reply::html("<h1>Waiting</h1>"));
    site.reply("GET", "/v1/sales/winter-chair", Reply::json(200, &json!({"waiting_room": waiting_room})));
    let browser = driver.open(&Look::phone());
    browser.go(&site.url("/"));
    (site, browser)
}

#[test]
fn a_shopper_waits_buys_and_pays() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = shop(&driver, &json!({"max_active": 5}));
    browser.screenshot("shop-phone");
    browser.click("#buy");
    browser.sees("h1", "Waiting");
    assert_eq!(browser.url(), site.url("/wait/winter-chair?return_url=%2F"));
    browser.go(&site.url("/?waiting_room_pass=a.b"));
    browser.sees("#message", "It is your turn");
    assert_eq!(browser.url(), site.url("/"), "the pass does not stay in the address");
    let soon = browser.run("return new Date(Date.now() + 600000).toISOString()");
    site.reply("POST", "/v1/holds", Reply::json(201, &hold("held", &soon)));
    site.reply("GET", HOLD, Reply::json(200, &hold("held", &soon)));
    browser.click("#buy");
    browser.sees("#left", "9:5");
    browser.screenshot("shop-held-phone");
    let asked = site.asked().into_iter().find(|a| a.method == "POST" && a.path() == "/v1/holds").unwrap();
    assert_eq!(asked.header("waiting-room-pass"), Some("a.b"));
    browser.reload();
    browser.sees("#left", ":");
    site.reply("POST", &format!("{HOLD}/confirm"), Reply::json(200, &json!({"order_id": "web-1"})));
    browser.click("#pay");
    browser.sees("#bought", "Order web-1 is confirmed.");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    browser.size(1280, 860, false);
    browser.screenshot("shop-bought-desktop");
}

#[test]
fn every_refusal_has_plain_words() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = shop(&driver, &Value::Null);
    browser
        .cdp("Emulation.setEmulatedMedia", &json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]}));
    let refusals = [
        (409, json!({"code": "sold_out"}), "Sold out.", false),
        (409, json!({"code": "sold_out", "may_return": true}), "Everything is reserved", false),
        (409, json!({"code": "customer_limit"}), "one a person", false),
        (401, json!({"code": "pass_missing"}), "There is a waiting room", true),
        (401, json!({"code": "pass_expired"}), "Your visit has run out", true),
        (401, json!({"code": "pass_used"}), "another order", true),
        (401, json!({"code": "pass_invalid"}), "could not recognise", true),
        (403, json!({"code": "pass_scope"}), "could not recognise", true),
        (403, json!({"code": "sale_not_started", "starts_at": "2026-11-30T12:00:00.000Z"}), "starts at 13:00", true),
        (410, json!({"code": "sale_ended"}), "The sale is over", false),
        (422, json!({"code": "unknown_sku"}), "did not work (unknown_sku)", false),
    ];
    for (status, problem, words, leads_to_the_line) in refusals {
        site.reply("POST", "/v1/holds", Reply::json(status, &problem));
        browser.click("#buy:enabled");
        browser.sees("#message", words);
        assert_eq!(browser.shows("#line"), leads_to_the_line, "{problem}");
        browser.screenshot(&format!("shop-{}-phone", problem["code"].as_str().unwrap()));
    }
}

#[test]
fn not_now_is_tried_again_with_the_same_order() {
    let Some(driver) = Driver::start() else { return };
    let (site, browser) = shop(&driver, &Value::Null);
    let busy = [
        (429, json!({"code": "rate_limited"}), "Very many people"),
        (503, json!({"code": "overloaded"}), "does not answer"),
        (503, json!({"code": "sale_paused"}), "The sale is paused"),
    ];
    for (status, problem, words) in busy {
        site.reply("POST", "/v1/holds", Reply::json(status, &problem).header("retry-after", "1"));
        browser.click("#buy:enabled");
        browser.sees("#message", words);
        browser.sees("#message", "Trying again in");
        site.reply("POST", "/v1/holds", Reply::json(409, &json!({"code": "sold_out"})));
        browser.sees("#message", "Sold out.");
    }
    let orders: Vec<Value> =
        site.asked().iter().filter(|a| a.method == "POST").map(|a| serde_json::from_slice(&a.body).unwrap()).collect();
    assert!(orders.len() >= 6);
    assert!(orders.iter().all(|o| *o == with(orders[0].clone(), "order_id", orders[0]["order_id"].clone())));
}
