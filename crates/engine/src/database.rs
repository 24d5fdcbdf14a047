//! Which engine a database's URL names.

use crate::doctor::{self, Finding, Level};
use crate::moving::{MoveError, OnProgress, Report, Source};
use crate::sql::{Ledger, judge};
use crate::{Engine, OpenError, SqlConfig, mysql, postgres};
use std::sync::Arc;

/// The databases that engines know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// PostgreSQL.
    Postgres,
    /// MySQL or MariaDB.
    Mysql,
}

impl Database {
    /// The database that this URL is for, by its scheme.
    pub fn of(url: &str) -> Option<Self> {
        match url.split_once("://")?.0 {
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" => Some(Self::Mysql),
            _ => None,
        }
    }

    /// Its engine's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    /// Which server this is and what its word "committed" is worth, for whoever compares figures.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn about(self, config: &SqlConfig) -> Result<String, OpenError> {
        match self {
            Self::Postgres => postgres::about(config).await,
            Self::Mysql => mysql::about(config).await,
        }
    }

    /// Settings for an empty namespace of this name, for measurements: a schema, or a database that is made now.
    ///
    /// # Errors
    /// When the database cannot be reached, or refuses.
    pub async fn scratch(self, config: &SqlConfig, name: &str) -> Result<SqlConfig, OpenError> {
        match self {
            Self::Postgres => Ok(SqlConfig { schema: name.to_owned(), ..config.clone() }),
            Self::Mysql => mysql::make_database(config, name).await,
        }
    }

    /// Removes such a namespace with everything in it.
    ///
    /// # Errors
    /// When the database cannot be reached, or refuses.
    pub async fn remove_scratch(self, config: &SqlConfig) -> Result<(), OpenError> {
        match self {
            Self::Postgres => postgres::drop_schema(config).await,
            Self::Mysql => mysql::drop_database(config).await,
        }
    }

    /// Opens its engine; makes or migrates its tables.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses us, or was written by a newer version; in words that name the way
    /// out.
    pub async fn open(self, config: &SqlConfig) -> Result<Arc<dyn Engine>, OpenError> {
        match self {
            Self::Postgres => postgres::open(config).await,
            Self::Mysql => mysql::open(config).await,
        }
    }

    /// Opens it as the ledger of an engine that keeps its holds elsewhere.
    pub(crate) async fn open_ledger(self, config: &SqlConfig) -> Result<Arc<dyn Ledger>, OpenError> {
        match self {
            Self::Postgres => postgres::open_ledger(config).await,
            Self::Mysql => mysql::open_ledger(config).await,
        }
    }

    /// Looks at it as an engine: reachable, tables, constraints, connections, clock, drift.
    pub async fn doctor(self, config: &SqlConfig) -> Vec<Finding> {
        let mut findings = self.look(config).await;
        if findings.iter().all(|finding| finding.level < Level::Problem) {
            // With tables of this version, opening it changes nothing.
            let audited = async { self.open(config).await?.audit().await.map_err(|e| OpenError(e.to_string())) };
            findings.push(doctor::drift(audited.await.map_err(|e| e.to_string())));
        }
        findings
    }

    /// All of that but the drift, as of an engine or of a ledger.
    pub(crate) async fn look(self, config: &SqlConfig) -> Vec<Finding> {
        let facts = match self {
            Self::Postgres => postgres::look(config).await,
            Self::Mysql => mysql::look(config).await,
        };
        match facts {
            Ok(facts) => judge(&facts, config),
            Err(why) => vec![Finding::problem(
                "database reachable",
                why.to_string(),
                "is the database up, and are its host, port, user and password right?",
            )],
        }
    }

    /// Takes in a whole store.
    pub(crate) async fn import(
        self,
        config: &SqlConfig,
        source: Arc<dyn Source>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<Report, MoveError> {
        match self {
            Self::Postgres => postgres::import(config, source, on_progress).await,
            Self::Mysql => mysql::import(config, source, on_progress).await,
        }
    }
}
