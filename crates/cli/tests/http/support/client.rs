//! HTTP/1.1 over a plain socket, so that tests can also say what no decent client would.

use super::server::Server;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {}", self.text()))
    }

    /// The JSON of a success.
    #[track_caller]
    pub fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// A problem as the contract has it; what is left of it without the members that every problem has.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let mut problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert_eq!(problem["type"], format!("urn:holdfast:problem:{code}"), "{problem}");
        for name in ["title", "detail"] {
            assert!(problem[name].as_str().is_some_and(|t| !t.is_empty()), "{name} in {problem}");
        }
        assert_eq!(
            self.header("retry-after").is_some(),
            matches!(status, 429 | 503),
            "Retry-After goes with 429 and 503"
        );
        for name in ["type", "title", "status", "code", "detail"] {
            problem.as_object_mut().unwrap().remove(name);
        }
        problem
    }

    /// A 422 that points at these places, in this order.
    #[track_caller]
    pub fn invalid(&self, pointers: &[&str]) {
        let rest = self.refused(422, "invalid_request");
        let errors = rest["errors"].as_array().unwrap_or_else(|| panic!("no errors in {}", self.text()));
        let told: Vec<&str> = errors.iter().filter_map(|e| e["pointer"].as_str()).collect();
        assert_eq!(told, pointers, "{}", self.text());
        assert!(errors.iter().all(|e| e["detail"].as_str().is_some_and(|d| !d.is_empty())), "{errors:?}");
    }
}

/// One request to be.
#[derive(Clone)]
pub struct Call {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Call {
    pub fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub fn json(self, body: &Value) -> Self {
        self.raw("application/json", body.to_string())
    }

    pub fn raw(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("content-type", kind)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\nhost: holdfast\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            write!(bytes, "{name}: {value}\r\n").unwrap();
        }
        let tells_length = self.headers.iter().any(|(n, _)| n == "content-length" || n == "transfer-encoding");
        if !tells_length && (!self.body.is_empty() || self.method != "GET") {
            write!(bytes, "content-length: {}\r\n", self.body.len()).unwrap();
        }
        let mut bytes = format!("{bytes}\r\n").into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub fn to(&self, server: &Server) -> Answer {
        let mut connection = Connection::open(server.port);
        connection.send(&self.bytes());
        connection.answer_to(&self.method)
    }
}

/// An open connection.
pub struct Connection(pub BufReader<TcpStream>);

impl Connection {
    pub fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server takes connections");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        // A server that has answered and closed may refuse the rest: its answer is what counts.
        let _ = self.0.get_mut().write_all(bytes);
    }

    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    pub fn call(&mut self, call: &Call) -> Answer {
        self.send(&call.bytes());
        self.answer_to(&call.method)
    }

    pub fn answer(&mut self) -> Answer {
        self.answer_to("GET")
    }

    fn answer_to(&mut self, method: &str) -> Answer {
        self.try_answer(method).unwrap_or_else(|| panic!("the connection ended before the answer"))
    }

    /// The next answer; `None` when the connection ends before one is whole.
    pub fn try_answer(&mut self, method: &str) -> Option<Answer> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|n| *n > 0)?;
        assert!(line.starts_with("HTTP/1."), "{line:?}");
        let status = line.get(9..12)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).ok().filter(|n| *n > 0)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        assert!(answer.header("transfer-encoding").is_none(), "no answer of ours comes in chunks");
        let length: usize = answer.header("content-length").map_or(0, |l| l.parse().unwrap());
        if method != "HEAD" {
            answer.body = vec![0; length];
            self.0.read_exact(&mut answer.body).ok()?;
        }
        Some(answer)
    }

    /// Whether the server has nothing more to say and closes.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.fill_buf(), Ok([]) | Err(_))
    }
}

/// The everyday calls.
impl Server {
    pub fn get(&self, path: &str) -> Answer {
        Call::new("GET", path).to(self)
    }

    pub fn put(&self, path: &str, body: &Value) -> Answer {
        Call::new("PUT", path).json(body).to(self)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        Call::new("POST", path).json(body).to(self)
    }

    pub fn patch(&self, path: &str, body: &Value) -> Answer {
        Call::new("PATCH", path).json(body).to(self)
    }

    pub fn touch(&self, path: &str) -> Answer {
        Call::new("POST", path).to(self)
    }

    pub fn delete(&self, path: &str) -> Answer {
        Call::new("DELETE", path).to(self)
    }

    pub fn import(&self, query: &str, table: impl Into<Vec<u8>>) -> Answer {
        Call::new("POST", &format!("/v1/stock/import{query}")).raw("text/csv", table).to(self)
    }

    /// Makes a SKU with so many units.
    #[track_caller]
    pub fn stock(&self, sku: &str, total: u64) {
        self.put(&super::stock_path(sku), &serde_json::json!({"total": total})).is(201);
    }

    /// available, held, sold.
    #[track_caller]
    pub fn counters(&self, sku: &str) -> (u64, u64, u64) {
        let stock = self.get(&super::stock_path(sku)).is(200);
        let number = |name: &str| stock[name].as_u64().unwrap();
        assert_eq!(number("total"), number("available") + number("held") + number("sold"), "{stock}");
        (number("available"), number("held"), number("sold"))
    }

    /// Holds, and tells the path of the hold.
    #[track_caller]
    pub fn hold(&self, cart: &Value) -> String {
        let hold = self.post("/v1/holds", cart).is(201);
        format!("/v1/holds/{}", hold["id"].as_str().unwrap())
    }
}
