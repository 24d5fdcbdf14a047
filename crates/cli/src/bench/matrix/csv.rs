//! The rows as CSV: one line each, with a header.

use super::report::Row;

const HEADER: [&str; 24] = [
    "scenario",
    "engine",
    "strategy",
    "batches",
    "nodes",
    "clients",
    "unsafe",
    "accepted_per_second",
    "refused_per_second",
    "errors",
    "p50_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
    "retries",
    "last_units",
    "last_units_promised",
    "last_units_seconds",
    "oversold",
    "stranded",
    "lost",
    "in_doubt",
    "audit_drift",
    "first_error",
];

/// Writes them.
pub(super) fn csv(rows: &[Row]) -> Result<Vec<u8>, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).map_err(|e| e.to_string())?;
    for row in rows {
        writer.write_record(fields(row)).map_err(|e| e.to_string())?;
    }
    writer.into_inner().map_err(|e| e.to_string())
}

fn fields(row: &Row) -> [String; 24] {
    let (latency, verdict, last) = (&row.latency, &row.verdict, row.last_units.as_ref());
    let figure = |number: f64| format!("{number:.3}");
    [
        row.scenario.to_owned(),
        row.engine.clone(),
        row.strategy.unwrap_or_default().to_owned(),
        row.batches.to_owned(),
        row.nodes.to_string(),
        row.clients.to_string(),
        row.is_unsafe.to_string(),
        figure(row.accepted_per_second),
        figure(row.refused_per_second),
        row.errors.to_string(),
        figure(latency.p50_ms),
        figure(latency.p99_ms),
        figure(latency.p999_ms),
        figure(latency.max_ms),
        row.retries.to_string(),
        last.map(|last| last.stock.to_string()).unwrap_or_default(),
        last.map(|last| last.promised.to_string()).unwrap_or_default(),
        last.map(|last| figure(last.seconds)).unwrap_or_default(),
        verdict.oversold.to_string(),
        verdict.stranded.to_string(),
        verdict.lost.to_string(),
        verdict.in_doubt.to_string(),
        verdict.drift.to_string(),
        row.first_error.clone().unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::row;
    use super::*;
    use holdfast_engine::Strategy;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let text = String::from_utf8(csv(&[row(Strategy::Naive, 501)]).unwrap()).unwrap();
        let (head, line) = text.trim_end().split_once('\n').unwrap();
        assert!(head.starts_with("scenario,engine,strategy,batches,nodes,clients,unsafe,accepted_per_second,"));
        assert!(line.starts_with("hot,postgres <h>,naive,one,2,64,true,1500.000,0.000,0,"), "{line}");
        assert!(line.ends_with(",500,501,0.500,1,0,0,0,0,\"a \"\"quoted\"\", <b>bad</b> error\""), "{line}");
    }
}
