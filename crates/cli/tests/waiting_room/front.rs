//! The web server of these tests does what nginx does in front of Holdfast, and browsers take what it hands on.

use crate::browser::{Driver, Look};
use crate::proxy::{Asked, Reply, Site};
use serde_json::json;

/// The one request of a method and path that arrived there.
fn only(site: &Site, method: &str, path: &str) -> Asked {
    let asked: Vec<_> = site.asked().into_iter().filter(|a| a.method == method && a.path() == path).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked[0].clone()
}

#[test]
fn the_front_hands_on_what_is_holdfasts_and_keeps_what_is_the_shops() {
    let Some(driver) = Driver::start() else { return };
    let behind = Site::alone();
    let front = Site::before(behind.port());
    let cookie = "__Host-wr-a=1; Path=/; Secure; HttpOnly; SameSite=Lax";
    behind.reply("GET", "/wait/a", Reply::html("<h1>Behind</h1>").header("set-cookie", cookie));
    behind.reply("POST", "/v1/holds", Reply::json(201, &json!({"id": "ä"})));
    behind.reply("GET", "/shop", Reply::html("<h1>Never</h1>"));
    let browser = driver.open(&Look::desktop());
    browser.go(&front.url("/"));
    assert_eq!(browser.text("h1"), "The Winter Chair");
    browser.go(&front.url("/wait/a?x=%2F&y"));
    assert_eq!(browser.text("h1"), "Behind");
    let asked = only(&behind, "GET", "/wait/a");
    assert_eq!(asked.target, "/wait/a?x=%2F&y");
    assert_eq!((asked.header("x-forwarded-for"), asked.header("x-forwarded-proto")), (Some("127.0.0.1"), Some("http")));
    browser
        .run("fetch('/v1/holds', {method: 'POST', body: 'a\\nö'}).then(a => a.text()).then(t => document.title = t)");
    browser.until("return document.title === '{\"id\":\"ä\"}'");
    let asked = only(&behind, "POST", "/v1/holds");
    assert_eq!(String::from_utf8(asked.body.clone()).unwrap(), "a\nö");
    // On localhost, a browser keeps a cookie that needs TLS elsewhere.
    assert_eq!(asked.header("cookie"), Some("__Host-wr-a=1"));
    browser.go(&front.url("/shop"));
    assert_eq!(behind.count("GET", "/shop"), 0);
    // A reply of the test goes before what is behind, until it is taken away.
    front.reply("GET", "/wait/a", Reply::html("<h1>Before</h1>"));
    browser.go(&front.url("/wait/a"));
    browser.sees("h1", "Before");
    front.no_reply("GET", "/wait/a");
    browser.reload();
    browser.sees("h1", "Behind");
}
