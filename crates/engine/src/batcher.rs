//! Lanes: the bounded queues in front of an engine, and the loops that turn what waits in them into batches.
//!
//! While one batch is being made durable, the next one gathers in the lane. So a batch costs one durable step however
//! many requests are in it, a single request on an idle engine is served at once, and nobody ever waits on purpose.
//! A full lane answers [`EngineError::Overloaded`] immediately.

use crate::{Answer, Applied, Engine, EngineError, Now, seam::Pending};
use holdfast_domain::Command;
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};

/// From this size on, the next batch is decided while one is synced. Smaller ones had better grow meanwhile: over HTTP,
/// many small batches cost more than the sync they would overlap with; in process at K = 1,024, overlapping gains a
/// quarter.
const PIPELINED: usize = 128;
/// Batches that are decided and not yet durable.
const IN_FLIGHT: usize = 2;

/// How lanes are laid out.
#[derive(Debug, Clone)]
pub struct LanesConfig {
    /// Requests that may wait in a lane.
    pub depth: usize,
    /// The most commands in one batch.
    pub max_batch: usize,
    /// Batches of a lane under way at once, on an engine that is not [blocking](Engine::is_blocking). With more than
    /// one, commands may be applied in another order than the one in which they were enqueued.
    pub workers: usize,
}

impl Default for LanesConfig {
    fn default() -> Self {
        Self { depth: 16_384, max_batch: 1024, workers: 1 }
    }
}

struct Request {
    command: Command,
    answer: oneshot::Sender<Result<Answer, EngineError>>,
}

/// A handle on the lanes. Cloning is cheap; the loops end when the last handle is gone.
#[derive(Clone)]
pub struct Lanes(Arc<Inner>);

struct Inner {
    /// At least one; as many as the engine wants.
    lanes: Vec<mpsc::Sender<Request>>,
    engine: Arc<dyn Engine>,
    depth: usize,
}

impl Lanes {
    /// Starts the loops: on a thread of their own for a blocking engine, else on the current tokio runtime.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(engine: Arc<dyn Engine>, config: &LanesConfig) -> std::io::Result<Self> {
        let mut lanes = Vec::new();
        for _ in 0..engine.lanes().max(1) {
            let (lane, requests) = mpsc::channel(config.depth);
            lanes.push(lane);
            if engine.is_blocking() {
                // Two threads: one decides, one waits for the disk and answers.
                let (started, pending) = mpsc::channel(IN_FLIGHT);
                let requests = Arc::new(Mutex::new(requests));
                spawn("lane", run(engine.clone(), requests, config.max_batch, Some(started)))?;
                spawn("answers", answer_pending(pending))?;
            } else {
                let requests = Arc::new(Mutex::new(requests));
                for _ in 0..config.workers.max(1) {
                    tokio::spawn(run(engine.clone(), requests.clone(), config.max_batch, None));
                }
            }
        }
        Ok(Self(Arc::new(Inner { lanes, engine, depth: config.depth })))
    }

    /// Where a command waits.
    fn lane(&self, command: &Command) -> &mpsc::Sender<Request> {
        let Inner { lanes, engine, .. } = &*self.0;
        match lanes.as_slice() {
            [one] => one,
            several => &several[engine.lane_of(command).min(several.len() - 1)],
        }
    }

    /// Puts a command into the lane and waits for its durable answer.
    ///
    /// # Errors
    /// See [`EngineError`]. If the returned future is dropped, the command may still be applied, whole.
    pub async fn submit(&self, command: Command) -> Result<Answer, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.lane(&command).try_send(Request { command, answer }).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => EngineError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => EngineError::Unavailable("the lane is closed".into()),
        })?;
        wait(answered).await
    }

    /// Waits for a place in the lane; what it returns waits for the durable answer. For callers with much to say that
    /// must go in order: commands enter their lane in the order in which they are enqueued.
    ///
    /// # Errors
    /// When the lane is closed.
    pub async fn enqueue(
        &self,
        command: Command,
    ) -> Result<impl Future<Output = Result<Answer, EngineError>> + Send + use<>, EngineError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.lane(&command).send(Request { command, answer }).await;
        sent.map_err(|_| EngineError::Unavailable("the lane is closed".into()))?;
        Ok(wait(answered))
    }

    /// Whether the loop behind a lane has ended: what waits there will not be answered any more.
    pub fn is_closed(&self) -> bool {
        self.0.lanes.iter().any(mpsc::Sender::is_closed)
    }

    /// Requests that wait in the lanes now.
    pub fn waiting(&self) -> usize {
        self.0.lanes.iter().map(|lane| self.0.depth - lane.capacity()).sum()
    }
}

async fn wait(answered: oneshot::Receiver<Result<Answer, EngineError>>) -> Result<Answer, EngineError> {
    answered.await.unwrap_or_else(|_| Err(EngineError::Unknown("the lane ended before it answered".into())))
}

fn spawn(name: &str, work: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    std::thread::Builder::new().name(name.into()).spawn(move || runtime.block_on(work))?;
    Ok(())
}

type Waiting = Vec<oneshot::Sender<Result<Answer, EngineError>>>;
type Started = (Pending, Waiting);

async fn run(
    engine: Arc<dyn Engine>,
    requests: Arc<Mutex<mpsc::Receiver<Request>>>,
    max_batch: usize,
    started: Option<mpsc::Sender<Started>>,
) {
    let mut gathered: Vec<Request> = Vec::with_capacity(max_batch);
    // Whoever waits for requests holds the lock; the others are at work, or wait for their turn to wait.
    while requests.lock().await.recv_many(&mut gathered, max_batch).await > 0 {
        let (commands, waiting): (Vec<_>, Waiting) = gathered.drain(..).map(|r| (r.command, r.answer)).unzip();
        match (engine.clone().start(commands, Now::Clock), &started) {
            (Applied::Done(result), _) => answer(waiting, result),
            (Applied::Pending(pending), Some(started)) if waiting.len() >= PIPELINED => {
                // The other loop ends only after this one.
                let _ = started.send((pending, waiting)).await;
            }
            (Applied::Pending(pending), _) => answer(waiting, pending.await),
        }
    }
}

async fn answer_pending(mut started: mpsc::Receiver<Started>) {
    while let Some((pending, waiting)) = started.recv().await {
        answer(waiting, pending.await);
    }
}

/// Answers a batch. A caller that hung up is not an error.
fn answer(waiting: Waiting, result: Result<Vec<Answer>, EngineError>) {
    match result {
        Ok(answers) => {
            for (to, answer) in waiting.into_iter().zip(answers) {
                let _ = to.send(Ok(answer));
            }
        }
        Err(error) => {
            for to in waiting {
                let _ = to.send(Err(error.clone()));
            }
        }
    }
}
