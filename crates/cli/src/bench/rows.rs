//! The lines of the report: a run, and a promise with what was measured of it.

use super::tally::Phase;
use crate::latencies::Percentiles;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A line of the table.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    /// What ran.
    pub(super) name: String,
    /// Connections, or concurrent holds.
    pub(super) clients: usize,
    /// Requests per second asked for, in an open loop.
    pub(super) rate: Option<f64>,
    /// Answers that said yes, per second.
    pub(super) accepted_per_second: f64,
    /// Answers that said no, per second.
    pub(super) refused_per_second: f64,
    /// Everything else, by status; 0 is a broken connection.
    pub(super) errors: BTreeMap<u16, u64>,
    /// Requests that were due but never sent.
    pub(super) missed: u64,
    /// Latencies of all answers.
    #[serde(flatten)]
    pub(super) latency: Percentiles,
}

impl Row {
    /// Of what was counted in this phase.
    pub(super) fn new(name: &str, clients: usize, rate: Option<f64>, phase: &Phase, missed: u64) -> Self {
        Self {
            name: name.to_owned(),
            clients,
            rate,
            accepted_per_second: phase.per_second(phase.accepted),
            refused_per_second: phase.per_second(phase.refused),
            errors: phase.errors.clone(),
            missed,
            latency: phase.latencies.summary(),
        }
    }

    /// Answers that were yes or no, per second.
    pub(super) fn throughput(&self) -> f64 {
        self.accepted_per_second + self.refused_per_second
    }
}

/// A promise and what was measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ratio {
    /// Its number in the list of promises.
    pub(super) promise: &'static str,
    /// What is divided by what, or measured.
    pub(super) what: String,
    /// What came out.
    pub(super) value: f64,
    /// Its unit: empty for a ratio.
    pub(super) unit: &'static str,
    /// The bar; `None` where it needs something that was not measured.
    pub(super) bar: Option<f64>,
    /// Whether less is better.
    pub(super) less_is_better: bool,
}

impl Ratio {
    /// For the terminal.
    pub(super) fn line(&self) -> String {
        let digits = if self.value.abs() >= 100.0 { 0 } else { 2 };
        let mut line = format!("{:>4}  {}: {:.digits$}{}", self.promise, self.what, self.value, self.unit);
        if let Some(bar) = self.bar {
            let met = if self.less_is_better { self.value <= bar } else { self.value >= bar };
            let sign = if self.less_is_better { "at most" } else { "at least" };
            let verdict = if met { "met" } else { "MISSED" };
            let _ = write!(line, "  ({sign} {bar}{}: {verdict})", self.unit);
        }
        line
    }
}

/// What was neither yes nor no, for the terminal.
pub(super) fn errors(row: &Row) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (status, n) in &row.errors {
        parts.push(if *status == 0 { format!("{n} lost") } else { format!("{n}x {status}") });
    }
    if row.missed > 0 {
        parts.push(format!("{} unsent", row.missed));
    }
    if parts.is_empty() { "0".into() } else { parts.join(", ") }
}

/// A whole number with separators.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            ["0", "7", "999", "1,000", "1,234,568"],
            [0.0, 7.4, 999.4, 999.6, 1_234_567.8].map(grouped).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn a_bar_is_met_or_missed() {
        let ratio = |value, less_is_better| Ratio {
            promise: "P1",
            what: "hot ÷ redis".into(),
            value,
            unit: "",
            bar: Some(2.0),
            less_is_better,
        };
        assert_eq!(ratio(2.5, false).line(), "  P1  hot ÷ redis: 2.50  (at least 2: met)");
        assert!(ratio(1.99, false).line().ends_with("MISSED)"));
        assert!(ratio(1.99, true).line().ends_with("(at most 2: met)"));
    }
}
