//! Flags, variables, the file; what keeps the server from starting.

use crate::support::{Server, cart, holdfast, millis, refused_start};
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use tempfile::{TempDir, tempdir};

fn with_file(folder: &TempDir, text: &str) -> String {
    let file = folder.path().join("holdfast.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn default_ttl(command: Command, folder: &Arc<TempDir>, flags: &[&str]) -> u64 {
    let server = Server::with_command(command, folder, flags);
    server.put("/v1/stock/A", &json!({"total": 99}));
    let hold = server.post("/v1/holds", &cart(&format!("o-{}", server.port), "A", 1)).is(201);
    (millis(&hold["expires_at"]) - millis(&hold["created_at"])) / 1000
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let folder = Arc::new(tempdir().unwrap());
    let file = with_file(&folder, "default_hold_ttl = 111\nmax_hold_ttl = 700\naudit_interval = 0\n");
    let variable = || {
        let mut command = holdfast();
        command.env("HOLDFAST_DEFAULT_HOLD_TTL", "222");
        command
    };
    assert_eq!(default_ttl(holdfast(), &folder, &[]), 600);
    assert_eq!(default_ttl(holdfast(), &folder, &["--config", &file]), 111);
    assert_eq!(default_ttl(variable(), &folder, &["--config", &file]), 222);
    assert_eq!(default_ttl(variable(), &folder, &["--config", &file, "--default-hold-ttl", "333"]), 333);
}

#[test]
fn each_flag_has_its_variable_and_its_key() {
    let folder = Arc::new(tempdir().unwrap());
    let data = folder.path().join("by variable");
    let mut command = holdfast();
    command
        .arg("serve")
        .env("HOLDFAST_LISTEN", "localhost:0")
        .env("HOLDFAST_DATA_DIR", &data)
        .env("HOLDFAST_ENGINE", "embedded");
    command
        .env("HOLDFAST_MAX_HOLD_TTL", "50")
        .env("HOLDFAST_DEFAULT_HOLD_TTL", "50")
        .env("HOLDFAST_MAX_HOLD_LIFETIME", "60");
    command.env("HOLDFAST_AUDIT_INTERVAL", "9").env("HOLDFAST_LOG", "debug").env("HOLDFAST_LOG_FORMAT", "text");
    let mut server = Server::spawn(command).unwrap_or_else(|(_, log)| panic!("{log}"));
    server.stock("A", 1);
    server
        .post("/v1/holds", &json!({"order_id": "o", "items": [], "ttl_seconds": 51}))
        .invalid(&["/items", "/ttl_seconds"]);
    server.signal(rustix::process::Signal::TERM);
    let (status, log) = server.wait(std::time::Duration::from_secs(30));
    assert_eq!(status.code(), Some(0));
    assert!(data.join("holdfast.db").exists());
    assert!(log.contains("DEBUG") && !log.contains("\"level\""), "text, and every request: {log}");

    let text = format!("listen = \"127.0.0.1:0\"\nengine = \"embedded\"\ndata_dir = {:?}\nmax_hold_ttl = 50\ndefault_hold_ttl = 9
        max_hold_lifetime = 90\nlane_depth = 10\nmax_batch = 5\nmax_connections = 9\nunmatched_grace = 3\nreverse_unmatched = true
        release_on_canceled = true\nrestock_on_refund = false\naudit_interval = 1\n", folder.path().join("by file"));
    let file = with_file(&folder, &text);
    let mut command = holdfast();
    command.arg("serve").env("HOLDFAST_CONFIG", &file).current_dir(folder.path());
    let server = Server::spawn(command).unwrap_or_else(|(_, log)| panic!("{log}"));
    server.stock("A", 1);
    assert!(folder.path().join("by file/holdfast.db").exists());
}

#[test]
fn what_the_file_may_not_say() {
    let folder = tempdir().unwrap();
    for (text, what) in [
        ("listen = \"127.0.0.1:0\"\n\nlisen = \"x\"\n", ["line 3", "lisen"]),
        ("default_hold_ttl = \"600\"\n", ["line 1", "600"]),
        ("max_hold_ttl = 1.5\n", ["line 1", "1.5"]),
        ("audit_interval = -1\n", ["line 1", "-1"]),
        ("listen = \"127.0.0.1:0\"\nlisten = \"127.0.0.1:0\"\n", ["line 2", "duplicate"]),
        ("listen = 127.0.0.1\n", ["line 1", "listen"]),
        ("\n[server]\nlisten = \"127.0.0.1:0\"\n", ["line 2", "server"]),
        ("default_hold_ttl = 0\n", ["default_hold_ttl", "1 to max_hold_ttl"]),
        ("default_hold_ttl = 700\nmax_hold_ttl = 650\n", ["default_hold_ttl", "1 to max_hold_ttl"]),
        ("max_hold_ttl = 0\n", ["max_hold_ttl", "604800"]),
        ("max_hold_ttl = 604801\n", ["max_hold_ttl", "604800"]),
        ("max_hold_lifetime = 3599\n", ["max_hold_lifetime", "at least max_hold_ttl"]),
        ("lane_depth = 0\n", ["lane_depth", "from 1"]),
        ("max_batch = 0\n", ["max_batch", "from 1"]),
        ("max_connections = 0\n", ["max_connections", "from 1 to 1000000"]),
        ("max_connections = 2305843009213693952\n", ["max_connections", "from 1 to 1000000"]),
    ] {
        let file = with_file(&folder, text);
        let (code, log) =
            refused_start(&folder.path().join("data"), &["--listen", "127.0.0.1:0", "--config", &file], &[]);
        assert_eq!(code, Some(2), "{text}: {log}");
        assert!(what.iter().all(|w| log.contains(w)), "{text}: {log}");
    }
    assert!(!folder.path().join("data").exists(), "nothing was made");
    let (code, log) = refused_start(folder.path(), &["--config", "nowhere.toml"], &[]);
    assert_eq!(code, Some(2));
    assert!(log.contains("cannot read nowhere.toml"), "{log}");
}

#[test]
fn what_the_flags_may_not_say() {
    let folder = tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (flags, what) in [
        (["--listen", "127.0.0.1"], "HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "HOST:PORT"),
        (["--listen", "8080"], "HOST:PORT"),
        (["--listen", ""], "HOST:PORT"),
        (["--listen", "no such host:80"], "HOST:PORT"),
        (["--listen", &taken], "cannot listen on"),
        (["--engine", "sqlite"], "embedded"),
        (["--engine", ""], "embedded"),
        (["--engine", "oracle://shop:hunter2@db/holdfast"], "embedded"),
        (["--default-hold-ttl", "-1"], "-1"),
        (["--default-hold-ttl", "ten"], "ten"),
        (["--max-hold-ttl", "4294967296"], "max-hold-ttl"),
        (["--log-format", "xml"], "json"),
        (["--log", "holdfast=loud"], "--log"),
        (["--lisen", "127.0.0.1:0"], "--listen"),
    ] {
        let mut all = flags.to_vec();
        if flags[0] != "--listen" {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        let (code, log) = refused_start(&folder.path().join("data"), &all, &[]);
        assert_eq!(code, Some(2), "{flags:?}: {log}");
        assert!(log.contains(what) && !log.contains("hunter2"), "{flags:?}: {log}");
    }
    let (code, log) = refused_start(
        &folder.path().join("data"),
        &["--listen", "127.0.0.1:0"],
        &[("HOLDFAST_ENGINE", "mysql://x:hunter2@h/d")],
    );
    assert_eq!(code, Some(2));
    assert!(!log.contains("hunter2"), "{log}");
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let (code, log) = refused_start(&file, &["--listen", "127.0.0.1:0"], &[]);
    assert_eq!(code, Some(2));
    assert!(log.contains("data folder") && log.contains("file"), "{log}");
}

#[test]
fn two_servers_never_share_a_folder() {
    let server = Server::fresh();
    server.stock("A", 5);
    let (code, log) = refused_start(&server.data_dir(), &["--listen", "127.0.0.1:0"], &[]);
    assert_eq!(code, Some(2));
    assert!(
        log.contains(server.data_dir().to_str().unwrap()) && log.lines().last().unwrap().starts_with("holdfast: "),
        "{log}"
    );
    server.hold(&cart("o", "A", 1));
    let (folder, _) = server.stop();
    assert_eq!(
        Server::with(&folder, &[]).counters("A"),
        (4, 1, 0),
        "the first one noticed nothing, and its end frees the folder"
    );
}
