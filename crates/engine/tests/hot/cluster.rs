//! What happens to a cluster under carts that lie in several partitions and shards: replicas are promoted by hand, a
//! primary is killed and comes back, slots move from one shard to another. Service goes on by itself, says meanwhile that
//! it does not, loses what the failover lost and nothing else, and leaves nothing behind.

use super::crowd::{Crowd, accounted};
use super::rig::{Busy, HEALED, impatient, insist, partitions, primaries, serves, settled, stocked, swept};
use crate::common::databases::{Kind, skipped, until};
use crate::common::make::cart;
use crate::common::redis::HotStore;
use crate::common::shoppers::SKUS;
use holdfast_engine::{Durability, Engine, EngineError};
use holdfast_services::{Redis, RedisCluster};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A cluster of one test's own before a namespace of a ledger.
struct Shards {
    cluster: RedisCluster,
    store: HotStore,
}

impl Shards {
    async fn start(durability: Durability) -> Option<Self> {
        if !Redis::is_here() {
            skipped(&format!("{} is not on this machine", Redis::PACKAGE));
            return None;
        }
        let cluster = tokio::task::block_in_place(|| RedisCluster::start_with(&["appendonly no"])).unwrap();
        let mut store = HotStore::on(&cluster.url(), 8, Kind::Postgres).await?;
        impatient(&mut store.config);
        store.config.durability = durability;
        Some(Self { cluster, store })
    }

    /// The place of a primary, and the partition in which it has this SKU.
    fn home_of(&self, name: &str) -> (String, String) {
        let has = |(url, prefix): &&(String, String)| {
            Redis::command_at(url, &["EXISTS", &format!("{prefix}stock:{name}")]).is_ok_and(|told| told == "1")
        };
        partitions(&self.store).iter().find(has).cloned().unwrap()
    }

    /// The SKUs of the shoppers are in partitions of their own, on shards of their own.
    fn are_spread(&self) {
        let homes = SKUS.map(|name| self.home_of(name));
        let (shards, parts): (BTreeSet<_>, BTreeSet<_>) = homes.into_iter().unzip();
        assert_eq!((shards.len(), parts.len()), (SKUS.len(), SKUS.len()), "{shards:?} {parts:?}");
    }

    fn node_at(&self, url: &str) -> usize {
        self.cluster.nodes().iter().position(|node| node.url() == url).unwrap()
    }

    /// The replicas as one of the members knows them: where each is, and the primary that it follows.
    fn replicas(&self) -> Vec<(usize, usize)> {
        let told = self.cluster.nodes().iter().find_map(|node| node.command(&["CLUSTER", "NODES"]).ok()).unwrap();
        let words: Vec<Vec<&str>> = told.lines().map(|line| line.split(' ').collect()).collect();
        let place = |words: &[&str]| self.node_at(&format!("redis://{}", words[1].split('@').next().unwrap()));
        let follows = |words: &Vec<&str>| words[2].contains("slave") && !words[2].contains("fail");
        let primary = |id: &str| words.iter().find(|words| words[0] == id).map(|words| place(words)).unwrap();
        words.iter().filter(|words| follows(words)).map(|words| (place(words), primary(words[3]))).collect()
    }

