//! After a batch: the cursor moves as far as the sink came, and it is decided about the event that was not accepted.

use super::seat::Seat;
use super::{Batch, Pass, Relay};
use crate::outbox::dead::{self, DeadLetter};
use crate::outbox::schedule;
use crate::outbox::sink::{Failure, Sent};
use crate::outbox::state::{SinkState, clipped};
use holdfast_engine::EngineError;

impl Relay {
    /// Moves the cursor as far as the sink came, and decides about the event that it did not accept.
    pub(super) async fn settle(&mut self, mut seat: Seat, batch: &Batch, mut sent: Sent) -> Result<Pass, EngineError> {
        let accepted = sent.accepted.min(batch.events.len());
        self.metrics.sent.inc_by(accepted as u64);
        let Some(head) = batch.events.get(accepted).map(|event| event.seq) else {
            if seat.state.last_error.is_some() {
                tracing::info!(sink = self.place.name, "the sink accepts events again");
            }
            seat.state.heal();
            seat.state.cursor = batch.upto;
            return self.finish(seat, Pass::More).await;
        };
        let failure = sent.failure.take().unwrap_or_else(|| Failure::transient("the sink did not say why"));
        if seat.state.head != Some(head) {
            seat.state.heal();
            seat.state.head = Some(head);
        }
        seat.state.cursor = head - 1;
        let pass = self.judge(&mut seat.state, head, &failure).await?;
        self.finish(seat, pass).await
    }

    /// What a failure does to the state.
    async fn judge(&self, state: &mut SinkState, head: u64, failure: &Failure) -> Result<Pass, EngineError> {
        self.metrics.failures.inc();
        if state.last_error.is_none() {
            tracing::warn!(sink = self.place.name, seq = head, why = failure.why(), "the sink did not accept an event");
        }
        state.fail(failure.why());
        let wait = match failure {
            Failure::Disabled(why) => {
                tracing::error!(sink = self.place.name, why, "the sink wants no more events; enable it to go on");
                state.disabled = Some(clipped(why));
                return Ok(Pass::Disabled);
            }
            Failure::Away(_) => {
                state.away = state.away.saturating_add(1);
                Some(schedule::away(state.away))
            }
            Failure::Transient { retry_after, .. } => {
                (state.attempts, state.away) = (state.attempts.saturating_add(1), 0);
                schedule::after(state.attempts, *retry_after)
            }
            Failure::Refused(_) => {
                state.attempts = state.attempts.saturating_add(1);
                None
            }
        };
        if let Some(wait) = wait {
            state.next_at = self.place.desk.time().millis() + wait.as_millis() as i64;
            return Ok(Pass::Wait(wait));
        }
        self.bury(state, head, failure.why()).await?;
        Ok(Pass::More)
    }

    /// Makes an event a dead letter, which is kept before the cursor passes it.
    pub(super) async fn bury(&self, state: &mut SinkState, seq: u64, why: &str) -> Result<(), EngineError> {
        let (at, error) = (self.place.desk.time().millis(), clipped(why));
        let letter = DeadLetter { seq, at, attempts: state.attempts, error, replay: false };
        dead::keep(&*self.place.desk, &self.place.name, &letter).await?;
        tracing::error!(sink = self.place.name, seq, why, "an event became a dead letter");
        self.metrics.dead.inc();
        state.heal();
        state.cursor = seq;
        Ok(())
    }
}
