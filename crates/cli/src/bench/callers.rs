//! The load in process: callers with one hold under way each, through the lanes of one node or of several, no HTTP.

use super::load::{Shared, StopOnDrop};
use super::progress::Progress;
use super::tally::Phase;
use crate::random::Random;
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{Command, HoldId, HoldRequest, Lines, Money, OrderId, Outcome, Refusal, Sku, Ttl};
use holdfast_engine::{Answer, EngineError, Lanes};
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What to call, and how.
pub(super) struct Calls {
    /// The nodes; the callers are dealt out over them.
    pub(super) lanes: Vec<Lanes>,
    /// Callers.
    pub(super) callers: usize,
    /// The SKUs to choose from.
    pub(super) skus: Arc<[String]>,
    /// How many different ones a cart has.
    pub(super) lines: RangeInclusive<usize>,
    /// Lifetime of the holds, in seconds.
    pub(super) ttl: u32,
    /// Not counted in the figures.
    pub(super) warmup: Duration,
    /// What is.
    pub(super) seconds: Duration,
    /// A caller stops when it is refused.
    pub(super) until_refused: bool,
}

/// What was counted.
pub(super) struct Counts {
    /// Answers in the measured time.
    pub(super) measured: Phase,
    /// Units of each SKU that were accepted, from the first call to the last.
    pub(super) accepted: Vec<u64>,
    /// Units of each SKU of which nobody knows.
    pub(super) in_doubt: Vec<u64>,
    /// Callers that were refused and stopped.
    pub(super) stopped: usize,
    /// The first failure that was neither yes nor no.
    pub(super) failure: Option<EngineError>,
    /// From the first call to the last answer.
    pub(super) spent: Duration,
}

/// What the callers of a run share.
struct Desk {
    skus: Vec<Sku>,
    lines: RangeInclusive<usize>,
    ttl: Ttl,
    until_refused: bool,
    start: Instant,
    warm: Instant,
    end: Instant,
    shared: Arc<Shared>,
    maker: RefCell<Maker>,
    counts: RefCell<Counts>,
}

/// What makes each request unlike the last.
struct Maker {
    random: Random,
    deck: Vec<usize>,
    made: u64,
}

/// Calls until the time is over, from one thread of its own.
pub(super) async fn call(calls: Calls, progress: &Progress) -> Result<Counts, String> {
    let shared = Arc::new(Shared::default());
    let _stop = StopOnDrop(shared.clone());
    let planned = calls.warmup + calls.seconds;
    let ((tell, mut told), calling) = (oneshot::channel(), shared.clone());
    progress.begin();
    std::thread::Builder::new()
        .name("load".into())
        .spawn(move || {
            // Nobody listens any more when the bench was interrupted.
            let _ = tell.send(drive(calls, calling));
        })
        .map_err(|e| e.to_string())?;
    loop {
        tokio::select! {
            counts = &mut told => return counts.map_err(|_| "the callers ended early".to_owned())?,
            () = tokio::time::sleep(Duration::from_millis(100)) => {
                progress.show_time(planned, shared.answered.load(Ordering::Relaxed));
            }
        }
    }
}

fn drive(calls: Calls, shared: Arc<Shared>) -> Result<Counts, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    let (lanes, callers) = (calls.lanes.clone(), calls.callers);
    let desk = Rc::new(Desk::open(calls, shared)?);
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let call = |n: usize| tokio::task::spawn_local(desk.clone().call(lanes[n % lanes.len()].clone()));
        let tasks: Vec<_> = (0..callers).map(call).collect();
        for task in tasks {
            task.await.map_err(|e| e.to_string())??;
        }
        Ok::<_, String>(())
    })?;
    let desk = Rc::into_inner(desk).ok_or("a caller is still there")?;
    let spent = desk.start.elapsed();
    Ok(Counts { spent, ..desk.counts.into_inner() })
}

