//! A TCP proxy between an engine and a server of its that does to connections what networks do.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// What to do to the next connection that says a certain word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Cut it before the server hears of it.
    Before,
    /// Let the server do it and answer, keep the answer, then cut.
    Answer,
    /// Carry nothing any more, and leave the connection as it is.
    Silence,
    /// Let the server do it and answer, keep the answer, then the same as [`Cut::Silence`].
    Deaf,
    /// Carry nothing until [`Proxy::go_on`] is called; then go on as if nothing had been.
    Pause,
    /// Only tell that it was said.
    Note,
}

/// See the file's header.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
    done: mpsc::UnboundedReceiver<()>,
}

struct Shared {
    /// Counts the cuts; every connection watches it.
    cuts: watch::Sender<u64>,
    delay_ms: AtomicU64,
    to: AtomicU16,
    plan: parking_lot::Mutex<Option<(&'static str, Cut)>>,
    /// The word after which the plan holds.
    first: parking_lot::Mutex<Option<&'static str>>,
    paused: tokio::sync::Semaphore,
    done: mpsc::UnboundedSender<()>,
}

impl Proxy {
    /// In front of this port of the loopback address.
    pub async fn start(to: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, done) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            cuts: watch::Sender::new(0),
            delay_ms: AtomicU64::new(0),
            to: AtomicU16::new(to),
            plan: parking_lot::Mutex::new(None),
            first: parking_lot::Mutex::new(None),
            paused: tokio::sync::Semaphore::new(0),
            done: tell,
        });
        let state = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let state = state.clone();
                tokio::spawn(async move {
                    let to = state.to.load(Ordering::Relaxed);
                    if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await {
                        let mut cuts = state.cuts.subscribe();
                        tokio::select! {
                            _ = carry(client, server, &state) => {}
                            _ = cuts.changed() => {}
                        }
                    }
                });
            }
        });
        Self { port, shared, done }
    }

    /// Cuts every connection there is.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|n| *n += 1);
    }

    /// Leads new connections to another port.
    pub fn lead(&self, to: u16) {
        self.shared.to.store(to, Ordering::Relaxed);
    }

    /// Lets everything take this much longer, each way.
    pub fn delay(&self, by: Duration) {
        self.shared.delay_ms.store(by.as_millis() as u64, Ordering::Relaxed);
    }

    /// Does this once, to whoever says this word to the server next.
    pub fn plan(&self, word: &'static str, cut: Cut) {
        *self.shared.plan.lock() = Some((word, cut));
    }

    /// The same, once somebody has said another word, if one is given.
    pub fn plan_after(&self, first: &'static str, word: &'static str, cut: Cut) {
        *self.shared.first.lock() = Some(first).filter(|first| !first.is_empty());
        self.plan(word, cut);
    }

    /// Plans nothing any more.
    pub fn forget(&mut self) {
        *self.shared.first.lock() = None;
        *self.shared.plan.lock() = None;
        while self.done.try_recv().is_ok() {}
    }

    /// Ends a pause.
    pub fn go_on(&self) {
        self.shared.paused.add_permits(1);
    }

    /// Waits until it was done.
    pub async fn done(&mut self) {
        self.done.recv().await.unwrap();
    }
}

/// Carries bytes both ways until either end, or the plan, ends it.
async fn carry(mut client: TcpStream, mut server: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut asked, mut told) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            n = client.read(&mut asked) => {
                let asked = &asked[..n?];
                if asked.is_empty() {
                    return Ok(());
                }
                let plan = plan_for(asked, shared);
                pause(shared).await;
                if plan == Some(Cut::Silence) {
                    let _ = shared.done.send(());
                    return std::future::pending().await;
                }
                if plan == Some(Cut::Pause) {
                    let _ = shared.done.send(());
                    shared.paused.acquire().await.unwrap().forget();
                }
                if plan != Some(Cut::Before) {
                    server.write_all(asked).await?;
                }
                if matches!(plan, Some(Cut::Answer | Cut::Deaf)) {
                    // Once some of the answer is here, it was done.
                    assert_ne!(server.read(&mut told).await?, 0, "the server answers");
                }
                match plan {
                    Some(Cut::Deaf) => {
                        let _ = shared.done.send(());
                        return std::future::pending().await;
                    }
                    Some(Cut::Before | Cut::Answer) => {
                        let _ = shared.done.send(());
                        return Ok(());
                    }
                    Some(Cut::Note) => {
                        let _ = shared.done.send(());
                    }
                    _ => {}
                }
            }
            n = server.read(&mut told) => {
                let told = &told[..n?];
                if told.is_empty() {
                    return Ok(());
                }
                pause(shared).await;
                client.write_all(told).await?;
            }
        }
    }
}

fn plan_for(asked: &[u8], shared: &Shared) -> Option<Cut> {
    let mut first = shared.first.lock();
    if first.is_some() {
        first.take_if(|word| says(asked, word));
        return None;
    }
    shared.plan.lock().take_if(|(word, _)| says(asked, word)).map(|(_, cut)| cut)
}

async fn pause(shared: &Shared) {
    let delay = shared.delay_ms.load(Ordering::Relaxed);
    if delay > 0 {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
}

/// Both protocols send texts as they are. A level of isolation has our most important word in its name.
fn says(bytes: &[u8], word: &str) -> bool {
    let has = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    has(word.as_bytes()) && !(word == "COMMIT" && has(b"COMMITTED"))
}
