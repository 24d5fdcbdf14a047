//! What is left of nodes that died between two steps: tokens in Redis, and noted effects in the ledger.
//!
//! Safe at any moment, by any number of nodes: the ledger says whether a step was decided. One that was not is given up
//! there first, so that it cannot be decided afterwards.

use super::core::{Core, ledger_error, told};
use super::holds::read_text;
use super::script::Call;
use crate::EngineError;
use holdfast_domain::{HoldId, Time};
use redis::Value;
use std::collections::BTreeSet;

/// A token this old belongs to nobody any more, or to somebody too slow.
pub(super) const ABANDONED_MS: i64 = 5_000;
/// Tokens that one pass looks at.
const LIMIT: usize = 100;
/// A given-up step is forgotten when no transaction of its time can be running any more.
const GIVEN_UP_MS: i64 = 24 * 3600 * 1000;

impl Core {
    /// Finishes the step of this token, or gives it up.
    pub(super) async fn recover(&self, token: &str, now: Option<Time>) -> Result<(), EngineError> {
        let now = now.unwrap_or_else(|| self.now());
        let noted = self.ledger.give_up(token, now).await.map_err(ledger_error)?;
        let all: BTreeSet<u32> = self.partitions.all().collect();
        self.apply(token, noted.as_deref().unwrap_or_default(), &all).await?;
        if noted.is_some() {
            self.forget(&[token.to_owned()], Time::default()).await?;
        }
        tracing::info!(token, decided = noted.is_some(), "a step that was left half-way is done with");
        Ok(())
    }

    /// One bounded pass over what was left behind.
    pub(super) async fn recover_pass(&self) -> Result<(), EngineError> {
        let now = self.now();
        let mut failed = None;
        for part in self.partitions.all() {
            for token in self.abandoned(part, "tokens", now).await? {
                // One that cannot be done with yet does not keep the others.
                failed = self.recover(&token, None).await.err().or(failed);
            }
            if self.partitions.count() > 1 {
                self.recover_carts(part, now).await?;
                self.recover_parts(part, now).await?;
            }
        }
        self.apply_noted(Time::from_millis(now.millis() - GIVEN_UP_MS)).await?;
        failed.map_or(Ok(()), Err)
    }

    /// Steps that were decided and whose node went away before all partitions were told. A partition that was told, or was
    /// filled from the ledger since, does not know the token any more.
    pub(super) async fn apply_noted(&self, given_up_before: Time) -> Result<(), EngineError> {
        let (mut done, mut failed) = (Vec::new(), None);
        for (token, effects) in self.ledger.unapplied().await.map_err(ledger_error)? {
            match self.apply(&token, &effects, &BTreeSet::new()).await {
                Ok(()) => done.push(token),
                Err(error) => failed = Some(error),
            }
        }
        self.forget(&done, given_up_before).await?;
        failed.map_or(Ok(()), Err)
    }

    /// Carts that nobody goes on with: those that were sealed are made whole, the others given up.
    async fn recover_carts(&self, part: u32, now: Time) -> Result<(), EngineError> {
        for id in self.abandoned(part, "carts", now).await? {
            let done = self.call(part, &Call::one("state", [&id]), None).await?;
            let reply = done.answers.first();
            let Some(text) = reply.and_then(|reply| reply.text(1)) else { continue };
            let hold = read_text(text)?;
            match reply.and_then(|reply| reply.text(0)) {
                Some("opening") => self.abort_cart(&hold, None).await?,
                Some("sealed") => {
                    let whole = self.finish_cart(&hold, None).await?;
                    tracing::info!(hold = id, whole, "a cart that was left half-way is done with");
                }
                Some("undone") => self.undo(&hold, None).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Parts that do not count yet and whose home does not know them any more.
    async fn recover_parts(&self, part: u32, now: Time) -> Result<(), EngineError> {
        for id in self.abandoned(part, "parts", now).await? {
            let Some(hold) = HoldId::parse(&id) else { continue };
            let home = self.partitions.of_hold(hold);
            let done = self.call(home, &Call::one("state", [&id]), None).await?;
            let verb = match done.answers.first().and_then(|reply| reply.text(0)) {
                Some("gone") => "drop",
                Some("") => "fix",
                // Its home has it among the carts that are recovered.
                _ => continue,
            };
            self.call(part, &Call::one(verb, [&id]), None).await?;
        }
        Ok(())
    }

    async fn abandoned(&self, part: u32, of: &str, now: Time) -> Result<Vec<String>, EngineError> {
        let (epoch, server) = self.open_gate(part)?;
        let mut cmd = redis::cmd("ZRANGEBYSCORE");
        let old = now.millis() - ABANDONED_MS;
        cmd.arg(self.key(part, epoch, of)).arg("-inf").arg(old).arg("LIMIT").arg(0).arg(LIMIT);
        match self.net.run(part, Some(&server), &cmd).await.map_err(told)? {
            Value::Array(tokens) => Ok(tokens.iter().filter_map(text).collect()),
            _ => Ok(Vec::new()),
        }
    }
}

pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}
