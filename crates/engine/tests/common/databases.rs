//! Engines on the databases that `cargo xtask test` has started, each in a namespace of its own.
//!
//! Without a database, a CI run fails; elsewhere its tests are skipped and say so.

use super::lab::Opened;
use holdfast_engine::domain::Policy;
use holdfast_engine::{Engine, SqlConfig, Strategy, mysql, postgres};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The URL in this variable.
pub fn url(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{variable} is not set; run the tests with `cargo xtask test`");
        eprintln!("SKIPPED: {variable} is not set; run the tests with `cargo xtask test`");
    }
    url
}

/// A name that no other test uses.
pub fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A configuration for an empty namespace in PostgreSQL.
pub fn postgres_config(strategy: Strategy, policy: Policy) -> Option<SqlConfig> {
    let url = url("HOLDFAST_TEST_POSTGRES")?;
    Some(SqlConfig { schema: fresh_name(), strategy, policy, pool: 4, ..SqlConfig::new(url) })
}

/// One more node on that namespace.
pub async fn node(config: &SqlConfig) -> Arc<dyn Engine> {
    postgres::open(config).await.unwrap()
}

pub async fn opened(config: Option<SqlConfig>) -> Option<Opened> {
    let config = config?;
    Some(Opened { engine: node(&config).await, keep: Box::new(()) })
}

/// A configuration for an empty database in MariaDB.
pub async fn mysql_config(strategy: Strategy, policy: Policy) -> Option<SqlConfig> {
    use mysql_async::prelude::Queryable;
    let url = url("HOLDFAST_TEST_MYSQL")?;
    let name = fresh_name();
    let mut admin = mysql_async::Conn::from_url(&url).await.unwrap();
    admin.query_drop(format!("CREATE DATABASE {name}")).await.unwrap();
    admin.disconnect().await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    Some(SqlConfig { strategy, policy, pool: 4, ..SqlConfig::new(format!("{server}/{name}")) })
}

/// One more node on that database.
pub async fn mysql_node(config: &SqlConfig) -> Arc<dyn Engine> {
    mysql::open(config).await.unwrap()
}
