//! What a client is told of limits: the fields `RateLimit-Policy` and `RateLimit` of the IETF draft (httpapi-ratelimit,
//! structured fields). Of the sale and its SKUs, only that they were too much: what they have left is nobody's business.

use super::{Decision, Limiter, Rate};

/// The values of two header fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateHeaders {
    /// `RateLimit-Policy`: the limits that there are; `q` tokens in a window of `w` seconds.
    pub policy: String,
    /// `RateLimit`: of the client and of what was violated, the `r` tokens left, and the `t` seconds until there is one,
    /// or until the client's bucket is full. Nothing where there is nothing to tell.
    pub limit: Option<String>,
}

/// The fields of the answer to a request that was decided on just now. Nothing where nothing limits, and where a pause
/// makes any number a lie.
pub fn headers(limiter: &Limiter, client: u64, decision: &Decision) -> Option<RateHeaders> {
    let limits = limiter.limits();
    let rates = [("client", limits.per_client), ("sku", limits.per_sku), ("sale", limits.sale)];
    let policies: Vec<_> = rates.iter().filter_map(|(name, rate)| Some(policy(name, (*rate)?))).collect();
    let quota = limiter.client_quota(client);
    let told: Vec<_> = match decision {
        _ if policies.is_empty() => return None,
        Decision::Paused => return None,
        Decision::Admitted => quota.map(|(left, full)| quota_of("client", left, full)).into_iter().collect(),
        Decision::Refused { violated, .. } => {
            let tell = |(name, wait): (&str, Option<u64>)| match (wait, quota) {
                (Some(wait), _) => Some(quota_of(name, 0, wait)),
                (None, Some((left, full))) if name == "client" => Some(quota_of(name, left, full)),
                _ => None,
            };
            violated.named().filter_map(tell).collect()
        }
    };
    Some(RateHeaders { policy: policies.join(", "), limit: Some(told.join(", ")).filter(|text| !text.is_empty()) })
}

fn policy(name: &str, rate: Rate) -> String {
    format!("\"{name}\";q={};w={}", rate.burst(), seconds(rate.time_for(rate.capacity())))
}

fn quota_of(name: &str, left: u64, wait: u64) -> String {
    format!("\"{name}\";r={left};t={}", seconds(wait))
}

/// Whole seconds, up, in the range that structured fields have.
fn seconds(us: u64) -> u64 {
    us.div_ceil(1_000_000).min(999_999_999_999_999)
}

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;

    #[test]
    fn only_the_clients_own_tokens_are_told() {
        let limits = Limits {
            sale: Rate::per_second(200, 500),
            per_sku: Rate::new(500_000, 1),
            per_client: Rate::per_second(5, 10),
            shadow: false,
        };
        let mut limiter = Limiter::new(limits, 0);
        let mut ask = |sku: &str| {
            let decision = limiter.ask(&[sku], 1, 0);
            headers(&limiter, 1, &decision).unwrap()
        };
        let first = ask("A");
        assert_eq!(first.policy, r#""client";q=10;w=2, "sku";q=1;w=2, "sale";q=500;w=3"#);
        assert_eq!(first.limit.as_deref(), Some(r#""client";r=9;t=1"#));
        assert_eq!(ask("A").limit.as_deref(), Some(r#""client";r=9;t=1, "sku";r=0;t=2"#));
        ["B", "C", "D", "E", "F", "G", "H", "I", "J"].iter().for_each(|sku| drop(ask(sku)));
        assert_eq!(ask("K").limit.as_deref(), Some(r#""client";r=0;t=1"#));
    }

    #[test]
    fn nothing_is_told_where_there_is_nothing() {
        let decision = Decision::Admitted;
        assert_eq!(headers(&Limiter::new(Limits::default(), 0), 1, &decision), None);
        let sale = Limits { sale: Rate::per_second(1, 1), ..Limits::default() };
        let mut limiter = Limiter::new(sale, 0);
        let decision = limiter.ask(&[], 1, 0);
        assert_eq!(headers(&limiter, 1, &decision).unwrap().limit, None);
        limiter.set_limits(Limits { sale: Rate::per_second(0, 1), ..sale }, 0);
        let decision = limiter.ask(&[], 1, 0);
        assert_eq!((headers(&limiter, 1, &decision), decision), (None, Decision::Paused));
    }
}
