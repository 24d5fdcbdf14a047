//! The embedded engine: one writer, an [`Inventory`] in memory, and one SQLite transaction a batch.
//!
//! What a batch decides is synced to disk before anybody hears of it; a large next batch is decided meanwhile. When the
//! disk fails, the batch is answered with an error and the inventory is read anew from what is stored, so that memory
//! never believes more than the disk.

mod audit;
mod board;
mod durable;
mod export;
mod failure;
mod index;
mod load;
mod notes;
mod read;
mod rows;
mod store;
mod upkeep;
mod write;
mod writer;

pub use failure::Failure;

pub(crate) use export::Export;

use crate::audit::Fold;
use crate::clock::{Clock, random_seed};
use crate::doctor::Finding;
use crate::{
    Answer, Applied, AuditReport, Engine, EngineError, Health, HoldFilter, LedgerFilter, Note, Now, NumberedEntry,
    OrderView, Page,
};
use async_trait::async_trait;
use board::Board;
use durable::Durable;
use holdfast_domain::{Command, Hold, HoldId, Job, OrderId, Payment, PaymentKey, Policy, Sku, Stock, Time};
use parking_lot::Mutex;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Folder;
use upkeep::Upkeep;
use writer::{Decided, Writer};

/// Read-only connections kept open between reads.
const READERS_KEPT: usize = 8;

/// Stock and holds in a folder of this machine. Opening it takes the folder's lock; dropping it gives the lock back.
///
/// ```
/// use holdfast_engine::domain::{Command, Outcome, Policy, SetStock, Sku, Total};
/// use holdfast_engine::{Engine, Now, embedded::Embedded};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let dir = folder.path();
/// let engine = Embedded::open(dir)?;
/// let set = Command::SetStock(SetStock {
///     sku: Sku::new("PALM-PRO-BLK")?,
///     total: Total::new(350).ok_or("too many")?,
///     limit_per_customer: None,
///     if_version: None,
/// });
/// let answers = engine.apply_now(vec![set], Now::Clock)?;
/// assert!(matches!(&answers[0], Ok(Outcome::Stock { stock, .. }) if stock.available == 350));
/// # Ok(())
/// # }
/// ```
pub struct Embedded {
    core: Arc<Core>,
    _upkeep: Upkeep,
}

/// What the writer, the readers and the upkeep share.
struct Core {
    folder: Folder,
    clock: Clock,
    board: Board,
    durable: Durable,
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    fold: Mutex<Fold>,
    problem: Mutex<Option<String>>,
    /// A reader met a broken file: the upkeep throws the index away, which may be the one.
    suspects_index: AtomicBool,
}

impl Embedded {
    /// Opens the folder with the default policy; makes it if it is missing.
    ///
    /// # Errors
    /// When another process has it open, the disk fails, it was moved into a database, or it was written by another
    /// version.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Failure> {
        Self::open_with(dir, Policy::default())
    }

    /// Opens the folder with this policy; makes it if it is missing.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open_with(dir: impl AsRef<Path>, policy: Policy) -> Result<Self, Failure> {
        let folder = Folder::lock(dir.as_ref())?;
        // Readers look for the index when they connect, so it has to be there before them.
        let index = folder.index()?;
        let db = folder.writer()?;
        export::refuse_moved(&db, dir.as_ref())?;
        let clock = Clock::start(read::last_time(&db)?);
        if index::is_ahead(&index, &db)? {
            drop(index);
            folder.discard_index(&"it knows entries that the ledger does not have: an older store was put in place, or entries were lost");
            drop(folder.index()?);
        }
        let core = Arc::new(Core {
            clock,
            folder,
            board: Board::default(),
            durable: Durable::default(),
            writer: Mutex::new(Writer::closed(policy, random_seed())),
            readers: Mutex::default(),
            fold: Mutex::default(),
            problem: Mutex::default(),
            suspects_index: AtomicBool::new(false),
        });
        core.writer.lock().open(&core, db)?;
        Ok(Self { _upkeep: Upkeep::start(&core)?, core })
    }

    /// Applies a batch on the calling thread, and returns when it is durable. See [`Engine::apply`].
    ///
    /// # Errors
    /// As [`Engine::apply`].
    pub fn apply_now(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError> {
        let Decided { answers, wait_for } = self.core.decide(batch, now)?;
        self.core.make_durable(wait_for)?;
        Ok(answers)
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core, &Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, EngineError> {
        let core = self.core.clone();
        let task = tokio::task::spawn_blocking(move || core.with_reader(|db| read(&core, db)));
        let result = task.await.map_err(|e| EngineError::Unavailable(e.to_string()))?;
        result.map_err(EngineError::from)
    }
}

impl Core {
    fn decide(&self, batch: Vec<Command>, now: Now) -> Result<Decided, EngineError> {
        let mut writer = self.writer.lock();
        let now = match now {
            Now::Clock => self.clock.now(),
            Now::At(time) => time,
        };
        let decided = writer.apply(batch, now, self);
        drop(writer);
        self.note(decided.as_ref().err());
        decided
    }

    /// Returns when the batch, if any, is durable, and posts what is.
    fn make_durable(&self, batch: Option<u64>) -> Result<(), EngineError> {
        let Some(batch) = batch else { return Ok(()) };
        let durable = self.durable.wait(batch);
        self.note(durable.as_ref().err());
        self.board.post(durable?);
        Ok(())
    }

    fn note(&self, error: Option<&EngineError>) {
        *self.problem.lock() = error.map(ToString::to_string);
    }

    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let kept = self.readers.lock().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.folder.reader()?,
        };
        let result = read(&connection);
        if let Err(Failure::Sqlite(error)) = &result
            && store::is_broken(error)
        {
            self.suspects_index.store(true, Ordering::Relaxed);
        }
        let mut readers = self.readers.lock();
        if result.is_ok() && readers.len() < READERS_KEPT {
            readers.push(connection);
        }
        result
    }
}

