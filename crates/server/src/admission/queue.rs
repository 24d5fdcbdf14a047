//! Waiting: joining the room of a sale, looking, claiming a turn, leaving. What is answered is a place: where a ticket
//! stands, and the truth about the stock.

use super::binding::Shown;
use super::caller::Caller;
use super::gate::is_older;
use super::rooms::{LiveRoom, Stock, no_room};
use super::sale::Sale;
use crate::app::App;
use crate::problem::Problem;
use crate::view::Moment;
use holdfast_admission::draw;
use holdfast_admission::keys::KeyRing;
use holdfast_admission::pass::{self, Claims};
use holdfast_admission::room::{
    Claim, Class, Counts, Join, Joining, OrderRule, Restored, RoomState, TicketId, TicketState, View,
};
use holdfast_admission::ticket::{Ticket, identity};
use holdfast_domain::Time;
use holdfast_engine::clock::random_bytes;
use std::sync::Arc;

/// A room, and what its calls need.
pub(crate) struct Queue<'a> {
    app: &'a App,
    pub(crate) sale: Arc<Sale>,
    live: Arc<LiveRoom>,
    keys: Arc<KeyRing>,
}

/// Where a ticket stands.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) ticket: Ticket,
    pub(crate) view: View,
    pub(crate) stock: Stock,
    pub(crate) likely_gone: bool,
}

/// What became of a claim.
pub(crate) enum Claimed {
    Pass { pass: String, expires_at: Time },
    NotYet(Place),
}

impl<'a> Queue<'a> {
    /// The room of a sale.
    pub(crate) fn of(app: &'a App, sale: &str) -> Result<Self, Problem> {
        let sales = app.admission.sales()?;
        let sale = sales.get(sale).ok_or_else(|| Problem::new("not_found", "no sale has this name"))?;
        let live = app.admission.rooms.get(&sale.name).filter(|_| sale.room.is_some()).ok_or_else(no_room)?;
        Ok(Self { app, sale: sale.clone(), live, keys: app.admission.ring.keys()? })
    }

    /// A place for somebody: the one that they have, or a new one. Whether it is new.
    pub(crate) fn join(
        &self,
        caller: &Caller,
        who: Option<&str>,
        known: Option<&str>,
    ) -> Result<(Place, bool), Problem> {
        if let Some(ticket) = known.and_then(|text| self.read(text).ok())
            && let Ok(place) = self.look(ticket, true)
            && is_live(place.view.state)
        {
            return Ok((place, false));
        }
        if who.is_none() {
            self.app.admission.may_join(caller)?;
        }
        let who = who.map(|who| identity(&self.sale.kept.secret, &self.sale.name, who));
        let random = random_bytes().map_err(|_| Problem::new("engine_unavailable", "no random numbers can be had"))?;
        let now = self.app.engine.time();
        let joined = self.live.change(|state| {
            let us = state.next_us(now);
            let ticket = Ticket::make(&self.keys, &self.sale.name, us, who, random);
            (state.room.join(&self.joining(&ticket), now), ticket)
        });
        match joined {
            (Join::Joined(_), ticket) => Ok((self.look(ticket, true)?, true)),
            (Join::Same(id), _) => Ok((self.look(self.ticket(id)?, true)?, false)),
            (Join::TooEarly { opens_at }, _) => {
                let problem = Problem::new("queue_not_open", "the queue is not open yet; come back at opens_at");
                Err(problem.with("opens_at", &Moment(opens_at)).with("starts_at", &self.sale.starts_at.map(Moment)))
            }
            (Join::Ended, _) => Err(Problem::new("sale_ended", "the sale is over")),
            (Join::Full, _) => Err(Problem::new("overloaded", "the waiting room is full")),
        }
    }

    /// What the room has to know of a ticket.
    fn joining(&self, ticket: &Ticket) -> Joining {
        let us = ticket.joined_at_us();
        Joining {
            id: ticket.id(),
            joined_at: Time::from_millis(i64::try_from(us / 1000).unwrap_or(i64::MAX)),
            sequence: (us % 1000) as u32,
            identity: ticket.identity().map(std::num::NonZeroU64::get),
            draw: draw::place(self.live.seed(), &ticket.to_string()),
        }
    }

    fn ticket(&self, id: TicketId) -> Result<Ticket, Problem> {
        Ticket::of(id, &self.keys).ok_or_else(over)
    }

    fn read(&self, text: &str) -> Result<Ticket, Problem> {
        let ticket = Ticket::read(text, &self.keys, &self.sale.name);
        let ticket = ticket.map_err(|error| Problem::new("not_found", error.to_string()))?;
        if is_older(&ticket, &self.sale) { Err(over()) } else { Ok(ticket) }
    }

    /// Where a ticket stands. Looking counts as being there.
    pub(crate) fn see(&self, text: &str) -> Result<Place, Problem> {
        self.look(self.read(text)?, true)
    }

