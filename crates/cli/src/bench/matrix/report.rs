//! What the matrix found: its rows, the rule for the exit code, the table in the terminal.

use super::super::check::Verdict;
use super::super::machine::Machine;
use super::super::pgbench;
use super::super::rows::grouped;
use super::super::tally::Phase;
use super::args::{Case, name};
use crate::latencies::Percentiles;
use comfy_table::{Cell, CellAlignment, LineStyle, Table, presets};
use serde::Serialize;
use std::fmt::Write;

/// All that was measured.
#[derive(Serialize)]
pub(super) struct Report {
    /// On what.
    pub(super) machine: Machine,
    /// When it began, in UTC.
    pub(super) began: String,
    /// How it was asked for, without passwords.
    pub(super) command: String,
    /// Callers of each row.
    pub(super) clients: usize,
    /// Measured time of each row, in seconds.
    pub(super) seconds: f64,
    /// The databases.
    pub(super) databases: Vec<String>,
    /// A line a case.
    pub(super) rows: Vec<Row>,
    /// Something well known, measured beside them.
    pub(super) yardstick: Option<pgbench::Measured>,
    /// Over all rows but those that are known to oversell.
    pub(super) verdict: Verdict,
}

/// A line.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) scenario: &'static str,
    pub(super) engine: String,
    pub(super) strategy: Option<&'static str>,
    pub(super) batches: &'static str,
    pub(super) nodes: usize,
    pub(super) clients: usize,
    /// It is known to oversell, and is there to show how much.
    pub(super) is_unsafe: bool,
    /// Answers that said yes, per second.
    pub(super) accepted_per_second: f64,
    /// Answers that said no, per second.
    pub(super) refused_per_second: f64,
    /// Everything else.
    pub(super) errors: u64,
    /// The first of them.
    pub(super) first_error: Option<String>,
    #[serde(flatten)]
    pub(super) latency: Percentiles,
    /// Batches decided again because of what others did: deadlocks, rows changed meanwhile.
    pub(super) retries: u64,
    /// What came of the units that everybody wanted at once; of scenario hot.
    pub(super) last_units: Option<LastUnits>,
    #[serde(flatten)]
    pub(super) verdict: Verdict,
}

/// A stock that is smaller than what is asked for.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LastUnits {
    /// Units that there were.
    pub(super) stock: u64,
    /// Units that callers were promised.
    pub(super) promised: u64,
    /// Units of which nobody knows.
    pub(super) in_doubt: u64,
    /// Everybody went on until refused.
    pub(super) all_refused_at_the_end: bool,
    /// How long that took.
    pub(super) seconds: f64,
}

impl LastUnits {
    /// Units that nobody got although everybody was told that there are none left.
    pub(super) fn unsold(&self) -> u64 {
        let sold = self.promised + self.in_doubt;
        if self.all_refused_at_the_end { self.stock.saturating_sub(sold) } else { 0 }
    }
}

impl Row {
    /// Of what was counted.
    pub(super) fn new(
        case: &Case,
        clients: usize,
        measured: &Phase,
        retries: u64,
        last_units: Option<LastUnits>,
        verdict: Verdict,
        first_error: Option<String>,
    ) -> Self {
        Self {
            scenario: name(case.scenario),
            engine: case.engine.name.clone(),
            strategy: case.strategy.map(holdfast_engine::Strategy::as_str),
            batches: case.batches.as_str(),
            nodes: case.nodes,
            clients,
            is_unsafe: case.is_unsafe(),
            accepted_per_second: measured.per_second(measured.accepted),
            refused_per_second: measured.per_second(measured.refused),
            errors: measured.errors.values().sum(),
            first_error,
            latency: measured.latencies.summary(),
            retries,
            last_units,
            verdict,
        }
    }

    /// Engine and strategy.
    pub(super) fn who(&self) -> String {
        let strategy = self.strategy.map(|s| format!(" {s}")).unwrap_or_default();
        format!("{}{strategy}", self.engine)
    }

