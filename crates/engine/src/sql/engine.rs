//! The engine over a [`Store`].

use super::batch::Batches;
use super::clock::SharedClock;
use super::config::SqlConfig;
use super::fault::{Fault, OpenError};
use super::hot_store::HotTx;
use super::leased::Desk;
use super::lists;
use super::note_store::NoteTx;
use super::store::{Mode, Store, Told, Tx};
use crate::audit::{Fold, STEP, compare};
use crate::{
    Answer, AuditReport, Engine, EngineError, Health, HoldFilter, LedgerFilter, Note, Now, NumberedEntry, OrderView,
    Page,
};
use async_trait::async_trait;
use holdfast_domain::{Command, Hold, HoldId, Job, OrderId, Payment, PaymentKey, Policy, Sku, Stock, Time};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Reads in one snapshot, by an expression over the transaction.
macro_rules! read {
    ($store:expr, $tx:ident => $read:expr) => {
        read!($store, Mode::ReadOnly, $tx => $read)
    };
    ($store:expr, $mode:expr, $tx:ident => $read:expr) => {
        async {
            let mut $tx = $store.begin($mode).await?;
            let result: Result<_, Fault> = async { $read }.await;
            // A connection that failed us is not waited for once more.
            if result.is_ok() {
                $tx.roll_back().await;
            }
            result
        }
        .await
    };
}
pub(super) use read;

/// Stock and holds in a database that other nodes may use too.
pub(crate) struct SqlEngine<S> {
    core: Arc<Core<S>>,
}

struct Core<S> {
    store: S,
    batches: Batches,
    clock: SharedClock,
    /// The fold of the ledger, as far as the last audit went; taken away while one runs.
    fold: Mutex<Option<Fold>>,
    problem: Mutex<Option<String>>,
}

impl<S: Store> SqlEngine<S> {
    /// An engine over a store whose tables are in place.
    pub(crate) async fn open(store: S, config: &SqlConfig) -> Result<Self, OpenError> {
        let desk = Desk::open(config)?;
        let told = read!(store, tx => tx.told().await)?.whole()?;
        let core = Core {
            store,
            batches: Batches::new(config.policy.clone(), config.strategy, desk),
            clock: SharedClock::new(told),
            fold: Mutex::default(),
            problem: Mutex::default(),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// Refuses to serve from a database that another store's nodes write to behind our back.
    pub(crate) async fn expect_no_hot_store(&self) -> Result<(), OpenError> {
        let (_, rows) = read!(self.core.store, tx => tx.hot_rows(&[0], false).await)?;
        if rows.is_empty() {
            return Ok(());
        }
        Err(OpenError(
            "this database is the ledger of an engine on Redis; serve with --engine redis://… and --ledger as before. To go on \
             without Redis: stop every node, let one that serves Redis drain to the end, then empty the table hot_partitions"
                .into(),
        ))
    }

    pub(super) fn store(&self) -> &S {
        &self.core.store
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.core.batches.policy
    }

    pub(super) fn hash_seed(&self) -> u64 {
        self.core.batches.hash_seed
    }

    fn told<T>(&self, result: Result<T, Fault>) -> Result<T, EngineError> {
        let result = result.map_err(EngineError::from);
        self.core.note(result.as_ref().err());
        result
    }
}

impl<S: Store> Core<S> {
    fn note(&self, error: Option<&EngineError>) {
        let problem = error.filter(|e| !matches!(e, EngineError::Overloaded)).map(ToString::to_string);
        let mut last = self.problem.lock();
        if problem.is_some() && last.is_none() {
            tracing::error!(problem, "the database failed");
        }
        if problem.is_none() && last.is_some() {
            tracing::info!("the database serves again");
        }
        *last = problem;
    }

    async fn told(&self) -> Result<Told, Fault> {
        let told = read!(self.store, tx => tx.told().await)?.whole()?;
        self.clock.set(told);
        Ok(told)
    }
}

/// Compares at one cut; `fold` is how far an audit before it went.
pub(super) async fn audit<S: Store>(
    store: &S,
    fold: &mut Fold,
    now: impl Fn() -> Time + Send,
) -> Result<AuditReport, Fault> {
    let cut = read!(store, tx => tx.cut().await)?;
    // The ledger up to the cut never changes, so it is folded afterwards, a transaction a step.
    fold.rewind_to(cut.last);
    while fold.upto < cut.last {
        let upto = cut.last.min(fold.upto + STEP);
        read!(store, tx => tx.fold(fold, upto).await)?;
        fold.upto = upto;
    }
    Ok(compare(&cut, fold, now()))
}

#[async_trait]
impl<S: Store> Engine for SqlEngine<S> {
    async fn apply(&self, batch: Vec<Command>, now: Now) -> Result<Vec<Answer>, EngineError> {
        let core = self.core.clone();
        // In a task of its own: a caller that goes away cannot leave it half-way.
        let task = tokio::spawn(async move { core.batches.apply(&core.store, &core.clock, batch, now).await });
        let result = task.await.unwrap_or_else(|e| Err(EngineError::Unknown(format!("a batch ended early: {e}"))));
        self.core.note(result.as_ref().err());
        result
    }

    fn is_blocking(&self) -> bool {
        false
    }

    async fn stock(&self, sku: &Sku) -> Result<Option<Stock>, EngineError> {
        let now = self.time();
        self.told(read!(self.core.store, tx => tx.stock(sku, now).await))
    }

    async fn stocks(&self, after: Option<&Sku>, limit: usize) -> Result<Page<Stock>, EngineError> {
        let now = self.time();
        let items = self.told(read!(self.core.store, tx => tx.stocks(after, now, limit).await))?;
        let next = (items.len() == limit).then(|| items.last().map(|s| s.sku.to_string())).flatten();
        Ok(Page { items, next })
    }

    async fn hold(&self, id: HoldId) -> Result<Option<Hold>, EngineError> {
        self.told(read!(self.core.store, tx => tx.hold(id).await))
    }

    async fn holds(&self, filter: HoldFilter, limit: usize) -> Result<Page<Hold>, EngineError> {
        let now = self.time();
        self.told(read!(self.core.store, tx => lists::holds(&mut tx, &filter, limit, now).await))
    }

    fn knows_cursor(&self, filter: &HoldFilter) -> bool {
        lists::knows_cursor(filter)
    }

    async fn order(&self, id: &OrderId) -> Result<Option<OrderView>, EngineError> {
        self.told(read!(self.core.store, tx => {
            let Some(order) = tx.order(id).await? else { return Ok(None) };
            let payment = match &order.payment {
                Some(key) => tx.payment(key).await?,
                None => None,
            };
            Ok(Some(OrderView { order, payment }))
        }))
    }

    async fn ledger(&self, filter: LedgerFilter, limit: usize) -> Result<Page<NumberedEntry>, EngineError> {
        let after = i64::try_from(filter.after).unwrap_or(i64::MAX);
        let (sku, order) = (filter.sku.as_ref(), filter.order_id.as_ref());
        let items = self.told(read!(self.core.store, tx => tx.entries(sku, order, after, limit).await))?;
        let next = (items.len() == limit).then(|| items.last().map(|e| e.seq.to_string())).flatten();
        Ok(Page { items, next })
    }

    async fn payments(&self, status: Option<String>, after: u64, limit: usize) -> Result<Page<Payment>, EngineError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let found = self.told(read!(self.core.store, tx => tx.payments(status.as_deref(), after, limit).await))?;
        Ok(lists::page(found, limit))
    }

    async fn refunds(&self, state: Option<String>, after: u64, limit: usize) -> Result<Page<Job>, EngineError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let found = self.told(read!(self.core.store, tx => tx.refunds(state.as_deref(), after, limit).await))?;
        Ok(lists::page(found, limit))
    }

