//! Walks through every state that a model can reach, nearest first, and tells the shortest way to one that breaks a
//! rule. It knows nothing of any protocol.
//!
//! Two kinds of flaw are found. A *broken rule* is a state that must never be. A *trap* is a state from which those
//! steps alone that servers take by themselves (healing steps) never lead to quiet: something is left behind for ever.
//! Crashes need no step of their own: a process that crashed is one that takes no further step, and a trap is looked
//! for without the steps of processes that may have crashed.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// One step, as it is told to a reader: what happens, to which hold or token, and where.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub what: &'static str,
    /// The hold, the token or the audit that it happens to.
    pub of: usize,
    /// The partition or the server, where there are several.
    pub at: Option<usize>,
    /// Whether servers take this step by themselves, sooner or later, whoever crashed.
    pub heals: bool,
}

/// A step of a client, of a process that may crash, or of fate.
pub fn may(what: &'static str, of: usize) -> Step {
    Step { what, of, at: None, heals: false }
}

/// A step of a recovery pass, which runs for ever.
pub fn heals(what: &'static str, of: usize) -> Step {
    Step { what, of, at: None, heals: true }
}

impl Step {
    /// The same step in the partition or on the server `at`.
    pub fn at(self, at: usize) -> Self {
        Self { at: Some(at), ..self }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.of)?;
        self.at.map_or(Ok(()), |at| write!(f, " at {at}"))
    }
}

/// What can be explored.
pub trait Model {
    /// Everything that any process may look at, and what processes remember.
    type State: Clone + Eq + Hash;
    /// Where every walk starts.
    fn start(&self) -> Self::State;
    /// Every step that can be taken next, with the state it leads to.
    fn next(&self, state: &Self::State, into: &mut Vec<(Step, Self::State)>);
    /// The rule that this state breaks.
    fn broken(&self, state: &Self::State) -> Option<&'static str>;
    /// Whether nothing is under way in this state, and all copies agree.
    fn quiet(&self, state: &Self::State) -> bool;
}

/// A rule that does not hold, with a shortest way to see it.
#[derive(Debug)]
pub struct Flaw {
    /// The rule.
    pub rule: &'static str,
    /// The steps, in order.
    pub steps: Vec<String>,
}

/// What a walk through a model found.
#[derive(Debug)]
pub struct Found {
    /// How many states were seen.
    pub states: usize,
    /// How many steps lead from state to state.
    pub steps: usize,
    /// How many steps the state farthest away is from the start.
    pub depth: u32,
    /// The flaw nearest to the start.
    pub flaw: Option<Flaw>,
}

/// The rule that a trap breaks.
pub const TRAP: &str = "recovery alone always leads to quiet";

/// Where a state was first come from.
struct Origin {
    from: u32,
    step: Step,
    depth: u32,
}

struct Walk<S> {
    states: Vec<S>,
    origins: Vec<Origin>,
    known: HashTable<u32>,
    hasher: FixedState,
}

impl<S: Eq + Hash> Walk<S> {
    fn meet(&mut self, state: S, origin: Origin) -> u32 {
        let hash = self.hasher.hash_one(&state);
        if let Some(found) = self.known.find(hash, |i| self.states[*i as usize] == state) {
            return *found;
        }
        let index = self.states.len() as u32;
        let (states, hasher) = (&self.states, &self.hasher);
        let again = |i: &u32| states.get(*i as usize).map_or(hash, |s| hasher.hash_one(s));
        self.known.insert_unique(hash, index, again);
        self.states.push(state);
        self.origins.push(origin);
        index
    }

    fn flaw(&self, rule: &'static str, at: u32) -> Flaw {
        let mut steps = Vec::new();
        let mut index = at as usize;
        while index != 0 {
            steps.push(self.origins[index].step.to_string());
            index = self.origins[index].from as usize;
        }
        steps.reverse();
        Flaw { rule, steps }
    }
}

/// Explores `model` until a rule is broken or every state was seen.
///
/// # Panics
/// When there are more than `limit` states: bounds have to be chosen, not hoped for.
pub fn explore<M: Model>(model: &M, limit: usize) -> Found {
    let start = model.start();
    let mut walk =
        Walk { states: Vec::new(), origins: Vec::new(), known: HashTable::new(), hasher: FixedState::with_seed(7) };
    walk.meet(start, Origin { from: 0, step: may("start", 0), depth: 0 });
    let (mut healing, mut steps, mut next) = (Vec::new(), 0, Vec::new());
    let mut at = 0;
    while at < walk.states.len() {
        let (index, depth) = (at as u32, walk.origins[at].depth);
        if let Some(rule) = model.broken(&walk.states[at]) {
            let flaw = Some(walk.flaw(rule, index));
            return Found { states: walk.states.len(), steps, depth, flaw };
        }
        model.next(&walk.states[at], &mut next);
        for (step, state) in next.drain(..) {
            let to = walk.meet(state, Origin { from: index, step, depth: depth + 1 });
            steps += 1;
            if step.heals && to != index {
                healing.push((to, index));
            }
        }
        assert!(walk.states.len() <= limit, "more than {limit} states; choose smaller bounds");
        at += 1;
    }
    let flaw = trap(model, &walk.states, healing).map(|at| walk.flaw(TRAP, at));
    let depth = walk.origins.last().map_or(0, |o| o.depth);
    Found { states: walk.states.len(), steps, depth, flaw }
}

/// The first state from which no healing steps lead to quiet. `healing` has each healing step as (to, from).
fn trap<M: Model>(model: &M, states: &[M::State], mut healing: Vec<(u32, u32)>) -> Option<u32> {
    healing.sort_unstable();
    let mut heals: Vec<bool> = states.iter().map(|s| model.quiet(s)).collect();
    let mut open: Vec<u32> = (0..states.len() as u32).filter(|i| heals[*i as usize]).collect();
    while let Some(to) = open.pop() {
        let first = healing.partition_point(|(t, _)| *t < to);
        for (_, from) in healing[first..].iter().take_while(|(t, _)| *t == to) {
            if !std::mem::replace(&mut heals[*from as usize], true) {
                open.push(*from);
            }
        }
    }
    heals.iter().position(|healed| !healed).map(|at| at as u32)
}
