//! One connection to one server process. Must never be mended: once it is lost, it is lost.

use super::config::{Address, NetConfig};
use super::failure;
use crate::clock::monotonic;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, ProtocolVersion, RedisConnectionInfo, Value};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// What a server says of itself is believed for so long. A process that was demoted and promoted again keeps its
/// connections, so they have to ask.
const BELIEVED_MS: u64 = 50;
/// Requests that wait to be written, before those who make them wait.
const QUEUE: usize = 256;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// How connections are made.
pub(super) struct Settings {
    pub(super) config: NetConfig,
    pub(super) tls: Option<TlsConnector>,
}

/// Why a request got no answer.
pub(super) enum Lost {
    /// It was certainly not sent.
    Unsent(String),
    /// It may have been done.
    Unknown(String),
}

/// Why a wait for replicas has no count.
pub(super) enum Failed {
    Lost(Lost),
    Refused(Value),
    /// The history is another one than the connection stands for.
    Changed,
}

/// A connection, and which process is at its other end.
pub(super) struct Link {
    pub(super) at: Address,
    /// The process and its history: `<run_id>:<master_replid>`.
    pub(super) identity: String,
    pub(super) is_primary: bool,
    connection: MultiplexedConnection,
    driver: AbortHandle,
    is_closed: Arc<AtomicBool>,
    made: Instant,
    checked_ms: AtomicU64,
    checking: tokio::sync::Mutex<()>,
    /// How far the history had got when the connection was made, until replicas were seen to have all of that.
    behind: AtomicU64,
    waits_begun: AtomicU64,
    waited: tokio::sync::Mutex<Waited>,
}

/// The last WAIT: which one it was, for how many replicas, and how many there were.
#[derive(Default)]
pub(super) struct Waited {
    number: u64,
    replicas: u32,
    count: u32,
}

impl Link {
    /// Connects, logs in and asks who is there.
    pub(super) async fn open(at: &Address, settings: &Settings) -> Result<Self, String> {
        let stream = stream(at, settings).await.map_err(|e| format!("cannot connect to {at}: {e}"))?;
        let timeouts = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let timeouts = timeouts.set_pipeline_buffer_size(QUEUE);
        let made = MultiplexedConnection::new_with_config(&login(&settings.config), stream, timeouts).await;
        let (connection, driver) = made.map_err(|e| format!("cannot log in at {at}: {e}"))?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let ended = is_closed.clone();
        let driver = tokio::spawn(async move {
            driver.await;
            ended.store(true, Ordering::Release);
        });
        let mut link = Self {
            at: at.clone(),
            identity: String::new(),
            is_primary: false,
            connection,
            driver: driver.abort_handle(),
            is_closed,
            made: monotonic(),
            checked_ms: AtomicU64::new(0),
            checking: tokio::sync::Mutex::new(()),
            behind: AtomicU64::new(0),
            waits_begun: AtomicU64::new(0),
            waited: tokio::sync::Mutex::default(),
        };
        let sections = ["server", "replication", "persistence"];
        let texts = link.info(&sections).await?;
        link.meet(&texts, settings.config.is_cluster)?;
        Ok(link)
    }

    fn meet(&mut self, info: &str, is_cluster: bool) -> Result<(), String> {
        let at = &self.at;
        if field(info, "loading").is_some_and(|loading| loading != "0") {
            return Err(format!("{at} is still loading its data"));
        }
        match (field(info, "redis_mode"), is_cluster) {
            (Some("cluster"), false) => {
                return Err(format!("{at} is a node of a cluster: write redis+cluster:// in the URL"));
            }
            (Some("standalone"), true) => {
                return Err(format!("{at} is no node of a cluster: write redis:// in the URL"));
            }
            (Some("sentinel"), _) => return Err(format!("{at} is a sentinel: name the server itself in the URL")),
            _ => {}
        }
        self.identity = identity(info).ok_or_else(|| format!("{at} does not tell its run_id and master_replid"))?;
        self.is_primary = field(info, "role") == Some("master");
        self.behind = AtomicU64::new(offset(info));
        Ok(())
    }

