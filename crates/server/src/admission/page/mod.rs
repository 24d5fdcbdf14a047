//! The page of the waiting room: what is known of a visitor in, one HTML document out. Pure functions.
//!
//! Every word that a shopper reads is in `wait.html`, whose sections are the scenes: the server shows one of them,
//! and `wait.js` shows another when something changes. So the page says the same with and without JavaScript.

mod fill;
mod view;
mod words;

#[cfg(test)]
mod tests;

use fill::{Slot, escaped, fill, path_part, script_safe, without_style_end};
use serde_json::{Value, json};
use std::fmt::Write as _;
use words::{count, day_and_time, grouped, range, rfc3339, word};

pub(crate) use view::{Room, StockState, Ticket, TicketState, Trouble, Visitor};

const TEMPLATE: &str = include_str!("wait.html");
const CSS: &str = include_str!("wait.css");
const JS: &str = include_str!("wait.js");

/// The longest time between two looks, in seconds.
const SLOWEST: u64 = 30;

/// Everything that the page is made of.
#[derive(Debug, Clone)]
pub(crate) struct WaitPage<'a> {
    pub(crate) sale: &'a str,
    /// What the sale is called; any text.
    pub(crate) title: &'a str,
    /// The shop's name in the head of the page; any text.
    pub(crate) brand: Option<&'a str>,
    pub(crate) visitor: Visitor<'a>,
    pub(crate) room: Room,
    /// From when on tickets are given.
    pub(crate) opens_at: Option<i64>,
    pub(crate) starts_at: Option<i64>,
    /// The draw's seal, hexadecimal; `None` when places go by arrival.
    pub(crate) commitment: Option<&'a str>,
    /// Where the shop is: allowed by the caller, and here once more only `http`, `https` or a path.
    pub(crate) return_url: Option<&'a str>,
    pub(crate) now: i64,
    /// Fresh for each answer; the same as in the policy of its header.
    pub(crate) nonce: &'a str,
    /// Whether the page may listen to the stream of events.
    pub(crate) events: bool,
    /// The shop's own style sheet, after the built-in one.
    pub(crate) custom_css: Option<&'a str>,
    pub(crate) trouble: Option<Trouble>,
}

