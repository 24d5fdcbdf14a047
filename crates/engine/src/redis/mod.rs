//! The engine on Redis, one server or a cluster, with a PostgreSQL or MySQL database as its ledger.
//!
//! Redis decides holds and expiry, in Lua, many in one call; that is all that it decides. Everything else (stock, confirm,
//! payments, returns) is decided by the rules in a transaction of the ledger while Redis keeps still what it concerns. What
//! Redis decided is logged in the same atomic step and written behind to the ledger, which therefore can fill an empty
//! Redis again. Redis never holds the only copy of anything that was sold or paid.

mod carts;
mod check;
mod config;
mod core;
mod doctor;
mod drain;
mod engine;
mod failover;
mod holds;
mod loops;
mod measure;
pub(crate) mod net;
mod recover;
mod script;
mod steps;

pub use config::{Durability, RedisConfig};
pub use doctor::doctor;
pub use measure::{Backlog, about, remove_keys};

use self::core::Core;
use crate::partition::{MAX_PARTITIONS, Partitions};
use crate::sql::Ledger;
use crate::{Database, Engine, OpenError};
use engine::RedisEngine;
use net::{Net, NetConfig};
use std::sync::Arc;

/// Partitions of a cluster, where nothing else is asked for.
const CLUSTER_PARTITIONS: u32 = 16;

/// Opens the engine: on first use, and whenever Redis is not as it was left, it is filled from the ledger.
///
/// # Errors
/// When Redis or the ledger cannot be reached or refuse us, or contradict the configuration; in words that name the way
/// out. Never tells a password.
pub async fn open(config: &RedisConfig) -> Result<Arc<dyn Engine>, OpenError> {
    let told = |why: String| OpenError(why);
    let mut net_config = NetConfig::parse(&config.url).map_err(told)?;
    net_config.timeout = config.timeout;
    net_config.ca = config.ledger.ca.clone();
    let asked = asked_partitions(config);
    if !(1..=MAX_PARTITIONS).contains(&asked) {
        return Err(OpenError(format!("redis_partitions must be from 1 to {MAX_PARTITIONS}")));
    }
    let partitions = Partitions::new(asked);
    let Some(database) = Database::of(&config.ledger.url) else {
        return Err(OpenError(
            "the ledger of an engine on Redis is postgres://… or mysql://…; give it with --ledger".into(),
        ));
    };
    let ledger: Arc<dyn Ledger> = database.open_ledger(&config.ledger).await?;
    let known = ledger.make_parts(asked).await?;
    if known != asked as usize {
        let so_many = if known > asked as usize { "more".to_owned() } else { known.to_string() };
        return Err(OpenError(format!(
            "the ledger was made with {so_many} partitions, and {asked} are configured; set redis_partitions to what it was, \
             or, with every node stopped, empty its table hot_partitions"
        )));
    }
    let net = Net::connect(net_config, asked).await.map_err(|e| told(self::core::told(e).to_string()))?;
    let core = Arc::new(Core::new(net, ledger, config, partitions));
    core.check_settings().await.map_err(told)?;
    core.open_all().await.map_err(|e| told(e.to_string()))?;
    loops::start(&core);
    Ok(Arc::new(RedisEngine { core }))
}

fn asked_partitions(config: &RedisConfig) -> u32 {
    config.partitions.unwrap_or(if config.is_cluster() { CLUSTER_PARTITIONS } else { 1 })
}
