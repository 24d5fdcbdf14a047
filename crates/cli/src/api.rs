//! A caller of a server with a connection of its own: any call, and those that set stock, read it back and audit.
//! (Writing into a String cannot fail.)

use crate::http::{self, Connection};
use crate::server::Target;
use holdfast_engine::clock::monotonic;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// An audit of a large store takes its time.
const PATIENCE: Duration = Duration::from_mins(10);
/// A connection that has been idle for longer is not used again.
const IDLE: Duration = Duration::from_secs(5);
/// SKUs in one import: a body well below the limit of 64 MiB.
const IMPORT: usize = 500_000;

/// The counters of a SKU.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Stock {
    /// Which.
    pub(crate) sku: String,
    /// Units in all.
    pub(crate) total: u64,
    /// Units that anybody may hold.
    pub(crate) available: u64,
    /// Units claimed by holds.
    pub(crate) held: u64,
    /// Units that belong to orders.
    pub(crate) sold: u64,
}

#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Stock>,
    next: Option<String>,
}

/// What an audit said.
#[derive(Debug, Deserialize)]
pub(crate) struct Audit {
    /// No drift.
    pub(crate) clean: bool,
    /// What it found.
    pub(crate) drift: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Imported {
    failed: u64,
}

/// A caller with a connection of its own.
pub(crate) struct Api {
    target: Target,
    connection: Option<(Connection, Instant)>,
}

impl Api {
    /// For this server.
    pub(crate) fn new(target: &Target) -> Self {
        Self { target: target.clone(), connection: None }
    }

    /// Whether it serves.
    pub(crate) async fn is_ready(&mut self) -> bool {
        matches!(self.call("GET", "/readyz", "", b"").await, Ok((200, _)))
    }

    /// Whether it has the no-op call.
    pub(crate) async fn has_noop(&mut self) -> bool {
        matches!(self.call("POST", "/bench/noop", "application/json", b"{}").await, Ok((200, _)))
    }

    /// Creates SKUs with so many units each.
    pub(crate) async fn create(&mut self, skus: &[String], total: u64) -> Result<(), String> {
        if let [sku] = skus {
            let body = format!("{{\"total\":{total}}}");
            let path = format!("/v1/stock/{}", percent(sku));
            return self.json::<Stock>("PUT", &path, "application/json", body.as_bytes()).await.map(|_| ());
        }
        for part in skus.chunks(IMPORT) {
            let mut table = String::from("sku,total\n");
            for sku in part {
                let _ = writeln!(table, "{sku},{total}");
            }
            let done: Imported = self.json("POST", "/v1/stock/import", "text/csv", table.as_bytes()).await?;
            if done.failed > 0 {
                return Err(format!("the import refused {} of {} SKUs", done.failed, part.len()));
            }
        }
        Ok(())
    }

    /// The counters of one SKU.
    pub(crate) async fn stock(&mut self, sku: &str) -> Result<Stock, String> {
        self.json("GET", &format!("/v1/stock/{}", percent(sku)), "", b"").await
    }

    /// The counters of these SKUs, in any order: one by one, or from the list when there are many.
    pub(crate) async fn stocks(&mut self, skus: &[String]) -> Result<Vec<Stock>, String> {
        let mut found = Vec::with_capacity(skus.len());
        if skus.len() <= 2000 {
            for sku in skus {
                found.push(self.stock(sku).await?);
            }
            return Ok(found);
        }
        let mut after = String::new();
        loop {
            let page: Page = self.json("GET", &format!("/v1/stock?limit=1000{after}"), "", b"").await?;
            found.extend(page.items);
            match page.next {
                Some(next) => after = format!("&after={}", percent(&next)),
                None => return Ok(found),
            }
        }
    }

    /// Runs an audit.
    pub(crate) async fn audit(&mut self) -> Result<Audit, String> {
        self.json("POST", "/v1/audit", "application/json", b"").await
    }

    /// A call that must succeed, and its answer.
    pub(crate) async fn json<T: DeserializeOwned>(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
    ) -> Result<T, String> {
        let (status, answer) = self.call(method, path, kind, body).await?;
        if !(200..300).contains(&status) {
            let text = String::from_utf8_lossy(&answer);
            return Err(format!(
                "{method} {path} was answered {status}: {}",
                text.chars().take(300).collect::<String>()
            ));
        }
        serde_json::from_slice(&answer)
            .map_err(|e| format!("{method} {path} was answered otherwise than expected: {e}"))
    }

    /// Any call: the status and the body.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
    ) -> Result<(u16, Vec<u8>), String> {
        let key = self.target.key.as_ref().map(|key| format!("Bearer {key}"));
        let mut headers = vec![("host", self.target.host.as_str())];
        headers.extend(key.iter().map(|key| ("authorization", key.as_str())));
        if !body.is_empty() {
            headers.push(("content-type", kind));
        }
        let request = http::request(method, path, &headers, body);
        let answer = tokio::time::timeout(PATIENCE, self.exchange(&request)).await;
        let answer = answer.map_err(|_| format!("{method} {path} was not answered within {PATIENCE:?}"))?;
        answer.map_err(|e| format!("{method} {path}: {e}"))
    }

    async fn exchange(&mut self, request: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
        // The server closes a connection that has been idle for long.
        let mut connection = match self.connection.take().filter(|(_, used)| used.elapsed() < IDLE) {
            Some((connection, _)) => connection,
            None => Connection::open(self.target.addr).await?,
        };
        let (status, body, goes_on) = connection.exchange(request).await?;
        let body = body.to_vec();
        self.connection = goes_on.then(|| (connection, monotonic()));
        Ok((status, body))
    }
}

/// Percent-encodes all but unreserved characters.
pub(crate) fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_encoded_byte_by_byte() {
        assert_eq!(percent("A-1_b.~"), "A-1_b.~");
        assert_eq!(percent("a/b é"), "a%2Fb%20%C3%A9");
    }
}
