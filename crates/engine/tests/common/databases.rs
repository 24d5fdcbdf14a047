//! Engines on databases: what a suite needs of a kind of database, told once, and a line a kind to add another.
//!
//! The servers are those that `cargo xtask test` has started, each suite in a namespace of its own; a suite that hurts
//! its server starts one for itself. Without a database, a CI run fails; elsewhere its tests are skipped and say so.

use super::lab::Opened;
use holdfast_engine::domain::Policy;
use holdfast_engine::{Engine, OpenError, SqlConfig, Strategy, mysql, postgres};
use holdfast_services::{MariaDb, Postgres, Signal};
use mysql_async::prelude::Queryable;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Postgres,
    MariaDb,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::MariaDb => "mariadb",
        }
    }

    /// All strategies but the one that oversells.
    pub const STRATEGIES: [Strategy; 4] =
        [Strategy::RowLock, Strategy::Optimistic, Strategy::SkipLocked, Strategy::Redlock];

    /// SQL that is written for PostgreSQL, with the names that this kind uses instead.
    pub fn words(self, sql: &str) -> String {
        match self {
            Self::Postgres => sql.to_owned(),
            Self::MariaDb => {
                sql.replace("schema_version", "holdfast_version").replace("SET lines =", "SET lines_text =")
            }
        }
    }

    pub fn parse(name: &str) -> Self {
        [Self::Postgres, Self::MariaDb].into_iter().find(|kind| kind.name() == name).unwrap()
    }

    /// Where the server is that the suites share.
    pub fn shared_url(self) -> Option<String> {
        url(match self {
            Self::Postgres => "HOLDFAST_TEST_POSTGRES",
            Self::MariaDb => "HOLDFAST_TEST_MYSQL",
        })
    }
}

const REDIS: &str = "HOLDFAST_TEST_REDIS";

/// The Redis server that the suites share, as the only lock node.
pub fn lock_nodes() -> Vec<String> {
    std::env::var(REDIS).into_iter().collect()
}

/// The URL in this variable.
fn url(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        skipped(&format!("{variable} is not set; run the tests with `cargo xtask test`"));
    }
    url
}

/// Says that a test is skipped; in CI, nothing may be.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("SKIPPED: {why}");
}

/// A name that no other test uses.
pub fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A namespace of a database, and how its nodes use it.
#[derive(Debug, Clone)]
pub struct Database {
    pub kind: Kind,
    pub config: SqlConfig,
}

impl Database {
    /// A fresh namespace on the shared server. Its nodes have the patience that a busy machine asks for.
    pub async fn shared(kind: Kind, strategy: Strategy) -> Option<Self> {
        if strategy == Strategy::Redlock {
            url(REDIS)?;
        }
        Some(Self::on(&kind.shared_url()?, kind, strategy).await)
    }

    /// A fresh namespace on this server.
    pub async fn on(url: &str, kind: Kind, strategy: Strategy) -> Self {
        let name = fresh_name();
        let (url, schema) = match kind {
            Kind::Postgres => (url.to_owned(), name),
            Kind::MariaDb => {
                let mut raw = Raw::connect(kind, url, None).await;
                raw.run(&format!("CREATE DATABASE {name}")).await.unwrap();
                let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
                (format!("{server}/{name}"), name)
            }
        };
        let patience = Duration::from_secs(20);
        let config = SqlConfig { schema, strategy, pool: 6, wait: patience, timeout: patience, ..SqlConfig::new(url) };
        let config = SqlConfig { lock_nodes: lock_nodes(), ..config };
        Self { kind, config }
    }

    /// One more node.
    pub async fn node(&self) -> Arc<dyn Engine> {
        self.try_node().await.unwrap()
    }

    pub async fn try_node(&self) -> Result<Arc<dyn Engine>, OpenError> {
        match self.kind {
            Kind::Postgres => postgres::open(&self.config).await,
            Kind::MariaDb => mysql::open(&self.config).await,
        }
    }

