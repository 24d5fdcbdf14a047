//! The partitions: their epochs, what waits for the ledger, what was left half-way, and the drift.

use super::super::core::{Core, ledger_error, told};
use super::super::recover::{ABANDONED_MS, text};
use crate::EngineError;
use crate::doctor::{self, Finding};
use crate::sql::HotRow;
use holdfast_domain::Time;
use redis::Value;

/// What was found of all partitions together.
#[derive(Default)]
struct Sums {
    epochs: Vec<i64>,
    backlog: u64,
    tokens: u64,
}

pub(super) async fn look(core: &Core) -> Vec<Finding> {
    let all: Vec<u32> = core.partitions.all().chain([core.partitions.count()]).collect();
    let (now, rows) = match core.ledger.rows(&all).await {
        Ok(found) => found,
        Err(fault) => {
            let why = ledger_error(fault).to_string();
            return vec![Finding::problem("partitions", why, "is the ledger's database up?")];
        }
    };
    if rows.is_empty() {
        let advice = "start `holdfast serve` once with these settings";
        return vec![Finding::problem("partitions", "the ledger knows of no Redis yet", advice)];
    }
    if rows.len() != core.partitions.count() as usize {
        let known = if rows.len() == all.len() { "more".to_owned() } else { rows.len().to_string() };
        let told = format!("the ledger was made with {known}, and {} are configured", core.partitions.count());
        return vec![Finding::problem("partitions", told, "set redis_partitions to what it was")];
    }
    let (mut findings, mut sums) = (Vec::new(), Sums::default());
    for row in &rows {
        match partition(core, row, now, &mut sums).await {
            Ok(None) => {}
            Ok(Some(finding)) => findings.push(finding),
            Err(error) => {
                findings.push(Finding::problem(
                    name(row),
                    error.to_string(),
                    "is the Redis server of this partition up?",
                ));
            }
        }
    }
    let is_whole = findings.is_empty();
    if is_whole {
        findings.push(serving(&sums.epochs));
    }
    findings.push(backlog(sums.backlog, core.backlog));
    findings.push(tokens(sums.tokens));
    findings.push(parked(core).await);
    if is_whole {
        findings.push(doctor::drift(core.audit().await.map_err(|e| e.to_string())));
    } else {
        findings.push(Finding::warning("drift", "not looked for", "look again when every partition serves"));
    }
    findings
}

fn name(row: &HotRow) -> String {
    format!("partition {}", row.part)
}

/// What is wrong with a partition, if anything is; adds up the rest.
async fn partition(core: &Core, row: &HotRow, now: Time, sums: &mut Sums) -> Result<Option<Finding>, EngineError> {
    let seconds = (now.millis() - row.since.millis()) / 1000;
    let server = core.net.server(row.part).await.map_err(told)?;
    let gate = core.net.run(row.part, Some(&server), redis::cmd("GET").arg(core.epoch_key(row.part))).await;
    let gate = text(&gate.map_err(told)?).unwrap_or_default();
    if row.is_auditing {
        let told = format!("epoch {}, under audit for {seconds} s", row.epoch);
        let advice = "a node that serves finishes it; with none, start one; the log says what keeps it";
        return Ok(Some(Finding::problem(name(row), told, advice)));
    }
    if row.server != server || gate != row.epoch.to_string() {
        let told = if row.server == server {
            format!("Redis says epoch {gate:?}, the ledger {}", row.epoch)
        } else {
            format!("epoch {}, and another server process serves it than was audited", row.epoch)
        };
        let advice = "it is audited and filled from the ledger by the next node that looks; with none, start one";
        return Ok(Some(Finding::problem(name(row), told, advice)));
    }
    let mut last = redis::cmd("HGET");
    last.arg(core.key(row.part, row.epoch, "at")).arg("seq");
    let seq = core.net.run(row.part, Some(&server), &last).await.map_err(told)?;
    let seq: i64 = text(&seq).and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut count = redis::cmd("ZCOUNT");
    count.arg(core.key(row.part, row.epoch, "tokens")).arg("-inf").arg(core.now().millis() - ABANDONED_MS);
    if let Value::Int(tokens) = core.net.run(row.part, Some(&server), &count).await.map_err(told)? {
        sums.tokens += u64::try_from(tokens).unwrap_or(0);
    }
    sums.backlog += u64::try_from(seq - row.drained_seq).unwrap_or(0);
    sums.epochs.push(row.epoch);
    core.open(row.part, row.epoch, &server, row.drained_seq);
    Ok(None)
}

fn serving(epochs: &[i64]) -> Finding {
    let (first, last) = (epochs.iter().min().copied().unwrap_or(0), epochs.iter().max().copied().unwrap_or(0));
    let epochs_told = if first == last { format!("epoch {first}") } else { format!("epochs {first} to {last}") };
    Finding::ok("partitions", format!("all {} in order, {epochs_told}", epochs.len()))
}

fn backlog(entries: u64, limit: u64) -> Finding {
    let told = format!("{entries} log entries are not in the ledger; new holds are refused above {limit}");
    let advice = "is a node serving, and does the ledger's database keep up? The log of the nodes says what it refuses";
    if entries >= limit {
        Finding::problem("backlog", told, advice)
    } else if entries >= limit / 2 {
        Finding::warning("backlog", told, advice)
    } else {
        Finding::ok("backlog", told)
    }
}

fn tokens(count: u64) -> Finding {
    let told = format!("{count} older than {} s", ABANDONED_MS / 1000);
    if count == 0 {
        return Finding::ok("steps left half-way", told);
    }
    let advice = "a node that serves finishes or undoes them within seconds; with none, start one";
    Finding::warning("steps left half-way", told, advice)
}

async fn parked(core: &Core) -> Finding {
    let name = "parked facts";
    match core.ledger.parked().await {
        Ok(0) => Finding::ok(name, "0"),
        Ok(count) => {
            let advice =
                "the ledger's table hot_parked says why each could not be written down; settle it, then delete the row";
            Finding::problem(name, count.to_string(), advice)
        }
        Err(fault) => Finding::problem(name, ledger_error(fault).to_string(), "is the ledger's database up?"),
    }
}
