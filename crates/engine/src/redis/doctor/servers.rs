//! The servers: what they run, what they keep, and who would take over.

use super::super::net::{Net, NetError};
use super::super::recover::text;
use super::super::{Durability, RedisConfig};
use crate::doctor::Finding;
use redis::Value;
use std::collections::BTreeSet;

type Told = (String, Result<String, NetError>);

pub(super) async fn look(net: &Net, config: &RedisConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    let servers = ask(net, &["INFO", "server"]).await;
    findings.extend(servers.iter().map(version));
    for (name, judge) in [
        ("appendonly", appendonly as fn(&str, Durability) -> Finding),
        ("appendfsync", appendfsync),
        ("maxmemory-policy", eviction),
        ("maxmemory", maxmemory),
    ] {
        findings.push(setting(name, &ask(net, &["CONFIG", "GET", name]).await, config.durability, judge));
    }
    let replication = ask(net, &["INFO", "replication"]).await;
    findings.extend(replication.iter().map(|told| replicas(told, config)));
    if config.is_cluster() {
        findings.extend(ask(net, &["CLUSTER", "INFO"]).await.iter().map(cluster));
    }
    findings
}

/// What each primary says to a command, as text; of a setting, its value.
async fn ask(net: &Net, words: &[&str]) -> Vec<Told> {
    let mut cmd = redis::cmd(words[0]);
    words[1..].iter().for_each(|word| {
        cmd.arg(*word);
    });
    let read = |value: Value| match &value {
        Value::Array(pair) => pair.get(1).and_then(text),
        Value::Map(pairs) => pairs.first().and_then(|(_, value)| text(value)),
        other => text(other),
    };
    let told = net.run_on_all(&cmd, false).await;
    told.into_iter().map(|(at, value)| (at, value.map(|value| read(value).unwrap_or_default()))).collect()
}

/// A line of INFO.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn number(info: &str, name: &str) -> u64 {
    field(info, name).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn version((at, told): &Told) -> Finding {
    let name = "redis reachable";
    let info = match told {
        Ok(info) => info,
        Err(why) => return Finding::problem(name, format!("{at}: {why}"), "is this server up?"),
    };
    match (field(info, "valkey_version"), field(info, "redis_version")) {
        (Some(version), _) => Finding::ok(name, format!("{at}: Valkey {version}")),
        (None, Some(version)) => {
            let major: u32 = version.split('.').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            if major >= 6 {
                return Finding::ok(name, format!("{at}: Redis {version}"));
            }
            Finding::problem(name, format!("{at}: Redis {version}"), "run Redis 6 or newer, or Valkey")
        }
        (None, None) => Finding::warning(name, format!("{at} tells no version"), "is this Redis or Valkey?"),
    }
}

/// A setting on all servers: the worst of them is told.
fn setting(name: &str, told: &[Told], durability: Durability, judge: fn(&str, Durability) -> Finding) -> Finding {
    let hidden = |why: &NetError| {
        Finding::warning(
            name,
            format!("cannot be read: {why}"),
            "allow CONFIG GET, or look at what the provider has set",
        )
    };
    let each = told.iter().map(|(at, value)| match value {
        Ok(value) if value.is_empty() => {
            Finding::warning(name, format!("{at} does not tell it"), "look at what is set")
        }
        Ok(value) => {
            let found = judge(value, durability);
            if told.len() > 1 && !found.advice.is_empty() {
                return Finding { told: format!("{at}: {}", found.told), ..found };
            }
            found
        }
        Err(why) => hidden(why),
    });
    each.max_by_key(|finding| finding.level).unwrap_or_else(|| Finding::ok(name, "nobody to ask"))
}

fn appendonly(value: &str, durability: Durability) -> Finding {
    let name = "appendonly";
    match (value, durability) {
        ("yes", _) => Finding::ok(name, value),
        (_, Durability::Aof) => Finding::problem(
            name,
            format!("{value}, and the durability is aof"),
            "set appendonly yes and appendfsync always, or choose another durability",
        ),
        (_, Durability::Ledger) => Finding::ok(name, format!("{value}; with durability ledger, nothing hangs on it")),
        (_, Durability::Memory | Durability::Replicated) => Finding::warning(
            name,
            format!("{value}, and the durability is {durability}"),
            "set appendonly yes, so that a Redis that is restarted still knows holds that the ledger does not have",
        ),
    }
}

fn appendfsync(value: &str, durability: Durability) -> Finding {
    let name = "appendfsync";
    match (value, durability) {
        ("always", _) | (_, Durability::Ledger) => Finding::ok(name, value),
        (_, Durability::Aof) => Finding::problem(
            name,
            format!("{value}, and the durability is aof"),
            "set appendfsync always, or choose another durability",
        ),
        (_, Durability::Memory | Durability::Replicated) => Finding::ok(
            name,
            format!("{value}: a machine that dies loses the holds of the last second that the ledger does not have"),
        ),
    }
}

fn eviction(value: &str, _: Durability) -> Finding {
    if value == "noeviction" {
        return Finding::ok("maxmemory-policy", value);
    }
    Finding::problem("maxmemory-policy", value, "set it to noeviction: any other forgets holds when Redis is full")
}

