//! The keys of tickets and passes: one ring for all nodes, in the engine's store.

use crate::problem::Problem;
use holdfast_admission::keys::KeyRing;
use holdfast_engine::clock::random_bytes;
use holdfast_engine::{Engine, EngineError};
use parking_lot::RwLock;
use std::sync::Arc;

const NOTE: &str = "waiting-room-keys";
const TRIES: usize = 10;

/// See the file's header.
pub(crate) struct Ring {
    engine: Arc<dyn Engine>,
    known: RwLock<Option<(u64, Arc<KeyRing>)>>,
}

impl Ring {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, known: RwLock::default() }
    }

    /// The keys as this node knows them.
    pub(crate) fn keys(&self) -> Result<Arc<KeyRing>, Problem> {
        let unread = || Problem::new("engine_unavailable", "the keys of the waiting room could not be read yet");
        self.known.read().as_ref().map(|(_, keys)| keys.clone()).ok_or_else(unread)
    }

    /// Reads the keys; makes the first ones where there are none.
    pub(crate) async fn refresh(&self) -> Result<(), EngineError> {
        for _ in 0..TRIES {
            let Some(note) = self.engine.note(NOTE).await? else {
                let keys = KeyRing::new(secret()?);
                self.engine.put_note(NOTE, 0, Some(&keys.to_json())).await?;
                continue;
            };
            if self.known.read().as_ref().is_none_or(|(version, _)| *version != note.version) {
                let keys = KeyRing::from_json(&note.text).map_err(|e| EngineError::Corrupt(e.to_string()))?;
                *self.known.write() = Some((note.version, Arc::new(keys)));
            }
            return Ok(());
        }
        Err(EngineError::Unavailable("the keys of the waiting room are changed by others all the time".into()))
    }

    /// Signs with a new key from now on. What the last one has signed stays good; what the one before has signed does
    /// not.
    pub(crate) async fn rotate(&self) -> Result<(), Problem> {
        self.refresh().await?;
        let Some(note) = self.engine.note(NOTE).await? else { return Err(overtaken()) };
        let mut keys = KeyRing::from_json(&note.text).map_err(|e| EngineError::Corrupt(e.to_string()))?;
        keys.rotate(secret()?);
        if !self.engine.put_note(NOTE, note.version, Some(&keys.to_json())).await? {
            return Err(overtaken());
        }
        Ok(self.refresh().await?)
    }
}

fn secret() -> Result<[u8; 32], EngineError> {
    random_bytes().map_err(|error| EngineError::Unavailable(format!("no random numbers can be had: {error}")))
}

fn overtaken() -> Problem {
    Problem::new("overloaded", "another node changed the keys at this moment; look before you repeat it")
}
