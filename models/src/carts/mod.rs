//! A hold whose SKUs lie in several partitions of a Redis Cluster.
//!
//! Every order has a *home*, every SKU a partition; a script is atomic in its partition, and nothing is atomic across
//! two. A coordinator opens a record at home, takes a tentative part in each partition, seals the record (the hold is
//! made at this moment), fixes each part, marks the record complete, and answers only if home agreed to that. A part that
//! is gone is not taken again: it ends the hold unless it is complete. Recovery passes, any number of them
//! and each as slow as it likes, bring to an end what coordinators leave behind.
//!
//! Recovery is modelled by what somebody may have learnt: once a hold was sealed, a `fix` may arrive at any later time,
//! and once a hold has ended, a `drop`. That is every number of passes with every staleness. Two coordinators work for
//! one order and a third for another; each order wants the one unit there is in each of two partitions.

mod coordinator;
mod recovery;
mod scripts;

use crate::explore::{Model, Step};

const HOLDS: usize = 3;
const PARTS: usize = 2;
const ORDERS: usize = 2;
/// Which order each hold is for. A hold's id is made anew by each attempt, so it is the coordinator's number as well.
const ORDER: [usize; HOLDS] = [0, 0, 1];

/// A mistake to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None: the protocol as it should be.
    Nothing,
    /// A `fix` that finds no part takes one, and so undoes a release or a sale that it was sent before.
    TakesAgain,
    /// The same, but parts that were dropped or sold leave a mark until the deadline, and `fix` takes nothing where
    /// there is a mark. This is no mistake: it costs marks, and may save a hold that lost a part in a failover.
    TakesAgainMarked,
    /// The same, but only dropped parts leave a mark.
    TakesAgainSold,
    /// The same, but a part is taken again even after the deadline.
    TakesAgainLapsed,
    /// Parts whose `fix` found nothing end the hold, complete or not.
    GoneEndsComplete,
    /// The client is answered when the parts are fixed, whatever home says by then.
    AnswerUnasked,
    /// A second attempt is told of a sealed hold whose parts are not fixed yet.
    ReplayEarly,
    /// A coordinator that does not know whether its `seal` was carried out drops its parts.
    UnsureDrops,
    /// Parts that once were tentative are dropped without asking home.
    DropUnasked,
    /// The same, but the script looks whether they still are tentative. This is no mistake as long as a `fix` takes
    /// nothing again and home is completed last: it ends holds that need not end, and no answered one.
    DropTentative,
    /// Parts are fixed before the record is sealed.
    FixUnsealed,
    /// Recovery does not look for tentative parts, only for records at home.
    PartsForgotten,
    /// `abort` does not look whether the record was sealed and completed meanwhile.
    AbortUnasked,
    /// Recovery asks what state the order's record is in, but not whose record it is.
    IdsUncompared,
    /// A confirmation freezes the parts of a hold but not the record at home, which lapses by home's clock.
    HomeUnfrozen,
    /// After a failover home is built anew before the facts of all other partitions were drained.
    HomeUndrained,
    /// SQL has a unique key over the hold that an order has, and facts of several partitions meet in no order.
    OneHoldAnOrder,
}

/// The record of an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Home {
    Empty,
    Opening(usize),
    Sealed(usize),
    Complete(usize),
    Released(usize),
    Bought(usize),
}

/// How far a coordinator has come. One that crashed stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Open,
    Take(usize),
    Seal,
    Unsure,
    Undo,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    None,
    Tentative,
    Real,
}

/// One hold, as it is in each partition, and what somebody knows of it.
#[allow(clippy::struct_excessive_bools)] // Facts that are independent of each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Hold {
    at: At,
    parts: [Part; PARTS],
    /// The fold of the partition's ledger.
    ledger: [bool; PARTS],
    /// A mark that the part was dropped or sold here, where marks are left.
    mark: [bool; PARTS],
    /// The part was dropped or sold here.
    over: [bool; PARTS],
    /// By this partition's clock the deadline has passed.
    lapsed: [bool; PARTS],
    /// A script that its coordinator gave up waiting for, and that may still be carried out.
    take_underway: [bool; PARTS],
    seal_underway: bool,
    /// Somebody was told that the part is fixed.
    told_fixed: [bool; PARTS],
    /// Somebody was told that a part is gone, and its units with it.
    told_gone: bool,
    opened: bool,
    sealed: bool,
    /// Its parts were sold, as the other models show.
    bought: bool,
    answered: bool,
    /// Released, or lapsed by home's clock.
    ended: bool,
    /// A rule that a step broke.
    broke: Option<&'static str>,
}

/// See [`Model::State`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    home: [Home; ORDERS],
    holds: [Hold; HOLDS],
    available: [i8; PARTS],
    /// How many failovers may still come.
    losses: u8,
}

