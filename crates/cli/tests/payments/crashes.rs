//! `kill -9` at any moment between receipt, effect, call and record; two nodes on one database.

use crate::rig::PATIENCE;
use crate::shop::{Shop, webhooks};
use crate::support::{Server, eventually};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

/// Pays for orders of which half come too late, and kills the server again and again meanwhile.
#[test]
fn a_server_that_is_killed_again_and_again_owes_nothing_in_the_end() {
    let mut shop = Shop::open();
    shop.server().stock("A", 12);
    shop.provider.control("webhooks", &json!({"attempts": 60}));
    for n in 0..12 {
        shop.hold(&format!("O{n}"));
    }
    shop.lose_all(12, 24);
    shop.provider.script(&json!([
        {"on": "any", "do": {"slow": {"ms": 60}}, "share": 0.5},
        {"on": "any", "do": "lost_after", "share": 0.15},
        {"on": "any", "do": {"rate_limited": {"seconds": 1}}, "share": 0.1},
        {"on": "webhook", "do": "double", "share": 0.3}
    ]));
    let mut paying: Vec<usize> = (0..24).collect();
    for round in 0..8_u64 {
        for n in paying.split_off(paying.len().saturating_sub(3)) {
            shop.try_pay(&format!("O{n}"), n % 3 == 0);
        }
        // From before the first webhook until after most of the calls.
        std::thread::sleep(Duration::from_millis(15 + 90 * (round % 4)));
        shop.server.take().unwrap().kill();
        shop.start();
    }
    shop.provider.script(&json!([]));
    shop.settles();
    shop.balances();
    let (available, held, sold) = shop.server().counters("A");
    assert_eq!((available, held + sold), (0, 12));
}

/// Twenty copies of one event to two nodes at once.
#[test]
fn a_storm_over_two_nodes_has_one_effect() {
    let Ok(url) = std::env::var("HOLDFAST_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "HOLDFAST_TEST_POSTGRES is not set");
        return;
    };
    let schema = format!("storm{}", std::process::id());
    let shop = Shop::with(&[("HOLDFAST_ENGINE", &url), ("HOLDFAST_DATABASE_SCHEMA", &schema)]);
    let second = Server::with_command(shop.command(), &Arc::new(tempdir().unwrap()), &[]);
    shop.server().stock("A", 3);
    shop.hold("O1");
    shop.lose_all(2, 3);
    shop.provider.control("webhooks", &json!({"hold": true}));
    let payments: Vec<String> = ["O1", "O2", "O1"].iter().map(|order| shop.pay(order)).collect();
    let events: Vec<_> = shop.provider.events();
    let events: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "payment_intent.succeeded")
        .map(|event| event["id"].as_str().unwrap())
        .collect();
    assert_eq!(events.len(), 3);
    shop.provider.control("webhooks", &json!({"hold": false}));
    for round in 0..10 {
        let to = if round % 2 == 0 { shop.server() } else { &second };
        shop.provider.control("webhooks", &json!({"url": webhooks(to)}));
        for event in &events {
            shop.provider.control("webhooks/resend", &json!({"event": event}));
        }
    }
    shop.provider.control("webhooks/release", &json!({}));
    shop.becomes("O1", "confirmed");
    shop.refund(&payments[1], "succeeded");
    eventually("one of two payments goes back", PATIENCE, || {
        let back = shop.refunds().into_iter().filter(|r| r["status"] == "succeeded").count();
        (back == 2).then_some(())
    });
    shop.balances();
    assert_eq!(shop.provider.books()["refunds"].as_array().unwrap().len(), 2);
    second.is_clean();
}

/// The provider is away for longer than a hold lives, and nothing is forgotten.
#[test]
fn a_provider_that_is_away_is_waited_for() {
    let shop = Shop::open();
    shop.server().stock("A", 1);
    shop.lose("O1");
    let payment = shop.pay("O1");
    shop.provider.script(&json!([{"on": "any", "do": {"down": {"seconds": 4}}}]));
    shop.refund(&payment, "succeeded");
    shop.balances();
}
