//! Taking a whole store into an empty database, a page a transaction, each together with how far the move is by then.
//!
//! While it is not done, the row of totals keeps everybody else from writing entries, and no engine opens the database.

use super::engine::{audit, read};
use super::fault::Fault;
use super::note_store::NoteTx;
use super::store::{Mode, Moved, Store, Tx};
use super::writes::Writes;
use crate::audit::Fold;
use crate::clock::{random_seed, wall};
use crate::moving::{self, Counts, MoveError, OnProgress, PAGE, Phase, Progress, Report, Rows, Source};
use holdfast_domain::{HoldStatus, Sku, Time};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// How often a page is tried before the move ends; it can be begun again.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

impl From<Fault> for MoveError {
    fn from(fault: Fault) -> Self {
        Self::Told(fault.to_string())
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, MoveError> {
    Err(MoveError::Told(why.into()))
}

/// Moves everything that an earlier run has not moved, compares, and closes the source for good.
pub(crate) async fn import<S: Store>(
    store: &S,
    source: Arc<dyn Source>,
    on_progress: &mut OnProgress<'_>,
) -> Result<Report, MoveError> {
    let clock_offset_ms = clock_offset(store).await?;
    let counts = moving::read(&source, Source::counts).await?;
    let begun = begin(store, &source).await?;
    if begun.is_done {
        moving::read(&source, Source::set_moved).await?;
        return Ok(Report { counts, moved: 0, was_done: true });
    }
    let before = read!(store, tx => tx.counts().await)?.rows();
    let progress = Progress { phase: begun.phase.as_str(), done: before, rows: counts.rows(), clock_offset_ms };
    let all = pages(store, &source, begun, progress, on_progress).await?;
    compare(store, &source, counts).await?;
    // The source is closed before the database is opened: never do both sell.
    moving::read(&source, Source::set_moved).await?;
    put(store, &all, &Moved { is_done: true, ..all.clone() }, &Writes::default()).await?;
    Ok(Report { counts, moved: counts.rows().saturating_sub(before), was_done: false })
}

/// How far this machine's clock is ahead of the database's; the way there and back is halved.
async fn clock_offset<S: Store>(store: &S) -> Result<i64, Fault> {
    // The first transaction makes the connection.
    read!(store, tx => tx.told().await)?;
    let asked = wall().millis();
    let told = read!(store, tx => tx.told().await)?;
    Ok(i64::midpoint(asked, wall().millis()) - told.now.millis())
}

/// Where to go on; from the beginning, if the database is empty.
async fn begin<S: Store>(store: &S, source: &Arc<dyn Source>) -> Result<Moved, MoveError> {
    let mark = moving::read(source, Source::mark).await?;
    let name = source.name();
    if let Some(moved) = read!(store, tx => tx.moved().await)? {
        return match mark.token == Some(moved.token) {
            true => Ok(moved),
            false if moved.is_done => refused(format!(
                "the database holds the store that was moved there from {} and whatever came since; name an empty one with --to",
                moved.source
            )),
            false => refused(format!(
                "the database is half-filled with the store from {}, and {name} is not that store as it was then; finish with --from {0}, or empty the database",
                moved.source
            )),
        };
    }
    if mark.is_moved {
        return refused(format!("the store in {name} was moved before, but not to this database; serve that one"));
    }
    if !is_empty(store).await? {
        return refused("the database holds SKUs, holds or entries of its own; name an empty one with --to");
    }
    let audit = moving::read(source, Source::audit).await?;
    if !audit.drift.is_empty() {
        return refused(format!("the audit of {name} is not clean, so it is not moved; see `holdfast audit`"));
    }
    // A token of its own for every move that begins: an earlier one, into another database, cannot go on any more.
    let token = (random_seed() >> 1) as i64;
    moving::read(source, move |source| source.set_token(Some(token))).await?;
    let begun = Moved { token, source: name, phase: Phase::Stocks, last: String::new(), is_done: false };
    match begin_at(store, &begun).await {
        Ok(true) => Ok(begun),
        Ok(false) => {
            moving::read(source, |source| source.set_token(None)).await?;
            refused("somebody else has begun to use the database; name an empty one with --to")
        }
        Err(fault) => Err(fault.into()),
    }
}

async fn is_empty<S: Store>(store: &S) -> Result<bool, Fault> {
    let told = read!(store, tx => tx.told().await)?;
    // Counting is for databases that look empty: others may be large.
    Ok(told.skus == 0 && told.last_time.millis() == 0 && read!(store, tx => tx.counts().await)? == Counts::default())
}

/// Shuts everybody else out, then looks once more whether the database is empty. `false`: it is not.
async fn begin_at<S: Store>(store: &S, begun: &Moved) -> Result<bool, Fault> {
    let mut tx = store.begin(Mode::SkusUnlocked).await?;
    let begun = async {
        tx.note_move(None, begun).await?;
        Ok::<_, Fault>(tx.counts().await? == Counts::default())
    };
    match begun.await {
        Ok(true) => tx.commit().await.map(|()| true),
        Ok(false) | Err(Fault::Again(_)) => {
            tx.roll_back().await;
            Ok(false)
        }
        Err(fault) => Err(fault),
    }
}

/// Moves page after page, reading the next one while one is being written.
async fn pages<S: Store>(
    store: &S,
    source: &Arc<dyn Source>,
    mut at: Moved,
    mut progress: Progress,
    on_progress: &mut OnProgress<'_>,
) -> Result<Moved, MoveError> {
    let start = |at: &Moved| {
        let (source, phase, last) = (source.clone(), at.phase, at.last.clone());
        tokio::task::spawn_blocking(move || source.page(phase, &last, PAGE))
    };
    let mut ahead = start(&at);
    loop {
        progress.phase = at.phase.as_str();
        if on_progress(progress) == ControlFlow::Break(()) {
            return Err(MoveError::Stopped);
        }
        if at.phase == Phase::Check {
            return Ok(at);
        }
        let (rows, last) = ahead.await.map_err(|e| MoveError::Told(e.to_string()))??;
        let is_last = rows.len() < PAGE;
        let (phase, last) = if is_last { (at.phase.next(), String::new()) } else { (at.phase, last) };
        let next = Moved { phase, last, ..at.clone() };
        ahead = start(&next);
        put(store, &at, &next, &writes(&rows)).await?;
        progress.done += rows.len() as u64;
        at = next;
    }
}

fn writes(rows: &Rows) -> Writes<'_> {
    let mut writes = Writes { is_move: true, ..Writes::default() };
    match rows {
        Rows::Stocks(stocks) => {
            writes.more_skus = stocks.len() as i64;
            writes.new_stocks = stocks.iter().collect();
        }
        Rows::Holds(holds) => {
            for hold in holds.iter().filter(|hold| hold.status == HoldStatus::Held) {
                let lines = hold.lines.iter();
                writes.new_claims.extend(lines.map(|l| (&l.sku, hold.expires_at, hold.id, l.quantity.get())));
                writes.more_holds += 1;
            }
            writes.new_holds = holds.iter().collect();
        }
        Rows::Orders(orders) => writes.new_orders = orders.iter().collect(),
        Rows::Payments(payments) => writes.new_payments = payments.iter().collect(),
        Rows::Jobs(jobs) => writes.jobs = jobs.iter().collect(),
        Rows::Events(events) => writes.events = events,
        Rows::Receipts(receipts) => writes.receipts = receipts,
        Rows::Purchases(bought) => {
            writes.bought = bought.iter().map(|(customer, sku, n)| (customer, sku, *n)).collect();
        }
        Rows::Notes(notes) => writes.notes = notes,
        Rows::Entries(entries) => {
            writes.entries = entries;
            writes.now = entries.iter().map(|entry| entry.at).max().unwrap_or_default();
        }
    }
    writes
}

/// Writes a page and how far the move is by then. A fault is not the end: what is noted says whether it was written.
async fn put<S: Store>(store: &S, at: &Moved, next: &Moved, writes: &Writes<'_>) -> Result<(), MoveError> {
    let mut attempt = 0;
    loop {
        let fault = match put_once(store, at, next, writes).await {
            Ok(()) => return Ok(()),
            Err(fault @ Fault::Corrupt(_)) => return Err(fault.into()),
            Err(fault) => fault,
        };
        attempt += 1;
        if attempt == ATTEMPTS {
            return refused(format!("{fault}; what was moved by then stays, and the same command goes on from there"));
        }
        tracing::warn!(%fault, attempt, "a page is written again");
        tokio::time::sleep(PAUSE).await;
        match read!(store, tx => tx.moved().await) {
            Ok(Some(noted)) if noted == *next => return Ok(()),
            Ok(Some(noted)) if noted == *at => {}
            Ok(_) => return refused("somebody else moves a store into this database too"),
            Err(fault) => tracing::warn!(%fault, "the database does not say how far the move is"),
        }
    }
}

async fn put_once<S: Store>(store: &S, at: &Moved, next: &Moved, writes: &Writes<'_>) -> Result<(), Fault> {
    let mut tx = store.begin(Mode::SkusUnlocked).await?;
    tx.write(writes).await?;
    for (name, text) in writes.notes {
        tx.put_note(name, 0, Some(text)).await?;
    }
    tx.note_move(Some(at), next).await?;
    tx.commit().await
}

/// Everything is there, the same, and adds up.
async fn compare<S: Store>(store: &S, source: &Arc<dyn Source>, counts: Counts) -> Result<(), MoveError> {
    let told = read!(store, tx => tx.told().await)?;
    let found = read!(store, tx => tx.counts().await)?;
    if found != counts || (told.skus, told.holds) != (counts.skus, counts.live_holds) {
        return refused(format!(
            "the database has {found:?}, the folder {counts:?}; empty the database and begin again"
        ));
    }
    let mut after: Option<Sku> = None;
    loop {
        let cursor = after.as_ref().map(Sku::to_string).unwrap_or_default();
        let (rows, _) = moving::read(source, move |source| source.page(Phase::Stocks, &cursor, PAGE)).await?;
        let Rows::Stocks(expected) = rows else { return Ok(()) };
        // As of long ago nothing has lapsed: the counters as they are stored.
        let recorded = Time::from_millis(0);
        let found = read!(store, tx => tx.stocks(after.as_ref(), recorded, PAGE).await)?;
        if let Some((expected, found)) = expected.iter().zip(&found).find(|(expected, found)| expected != found) {
            return refused(format!(
                "the folder has {expected:?}, the database {found:?}; empty the database and begin again"
            ));
        }
        if expected.len() < PAGE {
            break;
        }
        after = expected.last().map(|stock| stock.sku.clone());
    }
    let report = audit(store, &mut Fold::default(), wall).await?;
    if !report.drift.is_empty() || report.entries != counts.entries {
        return refused(format!(
            "the audit of the database is not clean: {report:?}; empty the database and begin again"
        ));
    }
    Ok(())
}
