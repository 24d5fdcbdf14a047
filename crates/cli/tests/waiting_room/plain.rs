//! The same page without JavaScript: it looks again by itself, and its buttons are forms.

use crate::browser::{Driver, Look};
use crate::gallery::{TICKET, page, path, reply, ticket};
use crate::page::{Room, Ticket, TicketState, Visitor, WaitPage};
use crate::proxy::{Reply, Site};
use holdfast_engine::clock::wall;

#[test]
fn the_page_looks_again_by_itself_and_its_button_leads_to_the_shop() {
    let Some(driver) = Driver::start() else { return };
    let now = wall().millis();
    let site = Site::alone();
    let shop = site.url("/shop").replace("localhost", "127.0.0.1");
    let is = |state, position| {
        let ticket = Ticket { position: Some(position), ..ticket(state, now) };
        page(Visitor::Holding(ticket), Room::Open, now)
    };
    site.reply("GET", &path(), reply(&is(TicketState::Waiting, 1234)));
    let browser = driver.open(&Look::phone().without_script());
    browser.go(&site.url(&path()));
    browser.sees(".wr-number", "1,234");
    site.reply("GET", &path(), reply(&is(TicketState::Waiting, 3)));
    browser.sees(".wr-number", "3");
    let turn = is(TicketState::Turn, 1);
    site.reply("GET", &path(), reply(&WaitPage { return_url: Some(shop.as_str()), ..turn }));
    browser.sees("h1", "It is your turn");
    // The shop is of another origin here, and the redirect has to pass the page's policy.
    site.reply("GET", "/shop", Reply::html("<h1>The shop</h1>"));
    let back = format!("{shop}?waiting_room_pass=p");
    site.reply("POST", &format!("{}/claim", path()), Reply::new(303).header("location", &back));
    browser.click("section:not([hidden]) button");
    browser.sees("h1", "The shop");
    assert_eq!(browser.url(), back);
    let claims: Vec<_> = site.asked().into_iter().filter(|a| a.method == "POST").collect();
    let form = String::from_utf8(claims[0].body.clone()).unwrap();
    assert!(form.starts_with(&format!("ticket={TICKET}&return_url=http%3A%2F%2F127.0.0.1")), "{form}");
}
