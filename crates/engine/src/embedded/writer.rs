//! The one writer: load, decide, persist.

use super::Core;
use super::board::Posting;
use super::failure::Failure;
use super::{load, notes, read, write};
use crate::clock::{HoldIds, monotonic};
use crate::{Answer, EngineError};
use holdfast_domain::{Command, Inventory, Key, Policy, Time};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// After a failure, the store is tried again at most this often.
const RETRY: Duration = Duration::from_millis(250);

pub(super) struct Writer {
    policy: Policy,
    seed: u64,
    state: State,
    last_time: Time,
}

/// What a batch was decided to be, and the batch that must be durable before anybody hears of it.
pub(super) struct Decided {
    pub(super) answers: Vec<Answer>,
    pub(super) wait_for: Option<u64>,
}

enum State {
    Ready(Box<Ready>),
    /// The last batch failed, or the store could not be read after that. Nothing in memory is to be believed.
    Failed {
        since: Instant,
        why: String,
    },
}

struct Ready {
    db: Connection,
    inventory: Inventory,
    ids: HoldIds,
    seq: i64,
    waiting: u64,
    wanted: Vec<Key>,
}

impl Writer {
    /// One that is yet to be opened.
    pub(super) fn closed(policy: Policy, seed: u64) -> Self {
        let state = State::Failed { since: monotonic(), why: "the store is not open".into() };
        Self { policy, seed, state, last_time: Time::from_millis(0) }
    }

    /// Reads what is stored.
    pub(super) fn open(&mut self, core: &Core, db: Connection) -> Result<(), Failure> {
        self.state = State::Ready(Box::new(Ready::open(core, db, &self.policy, self.seed)?));
        Ok(())
    }

    /// Decides the batch and writes it; syncing is for later.
    pub(super) fn apply(&mut self, batch: Vec<Command>, now: Time, core: &Core) -> Result<Decided, EngineError> {
        // What was decided at one moment is never undone by an earlier one.
        self.last_time = self.last_time.max(now);
        let now = self.last_time;
        if let (State::Ready(_), Some(why)) = (&self.state, core.durable.failure()) {
            self.state = State::Failed { since: monotonic(), why };
        }
        let ready = self.ready(core)?;
        // A bug that panics must not end the lane: what it left in memory is thrown away like after a failed batch.
        let applied = catch_unwind(AssertUnwindSafe(|| ready.apply(batch, now, core)));
        match applied.unwrap_or_else(|_| Err(EngineError::Unknown("a batch panicked".into()))) {
            Ok(decided) => Ok(decided),
            Err(error) => {
                tracing::error!(%error, "a batch could not be written");
                self.state = State::Failed { since: monotonic(), why: error.to_string() };
                Err(error)
            }
        }
    }

    fn ready(&mut self, core: &Core) -> Result<&mut Ready, EngineError> {
        if let State::Failed { since, why } = &self.state {
            if since.elapsed() < RETRY {
                return Err(EngineError::Unavailable(why.clone()));
            }
            match core.folder.writer().and_then(|db| prove_writable(db, core)).and_then(|db| self.open(core, db)) {
                Ok(()) => tracing::info!("the store is read again after a failure"),
                Err(failure) => {
                    self.state = State::Failed { since: monotonic(), why: failure.to_string() };
                    return Err(failure.into());
                }
            }
        }
        match &mut self.state {
            State::Ready(ready) => Ok(ready),
            State::Failed { why, .. } => Err(EngineError::Unavailable(why.clone())),
        }
    }

    /// Writes a note, and tells which batch must be durable before anybody hears of it.
    pub(super) fn put_note(
        &mut self,
        name: &str,
        version: u64,
        text: Option<&str>,
        core: &Core,
    ) -> Result<(bool, Option<u64>), EngineError> {
        let ready = self.ready(core)?;
        let is_put = notes::put(&ready.db, name, version, text)?;
        // What was found may not be durable yet either.
        let wait_for = if is_put { Some(core.durable.number()) } else { core.durable.outstanding() };
        Ok((is_put, wait_for))
    }

