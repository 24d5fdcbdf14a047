//! A room with a clock that is moved by hand, and shoppers who poll or do not.

use holdfast_admission::room::{
    Claim, Class, Join, Joining, OrderRule, Room, RoomRules, StockSignal, TicketId, TicketState, View,
};
use holdfast_domain::Time;

/// When the tests' sale starts.
pub(crate) const START: i64 = 1_800_000_000_000;

pub(crate) fn rules() -> RoomRules {
    RoomRules {
        max_active: 1_000_000,
        admit_per_second: 10,
        turn_seconds: 60,
        session_seconds: 600,
        prequeue_seconds: 900,
        order: OrderRule::Draw,
        starts_at: Some(at(0)),
        ends_at: None,
    }
}

/// So many milliseconds after the start.
pub(crate) fn at(ms: i64) -> Time {
    Time::from_millis(START + ms)
}

pub(crate) fn id(n: u32) -> TicketId {
    let mixed = u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&mixed.to_be_bytes());
    TicketId(bytes)
}

/// A ticket whose draw is its number upside down, so that joining and drawing give different orders.
pub(crate) fn ticket(n: u32, joined_at: Time) -> Joining {
    let mut draw = [0xAA; 32];
    draw[..4].copy_from_slice(&(u32::MAX - n).to_be_bytes());
    Joining { id: id(n), joined_at, sequence: n, identity: None, draw }
}

pub(crate) const PLENTY: StockSignal = StockSignal { known: true, available: 1_000_000_000, held: 0 };

pub(crate) struct Hall {
    pub(crate) room: Room,
    pub(crate) now: i64,
    pub(crate) stock: StockSignal,
    pub(crate) pace: f64,
    /// Who polls every ten seconds.
    pub(crate) present: Vec<u32>,
}

impl Hall {
    /// Begins so many milliseconds after the start; before it, if negative.
    pub(crate) fn new(rules: RoomRules, now: i64) -> Self {
        let mut hall = Self { room: Room::new(rules, 7), now, stock: PLENTY, pace: 1.0, present: Vec::new() };
        hall.room.step(hall.stock, hall.pace, at(now));
        hall
    }

    pub(crate) fn at(&self) -> Time {
        at(self.now)
    }

    pub(crate) fn join(&mut self, n: u32) -> Join {
        self.present.push(n);
        self.room.join(&ticket(n, self.at()), self.at())
    }

    pub(crate) fn join_as(&mut self, n: u32, identity: u64) -> Join {
        self.room.join(&Joining { identity: Some(identity), ..ticket(n, self.at()) }, self.at())
    }

    pub(crate) fn join_all(&mut self, numbers: std::ops::Range<u32>, class: Class) {
        numbers.for_each(|n| assert_eq!(self.join(n), Join::Joined(class)));
    }

    /// Lets time pass, with a step every 200 ms and a poll of everybody present every 10 s.
    pub(crate) fn pass(&mut self, ms: i64) {
        let until = self.now + ms;
        while self.now < until {
            self.now = (self.now + 200).min(until);
            if self.now / 10_000 != (self.now - 200) / 10_000 {
                self.poll();
            }
            self.room.step(self.stock, self.pace, self.at());
        }
    }

    /// Lets time pass until this ticket is in turn; how many milliseconds that took.
    pub(crate) fn until_turn(&mut self, n: u32) -> i64 {
        let from = self.now;
        while self.state(n) != TicketState::Turn {
            assert!(self.now - from < 3_600_000, "no turn within an hour: {:?}", self.peek(n));
            self.pass(200);
        }
        self.now - from
    }

    /// Everybody present polls.
    pub(crate) fn poll(&mut self) {
        for n in self.present.clone() {
            self.room.see(id(n), self.at());
        }
    }

    pub(crate) fn peek(&self, n: u32) -> View {
        self.room.peek(id(n), self.at()).unwrap()
    }

    pub(crate) fn see(&mut self, n: u32) -> View {
        self.room.see(id(n), at(self.now)).unwrap()
    }

    pub(crate) fn state(&self, n: u32) -> TicketState {
        self.peek(n).state
    }

    pub(crate) fn claim(&mut self, n: u32) -> Claim {
        self.room.claim(id(n), at(self.now))
    }

    /// Who is in turn, of the tickets below this number.
    pub(crate) fn in_turn(&self, below: u32) -> Vec<u32> {
        (0..below).filter(|n| self.room.peek(id(*n), self.at()).is_some_and(|v| v.state == TicketState::Turn)).collect()
    }
}