/// Audits a data folder without taking its lock: also while a server has it open.
///
/// # Errors
/// When the folder holds no store or cannot be read.
pub fn audit_folder(dir: &Path) -> Result<AuditReport, Failure> {
    audit::run(&store::reader(dir)?, &mut Fold::default(), crate::clock::wall())
}

/// Looks at a data folder without taking its lock: also while a server has it open.
pub fn doctor(dir: &Path) -> Vec<Finding> {
    let shown = dir.display();
    if !dir.join("holdfast.db").exists() {
        let advice = "name the folder with --data-dir, or start `holdfast serve` once";
        return vec![Finding::problem("folder", format!("there is no store in {shown}"), advice)];
    }
    let drift = crate::doctor::drift(audit_folder(dir).map_err(|e| e.to_string()));
    vec![Finding::ok("folder", shown.to_string()), drift]
}

#[async_trait]
impl Engine for Embedded {
    async fn apply(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError> {
        self.apply_now(batch, now)
    }

    fn start(self: Arc<Self>, batch: Vec<Command>, now: Now) -> Applied {
        match self.core.decide(batch, now) {
            Err(error) => Applied::Done(Err(error)),
            Ok(Decided { answers, wait_for: None }) => Applied::Done(Ok(answers)),
            Ok(Decided { answers, wait_for }) => {
                let core = self.core.clone();
                Applied::Pending(Box::pin(async move { core.make_durable(wait_for).map(|()| answers) }))
            }
        }
    }

    fn is_blocking(&self) -> bool {
        true
    }

    async fn stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        Ok(self.core.board.get(sku, self.time()))
    }

    async fn stocks(&self, after: Option<&Sku>, limit: usize) -> Result<Page<Stock>, EngineError> {
        let items = self.core.board.list(after, limit, self.time());
        let next = (items.len() == limit).then(|| items.last().map(|s| s.sku.to_string())).flatten();
        Ok(Page { items, next })
    }

    async fn hold(&self, id: HoldId) -> Result<Option<Hold>, EngineError> {
        self.read(move |_, db| load::hold(db, id)).await
    }

    async fn holds(&self, filter: HoldFilter, limit: usize) -> Result<Page<Hold>, EngineError> {
        self.read(move |core, db| read::holds(db, &filter, limit, core.clock.now())).await
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError> {
        let id = id.clone();
        self.read(move |_, db| read::order(db, &id)).await
    }

    async fn ledger(&self, filter: LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        self.read(move |_, db| read::ledger(db, &filter, limit)).await
    }

    async fn payments(&self, status: Option<String>, after: u64, limit: usize) -> Result<Page<Payment>, EngineError> {
        self.read(move |_, db| read::payments(db, status.as_deref(), after, limit)).await
    }

    async fn refunds(&self, state: Option<String>, after: u64, limit: usize) -> Result<Page<Job>, EngineError> {
        self.read(move |_, db| read::refunds(db, state.as_deref(), after, limit)).await
    }

    async fn payment(&self, key: &PaymentKey) -> Result<Option<(Payment, Vec<Job>)>, EngineError> {
        let key = key.clone();
        let read = move |_: &Core, db: &Connection| {
            let Some(payment) = load::payment(db, &key)? else { return Ok(None) };
            Ok(Some((payment, load::jobs(db, &key)?)))
        };
        self.read(read).await
    }

    async fn due_jobs(&self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, EngineError> {
        let provider = provider.to_owned();
        self.read(move |_, db| read::due_jobs(db, &provider, now, limit)).await
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        let name = name.to_owned();
        self.read(move |_, db| notes::one(db, &name)).await
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        let (after, before) = crate::seam::note_range(prefix, after);
        self.read(move |_, db| notes::between(db, &after, &before, limit)).await
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        let (core, name, text) = (self.core.clone(), name.to_owned(), text.map(str::to_owned));
        let put = tokio::task::spawn_blocking(move || {
            let (is_put, wait_for) = core.writer.lock().put_note(&name, version, text.as_deref(), &core)?;
            core.make_durable(wait_for).map(|()| is_put)
        });
        put.await.map_err(|e| EngineError::Unknown(e.to_string()))?
    }

    async fn audit(&self) -> Result<AuditReport, EngineError> {
        self.read(|core, db| audit::run(db, &mut core.fold.lock(), core.clock.now())).await
    }

    async fn health(&self) -> Health {
        let (skus, holds) = self.core.board.counts();
        // The cause is for the log.
        let problem = self.core.problem.lock().as_ref().map(|_| "the data folder cannot be written".to_owned());
        Health {
            problem,
            holds,
            skus,
            clock_offset_ms: self.core.clock.offset_ms(),
            retries: 0,
            auditing: 0,
            backlog: 0,
            parked: 0,
        }
    }

    fn time(&self) -> Time {
        self.core.clock.now()
    }
}
