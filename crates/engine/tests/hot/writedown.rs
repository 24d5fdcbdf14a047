//! Writing down what Redis logged: the node that does it dies at any step, steps that were decided and not yet told meet
//! what happens meanwhile.

use super::halves::{At, die};
use super::on_ledgers;
use super::rig::{Rig, ask, held, settled, stocked};
use crate::common::databases::Kind;
use crate::common::make::{cart, set, sku};
use crate::common::proxy::{Cut, Proxy};
use holdfast_engine::Engine;
use holdfast_engine::domain::{Command, EntryKind, Outcome};
use std::sync::Arc;

on_ledgers! {
    a_node_that_dies_while_it_writes_down_loses_nothing_and_doubles_nothing
    units_that_come_back_after_their_sku_was_removed_are_counted_once
}

async fn a_node_that_dies_while_it_writes_down_loses_nothing_and_doubles_nothing(ledger: Kind) {
    let places = [
        At::Redis("O19", "XRANGE", Cut::Silence),
        At::Redis("O19", "XRANGE", Cut::Deaf),
        At::Ledger("", "INSERT INTO holds", Cut::Silence),
        At::Ledger("INSERT INTO holds", "COMMIT", Cut::Silence),
        At::Ledger("INSERT INTO holds", "COMMIT", Cut::Deaf),
        At::Redis("O19", "XTRIM", Cut::Silence),
        At::Redis("O19", "XTRIM", Cut::Deaf),
    ];
    for at in places {
        let Some(rig) = Rig::start(ledger, &[]).await else { return };
        let mut make = vec![Command::SetStock(set("HOT", 50))];
        let first = rig.node().await;
        ask(&*first, make.remove(0)).await.unwrap().unwrap();
        settled(&rig.store, &*first).await;
        drop(first);
        rig.alone().await;
        let carts = (0..20).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
        assert!(die(&rig, at, carts).await, "{at:?}");
        let survivor = rig.node().await;
        let again = (0..20).map(|n| cart(&format!("O{n}"), &[("HOT", 1)]).into()).collect();
        let again = survivor.apply(again, holdfast_engine::Now::Clock).await.unwrap();
        assert!(again.iter().all(|a| matches!(a, Ok(Outcome::Held { replay: true, .. }))), "{at:?}: {again:?}");
        let all = settled(&rig.store, &*survivor).await;
        let made = all.ledger.iter().filter(|n| n.entry.kind == EntryKind::Held).count();
        assert_eq!((made, all.holds.len(), all.stocks[0].held), (20, 20, 20), "{at:?}");
        let parked = rig.store.ledger.raw().await.one("SELECT count(*) FROM hot_parked").await;
        assert_eq!(parked, "0", "{at:?}");
    }
}

/// A release is decided, and its node dies before Redis hears of it. The SKU is removed, and made anew, meanwhile.
async fn units_that_come_back_after_their_sku_was_removed_are_counted_once(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let engine = rig.node().await;
    for (name, is_made_anew) in [("GONE", false), ("ANEW", true)] {
        stocked(&*engine, name, 5).await;
        let mut proxy = Proxy::start(rig.redis.port()).await;
        let far: Arc<dyn Engine> = rig.node_through(&proxy).await;
        let hold = held(&ask(&*engine, cart(name, &[(name, 2)])).await.unwrap()).id;
        proxy.plan("apply", Cut::Pause);
        let slow = tokio::spawn(async move { ask(&*far, Command::Release { hold }).await });
        proxy.done().await;
        ask(&*engine, Command::RemoveStock { sku: sku(name), if_version: None }).await.unwrap().unwrap();
        if is_made_anew {
            stocked(&*engine, name, 7).await;
        }
        proxy.go_on();
        let _ = slow.await.unwrap();
        let all = settled(&rig.store, &*engine).await;
        let available = all.stocks.iter().find(|s| s.sku == sku(name)).map(|s| s.available);
        assert_eq!(available, is_made_anew.then_some(7));
        let more = ask(&*engine, cart(&format!("{name}-8"), &[(name, 8)])).await.unwrap();
        assert!(more.is_err(), "{more:?}");
    }
}
