//! What a sink is: somewhere that takes events, one after the other, and says how far it came.

use super::event::Event;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

/// Somewhere that events are sent to.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Sends these events in order. An event of a key is never sent before the one before it was accepted.
    ///
    /// It may be dropped at any moment and called again; what was under way then counts as not accepted.
    async fn send(&mut self, events: &[Event]) -> Sent;

    /// How many events one call gets at most.
    fn batch(&self) -> usize;
}

/// How far a call of [`Sink::send`] came.
#[derive(Debug)]
pub struct Sent {
    /// So many of the first events were accepted for good.
    pub accepted: usize,
    /// What went wrong with the next one; `None` when all were accepted.
    pub failure: Option<Failure>,
}

impl Sent {
    pub(super) fn all(events: &[Event]) -> Self {
        Self { accepted: events.len(), failure: None }
    }

    pub(super) fn up_to(accepted: usize, failure: Failure) -> Self {
        Self { accepted, failure: Some(failure) }
    }
}

/// Why an event was not accepted, in words without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A broker cannot be reached, which says nothing about the event: it waits for as long as that takes.
    Away(String),
    /// Not this time. After the whole schedule in vain, the event becomes a dead letter.
    Transient {
        /// Why.
        why: String,
        /// The sink asked for this much time.
        retry_after: Option<Duration>,
    },
    /// This event is never accepted: it becomes a dead letter at once.
    Refused(String),
    /// The sink wants no more events at all, until a person enables it again.
    Disabled(String),
}

impl Failure {
    pub(super) fn transient(why: impl Into<String>) -> Self {
        Self::Transient { why: why.into(), retry_after: None }
    }

    /// The words.
    pub fn why(&self) -> &str {
        match self {
            Self::Away(why) | Self::Transient { why, .. } | Self::Refused(why) | Self::Disabled(why) => why,
        }
    }
}

/// What a sink of the service's own has done already behind an event that it could not do yet. Kept in memory only: after a
/// crash it is done again.
#[derive(Debug, Default)]
pub(crate) struct Done(BTreeSet<u64>);

impl Done {
    pub(crate) fn has(&self, event: &Event) -> bool {
        self.0.contains(&event.seq)
    }

    pub(crate) fn note(&mut self, event: &Event) {
        self.0.insert(event.seq);
    }

    /// The answer to a call: the first event that failed, by its index, and why.
    pub(crate) fn sent(&mut self, events: &[Event], failed: Option<(usize, Failure)>) -> Sent {
        let (accepted, failure) = failed.map_or((events.len(), None), |(index, failure)| (index, Some(failure)));
        if let Some(last) = events[..accepted].last() {
            self.0 = self.0.split_off(&(last.seq + 1));
        }
        Sent { accepted, failure }
    }
}

/// An error with what caused it, in one line.
pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
