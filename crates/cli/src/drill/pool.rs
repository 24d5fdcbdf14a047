//! Connections that many shoppers share, each with one request under way.

use crate::http::{Connection, request};
use crate::server::Target;
use parking_lot::Mutex;
use std::io;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A way to one server.
pub(super) struct Pool {
    target: Target,
    authorization: Option<String>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Pool {
    /// With at most so many connections.
    pub(super) fn new(target: &Target, connections: u16) -> Self {
        Self {
            target: target.clone(),
            authorization: target.key.as_ref().map(|key| format!("Bearer {key}")),
            idle: Mutex::new(Vec::new()),
            permits: Semaphore::new(connections.into()),
        }
    }

    /// Sends a request; the status and the body. One that meets a connection that was closed meanwhile is sent again,
    /// so it must be safe to repeat.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        let mut headers = vec![("host", self.target.host.as_str())];
        headers.extend(self.authorization.iter().map(|key| ("authorization", key.as_str())));
        headers.extend_from_slice(more);
        let bytes = request(method, path, &headers, body);
        let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
        let waiting = self.idle.lock().pop();
        if let Some(connection) = waiting
            && let Ok(answer) = self.exchange(connection, &bytes).await
        {
            return Ok(answer);
        }
        let fresh = Connection::open(self.target.addr).await?;
        self.exchange(fresh, &bytes).await
    }

    async fn exchange(&self, mut connection: Connection, bytes: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let answered = tokio::time::timeout(PATIENCE, connection.exchange(bytes)).await;
        let (status, body, goes_on) = answered.map_err(|_| io::ErrorKind::TimedOut)??;
        let answer = (status, body.to_vec());
        if goes_on {
            self.idle.lock().push(connection);
        }
        Ok(answer)
    }
}
