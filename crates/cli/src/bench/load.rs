//! The load generator: a few connections, each with one request under way, on threads of their own.
//!
//! Closed loop: a connection sends when it was answered. Open loop: requests are due at even intervals and wait in
//! line for a free connection; their latency counts from when they were due, so a server that stalls cannot hide it.

use super::progress::Progress;
use super::shape::Shape;
use super::tally::Tally;
use super::worker::Worker;
use crate::server::Target;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long answers are waited for after the end.
const GRACE: Duration = Duration::from_secs(30);

/// A run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// What to ask.
    pub(super) shape: Shape,
    /// Connections.
    pub(super) clients: usize,
    /// Threads that drive them.
    pub(super) threads: usize,
    /// Open loop at so many requests a second.
    pub(super) rate: Option<f64>,
    /// How long each phase is; the run ends after the last.
    pub(super) phases: Vec<Duration>,
    /// Or after so many requests.
    pub(super) requests: Option<u64>,
}

/// What the threads of a run share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Requests begun, when their number is limited.
    pub(super) begun: AtomicU64,
    /// Requests answered.
    pub(super) answered: AtomicU64,
    /// The caller lost interest.
    pub(super) stop: AtomicBool,
}

/// Sets `stop` when the caller goes away.
pub(super) struct StopOnDrop(pub(super) Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Runs the plan and tells what was counted.
pub(super) async fn run(target: &Target, plan: &Plan, progress: &Progress) -> Result<Tally, String> {
    let shared = Arc::new(Shared::default());
    let _stop = StopOnDrop(shared.clone());
    let threads = plan.threads.min(plan.clients);
    progress.begin();
    let mut results = Vec::new();
    for thread in 0..threads {
        let mut part = plan.clone();
        part.clients = plan.clients / threads + usize::from(thread < plan.clients % threads);
        part.rate = plan.rate.map(|rate| rate * part.clients as f64 / plan.clients as f64);
        let (target, shared, (tell, told)) = (target.clone(), shared.clone(), oneshot::channel());
        std::thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(move || {
                // Nobody listens any more when the bench was interrupted.
                let _ = tell.send(drive(&target, &part, &shared));
            })
            .map_err(|e| format!("cannot start a thread: {e}"))?;
        results.push(told);
    }
    let mut sum: Option<Tally> = None;
    for mut told in results {
        let tally = loop {
            tokio::select! {
                result = &mut told => break result.map_err(|_| "a thread of the load generator ended early".to_owned())??,
                () = tokio::time::sleep(Duration::from_millis(100)) => {
                    progress.show(plan, shared.answered.load(Ordering::Relaxed));
                }
            }
        };
        match &mut sum {
            Some(sum) => sum.add(&tally),
            None => sum = Some(tally),
        }
    }
    sum.ok_or_else(|| "no load generator ran".into())
}

/// Makes so many holds as fast as these clients can. All of them must be accepted.
pub(super) async fn fill(target: &Target, shape: Shape, load: Fill, progress: &Progress) -> Result<Tally, String> {
    let Fill { holds, clients, threads } = load;
    let plan = Plan { shape, clients, threads, rate: None, phases: vec![], requests: Some(holds) };
    let tally = run(target, &plan, progress).await?;
    if tally.accepted_in_all() == holds {
        return Ok(tally);
    }
    let mut answers = String::new();
    for phase in &tally.phases {
        let _ = write!(answers, " {} refused, others by status: {:?}", phase.refused, phase.errors);
    }
    Err(format!("of {holds} holds only {} were accepted:{answers}", tally.accepted_in_all()))
}

/// How many holds to make, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fill {
    /// How many.
    pub(super) holds: u64,
    /// Connections.
    pub(super) clients: usize,
    /// Threads that drive them.
    pub(super) threads: usize,
}

fn drive(target: &Target, plan: &Plan, shared: &Arc<Shared>) -> Result<Tally, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async {
        let mut connections = Vec::with_capacity(plan.clients);
        for _ in 0..plan.clients {
            connections.push(Worker::connect(target.addr).await?);
        }
        let worker = Worker::new(target, plan, shared.clone())?;
        let pacer = tokio::task::spawn_local(worker.clone().pace());
        let tasks: Vec<_> =
            connections.into_iter().map(|c| tokio::task::spawn_local(worker.clone().serve(c, target.addr))).collect();
        let all = async {
            for task in tasks {
                task.await.map_err(|e| e.to_string())??;
            }
            Ok::<_, String>(())
        };
        // Only answers that never come take this long: the run itself ends by its own clock or count.
        let planned: Duration = plan.phases.iter().sum();
        let ended = match plan.requests {
            Some(_) => Some(all.await),
            None => tokio::time::timeout(planned + GRACE, all).await.ok(),
        };
        pacer.abort();
        ended.unwrap_or(Ok(()))?;
        Ok(worker.tally())
    }))
}
