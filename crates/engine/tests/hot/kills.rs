//! Nodes on one Redis and one ledger are killed under load, more than sixty times over, while another lives: what they
//! answered is there at once, and nothing is left behind.

use super::rig::{impatient, left_over, settled, stocked, swept};
use crate::common::databases::{Database, Kind, until};
use crate::common::dice::Dice;
use crate::common::killed::{kill_one, serve_until_killed};
use crate::common::redis::{Hot, HotStore};
use crate::common::shoppers::{KINDS, SKUS, find};
use holdfast_engine::clock::{monotonic, random_seed};
use holdfast_engine::{EngineError, Lanes, LanesConfig, RedisConfig, SqlConfig, Strategy, redis};

const PLACE: &str = "HOLDFAST_TEST_KILLED_HOT";
const KILLS: u32 = 62;
/// So many where carts lie in several partitions.
const KILLS_APART: u32 = 42;

#[test]
fn what_a_node_before_postgres_answered_survives_its_kill_9() {
    nodes_are_killed(Hot::Single, Kind::Postgres, "kills::what_a_node_before_postgres_answered_survives_its_kill_9");
}

#[test]
fn what_a_node_before_mariadb_answered_survives_its_kill_9() {
    nodes_are_killed(Hot::Single, Kind::MariaDb, "kills::what_a_node_before_mariadb_answered_survives_its_kill_9");
}

#[test]
fn what_a_node_on_a_cluster_answered_survives_its_kill_9() {
    nodes_are_killed(Hot::Cluster, Kind::Postgres, "kills::what_a_node_on_a_cluster_answered_survives_its_kill_9");
}

fn nodes_are_killed(hot: Hot, ledger: Kind, test: &str) {
    if let Ok(place) = std::env::var(PLACE) {
        return shop_until_killed(ledger, &place);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Some(store) = runtime.block_on(HotStore::shared(hot, ledger)) else { return };
    let seed = random_seed();
    println!("seed {seed}");
    let (mut dice, start) = (Dice::new(seed), monotonic());
    let engine = runtime.block_on(store.node());
    for name in SKUS {
        runtime.block_on(stocked(&*engine, name, 1_000_000_000));
    }
    let (config, sql) = (&store.config, &store.ledger.config);
    let place = [&config.space, &config.url, &sql.schema, &sql.url].map(String::as_str).join(" ");
    let (mut all, mut kills) = (Vec::new(), 0);
    let is_enough =
        |all: &[String]| all.len() > 500 && KINDS.iter().all(|kind| all.iter().any(|line| line.starts_with(kind)));
    let most = if hot == Hot::Cluster { KILLS_APART } else { KILLS };
    // An audit waits for carts that were left half-way.
    let often = if hot == Hot::Cluster { 20 } else { 8 };
    while kills < most || (!is_enough(&all) && kills < 4 * most) {
        kills += 1;
        let answers = if kills <= most { 20 } else { 400 };
        let acknowledged = kill_one(test, PLACE, &place, answers, &mut dice);
        runtime.block_on(async {
            for line in &acknowledged {
                find(&*engine, line).await;
            }
            // Redis and the ledger are compared SKU by SKU: a step that was left half-way does not count as drift.
            if kills % often == 0 {
                until("it is audited", async || match engine.audit().await {
                    Ok(audit) => {
                        assert_eq!(audit.drift, [], "after {kills} kills");
                        true
                    }
                    // A SKU of which a cart was being put together is not compared before somebody is done with the cart.
                    Err(EngineError::Unavailable(_)) if hot == Hot::Cluster => false,
                    Err(error) => panic!("{error:?}"),
                })
                .await;
            }
        });
        all.extend(acknowledged);
    }
    runtime.block_on(async {
        for line in &all {
            find(&*engine, line).await;
        }
        until("nothing is left over", async || left_over(&store).await.is_empty()).await;
        let everything = settled(&store, &*engine).await;
        swept(&store, &*engine).await;
        let claimed: u64 = everything.stocks.iter().map(|stock| stock.held).sum();
        println!("{claimed} units are held by {} holds", everything.holds.len());
        until("no transaction is left open", async || store.ledger.open_transactions().await == 0).await;
    });
    println!("{kills} kills, {} acknowledged answers found, {:.1} s", all.len(), start.elapsed().as_secs_f64());
    assert!(is_enough(&all), "only {} answers were checked, or one kind was not met", all.len());
}

fn shop_until_killed(ledger: Kind, place: &str) {
    let [space, url, schema, sql] = place.split(' ').collect::<Vec<_>>()[..] else { panic!("{place}") };
    let sql = SqlConfig { schema: schema.into(), strategy: Strategy::RowLock, ..SqlConfig::new(sql) };
    let database = Database { kind: ledger, config: sql };
    let mut config = RedisConfig { space: space.into(), ..RedisConfig::new(url, database.config) };
    config.partitions = Some(if url.contains("+cluster") { 8 } else { 1 });
    impatient(&mut config);
    serve_until_killed(async || {
        let engine = redis::open(&config).await.unwrap();
        Lanes::start(engine, &LanesConfig { workers: 3, ..LanesConfig::default() }).unwrap()
    });
}
