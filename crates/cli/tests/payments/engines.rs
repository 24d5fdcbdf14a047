//! The same on every engine: late, double and authorised payments end in one order or one refund.

use crate::rig::PATIENCE;
use crate::shop::Shop;
use crate::support::{eventually, skipped};
use holdfast_services::MariaDb;
use serde_json::json;

fn variable(name: &str) -> Option<String> {
    let url = std::env::var(name).ok();
    if url.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{name} is not set; run the tests with `cargo xtask test`");
        skipped(&format!("{name} is not set; run the tests with `cargo xtask test`"));
    }
    url
}

fn is_paid_or_paid_back(variables: &[(&str, &str)]) {
    let shop = Shop::with(variables);
    shop.server().stock("A", 3);
    for order in ["O1", "O2", "O3"] {
        shop.hold(order);
    }
    shop.lose_all(4, 6);
    shop.provider.script(&json!([{"on": "any", "do": "lost_after", "share": 0.2}]));
    let paid = [shop.try_pay("O1", false), shop.try_pay("O2", true), shop.try_pay("O3", false)];
    let late = [shop.try_pay("O4", false), shop.try_pay("O5", true), shop.try_pay("O1", false)];
    assert!(paid.iter().chain(&late).all(Option::is_some));
    shop.provider.script(&json!([]));
    eventually("three orders are paid", PATIENCE * 3, || {
        let orders = ["O1", "O2", "O3"].map(|id| shop.order(id));
        orders.iter().all(|o| o.as_ref().is_some_and(|o| o["payment"]["captured"] == true)).then_some(())
    });
    eventually("three payments went back", PATIENCE * 3, || {
        (shop.refunds().iter().filter(|refund| refund["status"] == "succeeded").count() == 3).then_some(())
    });
    shop.balances();
    assert_eq!(shop.server().counters("A"), (0, 0, 3));
}

#[test]
fn on_the_embedded_engine() {
    is_paid_or_paid_back(&[]);
}

#[test]
fn on_postgresql() {
    let Some(url) = variable("HOLDFAST_TEST_POSTGRES") else { return };
    let schema = format!("pay{}", std::process::id());
    is_paid_or_paid_back(&[("HOLDFAST_ENGINE", &url), ("HOLDFAST_DATABASE_SCHEMA", &schema)]);
}

#[test]
fn on_mariadb() {
    let Some(url) = variable("HOLDFAST_TEST_MYSQL") else { return };
    let name = format!("pay{}", std::process::id());
    MariaDb::sql_at(&url, &format!("CREATE DATABASE {name}")).unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    is_paid_or_paid_back(&[("HOLDFAST_ENGINE", &format!("{server}/{name}"))]);
}

#[test]
fn on_redis() {
    let (Some(url), Some(ledger)) = (variable("HOLDFAST_TEST_REDIS"), variable("HOLDFAST_TEST_POSTGRES")) else {
        return;
    };
    let name = format!("payr{}", std::process::id());
    let place = [("HOLDFAST_ENGINE", &*url), ("HOLDFAST_LEDGER", &ledger), ("HOLDFAST_DATABASE_SCHEMA", &name)];
    let space = [("HOLDFAST_REDIS_SPACE", name.as_str())];
    is_paid_or_paid_back(&[&place[..], &space[..]].concat());
}
