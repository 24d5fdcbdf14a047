//! The derived index: which ledger entries concern a SKU or an order.
//!
//! Keeping such an index in step with every batch would cost far more than the batch itself (merchants' order ids come
//! in no useful order), so a thread of its own brings it up to date, in large sorted steps, when the engine is idle or
//! the unindexed tail has grown long. Readers look into the index, then read the tail.

use super::failure::Failure;
use super::load::{all, last_entry, one};
use holdfast_domain::{OrderId, Sku};
use rusqlite::{Connection, params};

/// Entries indexed in one step.
const STEP: i64 = 20_000;

/// The key of a SKU's entries.
pub(super) fn sku_key(sku: &Sku) -> i64 {
    key(b's', sku.as_str())
}

/// The key of an order's entries.
pub(super) fn order_key(order: &OrderId) -> i64 {
    key(b'o', order.as_str())
}

/// FNV-1a, 64 bits: stored, so it must never change.
fn key(kind: u8, text: &str) -> i64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    std::iter::once(&kind).chain(text.as_bytes()).fold(0xcbf2_9ce4_8422_2325, step) as i64
}

/// The last entry that is covered.
pub(super) fn indexed_to(index: &Connection) -> Result<i64, Failure> {
    Ok(one(index, "SELECT indexed_to FROM progress", [], |row| Ok(row.get(0)?))?.unwrap_or(0))
}

/// Whether the index covers entries that the ledger does not have.
pub(super) fn is_ahead(index: &Connection, store: &Connection) -> Result<bool, Failure> {
    Ok(indexed_to(index)? > last_entry(store)?)
}

/// One bounded pass; true when entries are left. An index that is ahead of the ledger is emptied first.
pub(super) fn advance_once(index: &mut Connection, store: &Connection) -> Result<bool, Failure> {
    let last = last_entry(store)?;
    let mut done = indexed_to(index)?;
    if done > last {
        index.execute_batch("DELETE FROM ledger_index; UPDATE progress SET indexed_to = 0")?;
        done = 0;
    }
    if done == last {
        return Ok(false);
    }
    let sql = "SELECT seq, sku, order_id FROM ledger WHERE seq > ?1 AND seq <= ?2";
    let upto = last.min(done + STEP);
    let found = all(store, sql, params![done, upto], |row| {
        let seq: i64 = row.get(0)?;
        let sku = row.get_ref(1)?.as_str_or_null().ok().flatten().map(|t| (key(b's', t), seq));
        let order = row.get_ref(2)?.as_str_or_null().ok().flatten().map(|t| (key(b'o', t), seq));
        Ok([sku, order])
    })?;
    let mut keys: Vec<(i64, i64)> = found.into_iter().flatten().flatten().collect();
    keys.sort_unstable();
    let transaction = index.transaction()?;
    {
        let mut insert = transaction.prepare_cached("INSERT OR IGNORE INTO ledger_index (key, seq) VALUES (?1, ?2)")?;
        for (key, seq) in keys {
            insert.execute(params![key, seq])?;
        }
        transaction.execute("UPDATE progress SET indexed_to = ?1", [upto])?;
    }
    transaction.commit()?;
    Ok(upto < last)
}