    /// The same namespace through something that listens on another port.
    pub fn through(&self, port: u16) -> Self {
        let mut other = self.clone();
        let (before, after) = self.config.url.rsplit_once(':').unwrap();
        let database = after.split_once('/').unwrap().1;
        other.config.url = format!("{before}:{port}/{database}");
        other
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        let after = self.config.url.rsplit_once(':').unwrap().1;
        after.split('/').next().unwrap().parse().unwrap()
    }

    /// A connection past the engine.
    pub async fn raw(&self) -> Raw {
        Raw::connect(self.kind, &self.config.url, Some(&self.config.schema)).await
    }

    /// Transactions that have touched our tables and have not ended.
    pub async fn open_transactions(&self) -> u64 {
        let schema = &self.config.schema;
        let count = match self.kind {
            Kind::Postgres => format!(
                "SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                 WHERE c.relnamespace = '{schema}'::regnamespace"
            ),
            Kind::MariaDb => format!(
                "SELECT count(*) FROM information_schema.innodb_trx t
                 JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE p.db = '{schema}'"
            ),
        };
        self.raw().await.one(&count).await.parse().unwrap()
    }

    /// Waits until so many transactions wait for locks on our tables, and have for so long.
    pub async fn until_locks_are_waited_for(&self, by: u64, ms: u64) {
        let waits = match self.kind {
            // Who waits for a row has a lock on its table, and waits for a transaction.
            Kind::Postgres => format!(
                "SELECT count(DISTINCT w.pid) FROM pg_locks w JOIN pg_stat_activity a USING (pid) WHERE NOT w.granted
                 AND a.query_start <= clock_timestamp() - interval '{ms} ms' AND w.pid IN (SELECT l.pid FROM pg_locks l
                 JOIN pg_class c ON c.oid = l.relation WHERE c.relnamespace = '{}'::regnamespace)",
                self.config.schema
            ),
            Kind::MariaDb => format!(
                "SELECT count(*) FROM information_schema.innodb_trx t
                 JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
                 WHERE p.db = '{}' AND t.trx_state = 'LOCK WAIT'
                 AND t.trx_wait_started <= now(6) - INTERVAL {ms} * 1000 MICROSECOND",
                self.config.schema
            ),
        };
        let mut raw = self.raw().await;
        until("transactions wait for locks", async || {
            if self.kind == Kind::MariaDb {
                // It tells the same as the last time to whoever asks more often than every 100 ms.
                tokio::time::sleep(Duration::from_millis(120)).await;
            }
            raw.one(&waits).await.parse::<u64>().unwrap() >= by
        })
        .await;
    }
}

/// Asks until it is so; panics when it does not come to pass.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..4_000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came to pass: {what}");
}

/// A connection past the engine. Errors begin with their SQLSTATE.
pub enum Raw {
    Postgres(tokio_postgres::Client),
    MariaDb(mysql_async::Conn),
}

impl Raw {
    async fn connect(kind: Kind, url: &str, namespace: Option<&str>) -> Self {
        match kind {
            Kind::Postgres => {
                let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
                tokio::spawn(connection);
                if let Some(schema) = namespace {
                    client.batch_execute(&format!("SET search_path TO {schema}")).await.unwrap();
                }
                Self::Postgres(client)
            }
            Kind::MariaDb => Self::MariaDb(mysql_async::Conn::from_url(url).await.unwrap()),
        }
    }

    /// Runs it; the rows that it gives, as text.
    pub async fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        match self {
            Self::Postgres(client) => {
                let told = client.simple_query(sql).await.map_err(|e| postgres_error(&e))?;
                let rows = told.iter().filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                });
                Ok(rows.map(|r| (0..r.len()).map(|n| r.get(n).unwrap_or("NULL").to_owned()).collect()).collect())
            }
            Self::MariaDb(conn) => {
                let rows: Vec<mysql_async::Row> = conn.query(sql).await.map_err(|e| match e {
                    mysql_async::Error::Server(e) => format!("{}: {}", e.state, e.message),
                    other => other.to_string(),
                })?;
                let text = |value: mysql_async::Value| match value {
                    mysql_async::Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    other => other.as_sql(true),
                };
                Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
            }
        }
    }

    pub async fn run(&mut self, sql: &str) -> Result<(), String> {
        self.rows(sql).await.map(drop)
    }

    /// The only value that it gives.
    pub async fn one(&mut self, sql: &str) -> String {
        self.rows(sql).await.unwrap().remove(0).remove(0)
    }
}

