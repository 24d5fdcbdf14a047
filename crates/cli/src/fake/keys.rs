//! Idempotency keys: the first answer is the answer. Must never carry out a request twice under one key.

use super::error::Refused;
use holdfast_engine::clock::monotonic;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The longest key.
const LONGEST: usize = 255;

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
    /// The id of the request that was carried out.
    pub(super) request: String,
}

#[derive(Debug)]
struct Kept {
    request: String,
    answer: Answer,
    in_flight_until: Instant,
}

/// Keys and their answers.
#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<String, Kept>);

impl Keys {
    /// The kept answer; `None` when the request is to be carried out.
    pub(super) fn find(&self, key: &str, request: &str) -> Result<Option<Answer>, Refused> {
        if key.chars().count() > LONGEST {
            return Err(Refused::parameter(None, "Idempotency-Key", "Idempotency keys have up to 255 characters."));
        }
        match self.0.get(key) {
            None => Ok(None),
            Some(kept) if kept.request != request => Err(Refused::key_reused(key)),
            Some(kept) if monotonic() < kept.in_flight_until => Err(Refused::key_in_use(key)),
            Some(kept) => Ok(Some(kept.answer.clone())),
        }
    }

    /// Keeps an answer that will be on its way for so long.
    pub(super) fn keep(&mut self, key: &str, request: String, answer: Answer, on_its_way: Duration) {
        let in_flight_until = monotonic() + on_its_way;
        self.0.insert(key.to_owned(), Kept { request, answer, in_flight_until });
    }

    /// Forgets all of them, as the real one may after a day.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
