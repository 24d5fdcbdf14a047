//! Which node keeps the rooms. On a store that nodes share, one of them does, for as long as it says so in time; the
//! others pass on what shoppers ask of a room. If it dies, the next one begins with empty rooms, into which the signed
//! tickets put themselves back, each in its place.

use holdfast_domain::Time;
use holdfast_engine::clock::{monotonic, random_token};
use holdfast_engine::{Engine, EngineError};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

const NOTE: &str = "room-keeper";
/// How long a node keeps the rooms without saying so again. It says so every second.
const LEASE_S: u32 = 6;
/// A node that could not say so stops this much earlier than the others believe.
const EARLIER: Duration = Duration::from_secs(4);

/// The note: who, where, until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    node: String,
    url: Option<String>,
    /// What nodes show each other: it is in the store, which nobody else reads.
    secret: String,
    until_ms: i64,
}

/// Who keeps the rooms, as this node knows it.
#[derive(Debug, Clone, Default)]
pub(crate) enum Kept {
    /// Nobody, as far as is known.
    #[default]
    Nobody,
    /// This node.
    Here,
    /// Another one: where it is, and the word that nodes know each other by.
    There { url: Option<String>, secret: String },
}

#[derive(Default)]
struct State {
    kept: Kept,
    secret: String,
    said_at: Option<Instant>,
    url: Option<String>,
}

/// See the file's header.
pub(super) struct Keeper {
    engine: Arc<dyn Engine>,
    node: String,
    /// A store that is this node's alone.
    is_alone: bool,
    state: RwLock<State>,
}

impl Keeper {
    pub(super) fn new(engine: Arc<dyn Engine>, is_alone: bool) -> Self {
        let kept = if is_alone { Kept::Here } else { Kept::Nobody };
        Self { engine, node: random_token(), is_alone, state: RwLock::new(State { kept, ..State::default() }) }
    }

    /// Where other nodes find this one.
    pub(super) fn is_at(&self, url: Option<String>) {
        self.state.write().url = url;
    }

    pub(super) fn kept(&self) -> Kept {
        let state = self.state.read();
        let is_late = state.said_at.is_none_or(|at| at.elapsed() >= EARLIER);
        match &state.kept {
            // Whoever could not renew must be silent before another one begins.
            Kept::Here if !self.is_alone && is_late => Kept::Nobody,
            kept => kept.clone(),
        }
    }

    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Whether this is what a node says that the keeper's note has told about.
    pub(super) fn is_node(&self, word: &[u8]) -> bool {
        let state = self.state.read();
        let is_it = subtle::ConstantTimeEq::ct_eq(state.secret.as_bytes(), word);
        !state.secret.is_empty() && bool::from(is_it)
    }

    /// Says so again, or sees whether somebody has to begin. True if this node has just begun.
    pub(super) async fn renew(&self) -> Result<bool, EngineError> {
        if self.is_alone {
            return Ok(false);
        }
        let start = monotonic();
        let now = self.engine.time();
        let note = self.engine.note(NOTE).await?;
        let claim: Option<Claim> = note.as_ref().and_then(|note| serde_json::from_str(&note.text).ok());
        let was_ours = claim.as_ref().is_some_and(|claim| claim.node == self.node);
        let other = claim.filter(|claim| claim.node != self.node && Time::from_millis(claim.until_ms) > now);
        if let Some(claim) = other {
            let mut state = self.state.write();
            state.secret.clone_from(&claim.secret);
            state.kept = Kept::There { url: claim.url, secret: claim.secret };
            return Ok(false);
        }
        let (url, secret) = {
            let state = self.state.read();
            let secret = if matches!(state.kept, Kept::Here) { state.secret.clone() } else { random_token() };
            (state.url.clone(), secret)
        };
        let until_ms = now.plus_seconds(LEASE_S).millis();
        let mine = Claim { node: self.node.clone(), url, secret: secret.clone(), until_ms };
        let text = serde_json::to_string(&mine).map_err(|error| EngineError::Unavailable(error.to_string()))?;
        if !self.engine.put_note(NOTE, note.map_or(0, |note| note.version), Some(&text)).await? {
            return Ok(false);
        }
        let mut state = self.state.write();
        // Whoever was late, but nobody came in between, goes on with what there is.
        let has_begun = !was_ours || !matches!(state.kept, Kept::Here);
        (state.kept, state.secret, state.said_at) = (Kept::Here, secret, Some(start));
        Ok(has_begun)
    }

    /// Lets the next one begin at once.
    pub(super) async fn stop(&self) {
        if self.is_alone || !matches!(self.kept(), Kept::Here) {
            return;
        }
        if let Ok(Some(note)) = self.engine.note(NOTE).await
            && note.text.contains(&self.node)
            && let Err(error) = self.engine.put_note(NOTE, note.version, None).await
        {
            tracing::info!(%error, "the next node takes the waiting rooms over when this one's time is up");
        }
    }
}
