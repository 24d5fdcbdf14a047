//! The connections against real servers.

mod cluster;
mod single;
mod starter;
mod tls;
mod url;

use super::{Net, NetConfig, NetError, Script};
use redis::{Cmd, Value};
use std::time::Duration;

fn config(url: &str) -> NetConfig {
    let config = NetConfig::parse(url).unwrap();
    NetConfig { timeout: Duration::from_millis(800), connect_timeout: Duration::from_millis(600), ..config }
}

/// More than any call may take with this configuration.
const LONGEST: Duration = Duration::from_millis(1_900);

fn cmd(text: &str) -> Cmd {
    let mut words = text.split(' ');
    let mut cmd = redis::cmd(words.next().unwrap());
    for word in words {
        cmd.arg(word);
    }
    cmd
}

fn key(part: u32, name: &str) -> Vec<u8> {
    format!("hf:{{p{part}}}:{name}").into_bytes()
}

fn incr() -> Script {
    Script::new("incr", "return redis.call('INCR', KEYS[1])")
}

async fn bump(net: &Net, part: u32, expected: Option<&str>) -> Result<i64, NetError> {
    match net.eval(part, expected, &incr(), &[key(part, "n")], &[]).await? {
        Value::Int(n) => Ok(n),
        odd => panic!("{odd:?}"),
    }
}

async fn count(net: &Net, part: u32) -> i64 {
    let mut get = redis::cmd("GET");
    get.arg(key(part, "n"));
    match net.run(part, None, &get).await.unwrap() {
        Value::BulkString(text) => String::from_utf8(text).unwrap().parse().unwrap(),
        Value::Nil => 0,
        odd => panic!("{odd:?}"),
    }
}

/// Asks until it goes well, for so long.
async fn until<T, F: Future<Output = Result<T, NetError>>>(seconds: u64, mut ask: impl FnMut() -> F) -> T {
    let mut last = None;
    for _ in 0..seconds * 20 {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within {seconds} s: {last:?}")
}
