//! Which engine a database's URL names.

use crate::moving::{MoveError, OnProgress, Report, Source};
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
