//! The one writer: load, decide, persist.

use super::board::Board;
use super::failure::Failure;
use super::load::{all, one};
use super::store::Folder;
use super::{load, read, rows, write};
use crate::clock::{HoldIds, monotonic};
use crate::{Answer, EngineError};
use holdfast_domain::{Command, Inventory, Key, Policy, Stock, Time};
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
    pub(super) fn open(folder: &Folder, board: &Board, policy: Policy, seed: u64) -> Result<Self, Failure> {
        let ready = Ready::open(folder, board, &policy, seed)?;
        let last: i64 =
            one(&ready.db, "SELECT at FROM ledger ORDER BY seq DESC LIMIT 1", [], |row| Ok(row.get(0)?))?.unwrap_or(0);
        Ok(Self { policy, seed, state: State::Ready(Box::new(ready)), last_time: Time::from_millis(last) })
    }

    /// The latest moment that was recorded: the clock must not start before it.
    pub(super) fn last_time(&self) -> Time {
        self.last_time
    }

    /// Decides the batch and makes it durable.
    pub(super) fn apply(
        &mut self,
        batch: Vec<Command>,
        now: Time,
        folder: &Folder,
        board: &Board,
    ) -> Result<Vec<Answer>, EngineError> {
        // What was decided at one moment is never undone by an earlier one.
        self.last_time = self.last_time.max(now);
        let now = self.last_time;
        let ready = self.ready(folder, board)?;
        // A bug that panics must not end the lane: what it left in memory is thrown away like after a failed batch.
        let applied = catch_unwind(AssertUnwindSafe(|| ready.apply(batch, now, board)));
        match applied.unwrap_or_else(|_| Err(EngineError::Unknown("a batch panicked".into()))) {
            Ok(answers) => Ok(answers),
            Err(error) => {
                tracing::error!(%error, "a batch could not be made durable");
                self.state = State::Failed { since: monotonic(), why: error.to_string() };
                Err(error)
            }
        }
    }

    fn ready(&mut self, folder: &Folder, board: &Board) -> Result<&mut Ready, EngineError> {
        if let State::Failed { since, why } = &self.state {
            if since.elapsed() < RETRY {
                return Err(EngineError::Unavailable(why.clone()));
            }
            match Ready::open(folder, board, &self.policy, self.seed).and_then(Ready::probe) {
                Ok(ready) => {
                    tracing::info!("the store is read again after a failure");
                    self.state = State::Ready(Box::new(ready));
                }
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

    /// Moves the mark below which no hold claims units; one bounded pass.
    pub(super) fn raise_low_water(&mut self) -> Result<(), Failure> {
        let State::Ready(ready) = &mut self.state else { return Ok(()) };
        let low =
            one(&ready.db, "SELECT value FROM meta WHERE name = 'low_water'", [], |row| Ok(row.get::<_, i64>(0)?))?;
        let low = low.unwrap_or(0);
        let sql = "SELECT n, status FROM holds WHERE n >= ?1 ORDER BY n LIMIT 5000";
        let passed = all(&ready.db, sql, [low], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let first_held = passed.iter().find(|(_, status)| status == "held").map(|(n, _)| *n);
        let raised = first_held.or_else(|| passed.last().map(|(n, _)| n + 1)).unwrap_or(low);
        // A mark that lags costs a little reading at the next start, so small steps are not worth a durable write.
        let stepped = passed.iter().take_while(|(n, _)| *n < raised).count();
        if stepped >= 1000 {
            ready.db.execute("UPDATE meta SET value = ?1 WHERE name = 'low_water'", [raised])?;
        }
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
    fn open(folder: &Folder, board: &Board, policy: &Policy, seed: u64) -> Result<Self, Failure> {
        let db = folder.writer()?;
        let mut inventory = load::inventory(&db, policy.clone(), seed)?;
        let stocks: Vec<Stock> = all(&db, &format!("SELECT {} FROM stock", rows::STOCK), [], rows::stock)?;
        board.rebuild(&inventory, &stocks);
        inventory.settle_down();
        let (last_hold, seq) = read::last_numbers(&db)?;
        let waiting = load::waiting_count(&db)?;
        Ok(Self { inventory, ids: HoldIds::after(last_hold), seq, waiting, db, wanted: Vec::new() })
    }

    /// Writes a little, durably: a store that can only be read is not ready.
    fn probe(self) -> Result<Self, Failure> {
        self.db.execute("UPDATE meta SET value = value WHERE name = 'low_water'", [])?;
        Ok(self)
    }

    fn apply(&mut self, batch: Vec<Command>, now: Time, board: &Board) -> Result<Vec<Answer>, EngineError> {
        let mut answers = Vec::with_capacity(batch.len());
        // One snapshot for all that is looked up: each SELECT on its own would lock and unlock the log.
        execute(&self.db, "BEGIN").map_err(not_applied)?;
        for mut command in batch {
            if let Command::Hold(asked) = &mut command {
                asked.id = self.ids.next(now);
            }
            self.load(&command)?;
            answers.push(self.inventory.apply(&command, now));
        }
        if self.inventory.changes().is_empty() {
            execute(&self.db, "COMMIT").map_err(not_applied)?;
        } else {
            self.persist()?;
            board.post(&self.inventory);
        }
        self.inventory.settle_down();
        Ok(answers)
    }

    fn load(&mut self, command: &Command) -> Result<(), EngineError> {
        loop {
            self.inventory.wants(command, &mut self.wanted);
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
    fn persist(&mut self) -> Result<(), EngineError> {
        let mut seq = self.seq;
        write::changes(&self.db, &self.inventory, &mut seq)?;
        let waiting = match self.inventory.changes().payments.is_empty() {
            true => self.waiting,
            false => load::waiting_count(&self.db)?,
        };
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

fn execute(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn not_applied(error: rusqlite::Error) -> EngineError {
    Failure::from(error).into()
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
}