    /// Whether it can still be used, as far as anybody knows.
    pub(super) fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire)
    }

    /// Ends it: whoever still waits for an answer does not get one.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.driver.abort();
    }

    /// Asks again who is there, if that was not asked lately. Nothing else has been sent when this fails.
    pub(super) async fn check(&self, patience: Duration) -> Result<(), String> {
        let now = || monotonic().saturating_duration_since(self.made).as_millis() as u64;
        let is_believed = || now().saturating_sub(self.checked_ms.load(Ordering::Relaxed)) < BELIEVED_MS;
        if is_believed() {
            return Ok(());
        }
        let _one = self.checking.lock().await;
        if is_believed() {
            return Ok(());
        }
        let asked = now();
        let info = tokio::time::timeout(patience, self.info(&["replication"])).await;
        let info = info.map_err(|_| format!("{} is silent", self.at))??;
        if !self.is_still(&info) {
            return Err(format!("{} has another role or history than before", self.at));
        }
        self.checked_ms.store(asked, Ordering::Relaxed);
        Ok(())
    }

    /// Whether INFO replication tells the role and the history that this connection stands for.
    fn is_still(&self, info: &str) -> bool {
        let history = self.identity.split_once(':').map(|(_, history)| history);
        field(info, "master_replid") == history && self.is_primary == (field(info, "role") == Some("master"))
    }

    async fn info(&self, sections: &[&str]) -> Result<String, String> {
        let commands: Vec<_> = sections.iter().map(|section| info(section)).collect();
        let answers = self.request(&commands).await.map_err(|why| format!("{}: {why}", self.at))?;
        let mut text = String::new();
        for answer in answers {
            match answer {
                Value::BulkString(bytes) => text += &String::from_utf8_lossy(&bytes),
                Value::ServerError(error) => return Err(format!("{}: {}", self.at, failure::text(&error))),
                _ => return Err(format!("{} answers INFO oddly", self.at)),
            }
            text += "\r\n";
        }
        Ok(text)
    }

    /// Sends and waits; one answer each. What a server refuses is an answer.
    pub(super) async fn send(&self, commands: &[Cmd], timeout: Duration) -> Result<Vec<Value>, Lost> {
        if !self.is_open() {
            return Err(Lost::Unsent(format!("the connection to {} is lost", self.at)));
        }
        match tokio::time::timeout(timeout, self.request(commands)).await {
            Ok(Ok(answers)) => Ok(answers),
            Ok(Err(why)) => Err(Lost::Unknown(format!("{} gave no answer: {why}", self.at))),
            Err(_) => Err(Lost::Unknown(format!("{} gave no answer within {timeout:?}", self.at))),
        }
    }

    async fn request(&self, commands: &[Cmd]) -> Result<Vec<Value>, String> {
        let mut connection = self.connection.clone();
        match commands {
            [] => Ok(Vec::new()),
            [one] => connection.send_packed_command(one).await.map(|answer| vec![answer]),
            many => {
                let mut pipeline = Pipeline::with_capacity(many.len());
                for command in many {
                    pipeline.add_command(command.clone());
                }
                connection.send_packed_commands(&pipeline, 0, many.len()).await
            }
        }
        .map_err(|e| e.to_string())
    }

    /// Waits for replicas to have everything that was written before; how many have. One WAIT at a time, since the
    /// server reads nothing from a connection that waits; whoever comes meanwhile shares the next one.
    pub(super) async fn wait(&self, replicas: u32, time: Duration, timeout: Duration) -> Result<u32, Failed> {
        let begun = self.waits_begun.load(Ordering::Acquire);
        let mut last = self.waited.lock().await;
        if last.number > begun && last.replicas == replicas {
            return Ok(last.count);
        }
        let number = self.waits_begun.fetch_add(1, Ordering::AcqRel) + 1;
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas).arg(time.as_millis() as u64);
        let answers = self.send(&[wait, info("replication")], time + timeout).await.map_err(Failed::Lost)?;
        let mut answers = answers.into_iter();
        let (count, info) = match (answers.next(), answers.next()) {
            (Some(Value::Int(count)), Some(Value::BulkString(info))) => (count, info),
            (Some(refused), _) => return Err(Failed::Refused(refused)),
            _ => return Err(Failed::Refused(Value::Nil)),
        };
        let info = String::from_utf8_lossy(&info);
        if !self.is_still(&info) {
            return Err(Failed::Changed);
        }
        let count = u32::try_from(count).unwrap_or(0).min(self.caught_up(&info));
        *last = Waited { number, replicas, count };
        Ok(count)
    }

    /// How many replicas have all that was there when the connection was made. What was written before, over another
    /// connection to this process, is part of that, and WAIT on this one need not look at it.
    fn caught_up(&self, info: &str) -> u32 {
        let behind = self.behind.load(Ordering::Relaxed);
        if behind == 0 {
            return u32::MAX;
        }
        let replicas = replicas(info);
        let with_all = replicas.iter().filter(|replica| replica.offset >= behind).count();
        if with_all == replicas.len() && !replicas.is_empty() {
            self.behind.store(0, Ordering::Relaxed);
        }
        with_all as u32
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

async fn stream(at: &Address, settings: &Settings) -> std::io::Result<Box<dyn Stream>> {
    let tcp = TcpStream::connect((at.host.as_str(), at.port)).await?;
    tcp.set_nodelay(true)?;
    let Some(tls) = &settings.tls else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(at.host.clone()).map_err(std::io::Error::other)?;
    Ok(Box::new(tls.connect(name, tcp).await?))
}

fn login(config: &NetConfig) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
    login = login.set_db(config.db);
    if let Some(user) = &config.user {
        login = login.set_username(user);
    }
    if let Some(password) = &config.password {
        login = login.set_password(password);
    }
    login
}

pub(super) fn info(section: &str) -> Cmd {
    let mut cmd = redis::cmd("INFO");
    cmd.arg(section);
    cmd
}

/// A line of INFO.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn identity(info: &str) -> Option<String> {
    Some(format!("{}:{}", field(info, "run_id")?, field(info, "master_replid")?))
}

fn offset(info: &str) -> u64 {
    field(info, "master_repl_offset").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A replica, as its primary tells of it.
pub(super) struct Replica {
    pub(super) at: Address,
    pub(super) offset: u64,
}

/// Those that are in step, from INFO replication.
pub(super) fn replicas(info: &str) -> Vec<Replica> {
    let is_one = |line: &&str| {
        line.strip_prefix("slave").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            && line.contains("state=online")
    };
    let read = |line: &str| {
        let part = |name: &str| line.split([':', ',']).find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        // An IPv6 address has colons of its own.
        let host = line.split_once("ip=")?.1.split(',').next()?;
        let at = Address { host: host.to_owned(), port: part("port")?.parse().ok()? };
        Some(Replica { at, offset: part("offset")?.parse().ok()? })
    };
    info.lines().filter(is_one).filter_map(read).collect()
}
