//! One thread of the load generator: its connections share what is due, what is asked and what was counted.

use super::load::{Plan, Shared};
use super::schedule::{Alarm, Schedule};
use super::shape::Maker;
use super::tally::{Phase, Tally};
use crate::http::Connection;
use crate::server::Target;
use holdfast_engine::clock::monotonic;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How often a lost connection is tried again before the run is given up.
const RECONNECTS: u32 = 100;
/// How long to wait before that.
const PAUSE: Duration = Duration::from_millis(20);

/// What the connections of a thread share.
pub(super) struct Worker {
    maker: RefCell<Maker>,
    tally: RefCell<Tally>,
    shared: Arc<Shared>,
    requests: Option<u64>,
    start: Instant,
    /// When each phase ends; empty when only the number of requests counts.
    ends: Vec<Instant>,
    schedule: Option<Schedule>,
    /// Requests that are due and not sent: one permit each.
    due: Semaphore,
    taken: Cell<u64>,
}

impl Worker {
    /// Starts the clock.
    pub(super) fn new(target: &Target, plan: &Plan, shared: Arc<Shared>) -> Result<Rc<Self>, String> {
        let start = monotonic();
        let mut end = start;
        let ends = plan.phases.iter().map(|length| {
            end += *length;
            end
        });
        let ends: Vec<Instant> = ends.collect();
        let lengths = plan.phases.iter().copied().chain([Duration::ZERO]);
        let skus = plan.shape.skus.len();
        let tally = Tally {
            start,
            spent: Duration::ZERO,
            phases: lengths.map(Phase::new).collect::<Result<_, _>>()?,
            accepted: vec![0; skus],
            in_doubt: vec![0; skus],
            missed: 0,
        };
        Ok(Rc::new(Self {
            maker: RefCell::new(Maker::new(plan.shape.clone(), &target.host, target.key.as_deref())),
            tally: RefCell::new(tally),
            shared,
            requests: plan.requests,
            start,
            ends,
            schedule: plan.rate.map(|rate| Schedule::new(start, rate)),
            due: Semaphore::new(0),
            taken: Cell::new(0),
        }))
    }

    /// Opens a connection; several times if need be, since a server that was just started may be slow to accept.
    pub(super) async fn connect(to: SocketAddr) -> Result<Connection, String> {
        let mut tries = 0;
        loop {
            match Connection::open(to).await {
                Ok(connection) => return Ok(connection),
                Err(error) if tries == RECONNECTS => return Err(format!("cannot connect to {to}: {error}")),
                Err(_) => tries += 1,
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What was counted.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = self.tally.borrow().clone();
        tally.spent = self.start.elapsed();
        if self.ends.is_empty()
            && let Some(only) = tally.phases.last_mut()
        {
            only.length = tally.spent;
        }
        tally
    }

    /// Lets requests become due, until the end. In a closed loop there is nothing to do.
    pub(super) async fn pace(self: Rc<Self>) -> Result<(), String> {
        let Some(schedule) = self.schedule else { return Ok(()) };
        let mut alarm = Alarm::new().map_err(|e| e.to_string())?;
        let mut given = 0;
        while !self.is_over(monotonic()) {
            let due = schedule.due(monotonic());
            self.due.add_permits((due - given) as usize);
            given = due;
            alarm.until(schedule.at(given)).await.map_err(|e| e.to_string())?;
        }
        // What is still in line has waited at least until now.
        self.due.close();
        let now = monotonic();
        let mut tally = self.tally.borrow_mut();
        for n in self.taken.get()..given {
            tally.missed += 1;
            let at = schedule.at(n);
            let phase = self.phase_at(at);
            tally.phases[phase].latencies.record(now.saturating_duration_since(at));
        }
        Ok(())
    }

    /// Sends requests one after another until the end.
    pub(super) async fn serve(self: Rc<Self>, mut connection: Connection, to: SocketAddr) -> Result<(), String> {
        let (mut request, mut cart) = (Vec::with_capacity(1024), Vec::new());
        while let Some(from) = self.turn().await {
            self.maker.borrow_mut().write(from, &mut request, &mut cart);
            // In doubt until answered, whatever becomes of this task.
            self.doubt(&cart, true);
            let goes_on = if let Ok((status, body, goes_on)) = connection.exchange(&request).await {
                self.note(from, status, body, &cart);
                goes_on
            } else {
                self.note(from, 0, b"", &cart);
                tokio::time::sleep(PAUSE).await;
                false
            };
            if !goes_on {
                connection = Self::connect(to).await?;
            }
        }
        Ok(())
    }

    /// Waits for a request to be due; from when its latency counts. `None` at the end.
    async fn turn(&self) -> Option<Instant> {
        if let Some(limit) = self.requests
            && self.shared.begun.fetch_add(1, Ordering::Relaxed) >= limit
        {
            return None;
        }
        let Some(schedule) = self.schedule else {
            let now = monotonic();
            return (!self.is_over(now)).then_some(now);
        };
        self.due.acquire().await.ok()?.forget();
        let n = self.taken.get();
        self.taken.set(n + 1);
        Some(schedule.at(n))
    }

    fn is_over(&self, now: Instant) -> bool {
        self.ends.last().is_some_and(|end| now >= *end) || self.shared.stop.load(Ordering::Relaxed)
    }

    fn phase_at(&self, at: Instant) -> usize {
        self.ends.partition_point(|end| at >= *end)
    }

    fn doubt(&self, cart: &[u32], more: bool) {
        let mut tally = self.tally.borrow_mut();
        for sku in cart {
            let units = &mut tally.in_doubt[*sku as usize];
            *units = if more { *units + 1 } else { *units - 1 };
        }
    }

    fn note(&self, from: Instant, status: u16, body: &[u8], cart: &[u32]) {
        let now = monotonic();
        self.shared.answered.fetch_add(1, Ordering::Relaxed);
        if !is_unknown(status, body) {
            self.doubt(cart, false);
        }
        // An open loop promises requests at given times, a closed loop answers within a given time.
        let phase = self.phase_at(if self.schedule.is_some() { from } else { now });
        let accepted = self.maker.borrow().accepted();
        let mut tally = self.tally.borrow_mut();
        if status == accepted {
            for sku in cart {
                tally.accepted[*sku as usize] += 1;
            }
        }
        let phase = &mut tally.phases[phase];
        phase.latencies.record(now.saturating_duration_since(from));
        if status == accepted {
            phase.accepted += 1;
        } else if status == 409 {
            phase.refused += 1;
        } else {
            *phase.errors.entry(status).or_default() += 1;
        }
    }
}

/// Whether such an answer leaves open what happened: the server says so in `code`, or did not get to say anything.
fn is_unknown(status: u16, body: &[u8]) -> bool {
    let says = |code: &[u8]| body.windows(code.len()).any(|w| w == code);
    let nothing_done = || says(b"\"overloaded\"") || says(b"\"engine_unavailable\"") || says(b"\"auditing\"");
    status == 0 || status >= 500 && !nothing_done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_that_say_nothing_was_done_leave_no_doubt() {
        assert!(is_unknown(0, b""));
        assert!(is_unknown(503, br#"{"code":"outcome_unknown"}"#));
        assert!(is_unknown(500, b"oops"));
        assert!(!is_unknown(503, br#"{"code":"overloaded"}"#));
        assert!(!is_unknown(409, br#"{"code":"sold_out"}"#));
        assert!(!is_unknown(201, b"{}"));
    }
}
