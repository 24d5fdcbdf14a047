//! The ratios that the project promises, out of what was measured in this run.

use super::pgbench;
use super::redis;
use super::report::Report;
use super::rows::{Ratio, Row};

/// Well-known things that were measured in the same run.
#[derive(Default)]
pub(super) struct Yardsticks {
    pub(super) redis: Vec<redis::Measured>,
    pub(super) pgbench: Option<pgbench::Measured>,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The embedded engine.
    Folder,
    Database,
    Redis,
}

/// Adds every ratio whose both sides were measured.
pub(super) fn judge(report: &mut Report, yardsticks: &Yardsticks, subject: Subject) {
    let rate = |name: &str| report.row(name).map(Row::throughput).filter(|rate| *rate > 0.0);
    let accepted = |name: &str| report.row(name).map(|row| row.accepted_per_second);
    let ratio = |promise, what: &str, above: Option<f64>, below: Option<f64>, bar| {
        let value = above? / below?;
        Some(Ratio { promise, what: what.into(), value, unit: "", bar: Some(bar), less_is_better: false })
    };
    let hot = accepted("hot");
    let raw = yardsticks.redis.first().map(|measured| measured.per_second);
    let classic = yardsticks.pgbench.as_ref().map(|measured| measured.per_second);
    let half = report.row("half").map(|row| Ratio {
        promise: "P6",
        what: "p99 of a hold at half of hot".into(),
        value: row.latency.p99_ms,
        unit: " ms",
        bar: Some(5.0),
        less_is_better: true,
    });
    let found = [
        if subject == Subject::Redis {
            ratio("P4", "hot on Redis, over HTTP ÷ redis in memory", hot, raw, 1.2)
        } else {
            ratio("P1", "hot ÷ redis in memory", hot, raw, 2.0)
        },
        ratio("P2", "hot ÷ noop", hot, rate("noop"), 0.6),
        ratio("P3", "hot on PostgreSQL, over HTTP ÷ pgbench", hot, classic, 15.0),
        half,
        ratio("P7", "soldout ÷ noop", report.row("soldout").map(|r| r.refused_per_second), rate("noop"), 0.8),
    ];
    let mut found: Vec<Ratio> = found.into_iter().flatten().collect();
    for row in &report.rows {
        let promise = match row.name.split_once(' ') {
            Some(("clients", _)) => "P12",
            Some(("library", _)) => "P13",
            _ => continue,
        };
        let what = format!("{} concurrent holds, p99 {:.2} ms", row.clients, row.latency.p99_ms);
        let value = row.accepted_per_second;
        found.push(Ratio { promise, what, value, unit: "/s", bar: None, less_is_better: false });
    }
    found.append(&mut report.ratios);
    let own = match subject {
        Subject::Folder => None,
        Subject::Database => Some("P3"),
        Subject::Redis => Some("P4"),
    };
    if let Some(own) = own {
        // All other promises are about the embedded engine; elsewhere they are figures like any other.
        for ratio in found.iter_mut().filter(|ratio| ratio.promise != own) {
            (ratio.promise, ratio.bar) = ("", None);
        }
    }
    report.ratios = found;
    report.notes.extend(yardsticks.redis.iter().map(redis::Measured::line));
    report.notes.extend(yardsticks.pgbench.as_ref().map(pgbench::Measured::line));
}

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::super::tally::Phase;
    use super::*;
    use std::time::Duration;

    #[test]
    fn elsewhere_only_its_own_promise_has_a_bar() {
        let row = |name, accepted| {
            let mut phase = Phase::new(Duration::from_secs(1)).unwrap();
            phase.accepted = accepted;
            Row::new(name, 64, None, &phase, 0)
        };
        let told = |subject| {
            let folder = tempfile::tempdir().unwrap();
            let mut report = Report::new(Machine::look(folder.path()), 0, 1.0);
            report.settle_rounds(vec![row("noop", 10_000), row("hot", 8_000)]);
            let pgbench = Some(pgbench::Measured { per_second: 500.0, latency_ms: 32.0 });
            let redis = vec![redis::Measured { persistence: "in memory only", per_second: 4_000.0, p99_ms: 1.0 }];
            judge(&mut report, &Yardsticks { redis, pgbench }, subject);
            report.ratios.iter().map(Ratio::line).collect::<Vec<_>>()
        };
        let p3 = "  P3  hot on PostgreSQL, over HTTP ÷ pgbench: 16.00  (at least 15: met)";
        let noop = "      hot ÷ noop: 0.80";
        assert_eq!(told(Subject::Database), ["      hot ÷ redis in memory: 2.00", noop, p3]);
        let p4 = "  P4  hot on Redis, over HTTP ÷ redis in memory: 2.00  (at least 1.2: met)";
        assert_eq!(told(Subject::Redis)[..2], [p4, noop]);
        assert_eq!(told(Subject::Folder)[1], "  P2  hot ÷ noop: 0.80  (at least 0.6: met)");
    }
}