    /// Moves the slot of a partition, key by key as an administrator's tool does, with its shard going on meanwhile.
    async fn migrate(&self, prefix: &str, from: &str, to: &str, pause: Duration) {
        let at = |url: &str, words: &[&str]| Redis::command_at(url, words).unwrap();
        let slot = at(from, &["CLUSTER", "KEYSLOT", prefix]);
        let (source, target) = (at(from, &["CLUSTER", "MYID"]), at(to, &["CLUSTER", "MYID"]));
        at(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        at(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
        let port = to.rsplit(':').next().unwrap();
        loop {
            let keys = at(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]);
            let mut keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
            // What counts moves first and the gate last: the longer a script can run in between, the worse.
            keys.sort_by_key(|key| (key.ends_with(":epoch"), !key.contains(":stock:"), !key.ends_with(":parts")));
            let Some(last) = keys.last().filter(|_| keys.len() == 1).copied() else {
                if keys.is_empty() {
                    break;
                }
                for some in keys[..keys.len() - 1].chunks(5) {
                    let head = ["MIGRATE", "127.0.0.1", port, "", "0", "5000", "REPLACE", "KEYS"];
                    at(from, &head.iter().chain(some).copied().collect::<Vec<_>>());
                    tokio::time::sleep(pause).await;
                }
                continue;
            };
            at(from, &["MIGRATE", "127.0.0.1", port, last, "0", "5000", "REPLACE"]);
        }
        at(to, &["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        for url in primaries(&self.store.config.url) {
            at(&url, &["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        }
    }
}

/// Hears what a node says of its health.
struct Listener {
    heard: mpsc::UnboundedReceiver<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Listener {
    fn start(engine: Arc<dyn Engine>) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                if let Some(problem) = engine.health().await.problem
                    && tell.send(problem).is_err()
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        Self { heard, task }
    }

    /// It was told, since this was asked last.
    async fn was_told(&mut self) {
        assert!(tokio::time::timeout(HEALED, self.heard.recv()).await.is_ok(), "nobody said that anything was wrong");
        while self.heard.try_recv().is_ok() {}
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn is_allowed(error: &EngineError) -> bool {
    !matches!(error, EngineError::Corrupt(_) | EngineError::Overloaded)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_promoted_by_hand_lose_no_answer() {
    let Some(shards) = Shards::start(Durability::Memory).await else { return };
    let mut busy = Busy::start(vec![shards.store.node().await, shards.store.node().await], 12).await;
    shards.are_spread();
    let mut listener = Listener::start(busy.engines[0].clone());
    let replicas = shards.replicas();
    assert_eq!(replicas.len(), 3);
    for (replica, primary) in replicas {
        tokio::task::block_in_place(|| shards.cluster.nodes()[replica].command(&["CLUSTER", "FAILOVER"])).unwrap();
        let leads = |node: usize| shards.cluster.nodes()[node].command(&["ROLE"]).unwrap().starts_with("master");
        until("the replica leads", async || leads(replica) && !leads(primary)).await;
        listener.was_told().await;
        busy.load.served(60, HEALED).await;
    }
    let engine = busy.engines[1].clone();
    assert!(!busy.heals(&shards.store).await.is_empty(), "it was noticed");
    swept(&shards.store, &*engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slots_that_move_to_another_shard_lose_no_answer() {
    let Some(shards) = Shards::start(Durability::Memory).await else { return };
    let mut busy = Busy::start(vec![shards.store.node().await, shards.store.node().await], 12).await;
    shards.are_spread();
    let mut listener = Listener::start(busy.engines[0].clone());
    for (n, name) in SKUS.iter().enumerate() {
        let (from, prefix) = shards.home_of(name);
        let (to, _) = shards.home_of(SKUS[(n + 1) % SKUS.len()]);
        let pause = Duration::from_millis([0, 1, 20][n]);
        shards.migrate(&prefix, &from, &to, pause).await;
        listener.was_told().await;
        busy.load.served(60, HEALED).await;
        assert_eq!(shards.home_of(name).0, to);
    }
    let engine = busy.engines[1].clone();
    assert!(!busy.heals(&shards.store).await.is_empty(), "it was noticed");
    swept(&shards.store, &*engine).await;
}

/// With the ledger as its memory nothing that was answered is lost; the primary comes back as a replica, then leads again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_killed_and_come_back_loses_nothing_that_the_ledger_had() {
    let Some(mut shards) = Shards::start(Durability::Ledger).await else { return };
    let mut busy = Busy::start(vec![shards.store.node().await, shards.store.node().await], 12).await;
    shards.are_spread();
    let mut listener = Listener::start(busy.engines[0].clone());
    let killed = shards.node_at(&shards.home_of("WARM").0);
    let (replica, _) = shards.replicas().into_iter().find(|(_, primary)| *primary == killed).unwrap();
    tokio::task::block_in_place(|| shards.cluster.nodes_mut()[killed].kill());
    listener.was_told().await;
    busy.load.served(60, HEALED).await;
    tokio::task::block_in_place(|| shards.cluster.nodes_mut()[killed].restart()).unwrap();
    let follows = || shards.replicas().contains(&(killed, replica));
    until("it follows its successor", async || follows()).await;
    busy.load.served(60, HEALED).await;
    let engine = busy.engines[1].clone();
    assert!(!busy.heals(&shards.store).await.is_empty(), "it was noticed");
    swept(&shards.store, &*engine).await;
}

/// With Redis's memory alone some may be lost, and whoever has lost is told; no unit is sold twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_primary_oversells_nothing() {
    let Some(mut shards) = Shards::start(Durability::Memory).await else { return };
    let engines = [shards.store.node().await, shards.store.node().await];
    for name in SKUS {
        stocked(&*engines[0], name, 100_000).await;
    }
    shards.are_spread();
    let mut listener = Listener::start(engines[0].clone());
    let crowd = Crowd::start(&engines, "HOT", 12);
    crowd.served(60, HEALED).await;
    let killed = shards.node_at(&shards.home_of("HOT").0);
    tokio::task::block_in_place(|| shards.cluster.nodes_mut()[killed].kill());
    listener.was_told().await;
    crowd.served(60, HEALED).await;
    tokio::task::block_in_place(|| shards.cluster.nodes_mut()[killed].restart()).unwrap();
    crowd.served(60, HEALED).await;
    let (told, errors) = crowd.stop().await;
    assert!(errors.iter().all(is_allowed), "{errors:?}");
    for engine in &engines {
        serves(&**engine).await;
    }
    let all = settled(&shards.store, &*engines[1]).await;
    println!("{} of {} holds were lost", accounted(&*engines[0], &told).await, told.len());
    let hot = all.stocks.iter().find(|stock| stock.sku.as_str() == "HOT").unwrap();
    assert_eq!(hot.total(), 100_000);
    assert!(insist(&*engines[0], cart("LAST", &[("HOT", hot.available), ("COLD", 1)])).await.is_ok());
    assert!(insist(&*engines[1], cart("NONE", &[("HOT", 1), ("COLD", 1)])).await.is_err());
    swept(&shards.store, &*engines[1]).await;
}
