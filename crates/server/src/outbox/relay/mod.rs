//! Moves one sink's cursor: single bounded passes that any number of nodes may make at once. One of them has the lease
//! and sends. A pass never moves the cursor past an event that was neither accepted nor kept as a dead letter.

mod judge;
mod replay;
mod run;
mod seat;

pub use run::run;

use super::desk::Desk;
use super::event::{Event, Identity};
use super::metrics::{OutboxMetrics, SinkMetrics};
use super::sink::Sink;
use super::state::{self, SinkState};
use super::{SinkConfig, StartAt};
use crate::config::ConfigError;
use holdfast_domain::EntryKind;
use holdfast_engine::clock::{monotonic, random_token};
use holdfast_engine::{EngineError, NumberedEntry};
use seat::{Place, Seat};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most ledger entries, or dead letters, looked at together.
const PAGE: usize = 500;
/// After so many pages in which nothing is for the sink, the cursor is moved all the same. A note is not written for less.
const QUIET_PAGES: usize = 20;
/// How long an idle sink, or one that another node serves, waits before the next look.
const POLL: Duration = Duration::from_secs(1);
/// No pause is longer: a person may have enabled the sink or asked for a replay meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What a pass came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// There may be more to do: make another one.
    More,
    /// The sink has everything.
    Idle,
    /// Nothing is sent for so long: the sink failed.
    Wait(Duration),
    /// Another node sends.
    Elsewhere,
    /// Nothing is sent until a person enables the sink.
    Disabled,
}

impl Pass {
    /// How long to wait before the next one.
    pub fn pause(self) -> Duration {
        match self {
            Self::More => Duration::ZERO,
            Self::Idle | Self::Elsewhere => POLL,
            Self::Wait(time) => time.min(LONGEST_PAUSE),
            Self::Disabled => LONGEST_PAUSE,
        }
    }
}

/// One sink, as one node serves it.
pub struct Relay {
    place: Place,
    sink: Box<dyn Sink>,
    kinds: Option<Vec<EntryKind>>,
    from: StartAt,
    identity: Identity,
    metrics: SinkMetrics,
    end: u64,
    looked: Option<Instant>,
    /// A cursor, and up to where nothing after it is for the sink.
    quiet: (u64, u64),
}

/// What one pass sends.
struct Batch {
    events: Vec<Event>,
    /// The cursor once all of it is accepted.
    upto: u64,
}

impl Relay {
    /// A relay for a configured sink.
    ///
    /// # Errors
    /// When the configuration makes no sense, or a file that it names cannot be read.
    pub fn new(desk: Arc<dyn Desk>, config: &SinkConfig, metrics: &OutboxMetrics) -> Result<Self, ConfigError> {
        config.check()?;
        let relay = Self::of(desk, &config.name, config.connect()?, metrics);
        Ok(Self { kinds: config.entry_kinds()?, from: config.from, identity: config.identity(), ..relay })
    }

    /// A relay for a sink of the service's own, which begins with what is recorded from its first start on.
    pub(crate) fn of(desk: Arc<dyn Desk>, name: &str, sink: Box<dyn Sink>, metrics: &OutboxMetrics) -> Self {
        Self {
            place: Place { desk, name: name.to_owned(), owner: random_token() },
            sink,
            kinds: None,
            from: StartAt::End,
            identity: Identity::default(),
            metrics: metrics.of(name),
            end: 0,
            looked: None,
            quiet: (0, 0),
        }
    }

    /// Only for these entries.
    pub(crate) fn only(self, kinds: &[EntryKind]) -> Self {
        Self { kinds: Some(kinds.to_vec()), ..self }
    }