    /// How it was run.
    pub(super) fn how(&self) -> String {
        if self.nodes > 1 { format!("{}, {} nodes", self.batches, self.nodes) } else { self.batches.to_owned() }
    }

    /// Answers of the kind that the scenario is about, per second.
    pub(super) fn throughput(&self) -> f64 {
        if self.scenario == "soldout" { self.refused_per_second } else { self.accepted_per_second }
    }

    /// Units that went wrong; `None` when none did.
    pub(super) fn wrong(&self) -> Option<String> {
        let Verdict { oversold, stranded, lost, drift, .. } = self.verdict;
        let told = [(oversold, "oversold"), (stranded, "stranded"), (lost, "lost"), (drift, "drifts in the audit")];
        let told = told.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n as f64)));
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

/// What decides about the exit code: everything but the rows that are known to oversell.
pub(super) fn judge(rows: &[Row]) -> Verdict {
    rows.iter().filter(|row| !row.is_unsafe).fold(Verdict::default(), |sum, row| sum.and(row.verdict))
}

impl Report {
    /// For the terminal.
    pub(super) fn text(&self) -> String {
        let m = &self.machine;
        let mut text = format!("{}, {} cores, {}\nholdfast {}", m.processor, m.cores, m.system, m.version);
        let _ = write!(text, "; {} clients in process, {} s a row", self.clients, self.seconds);
        let fsync = m.fsync_ms.map(|ms| format!("; fsync here {ms:.2} ms")).unwrap_or_default();
        let _ = writeln!(text, "{fsync}\n{}", m.durability);
        self.databases.iter().for_each(|database| {
            let _ = writeln!(text, "{database}");
        });
        let _ = writeln!(text, "{}", self.table());
        for line in self.remarks() {
            let _ = writeln!(text, "{line}");
        }
        if self.rows.iter().any(|row| !row.is_unsafe) {
            let _ = writeln!(text, "every row but naive: {}", self.verdict);
        }
        text
    }

    /// What the figures alone do not say.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(yardstick) = &self.yardstick {
            lines.push(yardstick.line());
            lines.extend(self.in_process(yardstick));
        }
        for row in &self.rows {
            let place = format!("{} {}, {}", row.scenario, row.who(), row.how());
            match (&row.last_units, row.is_unsafe) {
                (Some(last), true) if last.promised > last.stock => lines.push(format!(
                    "{place}: of {} units, {} were promised. It is expected to oversell; never use it",
                    last.stock,
                    grouped(last.promised as f64)
                )),
                (Some(_), true) => lines.push(format!(
                    "{place}: unsafe, though it did not oversell this time: it takes two transactions at once"
                )),
                _ => {}
            }
            if let Some(error) = &row.first_error {
                lines.push(format!("{place}: first error: {error}"));
            }
        }
        lines
    }

    fn in_process(&self, yardstick: &pgbench::Measured) -> Option<String> {
        let mut hot = self.rows.iter().filter(|row| row.scenario == "hot" && row.batches == "batched");
        let row = hot.find(|row| row.strategy == Some("row_lock") && row.nodes == 1)?;
        let ratio = row.accepted_per_second / yardstick.per_second;
        Some(format!("{} hot batched ÷ pgbench, in process: {ratio:.1} (P3 is over HTTP: --engine)", row.who()))
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
        table.set_header(HEADER);
        for row in &self.rows {
            let latency = &row.latency;
            let who = if row.is_unsafe { format!("{} (UNSAFE)", row.who()) } else { row.who() };
            let mut cells = vec![
                row.scenario.to_owned(),
                who,
                row.how(),
                grouped(row.accepted_per_second),
                grouped(row.refused_per_second),
                row.errors.to_string(),
            ];
            cells.extend([latency.p50_ms, latency.p99_ms, latency.p999_ms].map(|ms| format!("{ms:.2}")));
            let verdict = &row.verdict;
            let counted = [row.retries, verdict.oversold, verdict.stranded, verdict.lost];
            cells.extend(counted.map(|n| grouped(n as f64)));
            let aligned = |(n, text)| {
                Cell::new(text).set_alignment(if n < 3 { CellAlignment::Left } else { CellAlignment::Right })
            };
            table.add_row(cells.into_iter().enumerate().map(aligned));
        }
        table
    }
}

