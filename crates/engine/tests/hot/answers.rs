//! Answers that are lost on the way, from Redis and from the ledger: unknown, and the same again is a replay.

use super::on_ledgers;
use super::rig::{Rig, ask, confirm, held, insist, settled, stocked};
use crate::common::databases::Kind;
use crate::common::make::{adjust, captured, cart, reference};
use crate::common::proxy::{Cut, Proxy};
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{Command, Outcome, Settlement};
use holdfast_engine::{EngineError, redis};
use std::time::Duration;

on_ledgers! {
    a_lost_answer_of_redis_is_unknown_and_the_retry_is_a_replay
    a_lost_answer_of_the_ledgers_commit_is_unknown_and_the_retry_is_a_replay
}

async fn a_lost_answer_of_redis_is_unknown_and_the_retry_is_a_replay(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let mut proxy = Proxy::start(rig.redis.port()).await;
    let (near, far) = (rig.node().await, rig.node_through(&proxy).await);
    stocked(&*near, "HOT", 100).await;
    ask(&*far, cart("O0", &[("HOT", 1)])).await.unwrap().unwrap();
    for (order, cut, is_replay) in [("the-first", Cut::Answer, true), ("the-second", Cut::Before, false)] {
        proxy.plan(order, cut);
        let lost = ask(&*far, cart(order, &[("HOT", 1)])).await;
        assert!(matches!(lost, Err(EngineError::Unknown(_))), "{lost:?}");
        proxy.done().await;
        let again = ask(&*far, cart(order, &[("HOT", 1)])).await.unwrap();
        assert!(matches!(again, Ok(Outcome::Held { replay, .. }) if replay == is_replay), "{again:?}");
    }
    // In each of the two scripts of a step, before it and after it. None may leave anything behind.
    let mut sold = 0;
    for word in ["freeze", "apply"] {
        for cut in [Cut::Before, Cut::Answer] {
            let hold = held(&ask(&*far, cart(&format!("{word}-{cut:?}"), &[("HOT", 1)])).await.unwrap()).id;
            proxy.plan(word, cut);
            let start = monotonic();
            let first = ask(&*far, confirm(hold)).await;
            proxy.done().await;
            match (word, &first) {
                ("apply", Ok(Ok(Outcome::Order(_)))) | ("freeze", Err(_)) => {}
                other => panic!("{other:?}"),
            }
            let again = insist(&*far, confirm(hold)).await;
            assert!(matches!(&again, Ok(Outcome::Order(order)) if order.hold_id == hold), "{again:?}");
            assert!(start.elapsed() < Duration::from_secs(8), "{word} {cut:?}: {:?}", start.elapsed());
            sold += 1;
        }
    }
    let all = settled(&rig.store, &*near).await;
    assert_eq!((all.stocks[0].sold, all.stocks[0].held), (sold, 3));
}

async fn a_lost_answer_of_the_ledgers_commit_is_unknown_and_the_retry_is_a_replay(ledger: Kind) {
    let Some(rig) = Rig::start(ledger, &[]).await else { return };
    let mut proxy = Proxy::start(rig.store.ledger.port()).await;
    let mut config = rig.store.config.clone();
    config.ledger.url = rig.store.ledger.through(proxy.port).config.url;
    let (near, far) = (rig.node().await, redis::open(&config).await.unwrap());
    stocked(&*near, "HOT", 100).await;
    let mut lose = async |cut: Cut, command: Command| {
        // The text of a step is said on each connection once, so there is always another to say it.
        proxy.plan_after("UPDATE", "COMMIT", cut);
        let start = monotonic();
        let lost = ask(&*far, command.clone()).await;
        if !matches!(lost, Err(EngineError::Unknown(_))) {
            // Somebody else of this node said the word first: what was asked was answered.
            assert!(lost.is_ok(), "{lost:?}");
            proxy.forget();
            return None;
        }
        proxy.done().await;
        let again = insist(&*near, command.clone()).await;
        let took = start.elapsed();
        assert!(took < Duration::from_secs(4), "the token was recovered at once: {took:?}");
        Some(again)
    };
    let mut lost = 0;
    for (n, cut) in [Cut::Answer, Cut::Before, Cut::Answer].into_iter().enumerate() {
        let order = format!("O{n}");
        let hold = held(&insist(&*near, cart(&order, &[("HOT", 1)])).await).id;
        if let Some(again) = lose(cut, confirm(hold)).await {
            assert!(matches!(again, Ok(Outcome::Order(_))), "{again:?}");
            lost += 1;
        }
        let mut more = adjust("HOT", 3);
        if let Command::AdjustStock { key, .. } = &mut more {
            *key = Some(reference(&format!("delivery-{n}")));
        }
        if let Some(again) = lose(cut, more.clone()).await {
            let is_new = cut == Cut::Before;
            assert!(matches!(again, Ok(Outcome::Stock { changed, .. }) if changed == is_new), "{again:?}");
            lost += 1;
        }
        insist(&*near, more).await.unwrap();
        let paid: Command = captured(&format!("pi-{n}")).order(&order).into();
        if let Some(again) = lose(cut, paid.clone()).await {
            let expected = matches!(again, Ok(Outcome::Settled(Settlement::Duplicate)));
            assert!(expected || cut == Cut::Before, "{again:?}");
            lost += 1;
        }
        insist(&*near, confirm(hold)).await.unwrap();
        insist(&*near, paid).await.unwrap();
    }
    assert!(lost >= 5, "{lost} of 9 were lost");
    let all = settled(&rig.store, &*near).await;
    assert_eq!((all.stocks[0].total(), all.stocks[0].sold), (109, 3));
}
