//! A cluster of three primaries with a replica each.

use super::super::map::slot_of_part;
use super::super::{Net, NetError};
use super::starter::{Cluster, Server, cli, wait_for};
use super::{LONGEST, bump, cmd, config, count, key, until};
use crate::clock::monotonic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

const PARTS: u32 = 32;

async fn net(cluster: &Cluster) -> Net {
    Net::connect(config(&cluster.url()), PARTS).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_spread_and_found() {
    let cluster = Cluster::start();
    let net = net(&cluster).await;
    let mut identities = std::collections::BTreeSet::new();
    for part in 0..PARTS {
        let id = net.server(part).await.unwrap();
        assert_eq!(bump(&net, part, Some(&id)).await, Ok(1));
        identities.insert(id);
        let said: u16 = cluster.0[0].cli(&format!("CLUSTER KEYSLOT hf:{{p{part}}}:n")).parse().unwrap();
        assert_eq!(said, slot_of_part(part));
    }
    assert_eq!(identities.len(), 3);
    for (replicas_too, count) in [(false, 3), (true, 6)] {
        // A replica is told of once word has gone round that it has something.
        let told = || async {
            let all = net.run_on_all(&cmd("PING"), replicas_too).await;
            if all.len() == count { Ok(all) } else { Err(NetError::Unavailable(format!("{all:?}"))) }
        };
        let all = until(20, told).await;
        assert!(all.iter().all(|(_, answer)| answer.is_ok()), "{all:?}");
    }
    let wrong = Net::connect(config(&cluster.0[0].url()), 1).await.unwrap_err();
    assert!(wrong.to_string().contains("redis+cluster://"), "{wrong}");
    let single = Server::start(&[]);
    let wrong = format!("redis+cluster://127.0.0.1:{}", single.port);
    let wrong = Net::connect(config(&wrong), 1).await.unwrap_err();
    assert!(wrong.to_string().contains("redis://"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_by_hand_is_another_server() {
    let cluster = Cluster::start();
    let net = net(&cluster).await;
    let before = net.server(5).await.unwrap();
    bump(&net, 5, Some(&before)).await.unwrap();
    let old = cluster.of(&before);
    let new = cluster.replica_of(old);
    cluster.promote(new);
    wait_for("demoted", || cluster.0[old].field("role") == "slave");
    let Err(NetError::Changed(after)) = bump(&net, 5, Some(&before)).await else { panic!("not noticed") };
    assert_eq!(cluster.of(&after), new);
    assert_eq!(count(&net, 5).await, 1, "nothing was run");
    // Back again: the first process with its old connection still open, and another history.
    cluster.promote(old);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let Err(NetError::Changed(again)) = bump(&net, 5, Some(&before)).await else { panic!("not noticed") };
    assert!(again != before && again != after);
    assert_eq!(bump(&net, 5, Some(&again)).await, Ok(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_successor_of_a_dead_or_silent_primary_is_found() {
    let mut cluster = Cluster::start();
    let net = net(&cluster).await;
    for (part, is_killed) in [(5, true), (6, false)] {
        let before = net.server(part).await.unwrap();
        let n = bump(&net, part, Some(&before)).await.unwrap();
        assert_eq!(net.wait(part, Some(&before), 1, Duration::from_millis(100)).await.map(|n| n.min(1)), Ok(1));
        let old = cluster.of(&before);
        if is_killed {
            cluster.0[old].kill();
        } else {
            cluster.0[old].signal("-STOP");
        }
        let start = monotonic();
        let after = loop {
            let one = monotonic();
            match bump(&net, part, Some(&before)).await {
                Err(NetError::Changed(after)) => break after,
                Err(NetError::Unavailable(_) | NetError::Unknown(_)) => {}
                odd => panic!("{odd:?}"),
            }
            assert!(one.elapsed() < LONGEST, "{:?}", one.elapsed());
            assert!(start.elapsed() < Duration::from_secs(15), "no successor");
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        assert_ne!(cluster.of(&after), old);
        assert_eq!(until(3, || bump(&net, part, Some(&after))).await, n + 1, "nothing was run meanwhile");
        if is_killed {
            cluster.0[old].go();
        } else {
            cluster.0[old].signal("-CONT");
        }
        wait_for("demoted", || cluster.0[old].field("master_link_status") == "up");
        assert_eq!(bump(&net, part, Some(&after)).await, Ok(n + 2), "the old one is not believed");
    }
}

/// Counts what was answered and what may have been done.
async fn load(net: Net, part: u32, is_expecting: bool, end: Arc<AtomicBool>) -> (i64, i64, Vec<NetError>) {
    let (mut done, mut unknown, mut errors) = (0, 0, Vec::new());
    let mut expected = net.server(part).await.unwrap();
    while !end.load(Ordering::Relaxed) {
        match bump(&net, part, is_expecting.then_some(expected.as_str())).await {
            Ok(_) => done += 1,
            Err(NetError::Changed(to)) => expected = to,
            Err(error) => {
                unknown += i64::from(matches!(error, NetError::Unknown(_)));
                errors.push(error);
            }
        }
    }
    (done, unknown, errors)
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_exact_while_a_slot_moves() {
    let cluster = Cluster::start();
    let net = net(&cluster).await;
    let (expecting, free) = (3, 4);
    let end = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..8)
        .map(|n| tokio::spawn(load(net.clone(), if n % 2 == 0 { expecting } else { free }, n % 2 == 0, end.clone())))
        .collect();
    let run = |words: &str| cli(&words.split(' ').collect::<Vec<_>>());
    let moves = AtomicI64::new(0);
    for round in 0..2 {
        for part in [expecting, free] {
            let from = cluster.of(&net.server(part).await.unwrap());
            let to = cluster.of(&net.server((0..PARTS).find(|p| p % 7 == round + 1).unwrap()).await.unwrap());
            if from == to {
                continue;
            }
            let (slot, source, target) = (slot_of_part(part), cluster.id(from), cluster.id(to));
            let at = |server: usize, words: String| cluster.0[server].cli(&words);
            at(to, format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
            at(from, format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
            tokio::time::sleep(Duration::from_millis(150)).await;
            let key = String::from_utf8(key(part, "n")).unwrap();
            let port = cluster.0[to].port;
            at(from, format!("MIGRATE 127.0.0.1 {port} {key} 0 1000"));
            tokio::time::sleep(Duration::from_millis(400)).await;
            at(to, format!("CLUSTER SETSLOT {slot} NODE {target}"));
            at(from, format!("CLUSTER SETSLOT {slot} NODE {target}"));
            tokio::time::sleep(Duration::from_millis(300)).await;
            moves.fetch_add(1, Ordering::Relaxed);
        }
    }
    // And as an operator would: a hundred slots, wherever they are.
    let ids: Vec<_> = (0..6).filter(|n| cluster.0[*n].field("role") == "master").map(|n| cluster.id(n)).collect();
    let said = run(&format!(
        "--cluster reshard 127.0.0.1:{} --cluster-from {} --cluster-to {} --cluster-slots 100 --cluster-yes",
        cluster.0[0].port, ids[0], ids[1]
    ));
    assert!(said.contains("Moving slot"), "{said}");
    end.store(true, Ordering::Relaxed);
    let mut sums = [(0, 0); 2];
    for (n, task) in tasks.into_iter().enumerate() {
        let (done, unknown, errors) = task.await.unwrap();
        assert!(errors.iter().all(|e| matches!(e, NetError::Unavailable(_) | NetError::Unknown(_))), "{errors:?}");
        sums[n % 2].0 += done;
        sums[n % 2].1 += unknown;
    }
    for (part, (done, unknown)) in [expecting, free].into_iter().zip(sums) {
        let counted = count(&net, part).await;
        assert!(
            done > 100 && (done..=done + unknown).contains(&counted),
            "{counted}, not {done} and perhaps {unknown}"
        );
    }
    assert!(moves.into_inner() > 0);
}
