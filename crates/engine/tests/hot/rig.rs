//! A Redis of one test's own before a namespace of a ledger, what is left over in both, and shoppers on nodes of them.

use crate::common::databases::{Database, Kind, Raw, Server, skipped, until};
use crate::common::invariants::{Everything, check};
use crate::common::make::set;
use crate::common::proxy::Proxy;
use crate::common::redis::HotStore;
use crate::common::shoppers::{Load, SKUS, find};
use holdfast_engine::clock::{random_seed, wall};
use holdfast_engine::domain::{Command, Hold, HoldId, HoldStatus, Outcome};
use holdfast_engine::{Answer, Durability, Engine, EngineError, Lanes, LanesConfig, Now, RedisConfig, Strategy, redis};
use holdfast_services::Redis;
use std::sync::Arc;
use std::time::Duration;

/// Service has to be back within this.
pub const HEALED: Duration = Duration::from_secs(20);

/// See the file's header.
pub struct Rig {
    pub redis: Redis,
    pub store: HotStore,
}

impl Rig {
    /// `None`: something is missing, and the test is skipped.
    pub async fn start(ledger: Kind, lines: &[&str]) -> Option<Self> {
        let redis = own_redis(lines)?;
        let mut store = HotStore::on(&redis.url(), 1, ledger).await?;
        impatient(&mut store.config);
        Some(Self { redis, store })
    }

    /// With a ledger of its own, to be hurt too.
    pub async fn with_server(ledger: Kind, lines: &[&str]) -> Option<(Self, Server)> {
        let redis = own_redis(lines)?;
        let server = Server::start(ledger, &[])?;
        let ledger = server.database(Strategy::RowLock).await;
        let mut config = RedisConfig::new(redis.url(), ledger.config.clone());
        impatient(&mut config);
        Some((Self { redis, store: HotStore { config, ledger } }, server))
    }

    pub fn durable(mut self, durability: Durability) -> Self {
        self.store.config.durability = durability;
        self
    }

    pub async fn node(&self) -> Arc<dyn Engine> {
        self.store.node().await
    }

    /// A node that reaches Redis through this.
    pub async fn node_through(&self, proxy: &Proxy) -> Arc<dyn Engine> {
        redis::open(&self.through(proxy)).await.unwrap()
    }

    /// Waits until no node is connected any more.
    pub async fn alone(&self) {
        let clients = || self.redis.command(&["CLIENT", "LIST"]).unwrap().lines().filter(|l| !l.is_empty()).count();
        until("no node is left", async || clients() == 1).await;
    }

    pub fn through(&self, proxy: &Proxy) -> RedisConfig {
        RedisConfig { url: format!("redis://127.0.0.1:{}", proxy.port), ..self.store.config.clone() }
    }
}

/// `None`: it is not on this machine, and the test is skipped.
pub fn own_redis(lines: &[&str]) -> Option<Redis> {
    if !Redis::is_here() {
        skipped(&format!("{} is not on this machine", Redis::PACKAGE));
        return None;
    }
    Some(Redis::start_with(lines).unwrap())
}

/// With the patience of a shop rather than that of a busy test machine.
pub fn impatient(config: &mut RedisConfig) {
    config.timeout = Duration::from_secs(2);
    config.ledger.timeout = Duration::from_secs(5);
    config.ledger.wait = Duration::from_secs(5);
}

pub async fn ask(engine: &dyn Engine, command: impl Into<Command>) -> Result<Answer, EngineError> {
    engine.apply(vec![command.into()], Now::Clock).await.map(|mut answers| answers.remove(0))
}

/// Asks until there is an answer, as a client would.
pub async fn insist(engine: &dyn Engine, command: impl Into<Command>) -> Answer {
    let command = command.into();
    for _ in 0..200 {
        match ask(engine, command.clone()).await {
            Ok(answer) => return answer,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    panic!("no answer to {command:?}");
}

pub async fn stocked(engine: &dyn Engine, name: &str, total: u64) {
    insist(engine, Command::SetStock(set(name, total))).await.unwrap();
}

pub fn held(answer: &Answer) -> &Hold {
    match answer {
        Ok(Outcome::Held { hold, .. }) => hold,
        other => panic!("a hold was wanted: {other:?}"),
    }
}

pub fn confirm(hold: HoldId) -> Command {
    Command::Confirm { hold, payment_ref: None }
}

pub async fn serves(engine: &dyn Engine) {
    until("it serves again", async || engine.health().await.problem.is_none()).await;
}

/// Where the primaries are, for [`Redis::command_at`]: of a cluster, as any member that answers knows them.
pub fn primaries(url: &str) -> Vec<String> {
    let Some(places) = url.strip_prefix("redis+cluster://") else { return vec![url.to_owned()] };
    let known = |place: &str| Redis::command_at(&format!("redis://{place}"), &["CLUSTER", "NODES"]).ok();
    let told = places.split(',').find_map(known).unwrap();
    let serves = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        words.len() > 8 && words[2].contains("master") && !words[2].contains("fail")
    };
    let place = |line: &str| format!("redis://{}", line.split(' ').nth(1).unwrap().split('@').next().unwrap());
    told.lines().filter(serves).map(place).collect()
}

/// Each partition as (the primary that has it, the prefix of its keys of today).
pub fn partitions(store: &HotStore) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for url in primaries(&store.config.url) {
        let gates = Redis::command_at(&url, &["KEYS", &format!("{}:{{p*}}:epoch", store.config.space)]).unwrap();
        for gate in gates.lines().filter(|gate| !gate.is_empty()) {
            let epoch = Redis::command_at(&url, &["GET", gate]).unwrap();
            all.push((url.clone(), format!("{}:e{epoch}:", gate.trim_end_matches(":epoch"))));
        }
    }
    all
}

