//! The embedded store as the source of a move: its rows page by page, and the marks that keep it from being served.

use super::failure::{Failure, corrupt};
use super::load::{all, one};
use super::store::Folder;
use super::{audit, rows};
use crate::AuditReport;
use crate::audit::Fold;
use crate::clock::wall;
use crate::moving::{Counts, Mark, MoveError, Phase, Rows, Source};
use crate::records::{customer_id, reference, sku};
use parking_lot::Mutex;
use rusqlite::{Connection, Params, Row, params};
use std::path::{Path, PathBuf};

/// Between the two parts of a cursor. No identifier contains it.
const BETWEEN: char = '\n';

/// A folder whose lock is held for a move.
pub(crate) struct Export {
    path: PathBuf,
    db: Mutex<Connection>,
    _folder: Folder,
}

/// Refuses a store that was moved, or is being moved: its rows are in a database by now.
pub(super) fn refuse_moved(db: &Connection, path: &Path) -> Result<(), Failure> {
    match mark(db)? {
        Mark { is_moved: true, .. } => Err(Failure::Moved(path.to_owned())),
        Mark { token: Some(_), .. } => Err(Failure::Moving(path.to_owned())),
        Mark { .. } => Ok(()),
    }
}

fn mark(db: &Connection) -> Result<Mark, Failure> {
    let value = |name: &str| one(db, "SELECT value FROM meta WHERE name = ?1", [name], |row| Ok(row.get(0)?));
    Ok(Mark { token: value("moving")?, is_moved: value("moved")?.is_some() })
}

impl Export {
    /// Takes the folder's lock.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if !path.join("holdfast.db").exists() {
            return Err(Failure::Io(format!("there is no store in {}; name its folder with --from", path.display())));
        }
        let folder = Folder::lock(path)?;
        let db = folder.writer()?;
        // What is marked must stay marked.
        db.execute_batch("PRAGMA synchronous = FULL")?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(Self { path, db: Mutex::new(db), _folder: folder })
    }
}

impl Source for Export {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn mark(&self) -> Result<Mark, MoveError> {
        Ok(mark(&self.db.lock())?)
    }

    fn set_token(&self, token: Option<i64>) -> Result<(), MoveError> {
        let told = match token {
            Some(token) => self.db.lock().execute("REPLACE INTO meta VALUES ('moving', ?1)", [token]),
            None => self.db.lock().execute("DELETE FROM meta WHERE name = 'moving'", []),
        };
        told.map_err(Failure::from)?;
        Ok(())
    }

    fn set_moved(&self) -> Result<(), MoveError> {
        let sql = "INSERT OR IGNORE INTO meta VALUES ('moved', ?1)";
        self.db.lock().execute(sql, [wall().millis()]).map_err(Failure::from)?;
        Ok(())
    }

    fn counts(&self) -> Result<Counts, MoveError> {
        Ok(counts(&self.db.lock())?)
    }

    fn audit(&self) -> Result<AuditReport, MoveError> {
        Ok(audit::run(&self.db.lock(), &mut Fold::default(), wall())?)
    }

    fn page(&self, phase: Phase, after: &str, limit: usize) -> Result<(Rows, String), MoveError> {
        Ok(page(&self.db.lock(), phase, after, limit as i64)?)
    }
}

