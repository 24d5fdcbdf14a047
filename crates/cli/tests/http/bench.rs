//! `holdfast bench --engines`: the comparison, on the embedded engine, and what it refuses.

use crate::support::holdfast;
use serde_json::Value;
use std::path::Path;
use tempfile::tempdir;

#[test]
fn the_comparison_is_written_in_every_form_and_counts_every_unit() {
    let folder = tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut command = holdfast();
    command.args(["bench", "--engines", "embedded", "--scenario", "hot,cart,soldout", "--clients", "8"]);
    command.args(["--warmup", "50ms", "--seconds", "500ms", "--data-dir"]).arg(file("data"));
    for form in ["json", "csv", "html"] {
        command.arg(format!("--{form}")).arg(file(form));
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("oversold 0, stranded 0, lost 0; audit clean"), "{text}");
    assert_eq!(std::fs::read_dir(file("data")).unwrap().count(), 0, "every folder is removed");

    let report: Value = serde_json::from_slice(&std::fs::read(file("json")).unwrap()).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let is = |row: &Value| format!("{} {} {}", row["scenario"], row["engine"], row["batches"]).replace('"', "");
    let expected =
        ["hot", "cart", "soldout"].map(|name| ["one", "batched"].map(|how| format!("{name} embedded {how}"))).concat();
    assert_eq!(rows.iter().map(is).collect::<Vec<_>>(), expected);
    for row in rows {
        let is_sold_out = row["scenario"] == "soldout";
        let answers = ["accepted_per_second", "refused_per_second"].map(|kind| row[kind].as_f64().unwrap() > 0.0);
        assert_eq!(answers, [!is_sold_out, is_sold_out], "{row}");
        for wrong in ["errors", "oversold", "stranded", "lost", "in_doubt", "drift"] {
            assert_eq!(row[wrong], 0, "{wrong}: {row}");
        }
        if row["scenario"] == "hot" {
            assert_eq!((&row["last_units"]["stock"], &row["last_units"]["promised"]), (&500.into(), &500.into()));
        }
    }

    let csv = std::fs::read_to_string(file("csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + expected.len(), "{csv}");
    let html = std::fs::read_to_string(file("html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("One hot SKU") && html.contains("<svg"), "{html}");
    assert!(!html.contains("http") && !html.contains("src="), "the page asks somebody for something: {html}");
}

#[test]
fn what_cannot_be_compared_is_refused_without_telling_the_password() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = format!("postgres://u:geheim@{nobody}/d");
    for (words, told) in [
        (["--engines", "oracle://u:geheim@127.0.0.1/d"], "engine 1 of --engines"),
        (["--engines", "mysql://u:geheim@127.0.0.1:1/d"], "mysql: MySQL"),
        (["--engines", "embedded,oracle://u:geheim@127.0.0.1"], "engine 2 of --engines"),
        (["--engines", "embedded,redis://u:geheim@127.0.0.1"], "--ledger"),
        (["--engine", "redis://u:geheim@127.0.0.1"], "--ledger"),
        (["--ledger", "postgres://u:geheim@127.0.0.1/d"], "for an engine on Redis"),
        (["--engines", &unreachable], "postgres:"),
        (["--engine", "oracle://u:geheim@127.0.0.1/d"], "--engine must be"),
        (["--engine", "geheim"], "--engine must be"),
    ] {
        let folder = tempdir().unwrap();
        let output = holdfast().arg("bench").args(words).current_dir(Path::new(folder.path())).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(told) && !error.contains("geheim"), "{error}");
    }
}
