//! What is told at the end: a table in the terminal, ratios, the verdict; and all of it as JSON.

use super::check::Verdict;
use super::machine::Machine;
use super::rows::{Ratio, Row, errors, grouped};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use std::fmt::Write;

/// All that was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// On what.
    pub(super) machine: Machine,
    /// When it began, in milliseconds since 1970.
    pub(super) began_ms: i64,
    /// Measured time of each scenario, in seconds.
    pub(super) seconds: f64,
    /// One line a scenario; with several rounds, the median one.
    pub(super) rows: Vec<Row>,
    /// The lines of every round.
    pub(super) every_round: Vec<Row>,
    /// Ratios and single figures.
    pub(super) ratios: Vec<Ratio>,
    /// What else is worth telling.
    pub(super) notes: Vec<String>,
    /// Over all scenarios; `None` when none made holds.
    pub(super) verdict: Option<Verdict>,
}

impl Report {
    /// An empty one.
    pub(super) fn new(machine: Machine, began_ms: i64, seconds: f64) -> Self {
        let (rows, every_round) = (Vec::new(), Vec::new());
        Self { machine, began_ms, seconds, rows, every_round, ratios: Vec::new(), notes: Vec::new(), verdict: None }
    }

    /// Takes the lines of the rounds: of each name, the one with the median throughput (or p99 at a given rate).
    pub(super) fn settle_rounds(&mut self, every_round: Vec<Row>) {
        let mut names: Vec<&str> = Vec::new();
        for row in &every_round {
            if !names.contains(&row.name.as_str()) {
                names.push(&row.name);
            }
        }
        for name in names {
            let mut same: Vec<&Row> = every_round.iter().filter(|row| row.name == name).collect();
            same.sort_by(|a, b| {
                let key = |row: &Row| {
                    if row.rate.is_some() { row.latency.p99_ms } else { row.throughput() }
                };
                key(a).total_cmp(&key(b))
            });
            self.rows.push(same[same.len() / 2].clone());
        }
        self.every_round = every_round;
    }

    /// The line of this name.
    pub(super) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// One more verdict.
    pub(super) fn judge(&mut self, verdict: Verdict) {
        self.verdict = Some(self.verdict.unwrap_or_default().and(verdict));
    }

    /// For the terminal.
    pub(super) fn text(&self) -> String {
        let m = &self.machine;
        let mut text = format!("{}, {} cores, {}\nholdfast {}", m.processor, m.cores, m.system, m.version);
        let _ = write!(text, "; {}", m.durability);
        if let Some(ms) = m.fsync_ms {
            let _ = write!(text, "; fsync {ms:.2} ms");
        }
        text.push_str("; load generator on the same machine\n");
        if !self.rows.is_empty() {
            let _ = writeln!(text, "{}", self.table());
        }
        for ratio in &self.ratios {
            let _ = writeln!(text, "{}", ratio.line());
        }
        for note in &self.notes {
            let _ = writeln!(text, "      {note}");
        }
        if let Some(verdict) = &self.verdict {
            let _ = writeln!(text, "{verdict}");
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        let names =
            ["", "clients", "rate", "accepted/s", "refused/s", "errors", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];
        table.set_header(names);
        for row in &self.rows {
            let latency = &row.latency;
            let mut cells = vec![
                row.name.clone(),
                row.clients.to_string(),
                row.rate.map(grouped).unwrap_or_default(),
                grouped(row.accepted_per_second),
                grouped(row.refused_per_second),
                errors(row),
            ];
            cells
                .extend([latency.p50_ms, latency.p99_ms, latency.p999_ms, latency.max_ms].map(|ms| format!("{ms:.2}")));
            let right = |(n, text)| {
                Cell::new(text).set_alignment(if n == 0 { CellAlignment::Left } else { CellAlignment::Right })
            };
            table.add_row(cells.into_iter().enumerate().map(right));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::tally::Phase;
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_median_round_is_told() {
        let row = |accepted| {
            let mut phase = Phase::new(Duration::from_secs(1)).unwrap();
            phase.accepted = accepted;
            Row::new("hot", 64, None, &phase, 0)
        };
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::new(Machine::look(folder.path()), 0, 1.0);
        report.settle_rounds(vec![row(5), row(900), row(7)]);
        assert!((report.rows[0].accepted_per_second - 7.0).abs() < 1e-9);
        assert_eq!((report.rows.len(), report.every_round.len()), (1, 3));
        report.judge(Verdict::default());
        assert!(report.text().contains("oversold 0, stranded 0, lost 0; audit clean"), "{}", report.text());
    }
}
