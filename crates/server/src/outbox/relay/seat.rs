//! The right to send to a sink: a lease in the sink's note, renewed while sending, lost by whoever is too slow.

use crate::outbox::desk::Desk;
use crate::outbox::event::Event;
use crate::outbox::sink::{Sent, Sink};
use crate::outbox::state::{self, SinkState};
use holdfast_engine::EngineError;
use holdfast_engine::clock::monotonic;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// A node that is silent for so long is replaced.
const LEASE: Duration = Duration::from_secs(30);
/// While sending, the lease is renewed this often.
const RENEWAL: Duration = Duration::from_secs(3);
/// Without a renewal for so long, a node stops sending: before the lease lapses, whatever the clocks do.
const PATIENCE: Duration = Duration::from_secs(25);

/// Where the note of a sink is, and who this node is.
pub(super) struct Place {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) name: String,
    pub(super) owner: String,
}

/// The state as this node has written it, which nobody has changed since.
pub(super) struct Seat {
    pub(super) state: SinkState,
    version: u64,
    kept: Instant,
}

impl Place {
    /// Takes the lease, or renews it; `None` when somebody else was faster.
    pub(super) async fn take(&self, state: SinkState, version: u64) -> Result<Option<Seat>, EngineError> {
        let mut seat = Seat { state, version, kept: monotonic() };
        seat.state.owner.clone_from(&self.owner);
        Ok(self.write(&mut seat).await?.then_some(seat))
    }

    /// Writes the state with a fresh lease; `false` when the seat is not ours any more.
    pub(super) async fn write(&self, seat: &mut Seat) -> Result<bool, EngineError> {
        let asked = monotonic();
        seat.state.until = self.desk.time().millis() + LEASE.as_millis() as i64;
        if !state::write(&*self.desk, &self.name, seat.version, &seat.state).await? {
            return Ok(false);
        }
        (seat.version, seat.kept) = (seat.version + 1, asked);
        Ok(true)
    }

    /// Sends while it keeps the lease; `None` when the lease was lost, and with it the right to tell how far it came.
    pub(super) async fn send(
        &self,
        sink: &mut dyn Sink,
        seat: &mut Seat,
        events: &[Event],
    ) -> Result<Option<Sent>, EngineError> {
        if events.is_empty() {
            return Ok(Some(Sent::all(events)));
        }
        let mut sending = pin!(sink.send(events));
        loop {
            tokio::select! {
                sent = &mut sending => return Ok(Some(sent)),
                () = sleep(RENEWAL) => {}
            }
            match self.write(seat).await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if seat.kept.elapsed() >= PATIENCE => return Err(error),
                Err(error) => tracing::warn!(sink = self.name, %error, "the lease could not be renewed yet"),
            }
        }
    }

    /// Gives the lease back.
    pub(super) async fn let_go(&self) -> Result<(), EngineError> {
        if let Some((mut state, version)) = state::read(&*self.desk, &self.name).await?
            && state.owner == self.owner
        {
            (state.owner, state.until) = (String::new(), 0);
            state::write(&*self.desk, &self.name, version, &state).await?;
        }
        Ok(())
    }
}
