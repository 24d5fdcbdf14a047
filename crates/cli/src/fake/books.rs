//! The provider's books: everything that was made, found by id, and what is to be told about it. Must never lose or
//! change an object without an event that tells it.

use super::objects::{Charge, Intent, Refund, Session};
use crate::random::Random;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Objects in the order in which they were made, found by id.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    pub(super) all: Vec<T>,
    places: HashMap<String, usize>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { all: Vec::new(), places: HashMap::new() }
    }
}

impl<T> Shelf<T> {
    pub(super) fn put(&mut self, id: &str, object: T) {
        self.places.insert(id.to_owned(), self.all.len());
        self.all.push(object);
    }

    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.places.get(id).and_then(|place| self.all.get(*place))
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.places.get(id).and_then(|place| self.all.get_mut(*place))
    }
}

/// Something that happened and is to be told by webhook.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) kind: &'static str,
    /// The object as it was at that moment.
    pub(super) object: Value,
    /// What an update changed.
    pub(super) previous: Option<Value>,
    /// The payment it belongs to: facts of one payment are told in order.
    pub(super) payment: String,
}

/// Everything.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) intents: Shelf<Intent>,
    pub(super) charges: Shelf<Charge>,
    pub(super) refunds: Shelf<Refund>,
    pub(super) sessions: Shelf<Session>,
    /// What is not told yet.
    pub(super) facts: Vec<Fact>,
    pub(super) random: Random,
    /// The second of the request at hand.
    pub(super) now: i64,
}

impl Books {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            intents: Shelf::default(),
            charges: Shelf::default(),
            refunds: Shelf::default(),
            sessions: Shelf::default(),
            facts: Vec::new(),
            random: Random::seeded(seed),
            now: 0,
        }
    }

    /// Forgets everything but how to make ids.
    pub(super) fn clear(&mut self) {
        self.intents = Shelf::default();
        self.charges = Shelf::default();
        self.refunds = Shelf::default();
        self.sessions = Shelf::default();
        self.facts.clear();
    }

    /// A fresh id, such as `pi_3` and 23 letters and digits.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let random = (0..23).map(|_| char::from(LETTERS[self.random.below(LETTERS.len())]));
        format!("{prefix}_3{}", random.collect::<String>())
    }

    /// Notes what happened.
    pub(super) fn tell(&mut self, kind: &'static str, payment: &str, object: Value) {
        self.facts.push(Fact { kind, object, previous: None, payment: payment.to_owned() });
    }

    /// Notes what changed, and how it was before.
    pub(super) fn tell_update(&mut self, kind: &'static str, payment: &str, object: Value, previous: Value) {
        self.facts.push(Fact { kind, object, previous: Some(previous), payment: payment.to_owned() });
    }

    /// Notes what happened to a PaymentIntent.
    pub(super) fn tell_intent(&mut self, kind: &'static str, id: &str) {
        if let Some(view) = self.intents.get(id).map(Intent::brief) {
            self.tell(kind, id, view);
        }
    }

    /// Notes what happened to a charge.
    pub(super) fn tell_charge(&mut self, kind: &'static str, id: &str) {
        if let Some((payment, view)) = self.charges.get(id).map(|charge| (charge.intent.clone(), charge.view())) {
            self.tell(kind, &payment, view);
        }
    }

    /// All of it.
    pub(super) fn view(&self) -> Value {
        json!({
            "payment_intents": self.intents.all.iter().map(Intent::brief).collect::<Vec<_>>(),
            "charges": self.charges.all.iter().map(Charge::view).collect::<Vec<_>>(),
            "refunds": self.refunds.all.iter().map(Refund::view).collect::<Vec<_>>(),
            "sessions": self.sessions.all.iter().map(Session::view).collect::<Vec<_>>(),
        })
    }
}
