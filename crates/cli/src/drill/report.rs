//! What the drill tells: on the terminal, and as JSON.

use super::shop::Seen;
use super::verdict::Verdict;
use crate::latencies::{Latencies, Percentiles};
use indicatif::HumanCount;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Ids that are told on the terminal for each breach; the JSON has all of them.
const SHOWN: usize = 10;

/// What was asked for.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Asked {
    pub(super) shoppers: u32,
    pub(super) units: u32,
    pub(super) over_seconds: f64,
    pub(super) ttl_seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiting_room_per_second: Option<u32>,
    pub(super) sku: String,
    pub(super) seed: u64,
}

#[derive(Debug, Serialize)]
struct Answers {
    count: u64,
    latency: Percentiles,
}

impl Answers {
    fn new(count: u64, latencies: &Latencies) -> Self {
        Self { count, latency: latencies.summary() }
    }
}

/// What the waiting room did.
#[derive(Debug, Serialize)]
struct Waiting {
    arrived_per_second: f64,
    admitted_per_second: f64,
    turned_away: u64,
    admitted: Answers,
}

/// Everything.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    asked: Asked,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_room: Option<Waiting>,
    accepted: Answers,
    refused: Answers,
    payments: u64,
    declined: u64,
    closed_in_time: u64,
    given_back: u64,
    /// By call and status.
    other_answers: BTreeMap<String, u64>,
    provider_troubles: BTreeMap<String, u64>,
    seconds: f64,
    pub(super) verdict: Verdict,
}

impl Report {
    /// From what was seen and what was judged.
    pub(super) fn new(asked: Asked, seen: &Seen, verdict: Verdict, seconds: f64) -> Self {
        let others = seen.others.iter().map(|((call, status), n)| (format!("{call} {status}"), *n)).collect();
        let waiting_room = asked.waiting_room_per_second.map(|_| Waiting {
            arrived_per_second: f64::from(asked.shoppers) / asked.over_seconds,
            admitted_per_second: seen.doors.rate(),
            turned_away: seen.doors.turned_away,
            admitted: Answers::new(seen.doors.admitted, &seen.waited),
        });
        Self {
            asked,
            waiting_room,
            accepted: Answers::new(seen.holds, &seen.accepted),
            refused: Answers::new(seen.sold_out, &seen.refused),
            payments: seen.paid,
            declined: seen.declined,
            closed_in_time: seen.closed,
            given_back: seen.given_back,
            other_answers: others,
            provider_troubles: seen.troubles.clone(),
            seconds,
            verdict,
        }
    }

    /// For people. (Writing into a String cannot fail.)
    pub(super) fn text(&self) -> String {
        let Self { asked, verdict, .. } = self;
        let n = |n: u64| HumanCount(n).to_string();
        let mut text = format!(
            "{} shoppers on {} units of {} within {:.0} s, holds of {} s, seed {}\n\n",
            n(asked.shoppers.into()),
            n(asked.units.into()),
            asked.sku,
            asked.over_seconds,
            asked.ttl_seconds,
            asked.seed
        );
        if let (Some(room), Some(limit)) = (&self.waiting_room, asked.waiting_room_per_second) {
            let Percentiles { p50_ms, p99_ms, .. } = room.admitted.latency;
            let _ = writeln!(
                text,
                "  {:<16} {:>9}   {:.0} came a second, {:.1} were let in (at most {limit}); waited p50 {:.1} s   p99 {:.1} s",
                "let in",
                n(room.admitted.count),
                room.arrived_per_second,
                room.admitted_per_second,
                p50_ms / 1000.0,
                p99_ms / 1000.0
            );
            let _ = writeln!(
                text,
                "  {:<16} {:>9}   told that all was gone while they waited",
                "turned away",
                n(room.turned_away)
            );
        }
        for (name, answers) in [("holds accepted", &self.accepted), ("sold out", &self.refused)] {
            let Percentiles { p50_ms, p99_ms, .. } = answers.latency;
            let _ = writeln!(text, "  {name:<16} {:>9}   p50 {p50_ms:.1} ms   p99 {p99_ms:.1} ms", n(answers.count));
        }
        let _ = writeln!(
            text,
            "  {:<16} {:>9}   {} declined, {} closed in time, {} holds given back",
            "payments",
            n(self.payments),
            n(self.declined),
            n(self.closed_in_time),
            n(self.given_back)
        );
        for (what, count) in self.other_answers.iter().chain(&self.provider_troubles) {
            let _ = writeln!(text, "  {what:<16} {:>9}", n(*count));
        }
        let _ = write!(
            text,
            "\nFrom the ledger ({} entries) and the provider's books, after {:.0} s:\n\n  sold {} of {}, oversold {}, stranded {}\n  {} captures = {} orders + {} refunds; {} authorisations let go\n\n",
            n(verdict.entries),
            self.seconds,
            n(verdict.sold),
            n(verdict.units),
            n(verdict.oversold),
            n(verdict.stranded),
            n(verdict.captures),
            n(verdict.orders),
            n(verdict.refunds),
            n(verdict.voids)
        );
        if verdict.is_good() {
            text.push_str("Every promise was kept; the audit is clean.\n");
        }
        for breach in &verdict.breaches {
            let shown: Vec<&str> = breach.ids.iter().take(SHOWN).map(String::as_str).collect();
            let more = breach.ids.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(text, "BROKEN {}: {}: {}{more}", breach.promise, breach.what, shown.join(", "));
        }
        text
    }
}