/// The model; see the file's head.
pub struct Carts {
    /// What is planted.
    pub plant: Plant,
    /// How many attempts there are, up to three: two for one order, then one for another. `apart` leaves out the second.
    pub attempts: usize,
    /// Whether two attempts are for two orders.
    pub apart: bool,
    /// Units in each partition.
    pub stock: i8,
    /// How often a failover may lose a tentative part or a record.
    pub losses: u8,
}

impl Carts {
    /// Whether a `fix` that finds no part takes one.
    fn takes_again(&self) -> bool {
        self.is(Plant::TakesAgain) || self.leaves_marks()
    }

    fn leaves_marks(&self) -> bool {
        [Plant::TakesAgainMarked, Plant::TakesAgainSold, Plant::TakesAgainLapsed].contains(&self.plant)
    }

    fn is(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    /// Forgets what no step looks at any more, so that states that differ in nothing else are one.
    fn forget(&self, s: &mut State) {
        if self.is(Plant::AnswerUnasked) || self.is(Plant::GoneEndsComplete) {
            return;
        }
        for (h, hold) in s.holds.iter_mut().enumerate() {
            let home = s.home[ORDER[h]];
            if home != Home::Sealed(h) {
                hold.told_fixed = [false; PARTS];
                hold.told_gone = false;
            }
            hold.answered &= !hold.ended;
        }
    }
}

/// How many units are sold in each partition.
fn sold(s: &State) -> i8 {
    s.holds.iter().filter(|h| h.bought).count() as i8
}

impl Model for Carts {
    type State = State;

    fn start(&self) -> State {
        let hold = Hold {
            at: At::Open,
            parts: [Part::None; PARTS],
            ledger: [false; PARTS],
            mark: [false; PARTS],
            over: [false; PARTS],
            lapsed: [false; PARTS],
            take_underway: [false; PARTS],
            seal_underway: false,
            told_fixed: [false; PARTS],
            told_gone: false,
            opened: false,
            sealed: false,
            bought: false,
            answered: false,
            ended: false,
            broke: None,
        };
        let idle = Hold { at: At::Over, ..hold };
        let takes_part = |h: usize| if self.apart { h != 1 } else { h < self.attempts };
        let holds = std::array::from_fn(|h| if takes_part(h) { hold } else { idle });
        State { home: [Home::Empty; ORDERS], holds, available: [self.stock; PARTS], losses: self.losses }
    }

    fn next(&self, s: &State, into: &mut Vec<(Step, State)>) {
        for h in 0..HOLDS {
            self.coordinate(s, h, into);
            self.recover(s, h, into);
        }
        into.iter_mut().for_each(|(_, n)| self.forget(n));
    }

    fn broken(&self, s: &State) -> Option<&'static str> {
        for p in 0..PARTS {
            let parts = s.holds.iter().filter(|h| h.parts[p] != Part::None).count() as i8;
            if s.available[p] < 0 || s.available[p] + parts + sold(s) != self.stock {
                return Some("available, held and sold make the stock");
            }
            if s.holds.iter().filter(|h| h.ledger[p]).count() as i8 + sold(s) > self.stock {
                return Some("no prefix of the ledger has a negative counter");
            }
        }
        let listed = |h: usize| s.holds[h].ledger.contains(&true);
        if self.is(Plant::OneHoldAnOrder) && listed(0) && listed(1) {
            return Some("SQL never has two holds of one order");
        }
        for (h, hold) in s.holds.iter().enumerate() {
            if hold.broke.is_some() {
                return hold.broke;
            }
            let home = s.home[ORDER[h]];
            if hold.bought && home != Home::Bought(h) {
                return Some("an order that was bought takes no other hold");
            }
            if hold.answered && !hold.ended && home != Home::Sealed(h) && home != Home::Complete(h) {
                return Some("an answered hold is the one hold of its order until it ends");
            }
            for p in 0..PARTS {
                if hold.ledger[p] != (hold.parts[p] == Part::Real) {
                    return Some("the ledger tells of every real part and of no other");
                }
                if hold.ledger[p] && !hold.sealed {
                    return Some("the ledger tells of sealed holds only");
                }
                let has = hold.parts[p] == Part::Real || hold.lapsed[p];
                if hold.answered && !hold.ended && !has {
                    return Some("an answered hold has all its parts, in the ledger, until they lapse");
                }
                if hold.over[p] && hold.parts[p] == Part::Real {
                    return Some("what was released or sold does not come back");
                }
            }
        }
        None
    }

    fn quiet(&self, s: &State) -> bool {
        let resting = |home: &Home| !matches!(home, Home::Opening(_) | Home::Sealed(_));
        s.home.iter().all(resting)
            && s.available == [self.stock - sold(s); PARTS]
            && s.holds.iter().all(|h| h.ledger == [false; PARTS])
    }
}
