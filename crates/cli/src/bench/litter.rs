//! What a run leaves in databases, so that it is taken away however the run ends.

use super::random::Random;
use holdfast_engine::{SqlConfig, postgres};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A measurement that was interrupted may still hold locks for a moment.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Schemas that this run has made, or is about to make.
#[derive(Default)]
pub(super) struct Litter(Mutex<Vec<SqlConfig>>);

impl Litter {
    /// Settings with a schema of a name that nobody else has, to be removed later.
    pub(super) fn fresh(&self, url: &str) -> SqlConfig {
        let config = SqlConfig { schema: schema(), ..SqlConfig::new(url) };
        self.made().push(config.clone());
        config
    }

    /// Removes everything. What could not be removed is told, since somebody has to do it.
    pub(super) async fn clean(&self) -> Result<(), String> {
        let mut failed = None;
        let made = std::mem::take(&mut *self.made());
        for config in made {
            let mut tries = 1;
            while let Err(why) = postgres::drop_schema(&config).await {
                if tries == TRIES {
                    let schema = &config.schema;
                    failed = Some(format!("the schema {schema} could not be removed, so please drop it: {why}"));
                    break;
                }
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn made(&self) -> MutexGuard<'_, Vec<SqlConfig>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name for a schema that nobody else has.
fn schema() -> String {
    format!("holdfast_bench_{:012x}", Random::new().next() >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_have_names_of_their_own() {
        let litter = Litter::default();
        let (one, other) = (litter.fresh("postgres://h/d"), litter.fresh("postgres://h/d"));
        assert_ne!(one.schema, other.schema);
        assert!(one.schema.starts_with("holdfast_bench_") && one.schema.len() == 27, "{}", one.schema);
        assert_eq!(litter.made().len(), 2);
    }
}
