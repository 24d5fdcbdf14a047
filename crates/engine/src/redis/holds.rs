//! Holds: decided inside Redis, many in one call.

use super::core::{Core, Done};
use super::script::{Call, Reply};
use crate::records::Corrupt;
use crate::sql::{Fields, field, option, read_hold};
use crate::{Answer, EngineError, records};
use holdfast_domain::{CustomerId, Hold, HoldId, HoldRequest, HoldStatus, Lines, Money, Outcome, Refusal, Short, Time};
use std::time::Duration;

/// How long a hold waits for what another step has frozen.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A hold that is still to be decided: its place in the batch, the id that it gets, what is asked.
pub(super) type Open = (usize, HoldId, Box<HoldRequest>);

/// The last entry that a call found in a log: its partition, its epoch, its number.
pub(super) type Logged = (u32, i64, i64);

/// What a hold's request came to so far.
pub(super) enum Verdict {
    Answer(Answer),
    /// Made, and payments wait for its order.
    Awaited(Hold),
    /// Something is frozen by this token.
    Busy(String),
    /// More has to be expired first.
    Again,
}

/// The part of a hold that makes two carts the same, as text.
pub(super) fn cart_text(lines: &Lines, customer: Option<&CustomerId>, money: Money) -> String {
    let mut cart = String::new();
    field(&mut cart, &records::lines_text(lines));
    option(&mut cart, customer.map(CustomerId::as_str));
    option(&mut cart, money.amount.map(|amount| amount.to_string()).as_deref());
    option(&mut cart, money.currency.as_ref().map(holdfast_domain::Currency::as_str));
    cart
}

/// The rest of it.
pub(super) fn rest_text(payment_ref: Option<&str>, metadata: Option<&str>) -> String {
    let mut rest = String::new();
    option(&mut rest, payment_ref);
    option(&mut rest, metadata);
    rest
}

pub(super) fn read_text(text: &str) -> Result<Hold, Corrupt> {
    read_hold(&mut Fields(text))
}

impl Core {
    /// Decides holds whose orders and SKUs are all of one partition, in order.
    pub(super) async fn hold_together(
        &self,
        part: u32,
        asked: &[(HoldId, &HoldRequest)],
        now: Option<Time>,
        logged: &mut Vec<Logged>,
    ) -> Result<Vec<Verdict>, EngineError> {
        if self.waiting(part) > self.backlog {
            return Err(EngineError::Overloaded);
        }
        let mut call = Call::default();
        for (id, asked) in asked {
            call.verb("hold", hold_args(*id, asked));
        }
        let Done { epoch, answers, seq, .. } = self.call(part, &call, now).await?;
        logged.push((part, epoch, seq));
        let verdict = |((id, asked), reply): (&(HoldId, &HoldRequest), &Reply)| read_verdict(*id, asked, reply);
        asked.iter().zip(&answers).map(verdict).collect::<Result<_, _>>().map_err(EngineError::from)
    }

    /// Every hold once.
    pub(super) async fn hold_round(
        &self,
        open: Vec<Open>,
        now: Option<Time>,
        logged: &mut Vec<Logged>,
    ) -> Result<Vec<(Open, Verdict)>, EngineError> {
        if self.partitions.count() > 1 {
            return self.hold_apart(open, now, logged).await;
        }
        let asked: Vec<(HoldId, &HoldRequest)> = open.iter().map(|(_, id, asked)| (*id, &**asked)).collect();
        let verdicts = self.hold_together(0, &asked, now, logged).await?;
        Ok(open.into_iter().zip(verdicts).collect())
    }
}

fn hold_args(id: HoldId, asked: &HoldRequest) -> Vec<String> {
    let mut args = vec![
        id.to_string(),
        asked.order_id.to_string(),
        cart_text(&asked.lines, asked.customer_id.as_ref(), asked.money),
        rest_text(asked.payment_ref.as_deref(), asked.metadata.as_deref()),
        (i64::from(asked.ttl.seconds()) * 1000).to_string(),
        asked.customer_id.as_ref().map(ToString::to_string).unwrap_or_default(),
    ];
    args.extend(line_args(&asked.lines));
    args
}

pub(super) fn line_args(lines: &Lines) -> impl Iterator<Item = String> {
    lines.iter().flat_map(|line| [line.sku.to_string(), line.quantity.get().to_string()])
}

/// The hold as it was asked for and is made.
pub(super) fn made(id: HoldId, asked: &HoldRequest, created_at: Time, expires_at: Time) -> Hold {
    Hold {
        id,
        order_id: asked.order_id.clone(),
        lines: asked.lines.clone(),
        customer_id: asked.customer_id.clone(),
        money: asked.money,
        payment_ref: asked.payment_ref.clone(),
        metadata: asked.metadata.clone(),
        created_at,
        expires_at,
        status: HoldStatus::Held,
        late: false,
    }
}

fn read_verdict(id: HoldId, asked: &HoldRequest, reply: &Reply) -> Result<Verdict, Corrupt> {
    if reply.text(0) == Some("held") {
        let time = |at| reply.number(at).map(Time::from_millis).ok_or_else(unreadable);
        let hold = made(id, asked, time(1)?, time(2)?);
        return Ok(match reply.number(3) {
            Some(0) => Verdict::Answer(Ok(Outcome::Held { hold, replay: false })),
            _ => Verdict::Awaited(hold),
        });
    }
    read_no(reply)
}

fn unreadable() -> Corrupt {
    Corrupt("a verb gave an unreadable answer".into())
}

/// What stands in a hold's way, or what it is a repetition of.
pub(super) fn read_no(reply: &Reply) -> Result<Verdict, Corrupt> {
    let text = |at: usize| reply.text(at).ok_or_else(unreadable);
    let count = |at: usize| reply.number(at).and_then(|n| u64::try_from(n).ok()).ok_or_else(unreadable);
    let refusal = match text(0)? {
        "busy" => return Ok(Verdict::Busy(text(1)?.to_owned())),
        "again" => return Ok(Verdict::Again),
        "replay" => return Ok(Verdict::Answer(Ok(Outcome::Held { hold: read_text(text(1)?)?, replay: true }))),
        "already_confirmed" => Refusal::AlreadyConfirmed,
        "order_conflict" => Refusal::OrderConflict,
        "unknown_sku" => {
            Refusal::UnknownSku((1..reply.len()).map(|at| records::sku(text(at)?)).collect::<Result<_, _>>()?)
        }
        "customer_required" => {
            Refusal::CustomerRequired((1..reply.len()).map(|at| records::sku(text(at)?)).collect::<Result<_, _>>()?)
        }
        "customer_limit" => Refusal::CustomerLimit {
            sku: records::sku(text(1)?)?,
            limit: count(2)?,
            has: count(3)?,
            requested: count(4)?,
        },
        "sold_out" => {
            let short = |at: usize| {
                Ok(Short { sku: records::sku(text(at)?)?, requested: count(at + 1)?, available: count(at + 2)? })
            };
            let items = (2..reply.len()).step_by(3).map(short).collect::<Result<_, Corrupt>>()?;
            Refusal::SoldOut { items, may_return: count(1)? == 1 }
        }
        _ => return Err(unreadable()),
    };
    Ok(Verdict::Answer(Err(refusal)))
}
