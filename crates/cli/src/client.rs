//! A small HTTP client for the verbs that talk to a running server: one request a connection, plain HTTP.

use serde_json::Value;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Sends a POST without a body.
pub(crate) fn post(url: &str, path: &str, key: Option<&str>) -> Result<Value, String> {
    upload_as(url, path, key, "application/json", std::io::empty(), 0)
}

/// Sends a table of this many bytes.
pub(crate) fn upload(url: &str, path: &str, key: Option<&str>, body: impl Read, size: u64) -> Result<Value, String> {
    upload_as(url, path, key, "text/csv", body, size)
}

fn upload_as(
    url: &str,
    path: &str,
    key: Option<&str>,
    kind: &str,
    body: impl Read,
    size: u64,
) -> Result<Value, String> {
    let host = url
        .strip_prefix("http://")
        .ok_or_else(|| {
            format!("{url:?} is not supported: the form is http://HOST:PORT (put TLS in front with a proxy)")
        })?
        .trim_end_matches('/');
    let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let failed = |e: std::io::Error| format!("{url}: {e}; is the server running there?");
    let mut stream = TcpStream::connect(&address).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_mins(10))).map_err(failed)?;
    let key = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{key}content-type: {kind}\r\ncontent-length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(failed)?;
    // A server that refuses early may close before it has read everything: its answer counts.
    let sent = std::io::copy(&mut body.take(size), &mut stream);
    let mut answer = Vec::new();
    BufReader::new(&stream).read_to_end(&mut answer).map_err(failed)?;
    if answer.is_empty() {
        sent.map_err(failed)?;
    }
    read_answer(&answer).ok_or_else(|| format!("{url}: the answer is not HTTP"))?
}

fn read_answer(answer: &[u8]) -> Option<Result<Value, String>> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let status: u16 = std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()?;
    let body: Value = serde_json::from_slice(&answer[end + 4..]).unwrap_or(Value::Null);
    if status == 200 {
        return Some(Ok(body));
    }
    let detail = body["detail"].as_str().unwrap_or("no reason was given").to_owned();
    Some(Err(format!("the server answered {status} {}: {detail}", body["code"].as_str().unwrap_or_default())))
}
