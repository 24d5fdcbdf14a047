//! What a person may do about a sink: look, send again, skip, enable. Each step is a compare-and-set, so a relay that
//! sends at that moment loses its seat and reads the note anew.

use super::dead::{self, DeadLetter};
use super::desk::Desk;
use super::state::{self, SinkState};
use holdfast_engine::EngineError;

/// A relay writes the note with every pass; so often in a row nobody loses to it.
const TRIES: usize = 100;
/// Dead letters looked at together.
const PAGE: usize = 500;

/// What is known of a sink; `None` before its first pass.
pub async fn state(desk: &dyn Desk, sink: &str) -> Result<Option<SinkState>, EngineError> {
    Ok(state::read(desk, sink).await?.map(|(state, _)| state))
}

/// Dead letters by number, above this one.
pub async fn dead(desk: &dyn Desk, sink: &str, after: u64, limit: usize) -> Result<Vec<DeadLetter>, EngineError> {
    Ok(dead::list(desk, sink, after, limit).await?.into_iter().map(|(letter, _)| letter).collect())
}

/// Changes the state, whoever else does at the same time. `None`: there is no such state yet, or nothing to change.
async fn change(
    desk: &dyn Desk,
    sink: &str,
    mut how: impl FnMut(&mut SinkState) -> bool,
) -> Result<Option<SinkState>, EngineError> {
    for _ in 0..TRIES {
        let Some((mut state, version)) = state::read(desk, sink).await? else { return Ok(None) };
        if !how(&mut state) {
            return Ok(None);
        }
        if state::write(desk, sink, version, &state).await? {
            return Ok(Some(state));
        }
    }
    Err(EngineError::Unavailable(format!("the note of sink {sink} changes all the time")))
}

/// Sends everything after this entry, again or for the first time. A number beyond the ledger's end means its end.
/// The cursor that it got.
pub async fn replay_from(desk: &dyn Desk, sink: &str, after: u64) -> Result<u64, EngineError> {
    let mut cursor = after;
    if after > 0 && !desk.has_above(after - 1).await? {
        cursor = desk.end(0).await?;
    }
    let fresh = SinkState { cursor, ..SinkState::default() };
    if state::write(desk, sink, 0, &fresh).await? {
        return Ok(cursor);
    }
    change(desk, sink, |state| {
        state.heal();
        state.cursor = cursor;
        true
    })
    .await?;
    Ok(cursor)
}

/// Sends one dead letter again, or all of them. They stay dead letters until the sink has accepted them. How many.
pub async fn replay_dead(desk: &dyn Desk, sink: &str, only: Option<u64>) -> Result<u64, EngineError> {
    let (mut after, mut chosen) = (0, 0);
    loop {
        let letters = match only {
            Some(seq) if after == 0 => dead::one(desk, sink, seq).await?.into_iter().collect(),
            Some(_) => Vec::new(),
            None => dead::list(desk, sink, after, PAGE).await?,
        };
        let Some((last, _)) = letters.last() else { break };
        after = last.seq;
        for mut kept in letters {
            kept.0.replay = true;
            // Whoever was faster has sent it, dropped it, or chosen it as well.
            chosen += u64::from(dead::change(desk, sink, &kept).await?);
        }
    }
    if chosen > 0 {
        change(desk, sink, |state| {
            (state.replay, state.next_at) = (true, 0);
            true
        })
        .await?;
    }
    Ok(chosen)
}

/// Gives up the event that a sink does not accept: the next pass makes it a dead letter and goes on with the next one.
/// Its number; `None` when nothing is in the way.
pub async fn skip(desk: &dyn Desk, sink: &str) -> Result<Option<u64>, EngineError> {
    // Only a relay makes dead letters, so none is made of an event that was accepted meanwhile.
    let changed = change(desk, sink, |state| {
        (state.skip, state.next_at) = (state.head, 0);
        state.head.is_some() && state.disabled.is_none()
    });
    Ok(changed.await?.and_then(|state| state.skip))
}

/// Lets a sink that was disabled, or that waits for its next attempt, go on at once. Whether it has ever begun.
pub async fn enable(desk: &dyn Desk, sink: &str) -> Result<bool, EngineError> {
    let changed = change(desk, sink, |state| {
        state.heal();
        state.disabled = None;
        true
    });
    Ok(changed.await?.is_some())
}
