//! Commands that SQL decides while Redis decides holds and expiry, and failovers of Redis.
//!
//! A node freezes in Redis what its command touches, under a fresh token; decides in one SQL transaction, which also
//! applies the facts that Redis had logged by then and writes down the effects under the token; and then applies the
//! effects in Redis. Recovery passes end what nodes leave behind: a token without a row gets a tombstone, so that a
//! slow transaction fails. A failover sets Redis back to an earlier moment. Then an audit raises the epoch, takes over
//! what facts there are, and builds Redis anew from SQL.
//!
//! Everything carries the epoch it began under: scripts, drains, decisions, and the deletion of rows. An epoch belongs to
//! one server, and SQL says to which.
//!
//! One SKU. As in `carts`, recovery is modelled by what somebody may have learnt: a token once seen may meet its
//! tombstone at any later time, a row once read may be applied at any later time, and so on.

mod audit;
mod node;
mod recovery;
mod state;

use crate::explore::{Model, Step};
pub use state::State;
use state::{Audit, EPOCHS, HOLDS, Known, Learnt, Live, Log, Node, Redis, Row, Sql, Stage, TOKENS};

/// A mistake to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None: the protocol as it should be.
    Nothing,
    /// Effects are applied without looking whether their token is there.
    ApplyUnchecked,
    /// A token without a row is unfrozen without a tombstone.
    NoTombstone,
    /// The audit raises Redis's epoch only when it ends.
    RaiseLate,
    /// The audit may set Redis's epoch back.
    RaiseBackwards,
    /// The audit begins to serve although another has taken over.
    ServeUnchecked,
    /// The audit leaves the rows of steps alone. This is no mistake: tokens are gone from Redis, so they do nothing.
    RowsSurvive,
    /// The audit deletes tombstones too. This is no mistake: no transaction of an older epoch commits any more.
    TombstonesEnd,
    /// `apply` is carried out whatever epoch it carries.
    ApplyAnyEpoch,
    /// The audit leaves the rows of steps alone, and effects are applied without looking for their token.
    RowsSurviveUnchecked,
    /// The audit leaves rows, tokens, marks and frozen SKUs alone.
    TokensSurvive,
    /// The audit leaves tentative parts alone, whose units SQL knows nothing of.
    TentativeSurvives,
    /// The audit says at its end which server Redis is, instead of the one it began with.
    IdentityAtEnd,
    /// A server that comes back after another one served passes for itself: its process id is the same.
    IdentityReturns,
    /// Nodes do not notice that Redis is another server than the one that their epoch was served from.
    IdentityUnchecked,
    /// The transaction looks at the epoch without locking it until it commits.
    EpochUnlocked,
    /// The transaction carries the newest epoch that its node knows instead of the one it froze under.
    EpochNewest,
    /// A transaction that only drains facts does not look at the epoch.
    DrainUnchecked,
    /// The deciding transaction applies no facts first.
    DecideUndrained,
    /// `freeze` does not tell how many units are in tentative parts, and SQL takes them for available.
    TentativeUntold,
    /// A command that gives units back freezes its hold but not the SKU.
    GivingFreezesHold,
    /// A command that needs available units does not freeze the SKU.
    NothingFrozen,
    /// A late confirmation does not mark the newer hold of its order, whose units it uses.
    NewerUnmarked,
    /// A late confirmation does not keep its order from taking a new hold.
    OrderUnfrozen,
    /// A marked hold expires.
    MarkedExpires,
    /// A script is sent again by a library, and freezes under a token that was used.
    FreezesTwice,
    /// A script is sent again by a library, and makes a hold anew that has ended.
    HoldsTwice,
    /// Rows are deleted whatever epoch the deleting transaction carries.
    DeleteUnchecked,
    /// A node that does not know whether its transaction committed repeats it under its token.
    Repeats,
    /// The same, with rows that become tombstones instead of being deleted. This is no mistake.
    RepeatsKept,
}

/// What a node is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Confirm this hold, late if need be.
    Confirm(usize),
    /// Release this hold.
    Release(usize),
    /// Take one available unit out of the stock.
    Less,
    /// Nothing; there is one token less.
    Nothing,
}

/// What the two holds have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// Two orders that want the same SKU.
    Apart,
    /// Two holds of one order.
    One,
    /// Two holds of one order; the second is for another SKU, of which there is plenty.
    OneOtherSku,
}

impl Orders {
    fn one(self) -> bool {
        self != Self::Apart
    }

    /// How many units of the SKU that counts hold `h` has.
    fn units(self, h: usize) -> i8 {
        i8::from(h == 0 || self != Self::OneOtherSku)
    }
}

