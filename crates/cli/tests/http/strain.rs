//! A full lane, a full disk.

use crate::support::{Call, Connection, Server, cart, eventually, holdfast};
use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::json;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::tempdir;

#[test]
fn a_full_lane_refuses_at_once_and_nothing_is_half_done() {
    let folder = Arc::new(tempdir().unwrap());
    let file = folder.path().join("small.toml");
    std::fs::write(&file, "lane_depth = 1\nmax_batch = 1\n").unwrap();
    let server = Server::with(&folder, &["--config", file.to_str().unwrap()]);
    // The janitor may be in the lane.
    let made = || (server.put("/v1/stock/A", &json!({"total": 100_000})).status == 201).then_some(());
    eventually("there is room", Duration::from_secs(5), made);
    let counts = Mutex::new((0_u64, 0_u64));
    std::thread::scope(|scope| {
        for name in 0..16 {
            let (server, counts) = (&server, &counts);
            scope.spawn(move || {
                let mut connection = Connection::open(server.port);
                for n in 0..40 {
                    let answer =
                        connection.call(&Call::new("POST", "/v1/holds").json(&cart(&format!("o-{name}-{n}"), "A", 1)));
                    let mut counts = counts.lock().unwrap();
                    if answer.status == 503 {
                        answer.refused(503, "overloaded");
                        assert_eq!(answer.header("retry-after"), Some("1"));
                        counts.1 += 1;
                    } else {
                        answer.is(201);
                        counts.0 += 1;
                    }
                }
            });
        }
    });
    let (held, refused) = counts.into_inner().unwrap();
    assert!(refused > 0, "the lane was never full");
    assert_eq!(server.counters("A").1, held);
    let table: String = (0..500).map(|n| format!("S-{n},1\n")).collect();
    assert_eq!(
        server.import("", format!("sku,total\n{table}")).is(200)["created"],
        500,
        "an import waits for its place"
    );
}

#[test]
fn a_full_disk_is_told_and_heals() {
    let folder = Arc::new(tempdir().unwrap());
    let binary = holdfast();
    // No file may grow beyond a megabyte, until the limit is lifted from outside.
    let mut limited = Command::new("sh");
    limited.arg("-c").arg("trap '' XFSZ; ulimit -S -f 2048; exec \"$0\" \"$@\"").arg(binary.get_program());
    for (name, value) in binary.get_envs() {
        if value.is_none() {
            limited.env_remove(name);
        }
    }
    let server = Server::with_command(limited, &folder, &[]);
    server.stock("A", 1_000_000);
    let note = "x".repeat(8000);
    let ask = |n: u64| {
        server.post(
            "/v1/holds",
            &json!({"order_id": format!("o-{n}"), "items": [{"sku": "A", "quantity": 1}], "metadata": {"note": note}}),
        )
    };
    let mut held = 0;
    let failed = loop {
        let answer = ask(held);
        if answer.status != 201 {
            break answer;
        }
        held += 1;
        assert!(held < 10_000, "the disk never filled up");
    };
    // Either nothing was done, or the server cannot tell and says so.
    let code = failed.json()["code"].as_str().unwrap().to_owned();
    assert!(["engine_unavailable", "outcome_unknown"].contains(&code.as_str()), "{code}");
    failed.refused(503, &code);
    assert_eq!(failed.header("retry-after"), Some("1"));
    assert!(
        !failed.text().contains("SQL") && !failed.text().contains("disk I/O"),
        "causes are for logs: {}",
        failed.text()
    );
    let ready = server.get("/readyz");
    let detail = "the data folder cannot be written";
    let expected = json!({"status": "not_ready", "reason": "engine_unavailable", "detail": detail});
    assert_eq!((ready.status, ready.json()), (503, expected));
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.counters("A"), (1_000_000 - held, held, 0), "reading goes on, and sees what is durable");
    assert_eq!(server.get("/v1/holds?order_id=o-0").is(200)["items"][0]["status"], "held");

    let lifted = Rlimit { current: None, maximum: None };
    prlimit(Some(server.pid()), Resource::Fsize, lifted).unwrap();
    eventually("it heals", Duration::from_secs(10), || (ask(held).status < 300).then_some(()));
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(server.counters("A").1, held + 1);
    let log = server.stop().1;
    assert!(log.contains("\"ERROR\""), "the cause is in the log: {log}");
    let server = Server::with(&folder, &[]);
    assert_eq!(server.counters("A").1, held + 1);
}
