//! The derived index may be behind the ledger, never ahead of it: then it is thrown away and built anew at the start.

#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_engine::domain::{Command, Policy, SetStock, Sku, Total};
use holdfast_engine::{Engine, LedgerFilter, Now, embedded::Embedded};
use rusqlite::Connection;

fn set(total: u64) -> Command {
    let (sku, total) = (Sku::new("A").unwrap(), Total::new(total).unwrap());
    Command::SetStock(SetStock { sku, total, limit_per_customer: None, if_version: None })
}

async fn listed(engine: &Embedded) -> usize {
    let filter = LedgerFilter { sku: Some(Sku::new("A").unwrap()), ..LedgerFilter::default() };
    engine.ledger(filter, 1000).await.unwrap().items.len()
}

#[tokio::test]
async fn an_index_that_knows_more_than_the_ledger_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Embedded::open_with(folder.path(), Policy::default()).unwrap();
    engine.apply_now((1..=20).map(set).collect(), Now::Clock).unwrap();
    assert_eq!(listed(&engine).await, 20);
    drop(engine);

    // As after a power cut that kept the index's file and lost the ledger's end, or a restored backup.
    let index = Connection::open(folder.path().join("holdfast-index.db")).unwrap();
    index.execute_batch("DELETE FROM ledger_index; UPDATE progress SET indexed_to = 1000").unwrap();
    drop(index);

    let engine = Embedded::open(folder.path()).unwrap();
    assert_eq!(listed(&engine).await, 20);
    engine.apply_now((21..=30).map(set).collect(), Now::Clock).unwrap();
    assert_eq!(listed(&engine).await, 30);
}
