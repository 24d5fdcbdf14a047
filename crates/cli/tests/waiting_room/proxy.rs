//! The shop's web server, as small as it can be: pages and answers of the test's own, and in front of Holdfast what
//! nginx would be there. One request a connection, so that an answer is copied byte by byte until it ends, and a stream
//! stays one.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const FORWARDED: [&str; 3] = ["/v1/", "/wait/", "/.well-known/"];

/// The example shop as it is in the repository.
pub const STOREFRONT: &str = include_str!("../../../../examples/storefront.html");

/// One request that arrived.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// With the query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

/// An answer of the test's own.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// A 200 of this type.
    pub fn text(kind: &str, text: &str) -> Self {
        Self { body: text.as_bytes().to_vec(), ..Self::new(200) }.header("content-type", kind)
    }

    pub fn html(text: &str) -> Self {
        Self::text("text/html; charset=utf-8", text)
    }

    pub fn json(status: u16, value: &serde_json::Value) -> Self {
        Self { status, ..Self::text("application/json", &value.to_string()) }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} -\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        if self.status != 204 {
            write!(head, "content-length: {}\r\n", self.body.len()).unwrap();
        }
        [format!("{head}\r\n").as_bytes(), &self.body].concat()
    }
}

#[derive(Default)]
struct Inside {
    replies: Mutex<HashMap<(String, String), Reply>>,
    asked: Mutex<Vec<Asked>>,
    behind: Option<u16>,
    is_over: AtomicBool,
}

/// A site on a free port. Dropping it stops it.
pub struct Site {
    port: u16,
    inside: Arc<Inside>,
}

impl Site {
    /// A site with nothing behind it: what has no reply is 404.
    pub fn alone() -> Self {
        Self::start(None)
    }

    /// The example shop at `/`, with Holdfast on this port behind it.
    pub fn before(holdfast: u16) -> Self {
        let site = Self::start(Some(holdfast));
        site.reply("GET", "/", Reply::html(STOREFRONT));
        site
    }

    fn start(behind: Option<u16>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let inside = Arc::new(Inside { behind, ..Inside::default() });
        let shared = inside.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let inside = shared.clone();
                // A browser may close whatever it does not need any more.
                std::thread::spawn(move || inside.serve(&stream));
            }
        });
        let site = Self { port, inside };
        // Browsers ask for an icon of whatever they show.
        site.reply("GET", "/favicon.ico", Reply::new(204));
        site
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// An address of the site. On `localhost`, a browser takes cookies marked Secure without TLS.
    pub fn url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    /// From now on, this is answered there, whatever the query; it goes before what is behind.
    pub fn reply(&self, method: &str, path: &str, reply: Reply) {
        self.inside.replies.lock().unwrap().insert((method.to_owned(), path.to_owned()), reply);
    }

    /// From now on, this goes to what is behind again, or is 404.
    pub fn no_reply(&self, method: &str, path: &str) {
        self.inside.replies.lock().unwrap().remove(&(method.to_owned(), path.to_owned()));
    }

    /// Everything that was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.inside.asked.lock().unwrap().clone()
    }

    /// How often this was asked so far, whatever the query.
    pub fn count(&self, method: &str, path: &str) -> usize {
        self.inside.asked.lock().unwrap().iter().filter(|a| a.method == method && a.path() == path).count()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.inside.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Inside {
    /// `None` when the browser goes away.
    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let asked = read_request(&mut BufReader::new(stream))?;
        self.asked.lock().unwrap().push(asked.clone());
        let key = (asked.method.clone(), asked.path().to_owned());
        let reply = self.replies.lock().unwrap().get(&key).cloned();
        match (reply, self.behind) {
            (None, Some(port)) if FORWARDED.iter().any(|f| asked.target.starts_with(f)) => {
                forward(&asked, stream, port)
            }
            (reply, _) => {
                let mut stream = stream;
                stream.write_all(&reply.unwrap_or_else(|| Reply::new(404)).bytes()).ok()?;
                stream.shutdown(Shutdown::Write).ok()
            }
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut asked = Asked { method, target, headers: Vec::new(), body: Vec::new() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        asked.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = asked.header("content-length").map_or(0, |l| l.parse().unwrap());
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}

fn forward(asked: &Asked, stream: &TcpStream, port: u16) -> Option<()> {
    let mut head = format!("{} {} HTTP/1.1\r\nconnection: close\r\n", asked.method, asked.target);
    let own = ["connection", "x-forwarded-for", "x-forwarded-proto"];
    for (name, value) in asked.headers.iter().filter(|(n, _)| !own.contains(&n.to_ascii_lowercase().as_str())) {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let before = asked.header("x-forwarded-for").map(|f| format!("{f}, ")).unwrap_or_default();
    let peer = stream.peer_addr().ok()?.ip();
    write!(head, "x-forwarded-for: {before}{peer}\r\nx-forwarded-proto: http\r\n\r\n").unwrap();
    let Ok(mut behind) = TcpStream::connect(("127.0.0.1", port)) else {
        let mut stream = stream;
        return stream.write_all(&Reply::new(502).bytes()).ok();
    };
    behind.write_all(head.as_bytes()).ok()?;
    behind.write_all(&asked.body).ok()?;
    let mut stream = stream;
    let mut part = [0; 16 * 1024];
    loop {
        match behind.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => stream.write_all(&part[..length]).ok()?,
        }
    }
    stream.shutdown(Shutdown::Write).ok()
}