impl Desk {
    fn open(calls: Calls, shared: Arc<Shared>) -> Result<Self, String> {
        let n = calls.skus.len();
        let skus: Result<Vec<Sku>, _> = calls.skus.iter().map(|sku| Sku::new(sku)).collect();
        let counts = Counts {
            measured: Phase::new(calls.seconds)?,
            accepted: vec![0; n],
            in_doubt: vec![0; n],
            stopped: 0,
            failure: None,
            spent: Duration::ZERO,
        };
        let start = monotonic();
        let warm = start + calls.warmup;
        Ok(Self {
            skus: skus.map_err(|e| e.to_string())?,
            lines: calls.lines,
            ttl: Ttl::new(calls.ttl.into(), u32::MAX).ok_or("--ttl must be at least 1")?,
            until_refused: calls.until_refused,
            start,
            warm,
            end: warm + calls.seconds,
            shared,
            maker: RefCell::new(Maker { random: Random::new(), deck: (0..n).collect(), made: 0 }),
            counts: RefCell::new(counts),
        })
    }

    async fn call(self: Rc<Self>, lane: Lanes) -> Result<(), String> {
        let (mut now, mut cart) = (monotonic(), Vec::new());
        while now < self.end && !self.shared.stop.load(Ordering::Relaxed) {
            let before = now;
            let hold = Command::Hold(Box::new(self.request(&mut cart)?));
            let answer = lane.submit(hold).await;
            now = monotonic();
            self.shared.answered.fetch_add(1, Ordering::Relaxed);
            if self.note(before, now, answer, &cart)? && self.until_refused {
                self.counts.borrow_mut().stopped += 1;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Counts an answer; whether it was a refusal.
    fn note(
        &self,
        before: Instant,
        now: Instant,
        answer: Result<Answer, EngineError>,
        cart: &[usize],
    ) -> Result<bool, String> {
        let mut counts = self.counts.borrow_mut();
        let measured = u64::from(now >= self.warm && now < self.end);
        if measured > 0 {
            counts.measured.latencies.record(now - before);
        }
        match answer {
            Ok(Ok(Outcome::Held { replay: false, .. })) => {
                counts.measured.accepted += measured;
                cart.iter().for_each(|sku| counts.accepted[*sku] += 1);
            }
            Ok(Err(Refusal::SoldOut { .. })) => {
                counts.measured.refused += measured;
                return Ok(true);
            }
            Ok(other) => return Err(format!("a hold was answered otherwise than held or sold out: {other:?}")),
            Err(failure) => {
                *counts.measured.errors.entry(503).or_default() += measured;
                if matches!(failure, EngineError::Unknown(_) | EngineError::Corrupt(_)) {
                    cart.iter().for_each(|sku| counts.in_doubt[*sku] += 1);
                }
                counts.failure.get_or_insert(failure);
            }
        }
        Ok(false)
    }

    /// The next request, for one unit of each SKU of a new cart, in random order.
    fn request(&self, cart: &mut Vec<usize>) -> Result<HoldRequest, String> {
        let mut maker = self.maker.borrow_mut();
        maker.draw(&self.lines, cart);
        let lines = Lines::new(cart.iter().map(|n| (self.skus[*n].clone(), 1)).collect());
        let order = format!("{}-{:010}", self.skus[0].as_str(), maker.made);
        Ok(HoldRequest {
            id: HoldId::from_u128(0),
            order_id: OrderId::new(&order).map_err(|e| e.to_string())?,
            lines: lines.map_err(|e| e.to_string())?,
            ttl: self.ttl,
            customer_id: None,
            money: Money::default(),
            payment_ref: None,
            metadata: None,
        })
    }
}

impl Maker {
    fn draw(&mut self, lines: &RangeInclusive<usize>, cart: &mut Vec<usize>) {
        self.made += 1;
        cart.clear();
        let lines = (lines.start() + self.random.below(lines.end() - lines.start() + 1)).min(self.deck.len());
        for n in 0..lines {
            let other = n + self.random.below(self.deck.len() - n);
            self.deck.swap(n, other);
            cart.push(self.deck[n]);
        }
    }
}