impl WaitPage<'_> {
    /// The document.
    pub(crate) fn render(&self) -> String {
        fill(TEMPLATE, |name, out| {
            let slot = self.slot(name);
            debug_assert!(slot.is_some(), "nothing is filled in for {name}");
            match slot {
                Some(Slot::Text(text)) => out.push_str(&escaped(&text)),
                Some(Slot::Markup(markup)) => out.push_str(&markup),
                None => {}
            }
        })
    }

    /// The value of `Content-Security-Policy`. A form's redirect to the shop counts as the form's target, so the
    /// shop's origin is named when it is another one.
    pub(crate) fn policy(&self) -> String {
        let shop = self.shop().and_then(fill::origin).map(|origin| format!(" {origin}")).unwrap_or_default();
        let nonce = self.nonce;
        format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; img-src 'self' data:; \
             connect-src 'self'; form-action 'self'{shop}; base-uri 'none'; frame-ancestors 'none'"
        )
    }

    /// The section that is shown, by its name in the template.
    pub(crate) fn scene(&self) -> &'static str {
        let Visitor::Holding(ticket) = &self.visitor else { return self.scene_without_ticket() };
        match (ticket.state, self.room) {
            (TicketState::Done, _) => "done",
            (TicketState::Left, _) => "left",
            (_, Room::SoldOut) => "sold_out",
            (TicketState::Admitted, _) => "admitted",
            (_, Room::Closed) => "closed",
            (TicketState::Turn, _) => "turn",
            (TicketState::Expired, _) if ticket.claim_by.is_some() => "missed",
            (TicketState::Expired, _) => "lapsed",
            (_, Room::Paused) => "paused",
            (TicketState::Prequeue, _) => "prequeue",
            (TicketState::Waiting, Room::Held) => "held",
            (TicketState::Waiting, _) => "waiting",
        }
    }

    fn scene_without_ticket(&self) -> &'static str {
        match (&self.visitor, self.room) {
            (_, Room::Closed) => "closed",
            (_, Room::SoldOut) => "sold_out",
            (Visitor::Left, _) => "left",
            (Visitor::Lost, _) => "lost",
            _ if self.opens_at.is_some_and(|at| self.now < at) => "early",
            _ => "join",
        }
    }

    fn ticket(&self) -> Option<&Ticket<'_>> {
        match &self.visitor {
            Visitor::Holding(ticket) => Some(ticket),
            _ => None,
        }
    }

    fn shop(&self) -> Option<&str> {
        self.return_url.filter(|url| is_a_way_back(url))
    }

    fn slot(&self, name: &str) -> Option<Slot> {
        if let Some((kind, what)) = name.split_once(':') {
            return Some(match kind {
                "in" => Slot::shown(self.scene() == what),
                "if" => Slot::shown(self.holds(what)?),
                "time" => Slot::Text(self.at(what).map_or_else(|| "–".to_owned(), day_and_time)),
                "until" => Slot::Text(self.at(what).map_or_else(|| "–".to_owned(), |at| count(at - self.now))),
                _ => return None,
            });
        }
        let ticket = self.ticket();
        let number = |n: Option<u64>| Slot::Text(n.map_or_else(|| "–".to_owned(), grouped));
        Some(match name {
            "headline" => Slot::Text(self.headline()),
            "refresh" => Slot::Markup(self.refresh()),
            "nonce" => Slot::Text(self.nonce.to_owned()),
            "css" => Slot::Markup(format!("{CSS}{}", self.custom_css.map(without_style_end).unwrap_or_default())),
            "js" => Slot::Markup(JS.to_owned()),
            "data" => Slot::Markup(script_safe(&self.data().to_string())),
            "scene" => Slot::Text(self.scene().to_owned()),
            "events" => Slot::Markup(if self.events { " data-events=\"1\"" } else { "" }.to_owned()),
            "brand" => Slot::Text(self.brand.unwrap_or_default().to_owned()),
            "title" => Slot::Text(self.title.to_owned()),
            "path" => Slot::Text(format!("/wait/{}", path_part(self.sale))),
            "draw_path" => Slot::Text(format!("/v1/sales/{}/draw", path_part(self.sale))),
            "fields" => Slot::Markup(self.fields()),
            "commitment" => Slot::Text(self.commitment.unwrap_or_default().to_owned()),
            "ticket" => Slot::Text(ticket.map(|t| t.id.to_owned()).unwrap_or_default()),
            "short" => Slot::Text(ticket.map(|t| short(t.id)).unwrap_or_default()),
            "position" => number(ticket.and_then(|t| t.position)),
            "total" => number(ticket.map(|t| t.waiting_total)),
            "ahead" if ticket.is_some_and(|t| t.ahead == Some(0)) => Slot::Text(word("nobody").to_owned()),
            "ahead" => number(ticket.and_then(|t| t.ahead)),
            "eta" => Slot::Text(ticket.map_or_else(|| word("unknown").to_owned(), eta)),
            "trouble" => Slot::Text(self.trouble.map(|t| word(t.word()).to_owned()).unwrap_or_default()),
            _ => return None,
        })
    }

    /// Whether a part of the page is shown.
    fn holds(&self, what: &str) -> Option<bool> {
        let ticket = self.ticket();
        Some(match what {
            "draw" => self.commitment.is_some(),
            "fifo" => self.commitment.is_none(),
            "return" => self.shop().is_some(),
            "no_return" => self.shop().is_none(),
            "ticket" => ticket.is_some(),
            "likely_gone" => ticket.is_some_and(|t| t.likely_gone),
            "held" => ticket.is_some_and(|t| self.room == Room::Held || t.stock == StockState::Held),
            "paused" => ticket.is_some() && self.room == Room::Paused,
            "session" => self.at("expires_at").is_some(),
            "trouble" => self.trouble.is_some(),
            "in_line" => matches!(self.scene(), "prequeue" | "waiting" | "held" | "paused"),
            _ => return None,
        })
    }

    fn at(&self, what: &str) -> Option<i64> {
        match what {
            "opens_at" => self.opens_at,
            "starts_at" => self.starts_at,
            "claim_by" => self.ticket()?.claim_by,
            "expires_at" => self.ticket()?.expires_at,
            "updated" => Some(self.now),
            _ => None,
        }
    }

    fn headline(&self) -> String {
        let scene = self.scene();
        let head = match self.ticket().and_then(|t| t.position) {
            Some(position) if scene == "waiting" => word("position").replace("{position}", &grouped(position)),
            _ => {
                let start = TEMPLATE.find(&format!("<section data-scene=\"{scene}\" data-title=\""));
                let title = start.and_then(|at| TEMPLATE[at..].split('"').nth(3));
                title.unwrap_or_default().to_owned()
            }
        };
        format!("{head} – {}", self.title)
    }

    /// How a page without JavaScript keeps itself true.
    fn refresh(&self) -> String {
        let paced = self.ticket().map_or(SLOWEST, |t| t.poll_after_ms.div_ceil(1000).clamp(2, SLOWEST));
        let seconds = match self.scene() {
            "prequeue" | "waiting" | "held" | "paused" => paced,
            // Time to read, and to find the button.
            "turn" | "admitted" => paced.max(10),
            "early" | "sold_out" => SLOWEST,
            _ => return String::new(),
        };
        let mut url = format!("/wait/{}", path_part(self.sale));
        if let Some(shop) = self.shop() {
            let _ = write!(url, "?return_url={}", path_part(shop));
        }
        format!("<noscript><meta http-equiv=\"refresh\" content=\"{seconds}; url={}\"></noscript>", escaped(&url))
    }

    fn fields(&self) -> String {
        let ticket = self.ticket().map(|t| t.id).unwrap_or_default();
        let mut fields = format!("<input type=\"hidden\" name=\"ticket\" value=\"{}\">", escaped(ticket));
        if let Some(shop) = self.shop() {
            let _ = write!(fields, "<input type=\"hidden\" name=\"return_url\" value=\"{}\">", escaped(shop));
        }
        fields
    }

    /// What the script starts from; the ticket as the API tells it.
    fn data(&self) -> Value {
        let time = |at: Option<i64>| at.map(rfc3339);
        let room = self.room.name();
        let ticket = self.ticket().map(|t| {
            json!({
                "ticket": t.id, "state": t.state.name(), "position": t.position, "ahead": t.ahead,
                "waiting_total": t.waiting_total, "room": room, "poll_after_ms": t.poll_after_ms,
                "eta": {"known": t.eta.is_some(), "p50_s": t.eta.map(|e| e.0), "p90_s": t.eta.map(|e| e.1)},
                "stock": {"state": t.stock.name(), "likely_gone_before_turn": t.likely_gone},
                "starts_at": time(self.starts_at), "claim_by": time(t.claim_by), "expires_at": time(t.expires_at),
            })
        });
        json!({
            "now": self.now, "queue": format!("/v1/sales/{}/queue", path_part(self.sale)), "title": self.title,
            "return_url": self.shop(), "ticket": ticket,
            "opens_at": time(self.opens_at), "starts_at": time(self.starts_at),
        })
    }
}

/// The address of the shop with the pass in it, for a redirect.
pub(crate) fn way_back(return_url: &str, pass: &str) -> Option<String> {
    is_a_way_back(return_url).then(|| fill::with_parameter(return_url, "waiting_room_pass", pass))
}

/// Whether a browser may be sent there: a web address, or a path of this host.
pub(crate) fn is_a_way_back(url: &str) -> bool {
    // A browser drops tabs and line ends from an address and reads a backslash as a slash.
    if url.chars().any(|c| c.is_control() || c == '\\') {
        return false;
    }
    fill::origin(url).is_some() || (url.starts_with('/') && !url.starts_with("//"))
}

/// The end of a ticket's id, enough for people to tell two apart.
fn short(id: &str) -> String {
    let from = id.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
    id[from..].to_owned()
}

fn eta(ticket: &Ticket<'_>) -> String {
    match ticket.eta {
        None => word("unknown").to_owned(),
        Some(_) if ticket.ahead == Some(0) => word("now").to_owned(),
        Some((p50, p90)) => range(p50, p90),
    }
}
