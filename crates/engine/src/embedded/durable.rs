//! Group commit: who waits for a batch to be on disk, and who makes it so.
//!
//! A batch is committed to SQLite first, which writes the log but does not sync it (`synchronous=NORMAL`), and is then
//! numbered here. Whoever waits for a number and finds nobody syncing syncs the log, for everything written so far; so
//! the next batches are decided and written while one is being synced, and one sync serves them all.
//!
//! When a sync fails, nothing that was not synced before may be believed, and a later sync that succeeds proves
//! nothing. Everything stops until the log has been copied into the store and emptied; see [`Durable::reset`].

use crate::EngineError;
use parking_lot::{Condvar, Mutex};
use std::fs::File;
use std::sync::Arc;

#[derive(Default)]
struct State {
    log: Option<Arc<File>>,
    /// The last batch that was committed to SQLite.
    written: u64,
    /// The last batch that is known to be on disk.
    durable: u64,
    is_syncing: bool,
    failure: Option<String>,
}

#[derive(Default)]
pub(super) struct Durable {
    state: Mutex<State>,
    turned: Condvar,
}

impl Durable {
    /// Starts with this log, when all that was written is on disk, or was written by a process before this one.
    pub(super) fn reset(&self, log: File) {
        let mut state = self.state.lock();
        state.log = Some(Arc::new(log));
        state.durable = state.written;
        state.failure = None;
        self.turned.notify_all();
    }

    /// Numbers a batch that was just committed.
    pub(super) fn number(&self) -> u64 {
        let mut state = self.state.lock();
        state.written += 1;
        state.written
    }

    /// The last batch written, if it is not on disk yet.
    pub(super) fn outstanding(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.durable < state.written).then_some(state.written)
    }

    /// Why nothing can be made durable, if so.
    pub(super) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Returns when the batch is on disk, up to which batch everything is; syncs the log if nobody else does.
    pub(super) fn wait(&self, batch: u64) -> Result<u64, EngineError> {
        let mut state = self.state.lock();
        loop {
            if state.durable >= batch {
                return Ok(state.durable);
            }
            if let Some(why) = &state.failure {
                return Err(EngineError::Unknown(why.clone()));
            }
            if state.is_syncing {
                self.turned.wait(&mut state);
                continue;
            }
            let Some(log) = state.log.clone() else {
                return Err(EngineError::Unknown("there is no log".into()));
            };
            let upto = state.written;
            state.is_syncing = true;
            drop(state);
            let synced = log.sync_data();
            state = self.state.lock();
            state.is_syncing = false;
            match synced {
                Ok(()) => state.durable = state.durable.max(upto),
                Err(error) => {
                    tracing::error!(%error, "the log could not be synced");
                    state.failure = Some(format!("the log could not be synced: {error}"));
                }
            }
            self.turned.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sync_serves_everything_written_before_it() {
        let durable = Durable::default();
        durable.reset(tempfile::tempfile().unwrap());
        assert_eq!(durable.outstanding(), None);
        let (first, second) = (durable.number(), durable.number());
        assert_eq!(durable.outstanding(), Some(second));
        assert_eq!(durable.wait(first), Ok(second));
        assert_eq!(durable.outstanding(), None);
        assert_eq!(durable.wait(first), Ok(second), "what is durable stays durable");
    }

    #[test]
    fn after_a_failed_sync_nothing_is_believed_until_the_log_is_emptied() {
        let durable = Durable::default();
        // A pipe's end cannot be synced.
        let (reader, _writer) = std::io::pipe().unwrap();
        durable.reset(File::from(std::os::fd::OwnedFd::from(reader)));
        let batch = durable.number();
        assert!(matches!(durable.wait(batch), Err(EngineError::Unknown(_))));
        let next = durable.number();
        assert!(matches!(durable.wait(next), Err(EngineError::Unknown(_))), "a later sync would prove nothing");
        assert!(durable.failure().is_some());
        durable.reset(tempfile::tempfile().unwrap());
        assert_eq!(durable.failure(), None);
        let after = durable.number();
        assert_eq!(durable.wait(after), Ok(after));
    }
}
