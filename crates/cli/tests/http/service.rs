//! Health, readiness, metrics, the description, request ids.

use crate::support::{Call, Server, cart, holdfast, shared};
use serde_json::json;

#[test]
fn alive_and_ready() {
    let server = shared();
    assert_eq!(server.get("/healthz").is(200), json!({"status": "ok"}));
    assert_eq!(server.get("/readyz").is(200), json!({"status": "ready"}));
    let head = Call::new("HEAD", "/readyz").to(&server);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn the_metrics_tell_what_happened_and_nothing_that_a_client_chose() {
    let server = Server::fresh();
    server.stock("SECRET-SKU", 5);
    server.hold(&cart("SECRET-ORDER", "SECRET-SKU", 1));
    server.post("/v1/holds", &cart("SECRET-ORDER-2", "SECRET-SKU", 9)).refused(409, "sold_out");
    server.get("/SECRET-PATH").refused(404, "not_found");
    server.touch("/v1/audit").is(200);
    let metrics = crate::support::eventually("the gauges are fresh", std::time::Duration::from_secs(5), || {
        let metrics = server.get("/metrics");
        metrics.text().contains("holdfast_holds 1\n").then_some(metrics)
    });
    assert_eq!(metrics.status, 200);
    assert_eq!(metrics.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    let text = metrics.text();
    for line in [
        "holdfast_http_answers_total{route=\"holds\",status=\"201\"} 1",
        "holdfast_http_answers_total{route=\"holds\",status=\"409\"} 1",
        "holdfast_http_answers_total{route=\"stock\",status=\"201\"} 1",
        "holdfast_http_answers_total{route=\"other\",status=\"404\"} 1",
        "holdfast_http_request_duration_seconds_count{route=\"holds\"} 2",
        "holdfast_skus 1",
        "holdfast_ready 1",
        "holdfast_audit_drift 0",
        "holdfast_expired_holds_total 0",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line} is missing in\n{text}");
    }
    for name in ["holdfast_http_connections", "holdfast_clock_offset_milliseconds", "holdfast_lane_waiting_requests"] {
        assert!(text.lines().any(|l| l.starts_with(name)), "{name} is missing in\n{text}");
    }
    assert!(text.ends_with("# EOF\n") && !text.contains("SECRET"), "{text}");
}

#[test]
fn the_description_is_the_one_that_was_agreed() {
    let output = holdfast().arg("openapi").output().unwrap();
    assert!(output.status.success());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/openapi.json");
    let printed = String::from_utf8(output.stdout).unwrap();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some_and(|v| v == "1") {
        std::fs::write(file, &printed).unwrap();
    }
    let agreed = std::fs::read_to_string(file).unwrap_or_default();
    let differs = printed.lines().zip(agreed.lines()).enumerate().find(|(_, (new, old))| new != old);
    assert!(printed == agreed, "UPDATE_SNAPSHOTS=1 writes {file} anew; the first difference is {differs:?}");

    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let served = shared().get("/openapi.json");
    assert_eq!(served.is(200), document, "the server serves what the verb prints");
    for (path, methods) in [
        ("/v1/stock/{sku}", "delete get put"),
        ("/v1/stock", "get"),
        ("/v1/stock/{sku}/adjust", "post"),
        ("/v1/stock/import", "post"),
        ("/v1/holds", "get post"),
        ("/v1/holds/{id}", "get patch"),
        ("/v1/holds/{id}/extend", "post"),
        ("/v1/holds/{id}/release", "post"),
        ("/v1/holds/{id}/confirm", "post"),
        ("/v1/orders/{order_id}", "get"),
        ("/v1/orders/{order_id}/returns", "post"),
        ("/v1/ledger", "get"),
        ("/v1/audit", "get post"),
        ("/v1/payments", "get"),
        ("/v1/refunds", "get"),
        ("/healthz", "get"),
        ("/readyz", "get"),
        ("/metrics", "get"),
    ] {
        let mut described: Vec<_> = document["paths"][path].as_object().unwrap().keys().cloned().collect();
        described.sort();
        assert_eq!(described.join(" "), methods, "{path}");
    }
}

#[test]
fn the_docs_are_pages() {
    let server = shared();
    let docs = server.get("/docs");
    let docs = if docs.status == 303 { server.get(docs.header("location").unwrap()) } else { docs };
    assert_eq!(docs.status, 200);
    assert!(docs.header("content-type").is_some_and(|t| t.starts_with("text/html")));
    assert!(docs.text().to_lowercase().contains("swagger"), "{}", docs.text());
}

#[test]
fn request_ids_are_sent_back() {
    let server = shared();
    let with = |id: &str| Call::new("GET", "/healthz").header("x-request-id", id).to(&server);
    assert_eq!(with("abc-123").header("x-request-id"), Some("abc-123"));
    let fresh = |answer: &crate::support::Answer| answer.header("x-request-id").unwrap().to_owned();
    let (one, two) = (fresh(&server.get("/healthz")), fresh(&server.get("/v1/nowhere")));
    assert_ne!(one, two);
    assert!(one.len() >= 8);
    for odd in ["x".repeat(129), "a b".to_owned(), "\u{e9}".to_owned(), "a\tb".to_owned()] {
        assert_ne!(fresh(&with(&odd)), odd);
    }
}