    /// Moves the mark below which no hold claims units. It costs nothing if this is lost: the next start reads more.
    pub(super) fn set_low_water(&mut self, n: i64) -> Result<(), Failure> {
        let State::Ready(ready) = &mut self.state else { return Ok(()) };
        ready.db.execute("UPDATE meta SET value = ?1 WHERE name = 'low_water'", [n])?;
        Ok(())
    }

    /// Copies what little is left of the write-ahead log, so that the next batch starts it anew.
    pub(super) fn finish_checkpoint(&mut self) -> Result<(), Failure> {
        let State::Ready(ready) = &mut self.state else { return Ok(()) };
        ready.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }
}

impl Ready {
    fn open(core: &Core, db: Connection, policy: &Policy, seed: u64) -> Result<Self, Failure> {
        let (mut inventory, stocks) = load::inventory(&db, policy.clone(), seed)?;
        core.board.rebuild(&inventory, &stocks);
        inventory.settle_down();
        let (last_hold, seq) = read::last_numbers(&db)?;
        let waiting = load::waiting_count(&db)?;
        // What a process before this one wrote but did not sync is told from now on, so it has to be on disk.
        let log = core.folder.log()?;
        log.sync_data().map_err(|e| Failure::Io(format!("the log could not be synced: {e}")))?;
        core.durable.reset(log);
        Ok(Self { inventory, ids: HoldIds::after(last_hold), seq, waiting, db, wanted: Vec::new() })
    }

    fn apply(&mut self, batch: Vec<Command>, now: Time, core: &Core) -> Result<Decided, EngineError> {
        let mut answers = Vec::with_capacity(batch.len());
        // One snapshot for all that is looked up: each SELECT on its own would lock and unlock the log.
        execute(&self.db, "BEGIN").map_err(not_applied)?;
        for mut command in batch {
            if let Command::Hold(asked) = &mut command {
                asked.id = self.ids.next(now);
            }
            self.load(&command, now)?;
            answers.push(self.inventory.apply(&command, now));
        }
        let wait_for = if self.inventory.changes().is_empty() {
            execute(&self.db, "COMMIT").map_err(not_applied)?;
            // What was decided may rest on what is not durable yet.
            core.durable.outstanding()
        } else {
            self.write()?;
            let batch = core.durable.number();
            core.board.keep(batch, Posting::of(&mut self.inventory));
            Some(batch)
        };
        self.inventory.settle_down();
        Ok(Decided { answers, wait_for })
    }

    fn load(&mut self, command: &Command, now: Time) -> Result<(), EngineError> {
        loop {
            self.inventory.wants(command, now, &mut self.wanted);
            if self.wanted.is_empty() {
                return Ok(());
            }
            for key in self.wanted.drain(..) {
                load::key(&self.db, &mut self.inventory, key, self.waiting > 0)?;
            }
        }
    }

    /// Writes what the batch changed and commits. After an error the connection is dropped, and with it whatever was
    /// written but not committed.
    fn write(&mut self) -> Result<(), EngineError> {
        let mut seq = self.seq;
        write::changes(&self.db, &self.inventory, &mut seq)?;
        let no_payments = self.inventory.changes().payments.is_empty();
        let waiting = if no_payments { self.waiting } else { load::waiting_count(&self.db)? };
        if let Err(error) = execute(&self.db, "COMMIT") {
            // A full disk leaves the transaction open and nothing written. Any other failure leaves us not knowing.
            let is_open = !self.db.is_autocommit();
            if is_open && is_full(&error) && execute(&self.db, "ROLLBACK").is_ok() {
                return Err(not_applied(error));
            }
            return Err(EngineError::Unknown(format!("SQLite: {error}")));
        }
        (self.seq, self.waiting) = (seq, waiting);
        Ok(())
    }
}

/// Writes a little: a store that can only be read is found out. After a sync that failed, the log is emptied into the
/// store before that, since what it lost on its way to the disk cannot be told.
fn prove_writable(db: Connection, core: &Core) -> Result<Connection, Failure> {
    if core.durable.failure().is_some() {
        let busy: i64 = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy != 0 {
            return Err(Failure::Io("the log is still being read; end long reads of the store".into()));
        }
    }
    db.execute("UPDATE meta SET value = value WHERE name = 'low_water'", [])?;
    Ok(db)
}

fn execute(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn not_applied(error: rusqlite::Error) -> EngineError {
    Failure::from(error).into()
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}