/// What steps and carts have left behind in Redis and in the ledger.
pub async fn left_over(store: &HotStore) -> Vec<String> {
    let mut left = Vec::new();
    let all = partitions(store);
    let wanted = store.config.partitions.unwrap_or(1) as usize;
    if all.len() != wanted {
        left.push(format!("{} partitions instead of {wanted}", all.len()));
    }
    for (url, prefix) in all {
        let redis = |words: &[&str]| Redis::command_at(&url, words).unwrap_or_else(|why| why);
        let keys = |name: &str| redis(&["KEYS", &format!("{prefix}{name}")]);
        left.extend(keys("token*").lines().filter(|key| !key.is_empty()).map(str::to_owned));
        for set in ["carts", "parts"] {
            let members = redis(&["ZRANGE", &format!("{prefix}{set}"), "0", "-1"]);
            left.extend(members.lines().map(|member| format!("{prefix}{set}: {member}")));
        }
        for key in keys("stock:*").lines().filter(|key| !key.is_empty()) {
            if !redis(&["HGET", key, "z"]).is_empty() {
                left.push(format!("{key} is frozen"));
            }
            if !matches!(&*redis(&["HGET", key, "n"]), "" | "0") {
                left.push(format!("{key} has units of parts that do not count"));
            }
        }
    }
    let open = store.ledger.raw().await.one("SELECT count(*) FROM hot_steps WHERE effects <> ''").await;
    if open != "0" {
        left.push(format!("{open} steps in the ledger"));
    }
    left
}

/// Nothing is left over, and every invariant holds.
pub async fn settled(store: &HotStore, engine: &dyn Engine) -> Everything {
    until("nothing is left over", async || left_over(store).await.is_empty()).await;
    check(engine).await
}

/// Once every hold has lapsed and was swept, nothing is held any more either.
pub async fn swept(store: &HotStore, engine: &dyn Engine) -> Everything {
    settled(store, engine).await;
    // Later than the longest TTL.
    let late = Now::At(wall().plus_seconds(100_000_000));
    loop {
        match engine.apply(vec![Command::Sweep { limit: 1000 }], late).await.unwrap().remove(0) {
            Ok(Outcome::Swept { more: true, .. }) => {}
            Ok(Outcome::Swept { .. }) => break,
            other => panic!("{other:?}"),
        }
    }
    let all = settled(store, engine).await;
    assert!(all.stocks.iter().all(|stock| stock.held == 0), "{:?}", all.stocks);
    assert!(all.holds.iter().all(|hold| hold.status != HoldStatus::Held), "every hold has ended");
    all
}

/// A lock on the bookkeeping of the ledger: no step ends before it is let go.
pub struct Lock(Raw);

impl Lock {
    pub async fn on(ledger: &Database) -> Self {
        let mut raw = ledger.raw().await;
        raw.run("BEGIN").await.unwrap();
        raw.run("SELECT part FROM hot_partitions FOR UPDATE").await.unwrap();
        Self(raw)
    }

    pub async fn let_go(mut self) {
        self.0.run("COMMIT").await.unwrap();
    }
}

/// Nodes under the load of shoppers who are never refused and never lose anything.
pub struct Busy {
    pub engines: Vec<Arc<dyn Engine>>,
    pub load: Load,
}

impl Busy {
    pub async fn start(engines: Vec<Arc<dyn Engine>>, shoppers: u64) -> Self {
        for name in SKUS {
            stocked(&*engines[0], name, 1_000_000_000).await;
        }
        let config = LanesConfig { workers: 3, ..LanesConfig::default() };
        let lanes: Vec<_> = engines.iter().map(|e| Lanes::start(e.clone(), &config).unwrap()).collect();
        let seed = random_seed();
        println!("seed {seed}");
        let mut load = Load::start(&lanes, shoppers, seed);
        load.served(100, HEALED).await;
        Self { engines, load }
    }

    /// Service is back, whatever was answered is there, and nothing is left over. The errors on the way.
    pub async fn heals(mut self, store: &HotStore) -> Vec<EngineError> {
        self.load.served(150, HEALED).await;
        let (answers, errors) = self.load.stop().await;
        let is_allowed = |e: &EngineError| !matches!(e, EngineError::Corrupt(_) | EngineError::Overloaded);
        assert!(errors.iter().all(is_allowed), "{errors:?}");
        for engine in &self.engines {
            serves(&**engine).await;
        }
        for line in &answers {
            find(&*self.engines[0], line).await;
        }
        settled(store, &**self.engines.last().unwrap()).await;
        errors
    }
}