/// The model; see the file's head.
pub struct Steps {
    /// What is planted.
    pub plant: Plant,
    /// What nodes are asked to do, a token each.
    pub commands: [Command; TOKENS],
    /// Whose holds they are.
    pub orders: Orders,
    /// Units of the one SKU.
    pub stock: i8,
    /// How many failovers there may be.
    pub failovers: u8,
    /// How many audits there may be that nothing called for: an operator's, or one that takes over from another.
    pub claims: u8,
    /// Whether a server that was failed over lives on for the nodes that are connected to it.
    pub split: bool,
    /// Whether the second hold is part of a cart over several partitions, and so tentative at first.
    pub tentative: bool,
}

impl Steps {
    /// What nodes do with the Redis they are connected to.
    fn serve(&self, s: &State, into: &mut Vec<(Step, State)>) {
        if self.serves(s) {
            self.shop(s, into);
        }
        self.recover(s, into);
    }

    pub(super) fn is(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    /// Whether Redis carries out a script of a node that knows the newest epoch it can: the server must be the one
    /// that this epoch was served from.
    pub(super) fn serves(&self, s: &State) -> bool {
        let from = s.served[s.redis.epoch];
        from == Some(s.redis.server) || from.is_some() && self.is(Plant::IdentityUnchecked)
    }
}

impl Model for Steps {
    type State = State;

    fn start(&self) -> State {
        let log = Log::default();
        let redis = Redis {
            server: 1,
            epoch: 1,
            available: self.stock,
            sold: 0,
            holds: [Live::None; HOLDS],
            frozen: None,
            order: None,
            bought: false,
            tokens: [false; TOKENS],
            log,
        };
        let sql = Sql {
            epoch: 1,
            serving: true,
            available: self.stock,
            sold: 0,
            holds: [Known::Unknown; HOLDS],
            drained: (0, 0),
            rows: [Row::None; TOKENS],
        };
        let mut served = [None; EPOCHS];
        served[1] = Some(1);
        State {
            redis,
            replica: None,
            old: None,
            sql,
            nodes: [Node::Idle; TOKENS],
            learnt: [Learnt { effects: None, tombstone: false, applied: [false; EPOCHS] }; TOKENS],
            batch: None,
            audits: [Audit { stage: Stage::Unclaimed, server: 0 }; EPOCHS],
            served,
            used: [false; HOLDS],
            failovers: self.failovers,
            claims: self.claims,
            broke: None,
        }
    }

    fn next(&self, s: &State, into: &mut Vec<(Step, State)>) {
        self.serve(s, into);
        if let Some(old) = s.old {
            // Nodes that are still connected to the old server see it in the place of the new one.
            let mut theirs = s.clone();
            theirs.redis = old;
            let first = into.len();
            self.serve(&theirs, into);
            for (step, n) in &mut into[first..] {
                *step = step.at(old.server.into());
                n.old = Some(std::mem::replace(&mut n.redis, s.redis));
            }
        }
        for t in 0..TOKENS {
            self.decide(s, t, into);
        }
        self.drain(s, into);
        self.fail_over(s, into);
        Self::claim(s, into);
        for epoch in 0..EPOCHS {
            self.audit(s, epoch, into);
        }
    }

    fn broken(&self, s: &State) -> Option<&'static str> {
        let (sql, redis) = (&s.sql, &s.redis);
        if s.broke.is_some() {
            return s.broke;
        }
        if sql.available < 0 {
            return Some("no counter in SQL is negative");
        }
        let confirmed = sql.holds.iter().filter(|h| **h == Known::Confirmed).count();
        if sql.sold > self.stock || sql.sold as usize != confirmed || self.orders.one() && confirmed > 1 {
            return Some("no more is sold than there is, and each confirmed hold once");
        }
        if self.serves(s) {
            if redis.available < 0 {
                return Some("no counter in Redis is negative");
            }
            let open = if redis.frozen.is_some() { 0 } else { redis.available };
            let kept = |h: &usize| matches!(redis.holds[*h], Live::Held | Live::Tentative);
            let held: i8 = (0..HOLDS).filter(kept).map(|h| self.orders.units(h)).sum();
            if open + held > sql.available + sql.held(self.orders) {
                return Some("Redis neither offers nor keeps for another what SQL has sold");
            }
        }
        None
    }

    fn quiet(&self, s: &State) -> bool {
        let (sql, redis) = (&s.sql, &s.redis);
        let same = (0..HOLDS).all(|h| (redis.holds[h] == Live::Held) == (sql.holds[h] == Known::Held));
        let over = |live: &Live| matches!(live, Live::Held | Live::None);
        sql.serving
            && sql.epoch == redis.epoch
            && self.serves(s)
            && redis.holds.iter().all(over)
            && redis.frozen.is_none()
            && redis.order.is_none()
            && redis.bought == (self.orders.one() && sql.sold > 0)
            && redis.tokens == [false; TOKENS]
            && !sql.rows.iter().any(|r| matches!(r, Row::Effects(_)))
            && redis.log.after(sql.drained).next().is_none()
            && (redis.available, redis.sold) == (sql.available, sql.sold)
            && same
    }
}
