//! Dead letters that a person wants to be sent again, out of the order of the rest.

use super::seat::Seat;
use super::{PAGE, Pass, Relay};
use crate::outbox::dead;
use crate::outbox::schedule;
use crate::outbox::sink::Failure;
use crate::outbox::state::clipped;
use holdfast_engine::EngineError;

impl Relay {
    /// Sends the dead letters again that a person has chosen, each on its own and some in one pass. One that fails
    /// stays dead, with the new error.
    pub(super) async fn replay(&mut self, mut seat: Seat) -> Result<Pass, EngineError> {
        let (mut after, mut left) = (0, self.sink.batch());
        loop {
            let letters = dead::list(&*self.place.desk, &self.place.name, after, PAGE).await?;
            let Some((last, _)) = letters.last() else { break };
            after = last.seq;
            for kept in letters.into_iter().filter(|(letter, _)| letter.replay) {
                if left == 0 {
                    return self.finish(seat, Pass::More).await;
                }
                left -= 1;
                match self.send_again(&mut seat, kept).await? {
                    None => return Ok(Pass::Elsewhere),
                    Some(Some(pass)) => return self.finish(seat, pass).await,
                    Some(None) => {}
                }
            }
        }
        seat.state.replay = false;
        self.finish(seat, Pass::More).await
    }

    /// One dead letter: outside, `None` when the lease was lost; inside, what ends the pass, if anything does.
    async fn send_again(&mut self, seat: &mut Seat, mut kept: dead::Kept) -> Result<Option<Option<Pass>>, EngineError> {
        let seq = kept.0.seq;
        let page = self.place.desk.entries(seq - 1, 1).await?;
        let Some(numbered) = page.items.first().filter(|numbered| numbered.seq == seq) else {
            return Err(EngineError::Corrupt(format!("the ledger has no entry {seq}, which is a dead letter")));
        };
        let event = self.event(numbered)?;
        let Some(sent) = self.place.send(&mut *self.sink, seat, std::slice::from_ref(&event)).await? else {
            return Ok(None);
        };
        if sent.accepted > 0 {
            self.metrics.sent.inc();
            dead::forget(&*self.place.desk, &self.place.name, &kept).await?;
            return Ok(Some(None));
        }
        let failure = sent.failure.unwrap_or_else(|| Failure::transient("the sink did not say why"));
        self.metrics.failures.inc();
        match &failure {
            Failure::Away(why) => {
                seat.state.fail(why);
                seat.state.away = seat.state.away.saturating_add(1);
                let wait = schedule::away(seat.state.away);
                seat.state.next_at = self.place.desk.time().millis() + wait.as_millis() as i64;
                return Ok(Some(Some(Pass::Wait(wait))));
            }
            Failure::Disabled(why) => {
                seat.state.disabled = Some(clipped(why));
                return Ok(Some(Some(Pass::Disabled)));
            }
            Failure::Transient { .. } | Failure::Refused(_) => {}
        }
        kept.0.replay = false;
        kept.0.attempts = kept.0.attempts.saturating_add(1);
        kept.0.error = clipped(failure.why());
        dead::change(&*self.place.desk, &self.place.name, &kept).await?;
        Ok(Some(None))
    }
}
