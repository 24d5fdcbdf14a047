//! What a state consists of: Redis, SQL, and what each process remembers.

use super::Orders;

pub(super) const HOLDS: usize = 2;
pub(super) const TOKENS: usize = 2;
/// One more than the audits that a walk may see.
pub(super) const EPOCHS: usize = 5;
/// Twice the holds, and two more for a planted mistake to be seen.
const FACTS: usize = 2 * HOLDS + 2;

/// What a decision does to Redis.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Effect {
    Nothing,
    Sell(usize),
    SellLate,
    /// This hold's units go to an older hold of its order, which is confirmed late.
    Swap(usize),
    GiveBack(usize),
    Less,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    Held(usize),
    Expired(usize),
}

/// Facts with the epoch each was logged under; a fact's sequence number is its place. Packed, as states have many.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Log {
    facts: [u8; FACTS],
}

impl Log {
    pub(super) fn add(&mut self, epoch: usize, fact: Fact) {
        let length = self.facts.iter().filter(|f| **f != 0).count();
        let (hold, expired) = match fact {
            Fact::Held(h) => (h, 0),
            Fact::Expired(h) => (h, 1),
        };
        self.facts[length] = (epoch * 2 * HOLDS + hold * 2 + expired) as u8;
    }

    pub(super) fn after(self, position: (usize, usize)) -> impl Iterator<Item = ((usize, usize), Fact)> {
        let unpack = |(i, packed): (usize, u8)| {
            let packed = usize::from(packed);
            let hold = packed / 2 % HOLDS;
            let fact = if packed % 2 == 0 { Fact::Held(hold) } else { Fact::Expired(hold) };
            ((packed / (2 * HOLDS), i + 1), fact)
        };
        let logged = self.facts.into_iter().enumerate().filter(|(_, packed)| *packed != 0);
        logged.map(unpack).filter(move |(at, _)| *at > position)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Live {
    None,
    Tentative,
    Held,
    Marked(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Redis {
    pub(super) server: u8,
    pub(super) epoch: usize,
    pub(super) available: i8,
    pub(super) sold: i8,
    pub(super) holds: [Live; HOLDS],
    pub(super) frozen: Option<usize>,
    /// The token that keeps the order from taking a new hold, where both holds are of one order.
    pub(super) order: Option<usize>,
    /// The order was confirmed, where both holds are of one order.
    pub(super) bought: bool,
    pub(super) tokens: [bool; TOKENS],
    pub(super) log: Log,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Known {
    Unknown,
    Held,
    Expired,
    Released,
    Confirmed,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Row {
    None,
    Effects(Effect),
    Tombstone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sql {
    pub(super) epoch: usize,
    pub(super) serving: bool,
    pub(super) available: i8,
    pub(super) sold: i8,
    pub(super) holds: [Known; HOLDS],
    pub(super) drained: (usize, usize),
    pub(super) rows: [Row; TOKENS],
}

impl Sql {
    pub(super) fn held(&self, orders: Orders) -> i8 {
        (0..HOLDS).filter(|h| self.holds[*h] == Known::Held).map(|h| orders.units(h)).sum()
    }

    /// Applies what of `log` was not applied before; whether each fact made sense.
    pub(super) fn drain(&mut self, log: Log, orders: Orders) -> bool {
        let mut sound = true;
        for (at, fact) in log.after(self.drained) {
            self.drained = at;
            let (hold, from, to, units) = match fact {
                Fact::Held(h) => (h, Known::Unknown, Known::Held, -orders.units(h)),
                Fact::Expired(h) => (h, Known::Held, Known::Expired, orders.units(h)),
            };
            sound &= self.holds[hold] == from;
            // A unique key: one hold of an order is held or confirmed.
            let other = self.holds[1 - hold];
            sound &= to != Known::Held || !orders.one() || !matches!(other, Known::Held | Known::Confirmed);
            self.holds[hold] = to;
            self.available += units;
        }
        sound
    }
}

/// A node that carries one command; a crashed one stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Idle,
    Frozen { epoch: usize, log: Log, tentative: i8, checked: bool },
    Over,
}

/// What somebody may have learnt about a token, and may act upon at any later time.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Learnt {
    pub(super) effects: Option<Effect>,
    pub(super) tombstone: bool,
    /// Redis said, under this epoch, that it has nothing left to apply.
    pub(super) applied: [bool; EPOCHS],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Unclaimed,
    Claimed,
    Raised,
    Drained,
    Counted,
    Rebuilt,
    Over,
}

/// The audit that claimed an epoch, on the server it was connected to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Audit {
    pub(super) stage: Stage,
    pub(super) server: u8,
}

/// See [`Model::State`](crate::explore::Model::State).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) redis: Redis,
    pub(super) replica: Option<Redis>,
    /// The server before the failover, where it lives on.
    pub(super) old: Option<Redis>,
    pub(super) sql: Sql,
    pub(super) nodes: [Node; TOKENS],
    pub(super) learnt: [Learnt; TOKENS],
    /// A fact reader's batch, read under an epoch and not yet committed.
    pub(super) batch: Option<(usize, Log)>,
    pub(super) audits: [Audit; EPOCHS],
    /// The server that each epoch was served from, which SQL says to every node.
    pub(super) served: [Option<u8>; EPOCHS],
    pub(super) used: [bool; HOLDS],
    pub(super) failovers: u8,
    pub(super) claims: u8,
    pub(super) broke: Option<&'static str>,
}
