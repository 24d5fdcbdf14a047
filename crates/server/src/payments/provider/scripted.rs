//! A server for tests that answers what it is told, in order, and remembers what it was asked. Knows no provider.

use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
pub(super) enum Act {
    /// Answer.
    Answer(u16, Vec<(&'static str, &'static str)>, Value),
    /// Read the request and close the connection.
    Drop,
    /// Read the request and say nothing.
    Hang,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// `POST /v1/refunds`.
    pub(super) line: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

impl Asked {
    /// The fields of a form, in order.
    pub(super) fn form(&self) -> Vec<(String, String)> {
        serde_urlencoded::from_str(&self.body).unwrap()
    }
}

/// A running server. What is not scripted is answered 599, which no test expects.
pub(super) struct Scripted {
    pub(super) url: String,
    acts: usize,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    pub(super) async fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let acts: VecDeque<_> = acts.into_iter().collect();
        let (count, asked, left) = (acts.len(), Arc::default(), Arc::new(Mutex::new(acts)));
        let server = Self { url, acts: count, asked: Arc::clone(&asked) };
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&asked), Arc::clone(&left)));
            }
        });
        server
    }

    /// What was asked: exactly as often as was scripted.
    pub(super) fn asked(&self) -> Vec<Asked> {
        assert_eq!(self.lines().len(), self.acts, "{:?}", self.lines());
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|a| a.line.clone()).collect()
    }
}

async fn serve(mut socket: TcpStream, asked: Arc<Mutex<Vec<Asked>>>, left: Arc<Mutex<VecDeque<Act>>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut socket, &mut buffer).await {
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let act = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (status, headers, body) = match act {
            Some(Act::Answer(status, headers, body)) => (status, headers, body),
            Some(Act::Drop) => return,
            Some(Act::Hang) => return std::future::pending().await,
            None => (599, Vec::new(), Value::String("not scripted".into())),
        };
        let body = body.to_string();
        let headers = headers.iter().fold(String::new(), |all, (name, value)| all + name + ": " + value + "\r\n");
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        if socket.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        more(socket, buffer).await?;
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers = lines.filter_map(|l| l.split_once(": "));
    let headers: HashMap<_, _> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let length = headers.get("content-length").map_or(0, |l| l.parse().unwrap());
    while buffer.len() < head_end + 4 + length {
        more(socket, buffer).await?;
    }
    let body = String::from_utf8(buffer[head_end + 4..head_end + 4 + length].to_vec()).ok()?;
    buffer.drain(..head_end + 4 + length);
    Some(Asked { line, headers, body })
}

async fn more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 4096];
    let count = socket.read(&mut bytes).await.ok().filter(|c| *c > 0)?;
    buffer.extend_from_slice(&bytes[..count]);
    Some(())
}
