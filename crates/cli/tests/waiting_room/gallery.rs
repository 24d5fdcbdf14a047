//! The page in every scene, and the JSON that the API would tell of it.

use crate::page::{Room, StockState, Ticket, TicketState, Visitor, WaitPage};
use crate::proxy::{Reply, Site};
use holdfast_engine::clock::wall;
use serde_json::{Value, json};

pub const SALE: &str = "winter-chair";
pub const TICKET: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
pub const QUEUE: &str = "/v1/sales/winter-chair/queue";

/// A title that nobody thought of.
const LONG: &str = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft <b>&amp; Søn";

/// A ticket in the middle of the line.
pub fn ticket(state: TicketState, now: i64) -> Ticket<'static> {
    Ticket {
        id: TICKET,
        state,
        position: Some(1234),
        ahead: Some(1233),
        waiting_total: 58_211,
        eta: Some((310, 520)),
        stock: StockState::Available,
        likely_gone: false,
        claim_by: (state == TicketState::Turn).then_some(now + 60_000),
        expires_at: (state == TicketState::Admitted).then_some(now + 583_000),
        poll_after_ms: 1_000,
    }
}

/// The page for a visitor of a sale that has started.
pub fn page(visitor: Visitor<'static>, room: Room, now: i64) -> WaitPage<'static> {
    WaitPage {
        sale: SALE,
        title: "The Winter Chair",
        brand: Some("Holm & Sons"),
        visitor,
        room,
        opens_at: Some(now - 900_000),
        starts_at: Some(now - 60_000),
        commitment: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        return_url: Some("/shop?sku=CHAIR"),
        now,
        nonce: "dGVzdC1ub25jZQ",
        events: false,
        custom_css: None,
        trouble: None,
    }
}

/// Every scene by its name, and variants of some.
pub fn scenes() -> Vec<(&'static str, WaitPage<'static>)> {
    use TicketState::{Admitted, Done, Expired, Left, Prequeue, Turn, Waiting};
    let now = wall().millis();
    let with = |ticket, room| page(Visitor::Holding(ticket), room, now);
    let is = |state, room| with(ticket(state, now), room);
    let starts_at = Some(now + 754_000);
    let unsure = Ticket { eta: None, likely_gone: true, stock: StockState::Low, ..ticket(Waiting, now) };
    let last = Ticket {
        position: Some(1_234_567),
        ahead: Some(1_234_566),
        eta: Some((9_000, 90_000)),
        ..ticket(Waiting, now)
    };
    let missed = Ticket { claim_by: Some(now - 5_000), ..ticket(Expired, now) };
    let soon = Some(now + 93_784_000);
    vec![
        (
            "early",
            WaitPage {
                opens_at: soon,
                starts_at: soon.map(|s| s + 900_000),
                ..page(Visitor::New, Room::Prequeue, now)
            },
        ),
        ("join", page(Visitor::New, Room::Open, now)),
        ("prequeue", WaitPage { starts_at, ..is(Prequeue, Room::Prequeue) }),
        ("prequeue-fifo", WaitPage { starts_at, commitment: None, ..is(Prequeue, Room::Prequeue) }),
        ("waiting", is(Waiting, Room::Open)),
        ("waiting-likely-gone", with(unsure, Room::Open)),
        ("waiting-long", WaitPage { title: LONG, brand: Some(LONG), ..with(last, Room::Open) }),
        ("held", is(Waiting, Room::Held)),
        ("paused", is(Waiting, Room::Paused)),
        ("turn", is(Turn, Room::Open)),
        ("turn-held", is(Turn, Room::Held)),
        ("turn-lost-shop", WaitPage { return_url: None, ..is(Turn, Room::Open) }),
        ("admitted", is(Admitted, Room::Open)),
        ("done", is(Done, Room::Open)),
        ("sold_out", is(Waiting, Room::SoldOut)),
        ("closed", is(Waiting, Room::Closed)),
        ("missed", with(missed, Room::Open)),
        ("lapsed", is(Expired, Room::Open)),
        ("left", is(Left, Room::Open)),
        ("lost", page(Visitor::Lost, Room::Open, now)),
    ]
}

/// The page as the server would answer it.
pub fn reply(page: &WaitPage<'_>) -> Reply {
    Reply::html(&page.render()).header("content-security-policy", &page.policy()).header("cache-control", "no-store")
}

/// The path of the page of the sale.
pub fn path() -> String {
    format!("/wait/{SALE}")
}

/// The path of the ticket, and what it leads to.
pub fn ticket_path(then: &str) -> String {
    format!("{QUEUE}/{TICKET}{then}")
}

/// A ticket as the API tells it; change what matters with [`crate::support::with`].
pub fn told(state: &str) -> Value {
    json!({
        "ticket": TICKET, "state": state, "position": 1234, "ahead": 1233, "waiting_total": 58_211,
        "eta": {"known": true, "p50_s": 310, "p90_s": 520},
        "stock": {"state": "available", "likely_gone_before_turn": false},
        "starts_at": null, "claim_by": null, "poll_after_ms": 1000, "room": "open",
    })
}

/// From now on the API tells this of the ticket.
pub fn tell(site: &Site, ticket: &Value) {
    site.reply("GET", &ticket_path(""), Reply::json(200, ticket));
}
