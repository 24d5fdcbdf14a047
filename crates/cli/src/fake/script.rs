//! Failures on demand: which calls and which webhooks go wrong, and how. Must never let a rule pass that could not
//! have an effect where it stands.

use super::error::Refused;
use super::refunds::FAILURES;
use crate::random::Random;
use serde::Deserialize;

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operation {
    /// Every call.
    Any,
    Create,
    Retrieve,
    Confirm,
    Capture,
    Cancel,
    CreateSession,
    RetrieveSession,
    Expire,
    Refund,
    RetrieveRefund,
    ListRefunds,
    /// An event that is to be delivered.
    Webhook,
}

/// How a refund ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    Succeeded,
    Failed,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Fault {
    /// The connection closes before anything is done.
    LostBefore,
    /// Everything is done, and the connection closes instead of an answer.
    LostAfter,
    /// 500 with nothing done; kept under the key.
    Error,
    /// 500 with everything done; kept under the key.
    ErrorAfter,
    /// 429 with Retry-After.
    RateLimited { seconds: u32 },
    /// Everything is done at once, and the answer takes its time: the key is in flight meanwhile.
    Slow { ms: u64 },
    /// Every call is lost for so long.
    Down { seconds: u64 },
    /// Refused for good, with this code.
    Refuse { code: String },
    /// The bank says no.
    Decline,
    /// The refund is pending, for good or until then.
    RefundPending {
        #[serde(default)]
        ms: u64,
        then: Option<Ending>,
    },
    /// The refund succeeds and fails later.
    RefundFailsLater { ms: u64, reason: Option<String> },
    /// A webhook: the same event twice at once.
    Double,
    /// A webhook: two events with ids of their own for one fact.
    TwoEvents,
    /// A webhook: comes later by up to this.
    Delay { ms: u64 },
    /// A webhook: comes after the next one of its payment, or at last after so long.
    Overtaken { ms: u64 },
    /// A webhook: held back until told.
    Hold,
}

impl Fault {
    fn is_for_webhooks(&self) -> bool {
        matches!(self, Self::Double | Self::TwoEvents | Self::Delay { .. } | Self::Overtaken { .. } | Self::Hold)
    }

    /// Whether it happens while the call is carried out, so that a call that is only repeated does not meet it.
    fn is_in_execution(&self) -> bool {
        matches!(
            self,
            Self::Error
                | Self::ErrorAfter
                | Self::Refuse { .. }
                | Self::Decline
                | Self::RefundPending { .. }
                | Self::RefundFailsLater { .. }
        )
    }
}

/// One line of a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    on: Operation,
    #[serde(rename = "do")]
    fault: Fault,
    /// How many calls it meets; 1 unless there is a share.
    times: Option<u32>,
    /// The share of calls that it meets.
    share: Option<f64>,
    /// The only event type that it meets.
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Rule {
    fn check(&self) -> Result<(), String> {
        let webhook = self.on == Operation::Webhook;
        if self.fault.is_for_webhooks() != webhook {
            return Err(
                "double, two_events, delay, overtaken and hold are for \"on\": \"webhook\", and nothing else is".into(),
            );
        }
        if self.kind.is_some() && !webhook {
            return Err("\"type\" goes with \"on\": \"webhook\"".into());
        }
        if self.share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err("\"share\" is from 0 to 1".into());
        }
        if self.times == Some(0) {
            return Err("\"times\" is at least 1".into());
        }
        let wants = |on: &[Operation], name: &str| {
            if on.contains(&self.on) { Ok(()) } else { Err(format!("{name} is not for this operation")) }
        };
        match &self.fault {
            Fault::RefundPending { .. } => wants(&[Operation::Refund], "refund_pending"),
            Fault::RefundFailsLater { reason, .. } => {
                if reason.as_ref().is_some_and(|reason| !FAILURES.contains(&reason.as_str())) {
                    return Err(format!("\"reason\" is one of {}", FAILURES.join(", ")));
                }
                wants(&[Operation::Refund], "refund_fails_later")
            }
            Fault::Decline => wants(&[Operation::Confirm, Operation::Create], "decline"),
            Fault::Refuse { code } if Refused::by_code(code).is_none() => {
                Err(format!("\"code\" is one of {}", Refused::codes()))
            }
            _ => Ok(()),
        }
    }

    /// Whether it meets this call; counted if so.
    fn meets(&mut self, random: &mut Random) -> bool {
        if self.times == Some(0) || self.share.is_some_and(|share| !random.happens(share)) {
            return false;
        }
        if self.share.is_none() && self.times.is_none() {
            self.times = Some(1);
        }
        if let Some(times) = &mut self.times {
            *times -= 1;
        }
        true
    }
}