fn counts(db: &Connection) -> Result<Counts, Failure> {
    let count = |of: &str| -> Result<u64, Failure> {
        let found = one(db, &format!("SELECT count(*) FROM {of}"), [], |row| Ok(row.get::<_, i64>(0)?))?;
        Ok(found.unwrap_or(0).unsigned_abs())
    };
    let counts = Counts {
        skus: count("stock")?,
        live_holds: count("holds WHERE status = 'held'")?,
        holds: count("holds")?,
        orders: count("orders")?,
        payments: count("payments")?,
        jobs: count("jobs")?,
        events: count("events")?,
        receipts: count("receipts")?,
        purchases: count("purchases")?,
        entries: count("ledger")?,
        notes: count("notes")?,
    };
    let gaps = "SELECT coalesce(max(seq), 0), coalesce(min(seq), 1) FROM ledger";
    let ends: Option<(i64, i64)> = one(db, gaps, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let is_whole = ends.is_some_and(|(last, first)| last.unsigned_abs() == counts.entries && first == 1);
    if is_whole { Ok(counts) } else { Err(gap()) }
}

fn gap() -> Failure {
    corrupt("the ledger is not numbered 1, 2, 3 … without a gap; it cannot be moved as it is")
}

/// Reads a row.
type Reader<T> = fn(&Row<'_>) -> Result<T, Failure>;

/// The rows of a page, and the cursor of the last of them.
fn found<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<(T, String), Failure>,
) -> Result<(Vec<T>, String), Failure> {
    let mut last = String::new();
    let mut items = Vec::new();
    for (item, cursor) in all(db, sql, params, read)? {
        items.push(item);
        last = cursor;
    }
    Ok((items, last))
}

/// The same, of rows that have a number.
fn numbered<T>(
    db: &Connection,
    sql: &str,
    after: &str,
    limit: i64,
    (number, read): (usize, Reader<T>),
) -> Result<(Vec<T>, String), Failure> {
    // Numbers begin at 1.
    let after: i64 = if after.is_empty() { 0 } else { after.parse().map_err(corrupt)? };
    found(db, sql, params![after, limit], |row| Ok((read(row)?, row.get::<_, i64>(number)?.to_string())))
}

fn page(db: &Connection, phase: Phase, after: &str, limit: i64) -> Result<(Rows, String), Failure> {
    Ok(match phase {
        Phase::Holds => {
            let sql = format!("SELECT {} FROM holds h WHERE n > ?1 ORDER BY n LIMIT ?2", rows::HOLD);
            let (holds, last) = numbered(db, &sql, after, limit, (0, rows::hold))?;
            (Rows::Holds(holds), last)
        }
        Phase::Orders => {
            let sql = format!(
                "SELECT {}, o.n FROM orders o JOIN holds h ON h.n = o.n WHERE o.n > ?1 ORDER BY o.n LIMIT ?2",
                rows::ORDER
            );
            let (orders, last) = numbered(db, &sql, after, limit, (11, rows::order))?;
            (Rows::Orders(orders), last)
        }
        Phase::Payments => {
            let sql = format!("SELECT {} FROM payments WHERE n > ?1 ORDER BY n LIMIT ?2", rows::PAYMENT);
            let (payments, last) = numbered(db, &sql, after, limit, (rows::PAYMENT_NUMBER, rows::payment))?;
            (Rows::Payments(payments), last)
        }
        Phase::Jobs => {
            let sql = format!("SELECT {} FROM jobs WHERE n > ?1 ORDER BY n LIMIT ?2", rows::JOB);
            let (jobs, last) = numbered(db, &sql, after, limit, (rows::JOB_NUMBER, rows::job))?;
            (Rows::Jobs(jobs), last)
        }
        Phase::Ledger | Phase::Check => {
            let sql = format!("SELECT {} FROM ledger WHERE seq > ?1 ORDER BY seq LIMIT ?2", rows::ENTRY);
            let (entries, last) = numbered(db, &sql, after, limit, (0, rows::entry))?;
            let first = after.parse::<u64>().unwrap_or(0) + 1;
            if entries.iter().zip(first..).any(|((seq, _), expected)| *seq != expected) {
                return Err(gap());
            }
            (Rows::Entries(entries.into_iter().map(|(_, entry)| entry).collect()), last)
        }
        Phase::Stocks | Phase::Events | Phase::Receipts | Phase::Purchases | Phase::Notes => {
            page_by_text(db, phase, after, limit)?
        }
    })
}

/// Of tables whose key is text: of one column, or of two.
fn page_by_text(db: &Connection, phase: Phase, after: &str, limit: i64) -> Result<(Rows, String), Failure> {
    let (first, second) = after.split_once(BETWEEN).unwrap_or((after, ""));
    let text = |row: &Row<'_>, column| Ok::<String, Failure>(row.get(column)?);
    let pair = |row: &Row<'_>| {
        let (first, second) = (text(row, 0)?, text(row, 1)?);
        let cursor = format!("{first}{BETWEEN}{second}");
        Ok::<_, Failure>((first, second, cursor))
    };
    Ok(match phase {
        Phase::Events => {
            let sql = "SELECT provider, event_id FROM events WHERE (provider, event_id) > (?1, ?2)
                ORDER BY provider, event_id LIMIT ?3";
            let (events, last) = found(db, sql, params![first, second, limit], |row| {
                let (provider, event, cursor) = pair(row)?;
                Ok(((reference(&provider)?, reference(&event)?), cursor))
            })?;
            (Rows::Events(events), last)
        }
        Phase::Purchases => {
            let sql = "SELECT customer_id, sku, units FROM purchases WHERE (customer_id, sku) > (?1, ?2)
                ORDER BY customer_id, sku LIMIT ?3";
            let (bought, last) = found(db, sql, params![first, second, limit], |row| {
                let (customer, of, cursor) = pair(row)?;
                Ok(((customer_id(&customer)?, sku(&of)?, row.get(2)?), cursor))
            })?;
            (Rows::Purchases(bought), last)
        }
        Phase::Receipts => {
            let sql = "SELECT key, used_for FROM receipts WHERE key > ?1 ORDER BY key LIMIT ?2";
            let (receipts, last) = found(db, sql, params![after, limit], |row| {
                let key = text(row, 0)?;
                Ok(((reference(&key)?, text(row, 1)?.into()), key))
            })?;
            (Rows::Receipts(receipts), last)
        }
        Phase::Notes => {
            let sql = "SELECT name, text FROM notes WHERE name > ?1 ORDER BY name LIMIT ?2";
            let (notes, last) = found(db, sql, params![after, limit], |row| {
                let name = text(row, 0)?;
                Ok(((name.clone(), text(row, 1)?), name))
            })?;
            (Rows::Notes(notes), last)
        }
        _ => {
            let sql = format!("SELECT {} FROM stock WHERE sku > ?1 ORDER BY sku LIMIT ?2", rows::STOCK);
            let (stocks, last) = found(db, &sql, params![after, limit], |row| Ok((rows::stock(row)?, text(row, 0)?)))?;
            (Rows::Stocks(stocks), last)
        }
    })
}
