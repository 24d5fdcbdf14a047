//! What is looked at in any SQL database, as an engine or as a ledger; the facts come from the database's own module.

use super::SqlConfig;
use crate::doctor::{Finding, clock};
use holdfast_domain::Time;

/// The CHECK constraints that the tables are made with.
const CHECKS: [&str; 8] = [
    "stock_counters",
    "stock_carved",
    "holds_status",
    "claims_quantity",
    "orders_status",
    "purchases_units",
    "totals_one_row",
    "moves_one_row",
];

/// What a database tells of itself.
pub(crate) struct Facts {
    pub(crate) about: String,
    /// The version of its tables; 0: there are none.
    pub(crate) version: i64,
    /// The version that this program makes.
    pub(crate) known: i64,
    /// CHECK constraints that are there and hold.
    pub(crate) checks: Vec<String>,
    /// Rows of stock with impossible counters.
    pub(crate) violating: i64,
    pub(crate) max_connections: i64,
    pub(crate) used_connections: i64,
    pub(crate) now: Time,
}

/// Rows of stock that no CHECK constraint lets in.
pub(crate) const VIOLATING: &str =
    "SELECT COUNT(*) FROM stock WHERE available < 0 OR held < 0 OR sold < 0 OR carved < 0 OR carved > available";

/// Judges them. The tables may be used only if none of it is a problem.
pub(crate) fn judge(facts: &Facts, config: &SqlConfig) -> Vec<Finding> {
    let is_lax = ["fsync off", "synchronous_commit off", "trx_commit 0", "trx_commit 2"]
        .iter()
        .any(|lax| facts.about.contains(lax));
    let mut findings = vec![if is_lax {
        let advice = "set fsync on (MySQL: innodb_flush_log_at_trx_commit 1): what was answered may be lost when the machine dies";
        Finding::warning("database reachable", facts.about.clone(), advice)
    } else {
        Finding::ok("database reachable", facts.about.clone())
    }];
    findings.push(schema(facts));
    if facts.version > 0 {
        findings.extend(constraints(facts));
    }
    findings.push(pool(facts, config));
    findings.push(clock("database clock", facts.now));
    findings
}

fn schema(facts: &Facts) -> Finding {
    let (name, version, known) = ("schema version", facts.version, facts.known);
    let told = format!("{version}; this program makes {known}");
    match version {
        0 => Finding::problem(name, "there are no tables yet", "start `holdfast serve` once with these settings"),
        _ if version > known => Finding::problem(name, told, "run the newer holdfast that made these tables"),
        _ if version < known => {
            Finding::problem(name, told, "restart every node with this version; the first one migrates the tables")
        }
        _ => Finding::ok(name, told),
    }
}

fn constraints(facts: &Facts) -> [Finding; 2] {
    let missing: Vec<&str> =
        CHECKS.into_iter().filter(|name| !facts.checks.iter().any(|there| there == name)).collect();
    let checks = if missing.is_empty() {
        Finding::ok("CHECK constraints", format!("all {} are there", CHECKS.len()))
    } else {
        let advice = "add them as holdfast's migrations have them: they are the last defence against overselling";
        Finding::problem("CHECK constraints", format!("missing: {}", missing.join(", ")), advice)
    };
    let violating = match facts.violating {
        0 => Finding::ok("rows violating them", "0"),
        rows => Finding::problem(
            "rows violating them",
            rows.to_string(),
            "pause the sale; `holdfast audit` names the SKUs, and their ledger says what the counters should be",
        ),
    };
    [checks, violating]
}

fn pool(facts: &Facts, config: &SqlConfig) -> Finding {
    let (pool, most, used) = (config.pool, facts.max_connections, facts.used_connections);
    let told = format!("up to {pool} for each node; the database allows {most}, and {used} are open");
    let free = most - used;
    let asked = i64::try_from(pool).unwrap_or(i64::MAX);
    if asked > most {
        Finding::problem("connections", told, "lower database_pool, or raise max_connections")
    } else if asked > free {
        let advice = "another node would not get all of its connections; lower database_pool, or raise max_connections";
        Finding::warning("connections", told, advice)
    } else {
        Finding::ok("connections", told)
    }
}