    async fn payment(&self, key: &PaymentKey) -> Result<Option<(Payment, Vec<Job>)>, EngineError> {
        self.told(read!(self.core.store, tx => {
            let Some(payment) = tx.payment(key).await? else { return Ok(None) };
            Ok(Some((payment, tx.jobs_of(key).await?)))
        }))
    }

    async fn due_jobs(&self, provider: &str, now: Time, limit: usize) -> Result<Vec<Job>, EngineError> {
        self.told(read!(self.core.store, tx => tx.due_jobs(provider, now, limit).await))
    }

    async fn note(&self, name: &str) -> Result<Option<Note>, EngineError> {
        let found = self.told(read!(self.core.store, tx => tx.note(name).await))?;
        Ok(found.map(|(_, note)| note))
    }

    async fn notes(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<(String, Note)>, EngineError> {
        let (after, before) = crate::seam::note_range(prefix, after);
        self.told(read!(self.core.store, tx => tx.notes(&after, &before, limit).await))
    }

    async fn put_note(&self, name: &str, version: u64, text: Option<&str>) -> Result<bool, EngineError> {
        let (store, name, text) = (self.core.clone(), name.to_owned(), text.map(str::to_owned));
        // In a task of its own: a caller that goes away leaves no transaction open.
        let put = tokio::spawn(async move {
            let mut tx = store.store.begin(Mode::Locking).await?;
            let is_put = tx.put_note(&name, version, text.as_deref()).await?;
            tx.commit().await.map(|()| is_put)
        });
        let put = put.await.map_err(|e| EngineError::Unknown(e.to_string()))?;
        self.told(put)
    }

    async fn audit(&self) -> Result<AuditReport, EngineError> {
        let mut fold = self.core.fold.lock().take().unwrap_or_default();
        let report = self.told(audit(&self.core.store, &mut fold, || self.time()).await)?;
        *self.core.fold.lock() = Some(fold);
        Ok(report)
    }

    async fn health(&self) -> Health {
        // Asks the database: a node that cannot reach it is not ready, whether or not anybody has noticed.
        let told = self.core.told().await.map_err(EngineError::from);
        self.core.note(told.as_ref().err());
        let problem = told.as_ref().err().map(|_| "the database cannot be reached".to_owned());
        let (holds, skus) = told.map_or((0, 0), |told| (told.holds, told.skus));
        let retries = self.core.batches.retries.load(Ordering::Relaxed);
        Health {
            problem,
            holds,
            skus,
            clock_offset_ms: self.core.clock.offset_ms(),
            retries,
            auditing: 0,
            backlog: 0,
            parked: 0,
        }
    }

    fn time(&self) -> Time {
        self.core.clock.now()
    }
}
