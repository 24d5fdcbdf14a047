//! An SMTP server for tests: strict about the dialogue, and scripted where it refuses. Delivers nothing.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server does.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// What it says instead of the usual at `greeting`, `EHLO`, `AUTH`, `MAIL`, `RCPT`, `DATA` or `.`; nothing: it hangs.
    pub(super) says: Option<(&'static str, Option<&'static str>)>,
    /// It wants this user and password, and only encrypted if it can encrypt.
    pub(super) login: Option<(&'static str, &'static str)>,
    pub(super) starttls: Option<TlsAcceptor>,
    pub(super) wrapped: Option<TlsAcceptor>,
    pub(super) smtp_utf8: bool,
    /// It takes the mail and never answers QUIT.
    pub(super) never_quits: bool,
}

/// A mail as it was handed in.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) from: String,
    pub(super) to: Vec<String>,
    pub(super) data: String,
    pub(super) was_encrypted: bool,
}

pub(super) struct Server {
    pub(super) port: u16,
    taken: Arc<Mutex<Vec<Taken>>>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
type Io = BufReader<Box<dyn Stream>>;

impl Server {
    pub(super) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, taken) = (listener.local_addr().unwrap().port(), Arc::default());
        let server = Self { port, taken: Arc::clone(&taken) };
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let session = Session { script: script.clone(), taken: Arc::clone(&taken), encrypted: false };
                tokio::spawn(session.run(Box::new(socket)));
            }
        });
        server
    }

    pub(super) fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

struct Session {
    script: Script,
    taken: Arc<Mutex<Vec<Taken>>>,
    encrypted: bool,
}

impl Session {
    async fn run(mut self, socket: Box<dyn Stream>) -> Option<()> {
        let socket = match self.script.wrapped.clone() {
            Some(tls) => {
                self.encrypted = true;
                Box::new(tls.accept(socket).await.ok()?) as Box<dyn Stream>
            }
            None => socket,
        };
        let mut io = BufReader::new(socket);
        self.say(&mut io, "greeting", "220 test ready").await?;
        let (mut greeted, mut known) = (false, self.script.login.is_none());
        let (mut from, mut to) = (None, Vec::new());
        loop {
            let line = line(&mut io).await?;
            let verb = line.split(' ').next().unwrap().to_ascii_uppercase();
            match verb.as_str() {
                "EHLO" => {
                    greeted = true;
                    let offers = self.offers();
                    self.say(&mut io, "EHLO", &offers).await?;
                }
                "STARTTLS" if greeted && !self.encrypted => {
                    let tls = self.script.starttls.clone()?;
                    self.say(&mut io, "STARTTLS", "220 go ahead").await?;
                    assert!(io.buffer().is_empty(), "said something in the clear after STARTTLS");
                    io = BufReader::new(Box::new(tls.accept(io.into_inner()).await.ok()?));
                    (self.encrypted, greeted) = (true, false);
                }
                "AUTH" if greeted => {
                    known = self.is_known(&line);
                    let answer = if known { "235 welcome" } else { "535 5.7.8 wrong user or password" };
                    self.say(&mut io, "AUTH", answer).await?;
                }
                "MAIL" if greeted && known && from.is_none() => {
                    from = Some(line.strip_prefix("MAIL FROM:<")?.split('>').next()?.to_owned());
                    self.say(&mut io, "MAIL", "250 ok").await?;
                }
                "RCPT" if from.is_some() => {
                    to.push(line.strip_prefix("RCPT TO:<")?.strip_suffix('>')?.to_owned());
                    self.say(&mut io, "RCPT", "250 ok").await?;
                }
                "DATA" if !to.is_empty() => {
                    self.say(&mut io, "DATA", "354 go ahead").await?;
                    if self.script.says.is_some_and(|(at, _)| at == "DATA") {
                        continue;
                    }
                    let data = data(&mut io).await?;
                    let mail = Taken { from: from.take()?, to, data, was_encrypted: self.encrypted };
                    to = Vec::new();
                    if self.script.says.is_none_or(|(at, _)| at != ".") {
                        self.taken.lock().unwrap().push(mail);
                    }
                    self.say(&mut io, ".", "250 taken").await?;
                }
                "QUIT" if self.script.never_quits => return std::future::pending().await,
                "QUIT" => return self.say(&mut io, "QUIT", "221 bye").await,
                _ => self.say(&mut io, &verb, "503 not now").await?,
            }
        }
    }

    fn offers(&self) -> String {
        let mut offers = vec!["250-test"];
        if self.script.starttls.is_some() && !self.encrypted {
            offers.push("250-STARTTLS");
        } else if self.script.login.is_some() {
            offers.push("250-AUTH PLAIN LOGIN");
        }
        if self.script.smtp_utf8 {
            offers.push("250-SMTPUTF8");
        }
        offers.push("250 8BITMIME");
        offers.join("\r\n")
    }

    fn is_known(&self, line: &str) -> bool {
        let Some((user, password)) = self.script.login else { return false };
        let told = line.strip_prefix("AUTH PLAIN ").and_then(|text| BASE64_STANDARD.decode(text).ok());
        told == Some(format!("\0{user}\0{password}").into_bytes())
    }

    async fn say(&self, io: &mut Io, at: &str, usual: &str) -> Option<()> {
        let says = match self.script.says {
            Some((scripted, says)) if scripted == at => match says {
                Some(says) => says,
                None => return std::future::pending().await,
            },
            _ => usual,
        };
        io.write_all(format!("{says}\r\n").as_bytes()).await.ok()?;
        io.flush().await.ok()
    }
}

/// One line, which ends with CRLF and has no other control characters in it.
async fn line(io: &mut Io) -> Option<String> {
    let mut line = Vec::new();
    if io.read_until(b'\n', &mut line).await.ok()? == 0 {
        return None;
    }
    let line = String::from_utf8(line).expect("UTF-8");
    let line = line.strip_suffix("\r\n").expect("a line ends with CRLF");
    assert!(line.len() <= 998, "a line is too long");
    assert!(!line.chars().any(|c| c.is_control() && c != '\t'), "a control character: {line:?}");
    Some(line.to_owned())
}

async fn data(io: &mut Io) -> Option<String> {
    let mut data = String::new();
    loop {
        let line = line(io).await?;
        if line == "." {
            return Some(data);
        }
        data.push_str(line.strip_prefix('.').unwrap_or(&line));
        data.push('\n');
    }
}