fn postgres_error(error: &tokio_postgres::Error) -> String {
    let told = |db: &tokio_postgres::error::DbError| {
        let constraint = db.constraint().map(|name| format!(" [{name}]")).unwrap_or_default();
        format!("{}: {}{constraint}", db.code().code(), db.message())
    };
    error.as_db_error().map_or_else(|| error.to_string(), told)
}

/// A server of our own, to be hurt.
#[derive(Debug)]
pub enum Server {
    Postgres(Postgres),
    MariaDb(MariaDb),
}

impl Server {
    /// `None`: it is not on this machine, and the test is skipped.
    pub fn start(kind: Kind, options: &[&str]) -> Option<Self> {
        let (is_here, package) = match kind {
            Kind::Postgres => (Postgres::is_here(), Postgres::PACKAGE),
            Kind::MariaDb => (MariaDb::is_here(), MariaDb::PACKAGE),
        };
        if !is_here {
            skipped(&format!("{package} is not on this machine"));
            return None;
        }
        Some(match kind {
            Kind::Postgres => Self::Postgres(Postgres::start(options).unwrap()),
            Kind::MariaDb => Self::MariaDb(MariaDb::start(options).unwrap()),
        })
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Postgres(_) => Kind::Postgres,
            Self::MariaDb(_) => Kind::MariaDb,
        }
    }

    /// A fresh namespace.
    pub async fn database(&self, strategy: Strategy) -> Database {
        let url = match self {
            Self::Postgres(server) => server.url(),
            Self::MariaDb(server) => server.url(),
        };
        Database::on(&url, self.kind(), strategy).await
    }

    pub fn freeze(&self) {
        match self {
            Self::Postgres(server) => server.freeze(),
            Self::MariaDb(server) => server.freeze(),
        }
    }

    pub fn thaw(&self) {
        match self {
            Self::Postgres(server) => server.thaw(),
            Self::MariaDb(server) => server.thaw(),
        }
    }

    pub fn restart(&mut self, how: Signal) {
        match self {
            Self::Postgres(server) => server.restart(how),
            Self::MariaDb(server) => server.restart(how),
        }
        .unwrap();
    }

    /// Ends every connection but its own; how many there were.
    pub async fn kill_backends(&self, database: &Database) -> usize {
        let mut raw = database.raw().await;
        match self.kind() {
            Kind::Postgres => {
                let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'";
                raw.rows(kill).await.unwrap().len()
            }
            Kind::MariaDb => {
                let others = "SELECT id FROM information_schema.processlist WHERE user = 'holdfast' AND db IS NOT NULL
                              AND id <> connection_id()";
                let others = raw.rows(others).await.unwrap();
                for id in &others {
                    // One that is gone by now needs no killing.
                    let _ = raw.run(&format!("KILL {}", id[0])).await;
                }
                others.len()
            }
        }
    }

    /// Sessions of ours that wait inside a transaction.
    pub async fn idle_in_transaction(&self, database: &Database) -> u64 {
        let count = match self.kind() {
            Kind::Postgres => {
                "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'".to_owned()
            }
            Kind::MariaDb => return database.open_transactions().await,
        };
        database.raw().await.one(&count).await.parse().unwrap()
    }
}

/// A fresh engine on a database, for suites that know engines only.
pub async fn opened(kind: Kind, strategy: Strategy, policy: Policy) -> Option<Opened> {
    let mut database = Database::shared(kind, strategy).await?;
    database.config.policy = policy;
    Some(Opened { engine: database.node().await, keep: Box::new(()) })
}
