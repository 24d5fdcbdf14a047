//! The ratios that the project promises, out of what was measured in this run.

use super::redis::Measured;
use super::report::Report;
use super::rows::Ratio;

/// Adds every ratio whose both sides were measured.
pub(super) fn judge(report: &mut Report, redis: &[Measured]) {
    let rate = |name: &str| report.row(name).map(super::rows::Row::throughput).filter(|rate| *rate > 0.0);
    let accepted = |name: &str| report.row(name).map(|row| row.accepted_per_second);
    let ratio = |promise, what: &str, above: Option<f64>, below: Option<f64>, bar| {
        let value = above? / below?;
        Some(Ratio { promise, what: what.into(), value, unit: "", bar, less_is_better: false })
    };
    let hot = accepted("hot");
    let raw = redis.first().map(|measured| measured.per_second);
    let half = report.row("half").map(|row| Ratio {
        promise: "P6",
        what: "p99 of a hold at half of hot".into(),
        value: row.latency.p99_ms,
        unit: " ms",
        bar: Some(5.0),
        less_is_better: true,
    });
    let found = [
        ratio("P1", "hot ÷ redis in memory", hot, raw, Some(2.0)),
        ratio("P2", "hot ÷ noop", hot, rate("noop"), Some(0.6)),
        half,
        ratio("P7", "soldout ÷ noop", report.row("soldout").map(|r| r.refused_per_second), rate("noop"), Some(0.8)),
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
    report.ratios = found;
    report.notes.extend(redis.iter().map(Measured::line));
}