    /// One pass: reads a page of entries, sends what is for the sink, and moves the cursor.
    ///
    /// # Errors
    /// The engine's. What was sent then counts as not accepted, and is sent again.
    pub async fn once(&mut self) -> Result<Pass, EngineError> {
        let Some((state, version)) = state::read(&*self.place.desk, &self.place.name).await? else {
            return self.begin().await;
        };
        self.measure(state.cursor).await?;
        let now = self.place.desk.time();
        if state.disabled.is_some() {
            return Ok(Pass::Disabled);
        }
        if state.is_leased(now) && state.owner != self.place.owner {
            return Ok(Pass::Elsewhere);
        }
        if now.millis() < state.next_at {
            return Ok(Pass::Wait(Duration::from_millis((state.next_at - now.millis()) as u64)));
        }
        let Some((from, entries)) = self.ahead(&state).await? else { return Ok(Pass::Idle) };
        let Some(mut seat) = self.place.take(state, version).await? else { return Ok(Pass::Elsewhere) };
        if seat.state.replay {
            return self.replay(seat).await;
        }
        if let Some(seq) = seat.state.skip.take().filter(|seq| seat.state.head == Some(*seq)) {
            let why = format!("skipped: {}", seat.state.last_error.as_deref().unwrap_or("no reason is known"));
            self.bury(&mut seat.state, seq, &why).await?;
            return self.finish(seat, Pass::More).await;
        }
        let batch = self.batch(from, &entries)?;
        let sent = self.place.send(&mut *self.sink, &mut seat, &batch.events).await?;
        let Some(sent) = sent else { return Ok(Pass::Elsewhere) };
        self.settle(seat, &batch, sent).await
    }

    /// The next entries for the sink, and the cursor before them; nothing while there is nothing to do.
    async fn ahead(&mut self, state: &SinkState) -> Result<Option<(u64, Vec<NumberedEntry>)>, EngineError> {
        let has_order = state.replay || state.skip.is_some();
        if self.kinds.is_none() || has_order {
            let page = self.place.desk.entries(state.cursor, self.sink.batch()).await?;
            return Ok((has_order || !page.items.is_empty()).then_some((state.cursor, page.items)));
        }
        if self.quiet.0 != state.cursor {
            self.quiet = (state.cursor, state.cursor);
        }
        for _ in 0..QUIET_PAGES {
            let page = self.place.desk.entries(self.quiet.1, PAGE).await?;
            if page.items.iter().any(|numbered| self.wants(numbered.entry.kind)) {
                return Ok(Some((self.quiet.1, page.items)));
            }
            let Some(last) = page.items.last() else { break };
            self.quiet.1 = last.seq;
        }
        let is_far = self.quiet.1 - state.cursor >= (PAGE * QUIET_PAGES) as u64;
        Ok(is_far.then(|| (self.quiet.1, Vec::new())))
    }

    /// The first entries that make a batch.
    fn batch(&self, cursor: u64, entries: &[NumberedEntry]) -> Result<Batch, EngineError> {
        let mut batch = Batch { events: Vec::new(), upto: cursor };
        for numbered in entries {
            if self.wants(numbered.entry.kind) {
                if batch.events.len() == self.sink.batch() {
                    break;
                }
                batch.events.push(self.event(numbered)?);
            }
            batch.upto = numbered.seq;
        }
        Ok(batch)
    }

    fn event(&self, numbered: &NumberedEntry) -> Result<Event, EngineError> {
        let event = Event::new(numbered, &self.identity);
        event.map_err(|e| EngineError::Corrupt(format!("entry {} cannot be told: {e}", numbered.seq)))
    }

    /// Gives the lease back, so that another node goes on at once.
    ///
    /// # Errors
    /// The engine's. The lease lapses by itself then.
    pub async fn let_go(&self) -> Result<(), EngineError> {
        self.place.let_go().await
    }

    fn wants(&self, kind: EntryKind) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// The first pass of a new sink decides where it begins.
    async fn begin(&mut self) -> Result<Pass, EngineError> {
        let cursor = match self.from {
            StartAt::Start => 0,
            StartAt::End => self.place.desk.end(self.end).await?,
        };
        let state = SinkState { cursor, ..SinkState::default() };
        if state::write(&*self.place.desk, &self.place.name, 0, &state).await? {
            tracing::info!(sink = self.place.name, after = cursor, "a new sink begins");
        }
        Ok(Pass::More)
    }

    /// Tells how far behind the sink is. A busy relay looks once a second.
    async fn measure(&mut self, cursor: u64) -> Result<(), EngineError> {
        if self.looked.is_none_or(|at| at.elapsed() >= POLL) {
            self.end = self.place.desk.end(self.end.max(cursor)).await?;
            self.looked = Some(monotonic());
        }
        self.metrics.lag.set(self.end.saturating_sub(cursor) as i64);
        Ok(())
    }

    /// The end of a pass: what it came to is written down, unless somebody else was faster.
    async fn finish(&self, mut seat: Seat, pass: Pass) -> Result<Pass, EngineError> {
        if !self.place.write(&mut seat).await? {
            return Ok(Pass::Elsewhere);
        }
        self.metrics.lag.set(self.end.saturating_sub(seat.state.cursor) as i64);
        Ok(pass)
    }
}
