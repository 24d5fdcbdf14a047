//! The waiting room of one sale: who has which place, whose turn it is, and how long it will take.
//!
//! A state machine without I/O, clock or chance: every call is handed the moment and answers at once, and what has to
//! survive is left in [`Room::take_records`] for the caller to write down. A moment may be earlier than the one before;
//! then nothing moves until time has caught up.
//!
//! **Order.** A ticket's key is made when it joins and never changes. Those who join before the start come first, in
//! the order of the draw or of joining, and all others behind them in the order of joining. Nothing is shuffled at the
//! start. When the start is moved or the rule of order changes, those who have joined keep their class and their key:
//! nobody loses a place that was promised. Those drawn are before those who joined early under the other rule.
//!
//! **Presence.** A poll is presence. Whoever is absent for 45 s steps aside and comes back to the same place with the
//! next poll; after 5 min the ticket expires. Before the start nobody has to be there, and at the start everybody
//! counts as seen. The same holds when the room itself was away ([`Room::step`] was not called for 10 s, or ever since
//! a replay): nobody could show up then, so absence counts from the first step on, and turns begin anew.
//!
//! **Stock** is not kept right here; turns are bounded by it so that people do not come for nothing.

mod flow;
mod moves;
mod order;
mod record;
mod replay;
mod slots;
mod step;
mod types;
mod view;

pub use replay::{Replay, ReplayEnd};
pub use types::{
    Claim, Class, Counts, Eta, Join, Joining, OrderRule, Restored, RoomRules, RoomState, StockSignal, TicketId,
    TicketState, View,
};

use flow::Flow;
use holdfast_domain::Time;
use order::Order;
use slots::{Phase, Slots, Ticket};
use std::collections::BTreeSet;

/// Absent for longer than this steps aside.
const ASIDE_MS: i64 = 45_000;
/// Absent for longer than this expires.
const GONE_MS: i64 = 300_000;
/// A room that was not stepped for longer than this was away itself.
const ASLEEP_MS: i64 = 10_000;
/// How long an ended ticket is told about.
const KEPT_MS: i64 = 600_000;
/// A hold that nobody reports the end of keeps its place for so long after the session.
const LONGEST_HOLD_SECONDS: u32 = 7200;

/// How many tickets are in each phase, and how many ever were.
#[derive(Default, Clone, Copy)]
struct Tally {
    aside: u64,
    turn: u64,
    admitted: u64,
    holding: u64,
    joined: u64,
    turns: u64,
    done: u64,
    expired: u64,
    left: u64,
}

/// The waiting room of one sale.
pub struct Room {
    rules: RoomRules,
    paused: bool,
    stock: StockSignal,
    slots: Slots,
    /// Those who wait and are present.
    order: Order,
    /// When turns and sessions end.
    due: BTreeSet<(i64, u32)>,
    tally: Tally,
    flow: Flow,
    /// Turns that may be given by now, in millionths.
    credit: u64,
    last_step: Option<i64>,
    /// Nobody counts as absent since before this moment.
    awake_since: i64,
    /// Where the search for absentees goes on.
    cursor: u32,
    /// Tickets that joined in between may be unknown though they never ended.
    lost: Option<(Time, Time)>,
    log: Vec<u8>,
}