    /// The same for whoever watches a stream: they are there as long as it lasts.
    pub(crate) fn look(&self, ticket: Ticket, may_restore: bool) -> Result<Place, Problem> {
        let now = self.app.engine.time();
        let seen = self.live.change(|state| {
            let view = state.room.see(ticket.id(), now)?;
            let likely_gone = state.room.likely_gone(ticket.id(), state.stock.signal);
            Some(Place { ticket, view, stock: state.stock, likely_gone })
        });
        match seen {
            Some(place) => Ok(place),
            None if may_restore => self.restore(ticket, now),
            None => Err(over()),
        }
    }

    /// The room has lost its memory of a ticket, or the ticket has ended long ago.
    fn restore(&self, ticket: Ticket, now: Time) -> Result<Place, Problem> {
        let joining = self.joining(&ticket);
        let restored = self.live.change(|state| {
            let rules = state.room.rules();
            let is_early = rules.starts_at.is_some_and(|start| joining.joined_at < start);
            let class = match rules.order {
                _ if !is_early => Class::Late,
                OrderRule::Draw => Class::Drawn,
                OrderRule::Fifo => Class::Early,
            };
            state.room.restore(&joining, class, now)
        });
        match restored {
            Restored::Placed | Restored::Known => self.look(ticket, false),
            Restored::Other(id) => self.look(self.ticket(id)?, false),
            Restored::Refused => Err(over()),
            Restored::Full => Err(Problem::new("overloaded", "the waiting room is full")),
        }
    }

    /// Takes the turn of a ticket: its pass, if it has one. The same pass as often as it is asked for.
    pub(crate) fn claim(&self, text: &str) -> Result<Claimed, Problem> {
        let ticket = self.look(self.read(text)?, true)?.ticket;
        let now = self.app.engine.time();
        match self.live.change(|state| state.room.claim(ticket.id(), now)) {
            Claim::Admitted { session_until } => {
                let until = u64::try_from(session_until.millis() / 1000).unwrap_or(0);
                // Of all moments that could stand here, this one never changes.
                let from = ticket.joined_at_us() / 1_000_000;
                let claims = Claims {
                    aud: self.sale.name.clone(),
                    sub: ticket.to_string(),
                    jti: ticket.signature(),
                    iat: from,
                    nbf: from,
                    exp: until,
                };
                Ok(Claimed::Pass { pass: pass::sign(&self.keys, &claims), expires_at: session_until })
            }
            Claim::NotYet(_) => Ok(Claimed::NotYet(self.look(ticket, false)?)),
            Claim::Missed => Err(Problem::new("turn_missed", "the turn has passed; join again, at the back")),
            Claim::Over | Claim::Unknown => Err(over()),
        }
    }

    /// Gives a place up.
    pub(crate) async fn leave(&self, text: &str) -> Result<(), Problem> {
        let place = self.look(self.read(text)?, true)?;
        if let Some(expires_at) = place.view.session_until {
            let shown = Shown { sale: self.sale.name.clone(), ticket: place.ticket.to_string(), expires_at };
            shown.close(&*self.app.engine).await?;
        }
        let now = self.app.engine.time();
        self.live.change(|state| state.room.leave(place.ticket.id(), now));
        Ok(())
    }

    /// The room in numbers.
    pub(crate) fn counts(&self) -> (Counts, RoomState, Stock) {
        let now = self.app.engine.time();
        self.live.change(|state| (state.room.counts(now), state.room.state(now), state.stock))
    }
}

/// Whether a place is one that somebody still waits or shops with.
pub(crate) fn is_live(state: TicketState) -> bool {
    !matches!(state, TicketState::Done | TicketState::Expired | TicketState::Left)
}

fn over() -> Problem {
    Problem::new("ticket_over", "this ticket has ended; join again")
}

/// What is left, in a word.
pub(crate) fn stock_word(stock: Stock) -> &'static str {
    let signal = stock.signal;
    match (signal.available, signal.held) {
        _ if !signal.known => "available",
        (0, 0) => "sold_out",
        (0, _) => "held",
        (available, _) if available.saturating_mul(10) <= stock.total => "low",
        _ => "available",
    }
}

pub(crate) fn state_word(state: TicketState) -> &'static str {
    match state {
        TicketState::Prequeue => "prequeue",
        TicketState::Waiting => "waiting",
        TicketState::Turn => "turn",
        TicketState::Admitted => "admitted",
        TicketState::Done => "done",
        TicketState::Expired => "expired",
        TicketState::Left => "left",
    }
}

pub(crate) fn room_word(room: RoomState) -> &'static str {
    match room {
        RoomState::Prequeue => "prequeue",
        RoomState::Open => "open",
        RoomState::Paused => "paused",
        RoomState::Held => "held",
        RoomState::SoldOut => "sold_out",
        RoomState::Closed => "closed",
    }
}
