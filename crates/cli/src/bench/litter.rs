//! What a run leaves in databases, so that it is taken away however the run ends.

use crate::random::Random;
use holdfast_engine::{Database, RedisConfig, SqlConfig};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A measurement that was interrupted may still hold locks for a moment.
const TRIES: u32 = 3;
/// How the names of schemas and databases of ours begin.
const PREFIX: &str = "holdfast_bench_";
const PAUSE: Duration = Duration::from_millis(500);

enum Made {
    Tables(Database, SqlConfig),
    Keys(Box<RedisConfig>),
}

impl Made {
    async fn remove(&self) -> Result<(), String> {
        match self {
            Self::Tables(database, config) => database.remove_scratch(config).await,
            Self::Keys(config) => holdfast_engine::redis::remove_keys(config).await,
        }
        .map_err(|e| e.to_string())
    }
}

/// Schemas, databases and key spaces that this run has made, or is about to make.
#[derive(Default)]
pub(super) struct Litter(Mutex<Vec<Made>>);

impl Litter {
    /// Settings with a schema or database of a name that nobody else has, to be removed later.
    pub(super) async fn fresh(&self, database: Database, url: &str) -> Result<SqlConfig, String> {
        let config = database.scratch(&SqlConfig::new(url), &schema()).await.map_err(|e| e.to_string())?;
        self.made().push(Made::Tables(database, config.clone()));
        Ok(config)
    }

    /// Settings with a key space of a name that nobody else has, to be removed later.
    pub(super) fn fresh_keys(&self, config: RedisConfig) -> RedisConfig {
        let config = RedisConfig { space: schema(), ..config };
        self.made().push(Made::Keys(Box::new(config.clone())));
        config
    }

    /// Removes everything. What could not be removed is told, since somebody has to do it.
    pub(super) async fn clean(&self) -> Result<(), String> {
        let mut failed = None;
        let made = std::mem::take(&mut *self.made());
        for one in made {
            let mut tries = 1;
            while let Err(why) = one.remove().await {
                if tries == TRIES {
                    failed = Some(format!("a {PREFIX}… could not be removed, so please remove it: {why}"));
                    break;
                }
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn made(&self) -> MutexGuard<'_, Vec<Made>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name for a schema that nobody else has.
fn schema() -> String {
    format!("{PREFIX}{:012x}", Random::new().next() >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn schemas_have_names_of_their_own() {
        let litter = Litter::default();
        let one = litter.fresh(Database::Postgres, "postgres://h/d").await.unwrap();
        let other = litter.fresh(Database::Postgres, "postgres://h/d").await.unwrap();
        assert_ne!(one.schema, other.schema);
        assert!(one.schema.starts_with("holdfast_bench_") && one.schema.len() == 27, "{}", one.schema);
        assert_eq!(litter.made().len(), 2);
    }
}