impl Room {
    /// An empty room. The seed keeps others from choosing identities that collide in its tables.
    pub fn new(rules: RoomRules, seed: u64) -> Self {
        Self {
            rules,
            paused: false,
            stock: StockSignal::default(),
            slots: Slots::new(seed),
            order: Order::default(),
            due: BTreeSet::new(),
            tally: Tally::default(),
            flow: Flow::default(),
            credit: 0,
            last_step: None,
            awake_since: i64::MIN,
            cursor: 0,
            lost: None,
            log: Vec::new(),
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> RoomRules {
        self.rules
    }

    /// Changes the rules from now on. Turns and sessions that are under way keep their ends, tickets their places, and
    /// whoever is in when `max_active` sinks stays in.
    pub fn set_rules(&mut self, rules: RoomRules) {
        self.rules = rules;
    }

    /// While paused nobody is given a turn; everything else goes on.
    pub fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Joins the queue. A new ticket joins before the start or behind all others, by its `joined_at`.
    pub fn join(&mut self, ticket: &Joining, now: Time) -> Join {
        if self.rules.ends_at.is_some_and(|ends_at| now >= ends_at) {
            return Join::Ended;
        }
        if let Some(starts_at) = self.rules.starts_at {
            let early = i64::from(self.rules.prequeue_seconds).saturating_mul(1000);
            let opens_at = Time::from_millis(starts_at.millis().saturating_sub(early));
            if now < opens_at {
                return Join::TooEarly { opens_at };
            }
        }
        if self.slots.find(ticket.id).is_some() {
            return Join::Same(ticket.id);
        }
        if let Some(slot) = ticket.identity.and_then(|identity| self.slots.find_identity(identity)) {
            self.settle(slot, now.millis());
            if self.slots.get(slot).phase.is_live() {
                self.show_up(slot, now.millis());
                return Join::Same(self.slots.get(slot).id);
            }
        }
        let is_early = self.rules.starts_at.is_some_and(|starts_at| ticket.joined_at < starts_at);
        let class = match self.rules.order {
            _ if !is_early => Class::Late,
            OrderRule::Draw => Class::Drawn,
            OrderRule::Fifo => Class::Early,
        };
        match self.enter(&new_ticket(ticket, class, false, now)) {
            Some(_) => Join::Joined(class),
            None => Join::Full,
        }
    }

    /// From now on, signed tickets that joined from the first to the last of these moments are taken back if they are
    /// unknown: the journal was lost, or its tail was. A room that has lost nothing refuses them, since there a ticket
    /// that is unknown has ended, and would come back to life at its old place.
    pub fn lose(&mut self, from: Time, to: Time) {
        self.note_loss(from, to);
    }

    /// Puts a signed ticket back into its own place, with the class it was given when it joined.
    ///
    /// If its identity has another ticket by now, the one that is further ahead goes on and the other one has left.
    pub fn restore(&mut self, ticket: &Joining, class: Class, now: Time) -> Restored {
        if self.slots.find(ticket.id).is_some() {
            return Restored::Known;
        }
        if !self.lost.is_some_and(|(from, to)| (from..=to).contains(&ticket.joined_at)) {
            return Restored::Refused;
        }
        let new = new_ticket(ticket, class, true, now);
        if let Some(slot) = ticket.identity.and_then(|identity| self.slots.find_identity(identity)) {
            self.settle(slot, now.millis());
            let other = *self.slots.get(slot);
            let waits = matches!(other.phase, Phase::Waiting | Phase::Aside);
            if other.phase.is_live() && !(waits && new.key < other.key) {
                return Restored::Other(other.id);
            }
            if waits {
                self.end(slot, Phase::Left, now.millis());
            }
        }
        match self.enter(&new) {
            Some(_) => Restored::Placed,
            None => Restored::Full,
        }
    }

    /// Claims the turn. Whoever is admitted already gets the same session again.
    pub fn claim(&mut self, id: TicketId, now: Time) -> Claim {
        let Some(slot) = self.slots.find(id) else { return Claim::Unknown };
        self.settle(slot, now.millis());
        match self.slots.get(slot).phase {
            Phase::Turn => {
                let session_until = now.plus_seconds(self.rules.session_seconds);
                self.admit(slot, session_until.millis());
                Claim::Admitted { session_until }
            }
            Phase::Admitted => Claim::Admitted { session_until: Time::from_millis(self.slots.get(slot).until) },
            Phase::Waiting | Phase::Aside => {
                self.show_up(slot, now.millis());
                Claim::NotYet(self.view(slot, now))
            }
            Phase::Expired => Claim::Missed,
            Phase::Done | Phase::Left | Phase::Free => Claim::Over,
        }
    }

    /// The admitted one has a hold: it counts no more as somebody whom the stock still has to serve, and its place lasts
    /// as long as the hold, for two hours after the session at most. False if it is not admitted.
    pub fn holds(&mut self, id: TicketId) -> bool {
        self.mark_hold(id, true)
    }

    /// The admitted one has its hold no more but goes on shopping until the session ends. False if it is not admitted.
    pub fn unholds(&mut self, id: TicketId) -> bool {
        self.mark_hold(id, false)
    }

    /// The admitted one is done: its place is free at once. False if it is not admitted.
    pub fn finish(&mut self, id: TicketId, now: Time) -> bool {
        let slot = self.slots.find(id).filter(|slot| self.slots.get(*slot).phase == Phase::Admitted);
        if let Some(slot) = slot {
            self.end(slot, Phase::Done, now.millis());
        }
        slot.is_some()
    }

    /// Gives the place up, wherever it is. False if there is none.
    pub fn leave(&mut self, id: TicketId, now: Time) -> bool {
        let slot = self.slots.find(id).filter(|slot| self.slots.get(*slot).phase.is_live());
        if let Some(slot) = slot {
            self.end(slot, Phase::Left, now.millis());
        }
        slot.is_some()
    }

    /// The room in numbers.
    pub fn counts(&self, now: Time) -> Counts {
        let (waiting, tally) = (self.order.len() as u64, self.tally);
        let before = self.is_before_start(now.millis());
        Counts {
            prequeue: if before { waiting } else { 0 },
            waiting: if before { 0 } else { waiting },
            aside: tally.aside,
            turn: tally.turn,
            admitted: tally.admitted,
            holding: tally.holding,
            joined_total: tally.joined,
            turns_total: tally.turns,
            done_total: tally.done,
            expired_total: tally.expired,
            left_total: tally.left,
            rate: self.flow.rate(),
            remembered: self.slots.used() as u64,
        }
    }

    fn is_before_start(&self, now: i64) -> bool {
        self.rules.starts_at.is_some_and(|starts_at| now < starts_at.millis())
    }
}

fn new_ticket(from: &Joining, class: Class, restored: bool, now: Time) -> Ticket {
    Ticket {
        key: key(from, class),
        id: from.id,
        identity: from.identity.unwrap_or_default(),
        seen: now.millis(),
        until: 0,
        phase: Phase::Waiting,
        has_identity: from.identity.is_some(),
        has_hold: false,
        restored,
    }
}

/// The first two bits are the class. Then come 126 bits of the draw, or the moment and the number within it.
fn key(ticket: &Joining, class: Class) -> u128 {
    let mut draw = [0; 16];
    draw.copy_from_slice(&ticket.draw[..16]);
    let moment = u128::from(ticket.joined_at.millis().max(0).unsigned_abs()) << 32 | u128::from(ticket.sequence);
    match class {
        Class::Drawn => u128::from_be_bytes(draw) >> 2,
        Class::Early => 1 << 126 | moment,
        Class::Late => 1 << 127 | moment,
    }
}
