//! Batches that name more SKUs, holds and entries than a statement has places for values.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use common::databases::{Database, Kind};
use common::make::{START, cart, set};
use holdfast_engine::domain::{Command, HoldId, Outcome};
use holdfast_engine::{Engine, Now, Strategy};
use std::sync::Arc;

/// A hundred SKUs a cart, and no SKU in two of them.
const CARTS: usize = 340;

fn name(n: usize) -> String {
    format!("S{n:05}")
}

async fn made(engine: &Arc<dyn Engine>, batch: Vec<Command>) -> Vec<HoldId> {
    let answers = engine.apply(batch, Now::At(START)).await.unwrap();
    let id = |answer: &Result<Outcome, _>| match answer {
        Ok(Outcome::Held { hold, .. } | Outcome::Hold(hold)) => Some(hold.id),
        Ok(_) => None,
        Err(refusal) => panic!("{refusal:?}"),
    };
    answers.iter().filter_map(id).collect()
}

async fn one_batch_of_everything(kind: Kind) {
    let Some(database) = Database::shared(kind, Strategy::RowLock).await else { return };
    let engine = database.node().await;
    let all = (0..CARTS * 100).map(|n| Command::SetStock(set(&name(n), 5)));
    made(&engine, all.collect()).await;
    let carts = (0..CARTS).map(|c| {
        let names: Vec<String> = (c * 100..(c + 1) * 100).map(name).collect();
        let lines: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 2)).collect();
        cart(&format!("O{c}"), &lines).into()
    });
    let holds = made(&engine, carts.collect()).await;
    assert_eq!(holds.len(), CARTS);
    let half = holds.iter().take(CARTS / 2).map(|hold| Command::Release { hold: *hold });
    made(&engine, half.collect()).await;
    let rest = holds.iter().skip(CARTS / 2).map(|hold| Command::Confirm { hold: *hold, payment_ref: None });
    made(&engine, rest.collect()).await;
    let (mut sold, mut held, mut after) = (0, 0, None);
    loop {
        let page = engine.stocks(after.as_ref(), 5_000).await.unwrap();
        sold += page.items.iter().map(|s| s.sold).sum::<u64>();
        held += page.items.iter().map(|s| s.held).sum::<u64>();
        after = page.items.last().map(|s| s.sku.clone());
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!((sold, held), ((CARTS as u64 / 2) * 200, 0));
    assert_eq!(engine.audit().await.unwrap().drift, []);
}

#[tokio::test]
async fn postgres_takes_a_batch_of_any_size() {
    one_batch_of_everything(Kind::Postgres).await;
}

#[tokio::test]
async fn mariadb_takes_a_batch_of_any_size() {
    one_batch_of_everything(Kind::MariaDb).await;
}