fn maxmemory(value: &str, _: Durability) -> Finding {
    if value == "0" {
        let advice = "set maxmemory below what the machine has, so that Redis refuses holds before the system kills it";
        return Finding::warning("maxmemory", "no limit", advice);
    }
    Finding::ok("maxmemory", format!("{value} bytes"))
}

fn replicas((at, told): &Told, config: &RedisConfig) -> Finding {
    let name = "replicas";
    let info = match told {
        Ok(info) => info,
        Err(why) => return Finding::problem(name, format!("{at}: {why}"), "is this server up?"),
    };
    let offset = number(info, "master_repl_offset");
    let online: Vec<&str> = info
        .lines()
        .filter(|line| line.strip_prefix("slave").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
        .filter(|line| line.contains("state=online"))
        .collect();
    let part = |line: &str, name: &str| {
        line.split([':', ',']).find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
    };
    let behind = online.iter().filter_map(|line| Some(offset.saturating_sub(part(line, "offset")?))).max();
    let silent = online.iter().filter_map(|line| part(line, "lag")).max().unwrap_or(0);
    let told = match behind {
        None => format!("{at}: none"),
        Some(behind) => format!("{at}: {} connected, {behind} bytes behind, heard {silent} s ago", online.len()),
    };
    let wanted = if config.durability == Durability::Replicated { config.replicas as usize } else { 0 };
    if online.len() < wanted {
        let advice =
            format!("{wanted} must have a hold before it is answered: no hold is answered until so many are connected");
        Finding::problem(name, told, advice)
    } else if online.is_empty() && config.is_cluster() {
        Finding::warning(name, told, "give every primary a replica: without it, its partitions stop when it dies")
    } else if silent > 10 {
        Finding::warning(name, told, "look at the network between the servers")
    } else {
        Finding::ok(name, told)
    }
}

fn cluster((at, told): &Told) -> Finding {
    let name = "cluster";
    let info = match told {
        Ok(info) => info,
        Err(why) => return Finding::problem(name, format!("{at}: {why}"), "is this server up?"),
    };
    let state = field(info, "cluster_state").unwrap_or("unknown");
    let (assigned, failing) = (number(info, "cluster_slots_assigned"), number(info, "cluster_slots_fail"));
    let told = format!("{at}: state {state}, {assigned} of 16384 slots assigned, {failing} failing");
    let is_good: BTreeSet<bool> = [state == "ok", assigned == 16_384, failing == 0].into();
    if is_good.contains(&false) {
        return Finding::problem(name, told, "`redis-cli --cluster check` tells which slots; `--cluster fix` repairs");
    }
    Finding::ok(name, told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqlConfig;
    use crate::doctor::Level;

    const INFO: &str = "# Replication\r\nrole:master\r\nconnected_slaves:1\r\n\
        slave0:ip=10.0.0.2,port=6379,state=online,offset=90,lag=1\r\nmaster_repl_offset:100\r\n";

    #[test]
    fn settings_are_judged_by_what_was_promised() {
        for (durability, appendonly_no, everysec) in [
            (Durability::Memory, Level::Warning, Level::Ok),
            (Durability::Aof, Level::Problem, Level::Problem),
            (Durability::Replicated, Level::Warning, Level::Ok),
            (Durability::Ledger, Level::Ok, Level::Ok),
        ] {
            assert_eq!(appendonly("no", durability).level, appendonly_no, "{durability}");
            assert_eq!(appendfsync("everysec", durability).level, everysec, "{durability}");
            assert_eq!(appendonly("yes", durability).level.max(appendfsync("always", durability).level), Level::Ok);
        }
        assert_eq!(eviction("allkeys-lru", Durability::Memory).level, Level::Problem);
        let told = vec![("a".to_owned(), Ok("noeviction".to_owned())), ("b".to_owned(), Ok("volatile-ttl".to_owned()))];
        let worst = setting("maxmemory-policy", &told, Durability::Memory, eviction);
        assert!(worst.level == Level::Problem && worst.told.starts_with("b: "), "{worst:?}");
    }

    #[test]
    fn replicas_are_counted_and_compared_with_what_is_wanted() {
        let config = RedisConfig {
            durability: Durability::Replicated,
            replicas: 2,
            ..RedisConfig::new("redis://h", SqlConfig::new("postgres://h/d"))
        };
        let found = replicas(&("h:1".into(), Ok(INFO.into())), &config);
        assert_eq!(found.level, Level::Problem);
        assert_eq!(found.told, "h:1: 1 connected, 10 bytes behind, heard 1 s ago");
        let one = RedisConfig { replicas: 1, ..config };
        assert_eq!(replicas(&("h:1".into(), Ok(INFO.into())), &one).level, Level::Ok);
    }

    #[test]
    fn a_cluster_that_lost_slots_is_a_problem() {
        let info = |state: &str, assigned: u32| {
            let text =
                format!("cluster_state:{state}\r\ncluster_slots_assigned:{assigned}\r\ncluster_slots_fail:0\r\n");
            cluster(&("h:1".into(), Ok(text))).level
        };
        assert_eq!(
            [info("ok", 16_384), info("ok", 16_000), info("fail", 16_384)],
            [Level::Ok, Level::Problem, Level::Problem]
        );
    }
}