/// Rules in order; the first that meets a call decides.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<Rule>);

impl Script {
    /// Reads `[{"on":"refund","do":"lost_after","times":2}, …]`.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let rules: Vec<Rule> = serde_json::from_slice(json).map_err(|e| e.to_string())?;
        for (n, rule) in rules.iter().enumerate() {
            rule.check().map_err(|why| format!("rule {}: {why}", n + 1))?;
        }
        Ok(Self(rules))
    }

    /// What happens to this call.
    pub(super) fn for_call(&mut self, on: Operation, is_repeated: bool, random: &mut Random) -> Option<Fault> {
        let mut mine = self.0.iter_mut().filter(|rule| {
            let is_on = rule.on == on || rule.on == Operation::Any;
            is_on && !(is_repeated && rule.fault.is_in_execution())
        });
        mine.find_map(|rule| rule.meets(random).then(|| rule.fault.clone()))
    }

    /// What happens to this event.
    pub(super) fn for_event(&mut self, kind: &str, random: &mut Random) -> Option<Fault> {
        let mut mine = self
            .0
            .iter_mut()
            .filter(|rule| rule.on == Operation::Webhook && rule.kind.as_ref().is_none_or(|only| only == kind));
        mine.find_map(|rule| rule.meets(random).then(|| rule.fault.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(json: &str) -> Script {
        Script::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_rule_meets_as_many_calls_as_it_says() {
        let mut random = Random::seeded(1);
        let mut script = script(r#"[{"on":"refund","do":"error","times":2},{"on":"any","do":{"slow":{"ms":5}}}]"#);
        let mut next = |on, repeated| script.for_call(on, repeated, &mut random);
        assert_eq!(next(Operation::Refund, true), Some(Fault::Slow { ms: 5 }), "a repeated call is not carried out");
        assert_eq!(next(Operation::Refund, false), Some(Fault::Error));
        assert_eq!(next(Operation::Capture, false), None, "any was used up");
        assert_eq!(next(Operation::Refund, false), Some(Fault::Error));
        assert_eq!(next(Operation::Refund, false), None);
    }

    #[test]
    fn a_share_is_about_that_share_and_the_same_for_a_seed() {
        let count = |seed| {
            let mut random = Random::seeded(seed);
            let mut script = script(r#"[{"on":"webhook","do":"double","share":0.2,"type":"refund.created"}]"#);
            assert_eq!(script.for_event("charge.refunded", &mut random), None);
            (0..10_000).filter(|_| script.for_event("refund.created", &mut random).is_some()).count()
        };
        assert!((1_850..2_150).contains(&count(7)), "{}", count(7));
        assert_eq!(count(7), count(7));
    }

    #[test]
    fn a_rule_without_effect_is_refused() {
        for bad in [
            r#"[{"on":"refund","do":"double"}]"#,
            r#"[{"on":"webhook","do":"error"}]"#,
            r#"[{"on":"refund","do":{"refuse":{"code":"no_such_code"}}}]"#,
            r#"[{"on":"capture","do":{"refund_pending":{}}}]"#,
            r#"[{"on":"refund","do":{"slow":{"seconds":1}}}]"#,
            r#"[{"on":"refund","do":"error","share":2}]"#,
            r#"[{"on":"refund","do":"error","times":0}]"#,
            r#"[{"on":"refund","do":"error","type":"refund.created"}]"#,
            r#"[{"on":"refund","do":"error","tmes":1}]"#,
        ] {
            assert!(Script::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
