//! The yardstick: `redis-benchmark` with a hold script of the usual kind, on a `redis-server` of its own.
//!
//! The script is what many shops run: check the stock, take the units, write the reservation, let it expire. It is
//! quicker than it is right (at expiry its units are gone for good), which makes it a fair thing to be measured by.

use super::rows::grouped;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SCRIPT: &str = "\
if redis.call('EXISTS', KEYS[2]) == 1 then return 2 end
local stock = tonumber(redis.call('GET', KEYS[1]) or '0')
local units = tonumber(ARGV[1])
if stock < units then return 0 end
redis.call('DECRBY', KEYS[1], units)
redis.call('HSET', KEYS[2], 'quantity', units, 'status', 'held')
redis.call('EXPIRE', KEYS[2], ARGV[2])
return 1";

const REQUESTS: &str = "200000";

/// What it measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Measured {
    /// How Redis kept its data.
    pub(super) persistence: &'static str,
    /// Holds per second.
    pub(super) per_second: f64,
    /// Latency, as redis-benchmark tells it.
    pub(super) p99_ms: f64,
}

impl Measured {
    /// A line for the report.
    pub(super) fn line(&self) -> String {
        let per_second = grouped(self.per_second);
        format!("redis-benchmark -c 50, hold script, {}: {per_second}/s, p99 {:.2} ms", self.persistence, self.p99_ms)
    }
}

/// Killed when dropped.
struct Redis(Child);

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures with nothing written to disk, and with an append-only file synced once a second.
pub(super) async fn yardstick(folder: &Path) -> Result<Vec<Measured>, String> {
    let nothing = measure(folder, "in memory only", &["--appendonly", "no"]).await?;
    let second = measure(folder, "AOF everysec", &["--appendonly", "yes", "--appendfsync", "everysec"]).await?;
    Ok(vec![nothing, second])
}

async fn measure(folder: &Path, persistence: &'static str, options: &[&str]) -> Result<Measured, String> {
    let folder = tempfile::tempdir_in(folder).map_err(|e| format!("no folder for redis: {e}"))?;
    let port = free_port()?;
    let mut command = Command::new("redis-server");
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder.path()).args(options);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _redis = Redis(command.spawn().map_err(|e| format!("cannot start redis-server: {e}"))?);
    let mut stream = connect(&port).await?;
    ask(&mut stream, &["SET", "stock:{hot}", "1000000000000"]).await?;
    let digest = ask(&mut stream, &["SCRIPT", "LOAD", SCRIPT]).await?;
    // Ten keys drawn twice among a thousand million do not matter; a short run first, as warm-up.
    bench(&port, &digest, "20000").await?;
    let (per_second, p99_ms) = bench(&port, &digest, REQUESTS).await?;
    Ok(Measured { persistence, per_second, p99_ms })
}

async fn bench(port: &str, digest: &str, requests: &str) -> Result<(f64, f64), String> {
    let mut command = Command::new("redis-benchmark");
    command.args(["-p", port, "-c", "50", "-n", requests, "-r", "1000000000", "--csv"]);
    command.args(["EVALSHA", digest, "2", "stock:{hot}", "hold:{hot}:__rand_int__", "1", "600"]);
    command.stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.map_err(|e| e.to_string())?;
    let output = output.map_err(|e| format!("cannot run redis-benchmark: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    figures(&text).ok_or_else(|| format!("redis-benchmark said: {text}"))
}

/// Requests per second and p99 out of the CSV.
fn figures(csv: &str) -> Option<(f64, f64)> {
    let fields = |line: &str| line.split("\",\"").map(|f| f.trim_matches('"').to_owned()).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = csv.lines().map(fields).collect();
    let head = lines.iter().position(|fields| fields.iter().any(|f| f == "rps"))?;
    let (names, values) = (&lines[head], lines.get(head + 1)?);
    // The name of the test is the command itself and may hold anything: count from the end.
    let field = |name: &str| {
        let from_end = names.len() - names.iter().position(|n| n == name)?;
        values.get(values.len().checked_sub(from_end)?)?.parse::<f64>().ok()
    };
    Some((field("rps")?, field("p99_latency_ms")?))
}

fn free_port() -> Result<String, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.local_addr().map(|addr| addr.port().to_string()).map_err(|e| e.to_string())
}

async fn connect(port: &str) -> Result<TcpStream, String> {
    for _ in 0..250 {
        if let Ok(mut stream) = TcpStream::connect(format!("127.0.0.1:{port}")).await
            && ask(&mut stream, &["PING"]).await.is_ok()
        {
            return Ok(stream);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("redis-server did not start".into())
}

/// Sends a command whose answer is short: a simple string or a bulk string.
async fn ask(stream: &mut TcpStream, words: &[&str]) -> Result<String, String> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        // Writing into a String cannot fail.
        let _ = write!(request, "${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(request.as_bytes()).await.map_err(|e| e.to_string())?;
    let mut answer = [0; 256];
    let length = stream.read(&mut answer).await.map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&answer[..length]).into_owned();
    if !text.starts_with(['+', '$']) {
        return Err(format!("redis answered {text:?}"));
    }
    Ok(text.trim_end().rsplit("\r\n").next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_found_by_name() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"EVALSHA ab 2 \"x\",\"y\" 1\",\"17035.78\",\"2.8\",\"0.4\",\"2.7\",\"3.1\",\"5.5\",\"11.2\"\n";
        assert_eq!(figures(csv), Some((17035.78, 5.5)));
        assert_eq!(figures("Could not connect"), None);
    }
}
