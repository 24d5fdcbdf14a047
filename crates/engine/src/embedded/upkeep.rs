//! The engine's own chores, each a bounded pass on a thread beside the writer: checkpoints, the index, the low mark.

use super::failure::Failure;
use super::{Core, index, load};
use rusqlite::Connection;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(50);
/// A write-ahead log of more pages than this (16 MiB) is copied into the store.
const LOG_PAGES: i64 = 4_096;
/// Pages that the writer itself may be asked to copy: a few milliseconds' worth.
const PAGES_LEFT: i64 = 1_000;
/// Ledger entries that may wait for the index while the engine is busy.
const TAIL: i64 = 200_000;

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
        if core.suspects_index.swap(false, Ordering::Relaxed) {
            self.index = None;
            core.readers.lock().clear();
            core.folder.discard_index(&"a broken file was met");
        }
        self.checkpoint_once(core)?;
        self.index_once(core, stopped)?;
        if self.rounds.is_multiple_of(20) {
            raise_low_water_once(core)?;
        }
        Ok(())
    }

    /// Copies the log beside the writer, then lets the writer copy the little that came meanwhile.
    fn checkpoint_once(&mut self, core: &Core) -> Result<(), Failure> {
        let db = match self.checkpointer.take() {
            Some(db) => db,
            None => core.folder.checkpointer()?,
        };
        // The file keeps its length when the log starts anew, so its pages are counted, not its bytes.
        if pages_left(&db, "PRAGMA wal_checkpoint(NOOP)")? >= LOG_PAGES {
            for _ in 0..4 {
                if pages_left(&db, "PRAGMA wal_checkpoint(PASSIVE)")? <= PAGES_LEFT {
                    core.writer.lock().finish_checkpoint()?;
                    break;
                }
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
            let last = core.with_reader(load::last_entry)?;
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

/// Pages of the log that are not in the store after this kind of checkpoint.
fn pages_left(db: &Connection, checkpoint: &str) -> Result<i64, Failure> {
    let (log, copied): (i64, i64) = db.query_row(checkpoint, [], |row| Ok((row.get(1)?, row.get(2)?)))?;
    Ok(log - copied)
}

/// Moves the mark below which no hold claims units over at most so many settled holds.
fn raise_low_water_once(core: &Core) -> Result<(), Failure> {
    let (passed, raised) = core.with_reader(|db| {
        let mut statement = db.prepare_cached(
            "SELECT n, status = 'held' FROM holds
             WHERE n >= (SELECT value FROM meta WHERE name = 'low_water') ORDER BY n LIMIT 50000",
        )?;
        let mut rows = statement.query([])?;
        let (mut passed, mut raised) = (0, 0);
        while let Some(row) = rows.next()? {
            let (n, is_held): (i64, bool) = (row.get(0)?, row.get(1)?);
            if is_held {
                return Ok((passed, n));
            }
            (passed, raised) = (passed + 1, n + 1);
        }
        Ok((passed, raised))
    })?;
    // A mark that lags costs a little reading at the next start, so small steps are not worth a write.
    if passed >= 1000 { core.writer.lock().set_low_water(raised) } else { Ok(()) }
}
