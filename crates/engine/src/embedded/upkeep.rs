//! The engine's own chores, each a bounded pass on a thread beside the writer: checkpoints, the index, the low mark.

use super::failure::Failure;
use super::{Core, index};
use rusqlite::Connection;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);
/// A write-ahead log longer than this is copied into the store.
const LOG_BYTES: u64 = 64 << 20;
/// Pages that the writer itself may be asked to copy: a few milliseconds' worth.
const PAGES_LEFT: i64 = 1_000;
/// Ledger entries that may wait for the index while the engine is busy.
const TAIL: i64 = 500_000;

/// The running thread. Dropping it ends the thread.
pub(super) struct Upkeep {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    pub(super) fn start(core: &Arc<Core>) -> Result<Self, Failure> {
        let (stop, stopped) = channel();
        let weak = Arc::downgrade(core);
        let thread = std::thread::Builder::new()
            .name("upkeep".into())
            .spawn(move || run(&weak, &stopped))
            .map_err(|e| Failure::Io(format!("cannot start a thread: {e}")))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A chore that panicked has said so on standard error; the engine itself is not harmed.
            let _ = thread.join();
        }
    }
}

#[derive(Default)]
struct Chores {
    checkpointer: Option<Connection>,
    index: Option<Connection>,
    last_seq: i64,
    rounds: u64,
}

fn run(core: &Weak<Core>, stopped: &Receiver<()>) {
    let mut chores = Chores::default();
    while matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout)) {
        let Some(core) = core.upgrade() else { return };
        if let Err(error) = chores.round(&core, stopped) {
            tracing::warn!(%error, "upkeep failed and is tried again");
            chores = Chores::default();
        }
    }
}

impl Chores {
    fn round(&mut self, core: &Core, stopped: &Receiver<()>) -> Result<(), Failure> {
        self.rounds += 1;
        self.checkpoint_once(core)?;
        self.index_once(core, stopped)?;
        if self.rounds.is_multiple_of(20) {
            core.writer.lock().raise_low_water()?;
        }
        Ok(())
    }

    /// Copies the log beside the writer, then lets the writer copy the little that came meanwhile.
    fn checkpoint_once(&mut self, core: &Core) -> Result<(), Failure> {
        if core.folder.log_bytes() < LOG_BYTES {
            return Ok(());
        }
        let db = match self.checkpointer.take() {
            Some(db) => db,
            None => core.folder.checkpointer()?,
        };
        for _ in 0..4 {
            let (log, copied): (i64, i64) =
                db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
            if log - copied <= PAGES_LEFT {
                core.writer.lock().finish_checkpoint()?;
                break;
            }
        }
        self.checkpointer = Some(db);
        Ok(())
    }

    /// Indexes the ledger when it has not grown since the last round, or when the tail has become long.
    fn index_once(&mut self, core: &Core, stopped: &Receiver<()>) -> Result<(), Failure> {
        let mut db = match self.index.take() {
            Some(db) => db,
            None => core.folder.index()?,
        };
        loop {
            let last = core.with_reader(|store| {
                Ok(store.query_row("SELECT coalesce(max(seq), 0) FROM ledger", [], |row| row.get::<_, i64>(0))?)
            })?;
            let is_idle = last == std::mem::replace(&mut self.last_seq, last);
            let is_long = last - index::indexed_to(&db)? > TAIL;
            if !is_idle && !is_long {
                break;
            }
            let more = core.with_reader(|store| index::advance_once(&mut db, store))?;
            if !more || !matches!(stopped.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty)) {
                break;
            }
        }
        self.index = Some(db);
        Ok(())
    }
}