const HEADER: [&str; 13] = [
    "",
    "engine",
    "batches",
    "accepted/s",
    "refused/s",
    "errors",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "retries",
    "oversold",
    "stranded",
    "lost",
];

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::args::Scenario;
    use super::super::args::{Batches, Candidate, Kind};
    use super::*;
    use holdfast_engine::Strategy;
    use std::time::Duration;

    /// A row of this strategy, with so many units promised of 500.
    pub(in super::super) fn row(strategy: Strategy, promised: u64) -> Row {
        let engine = Candidate { name: "postgres <h>".into(), kind: Kind::Embedded };
        let (scenario, batches) = (Scenario::Hot, Batches::One);
        let case = Case { scenario, engine, strategy: Some(strategy), lock_nodes: [].into(), batches, nodes: 2 };
        let mut phase = Phase::new(Duration::from_secs(2)).unwrap();
        phase.accepted = 3000;
        phase.latencies.record(Duration::from_millis(2));
        let last = LastUnits { stock: 500, promised, in_doubt: 0, all_refused_at_the_end: true, seconds: 0.5 };
        let verdict = Verdict { oversold: promised.saturating_sub(500), stranded: last.unsold(), ..Verdict::default() };
        Row::new(&case, 64, &phase, 7, Some(last), verdict, Some("a \"quoted\", <b>bad</b> error".into()))
    }

    /// A report of these rows.
    pub(in super::super) fn report(rows: Vec<Row>) -> Report {
        let folder = tempfile::tempdir().unwrap();
        Report {
            machine: Machine::look(folder.path()),
            began: "2026-11-30T12:00:00Z".into(),
            command: "holdfast bench --engines postgres://h/d".into(),
            clients: 64,
            seconds: 2.0,
            databases: vec!["postgres: PostgreSQL 17, fsync on".into()],
            verdict: judge(&rows),
            rows,
            yardstick: Some(pgbench::Measured { per_second: 500.0, latency_ms: 32.0 }),
        }
    }

    #[test]
    fn only_rows_that_should_be_right_decide_about_the_exit_code() {
        assert!(judge(&[row(Strategy::Naive, 1703), row(Strategy::RowLock, 500)]).is_good());
        assert_eq!(judge(&[row(Strategy::Naive, 1703), row(Strategy::RowLock, 503)]).oversold, 3);
        assert_eq!(judge(&[row(Strategy::Optimistic, 498), row(Strategy::RowLock, 500)]).stranded, 2);
        assert!(judge(&[]).is_good());
    }

    #[test]
    fn units_are_unsold_only_when_everybody_was_refused() {
        let last = |promised, in_doubt, all_refused_at_the_end| {
            LastUnits { stock: 500, promised, in_doubt, all_refused_at_the_end, seconds: 1.0 }.unsold()
        };
        assert_eq!((last(500, 0, true), last(499, 0, true), last(499, 1, true)), (0, 1, 0));
        assert_eq!((last(100, 0, false), last(900, 0, true)), (0, 0));
    }

    #[test]
    fn the_text_says_what_is_unsafe_and_by_how_much() {
        let text = report(vec![row(Strategy::Naive, 1703), row(Strategy::RowLock, 500)]).text();
        assert!(text.contains("naive (UNSAFE)") && text.contains("of 500 units, 1,703 were promised"), "{text}");
        assert!(text.contains("every row but naive: oversold 0, stranded 0, lost 0; audit clean"), "{text}");
        assert!(text.contains("1,203"), "{text}");
    }
}
