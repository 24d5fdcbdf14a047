//! One server.

use super::super::{Net, NetConfig, NetError};
use super::starter::{Server, wait_for};
use super::{LONGEST, bump, cmd, config, count, incr, key, until};
use crate::clock::monotonic;
use redis::Value;
use std::time::Duration;

async fn net(server: &Server) -> Net {
    Net::connect(config(&server.url()), 8).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_scripts_and_pipelines_are_answered() {
    let server = Server::start(&[]);
    let net = net(&server).await;
    let id = net.server(3).await.unwrap();
    assert_eq!(id, format!("{}:{}", server.field("run_id"), server.field("master_replid")));
    assert_eq!(bump(&net, 3, Some(&id)).await, Ok(1));
    server.cli("SCRIPT FLUSH");
    assert_eq!(bump(&net, 3, Some(&id)).await, Ok(2), "healed");
    assert_eq!(server.cli(&format!("SCRIPT EXISTS {}", incr().sha1())), "1");
    assert_eq!(net.run(3, None, &cmd("SET a 1")).await, Ok(Value::Okay));
    let wrong = net.run(3, None, &cmd("LPUSH a 1")).await;
    assert!(matches!(&wrong, Err(NetError::Command(why)) if why.starts_with("WRONGTYPE")), "{wrong:?}");
    assert_eq!(net.run(3, None, &cmd("GET a")).await, Ok(Value::BulkString(b"1".to_vec())));
    assert!(matches!(net.run(8, None, &cmd("PING")).await, Err(NetError::Command(_))), "no such partition");
    let half = super::Script::new("half", "redis.call('SET', KEYS[1], 1) error('stop')");
    let broken = net.eval(3, None, &half, &[key(3, "half")], &[]).await;
    assert!(matches!(&broken, Err(NetError::Command(why)) if why.contains("stop")), "{broken:?}");
    let all = net.run_on_all(&cmd("PING"), true).await;
    assert_eq!(all, [(format!("127.0.0.1:{}", server.port), Ok(Value::SimpleString("PONG".into())))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_another_server() {
    let mut server = Server::start(&[]);
    let net = net(&server).await;
    let before = net.server(0).await.unwrap();
    server.kill();
    let down = bump(&net, 0, Some(&before)).await;
    assert!(matches!(down, Err(NetError::Unavailable(_) | NetError::Unknown(_))), "{down:?}");
    server.go();
    tokio::time::sleep(Duration::from_millis(60)).await;
    let Err(NetError::Changed(after)) = bump(&net, 0, Some(&before)).await else { panic!("not noticed") };
    assert_ne!(before, after);
    assert_eq!((count(&net, 0).await, net.server(0).await), (0, Ok(after.clone())), "nothing was run");
    assert_eq!(bump(&net, 0, Some(&after)).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_server_is_left_and_comes_back_as_another() {
    let fast = ["--repl-diskless-sync-delay", "0"];
    let (server, other) = (Server::start(&fast), Server::start(&fast));
    let net = net(&server).await;
    let before = net.server(0).await.unwrap();
    server.cli(&format!("REPLICAOF 127.0.0.1 {}", other.port));
    let start = monotonic();
    let demoted = bump(&net, 0, Some(&before)).await;
    assert!(matches!(demoted, Err(NetError::Unavailable(_) | NetError::Changed(_))), "{demoted:?}");
    assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
    wait_for("in step", || server.field("master_link_status") == "up");
    let its_primary = Net::connect(config(&other.url()), 1).await.unwrap();
    let both = || async {
        let all = its_primary.run_on_all(&cmd("PING"), true).await;
        if all.len() == 2 { Ok(()) } else { Err(NetError::Unavailable(format!("{all:?}"))) }
    };
    until(5, both).await;
    server.cli("REPLICAOF NO ONE");
    let after = until(5, || net.server(0)).await;
    assert_ne!(before, after, "the same process with another history");
    assert_eq!(bump(&net, 0, Some(&before)).await, Err(NetError::Changed(after.clone())));
    // Down and up again without a call in between: only asking can tell, and what was asked is believed for a moment.
    server.cli(&format!("REPLICAOF 127.0.0.1 {}", other.port));
    wait_for("in step", || server.field("master_link_status") == "up");
    server.cli("REPLICAOF NO ONE");
    let told = net.wait(0, Some(&after), 1, Duration::from_millis(1)).await;
    assert!(matches!(told, Err(NetError::Changed(_))), "a wait is never deceived: {told:?}");
    assert!(matches!(bump(&net, 0, Some(&after)).await, Err(NetError::Changed(_))));
    assert_eq!(count(&net, 0).await, 0, "nothing was run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_told_in_time_and_serves_again() {
    let server = Server::start(&[]);
    let net = net(&server).await;
    let id = net.server(0).await.unwrap();
    let mut sent = 0;
    for pause in [0, 150] {
        bump(&net, 0, None).await.unwrap();
        sent += 1;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        server.signal("-STOP");
        let start = monotonic();
        let silent = bump(&net, 0, Some(&id)).await;
        assert!(matches!(silent, Err(NetError::Unavailable(_) | NetError::Unknown(_))), "{silent:?}");
        sent += i64::from(matches!(silent, Err(NetError::Unknown(_))));
        let again = bump(&net, 0, Some(&id)).await;
        assert!(matches!(again, Err(NetError::Unavailable(_))), "{again:?}");
        assert!(start.elapsed() < LONGEST + LONGEST, "{:?}", start.elapsed());
        server.signal("-CONT");
        assert_eq!(until(5, || net.server(0)).await, id, "the same process");
    }
    assert_eq!(bump(&net, 0, Some(&id)).await, Ok(sent + 1), "what was unavailable was not done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loading_server_is_unavailable_at_once() {
    let mut options = vec!["--enable-debug-command", "yes", "--key-load-delay", "3000", "--rdbcompression", "no"];
    options.extend(["--loading-process-events-interval-bytes", "1024"]);
    let server = Server::start(&options);
    server.cli("DEBUG POPULATE 2000 k 100");
    let net = net(&server).await;
    let id = net.server(0).await.unwrap();
    let port = server.port.to_string();
    let reload = std::thread::spawn(move || super::starter::cli(&["-p", &port, "DEBUG", "RELOAD"]));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let start = monotonic();
    let loading = bump(&net, 0, Some(&id)).await;
    assert!(
        matches!(&loading, Err(NetError::Unavailable(why)) if why.to_lowercase().contains("loading")),
        "{loading:?}"
    );
    assert!(start.elapsed() < LONGEST, "{:?}", start.elapsed());
    assert_eq!(until(20, || net.server(0)).await, id);
    reload.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_takes_nothing_and_says_so() {
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let net = net(&server).await;
    bump(&net, 0, None).await.unwrap();
    server.cli("CONFIG SET maxmemory 1");
    let full = bump(&net, 0, None).await;
    assert!(matches!(&full, Err(NetError::Unavailable(why)) if why.contains("OOM")), "{full:?}");
    assert_eq!(count(&net, 0).await, 1, "reads go on");
    server.cli("CONFIG SET maxmemory 0");
    server.cli("CONFIG SET min-replicas-to-write 1");
    let alone = bump(&net, 0, None).await;
    assert!(matches!(&alone, Err(NetError::Unavailable(why)) if why.contains("NOREPLICAS")), "{alone:?}");
    server.cli("CONFIG SET min-replicas-to-write 0");
    assert_eq!(bump(&net, 0, None).await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_login_is_told_without_it() {
    let server = Server::start(&["--requirepass", "right-one"]);
    let url = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port);
    for login in ["", ":wrong-one@", "default:wrong-one@", "nobody:wrong-one@"] {
        let error = Net::connect(config(&url(login)), 1).await.unwrap_err();
        let text = format!("{error} {error:?} {:?}", NetConfig::parse(&url(login)).unwrap());
        assert!(matches!(error, NetError::Unavailable(_)) && !text.contains("-one"), "{text}");
    }
    let net = Net::connect(config(&url(":right-one@")), 1).await.unwrap();
    assert_eq!(bump(&net, 0, None).await, Ok(1));
    assert!(!format!("{net:?}").contains("-one"));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_shares_one_connection_and_may_go_away() {
    let server = Server::start(&[]);
    let net = net(&server).await;
    let before: u64 = server.field("total_connections_received").parse().unwrap();
    let callers = (0..500).map(|_| async { bump(&net, 0, None).await.unwrap() });
    let mut counts = futures_util::future::join_all(callers).await;
    counts.sort_unstable();
    assert!(counts.into_iter().eq(1..=500));
    for n in 0..2_000_u64 {
        let _ = tokio::time::timeout(Duration::from_micros(n % 300), bump(&net, 0, None)).await;
    }
    let last = bump(&net, 0, None).await.unwrap();
    assert!(last > 500 && last == count(&net, 0).await, "{last}");
    let after: u64 = server.field("total_connections_received").parse().unwrap();
    assert!(after <= before + 2, "{} more connections", after - before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_not_stormed() {
    let mut server = Server::start(&[]);
    let net = net(&server).await;
    server.kill();
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", server.port)).await.unwrap();
    let tried = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = tried.clone();
    let door = tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let start = monotonic();
    let caller = || async {
        while start.elapsed() < Duration::from_millis(500) {
            let down = bump(&net, 0, None).await;
            assert!(matches!(down, Err(NetError::Unavailable(_) | NetError::Unknown(_))), "{down:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    futures_util::future::join_all((0..200).map(|_| caller())).await;
    let tried = tried.load(std::sync::atomic::Ordering::Relaxed);
    assert!((1..=12).contains(&tried), "{tried} attempts in {:?}", start.elapsed());
    door.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_counted_and_waited_for_together() {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::start(&["--replicaof", &format!("127.0.0.1 {}", primary.port)]);
    wait_for("in step", || replica.field("master_link_status") == "up");
    let net = net(&primary).await;
    let id = net.server(0).await.unwrap();
    bump(&net, 0, None).await.unwrap();
    let time = Duration::from_millis(100);
    assert_eq!(
        until(3, || async {
            let count = net.wait(0, Some(&id), 1, time).await?;
            if count == 1 { Ok(count) } else { Err(NetError::Unavailable(format!("{count}"))) }
        })
        .await,
        1
    );
    replica.signal("-STOP");
    bump(&net, 0, None).await.unwrap();
    let start = monotonic();
    let waits = (0..50).map(|_| net.wait(0, Some(&id), 1, time));
    let counts = futures_util::future::join_all(waits).await;
    assert!(counts.iter().all(|count| *count == Ok(0)), "{counts:?}");
    assert!(start.elapsed() < Duration::from_millis(400), "{:?} for 50 waits", start.elapsed());
    // A new connection has written nothing; what the old one wrote is not with the replica either.
    primary.cli("CLIENT KILL TYPE normal SKIPME yes");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(net.wait(0, Some(&id), 1, time).await, Ok(0));
    replica.signal("-CONT");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(net.wait(0, Some(&id), 1, time).await, Ok(1));
}
