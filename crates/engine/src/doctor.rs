//! What an examination of a deployment finds, as plain values for whoever prints them.
//!
//! An examination runs beside nodes that serve and when nothing serves. It must never take anything over, make or migrate
//! tables, or tell a password.

use crate::AuditReport;
use crate::clock::wall;
use holdfast_domain::Time;
use std::fmt;

/// Clocks may differ by this much, in milliseconds.
const CLOCKS: i64 = 1_000;
/// Differences that are named.
const NAMED: usize = 5;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Works, and may hurt one day.
    Warning,
    /// Has to be looked at.
    Problem,
}

impl Level {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One item that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub told: String,
    /// What to do; empty where there is nothing to do.
    pub advice: String,
}

impl Finding {
    /// As it should be.
    pub fn ok(name: impl Into<String>, told: impl Into<String>) -> Self {
        Self { name: name.into(), level: Level::Ok, told: told.into(), advice: String::new() }
    }

    /// Works, and may hurt one day.
    pub fn warning(name: impl Into<String>, told: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Warning, advice: advice.into(), ..Self::ok(name, told) }
    }

    /// Has to be looked at.
    pub fn problem(name: impl Into<String>, told: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { level: Level::Problem, advice: advice.into(), ..Self::ok(name, told) }
    }
}

/// What an audit found, or why there was none.
pub(crate) fn drift(audited: Result<AuditReport, String>) -> Finding {
    let report = match audited {
        Ok(report) => report,
        Err(why) => return Finding::problem("drift", format!("the audit could not run: {why}"), "run it again"),
    };
    if report.drift.is_empty() {
        return Finding::ok("drift", format!("none: {} SKUs against {} ledger entries", report.skus, report.entries));
    }
    let named: Vec<String> = report
        .drift
        .iter()
        .take(NAMED)
        .map(|drift| format!("{} {} expected {}, actual {}", drift.sku, drift.field, drift.expected, drift.actual))
        .collect();
    let advice = "`holdfast audit` tells all of them; sales of these SKUs should be paused until somebody has looked";
    Finding::problem("drift", format!("{} differences: {}", report.drift.len(), named.join("; ")), advice)
}

/// How far another clock is from this machine's.
pub(crate) fn clock(name: &str, now: Time) -> Finding {
    let offset = now.millis() - wall().millis();
    let told = format!("{offset} ms from this machine's");
    if offset.abs() <= CLOCKS {
        return Finding::ok(name, told);
    }
    Finding::warning(name, told, "let NTP or chrony set both machines' clocks; deadlines go by the engine's clock")
}
