//! P13: the engine in process, through the Rust library: K callers, each with one hold under way, no HTTP.

use super::api::Stock;
use super::args::Args;
use super::check::{Promised, Verdict, compare};
use super::everyday::{PLENTY, names};
use super::progress::Progress;
use super::report::Report;
use super::rows::Row;
use super::tally::Phase;
use holdfast_engine::clock::monotonic;
use holdfast_engine::domain::{
    Command, HoldId, HoldRequest, Lines, Money, OrderId, Outcome, SetStock, Sku, Total, Ttl,
};
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Engine, Lanes, LanesConfig, Now};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// What the callers share.
struct Desk {
    lanes: Lanes,
    lines: Lines,
    ttl: Ttl,
    warm: Instant,
    end: Instant,
    counts: RefCell<Counts>,
}

struct Counts {
    measured: Phase,
    made: u64,
    accepted: u64,
    in_doubt: u64,
}

/// Runs it in this folder.
pub(super) async fn library(args: &Args, data: &Path, report: &mut Report) -> Result<Verdict, String> {
    let engine = Arc::new(Embedded::open(data).map_err(|e| format!("cannot open the store: {e}"))?);
    let as_engine: Arc<dyn Engine> = engine.clone();
    let mut verdict = Verdict::default();
    let mut rows = Vec::new();
    for _ in 0..args.rounds {
        for callers in args.concurrencies(&[64, 256, 1024, 4096]) {
            let name = format!("library {callers}");
            let progress = Progress::new(&name);
            progress.say("in process");
            let sku = names("LIB", 1)[0].clone();
            let created = engine.apply_now(vec![stock(&sku)?], Now::Clock).map_err(|e| e.to_string())?;
            if !matches!(created[..], [Ok(Outcome::Stock { .. })]) {
                return Err(format!("stock was not created: {created:?}"));
            }
            let counts = measure(args, as_engine.clone(), callers, &sku).await?;
            rows.push(Row::new(&name, callers, None, &counts.measured, 0));
            progress.say("checking");
            verdict = verdict.and(check(engine.as_ref(), &sku, &counts).await?);
        }
    }
    report.settle_rounds(rows);
    report.notes.push("in process: one thread of callers, one thread that writes".into());
    Ok(verdict)
}

fn stock(sku: &str) -> Result<Command, String> {
    Ok(Command::SetStock(SetStock {
        sku: Sku::new(sku).map_err(|e| e.to_string())?,
        total: Total::new(PLENTY).ok_or("too many units")?,
        limit_per_customer: None,
        if_version: None,
    }))
}

async fn measure(args: &Args, engine: Arc<dyn Engine>, callers: usize, sku: &str) -> Result<Counts, String> {
    let config = LanesConfig::default();
    let config = LanesConfig { depth: config.depth.max(callers), ..config };
    let lanes = Lanes::start(engine, &config).map_err(|e| e.to_string())?;
    let lines = Lines::new(vec![(Sku::new(sku).map_err(|e| e.to_string())?, 1)]).map_err(|e| e.to_string())?;
    let ttl = Ttl::new(args.ttl.into(), u32::MAX).ok_or("--ttl must be at least 1")?;
    let (warmup, seconds) = (args.warmup, args.seconds);
    let (tell, told) = oneshot::channel();
    let drive = move || -> Result<Counts, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
        let warm = monotonic() + warmup;
        let counts = Counts { measured: Phase::new(seconds)?, made: 0, accepted: 0, in_doubt: 0 };
        let desk = Rc::new(Desk { lanes, lines, ttl, warm, end: warm + seconds, counts: RefCell::new(counts) });
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let tasks: Vec<_> = (0..callers).map(|_| tokio::task::spawn_local(desk.clone().call())).collect();
            for task in tasks {
                task.await.map_err(|e| e.to_string())??;
            }
            Ok::<_, String>(())
        })?;
        Rc::into_inner(desk).map(|desk| desk.counts.into_inner()).ok_or_else(|| "a caller is still there".into())
    };
    std::thread::Builder::new()
        .name("load".into())
        .spawn(move || {
            // Nobody listens any more when the bench was interrupted.
            let _ = tell.send(drive());
        })
        .map_err(|e| e.to_string())?;
    told.await.map_err(|_| "the callers ended early".to_owned())?
}

impl Desk {
    async fn call(self: Rc<Self>) -> Result<(), String> {
        let mut now = monotonic();
        while now < self.end {
            let before = now;
            let hold = Command::Hold(Box::new(self.request()?));
            let answer = self.lanes.submit(hold).await;
            now = monotonic();
            let mut counts = self.counts.borrow_mut();
            let measured = now >= self.warm && now < self.end;
            if measured {
                counts.measured.latencies.record(now - before);
            }
            match answer {
                Ok(Ok(Outcome::Held { replay: false, .. })) => {
                    counts.accepted += 1;
                    counts.measured.accepted += u64::from(measured);
                }
                Ok(Ok(_)) => return Err("a hold was answered otherwise than with a new hold".into()),
                Ok(Err(_)) => counts.measured.refused += u64::from(measured),
                Err(_) => {
                    counts.in_doubt += 1;
                    *counts.measured.errors.entry(503).or_default() += u64::from(measured);
                }
            }
        }
        Ok(())
    }

    fn request(&self) -> Result<HoldRequest, String> {
        let mut counts = self.counts.borrow_mut();
        counts.made += 1;
        let order = format!("{}-{:010}", self.lines.iter().next().map_or("", |line| line.sku.as_str()), counts.made);
        Ok(HoldRequest {
            id: HoldId::from_u128(0),
            order_id: OrderId::new(&order).map_err(|e| e.to_string())?,
            lines: self.lines.clone(),
            ttl: self.ttl,
            customer_id: None,
            money: Money::default(),
            payment_ref: None,
            metadata: None,
        })
    }
}

async fn check(engine: &dyn Engine, sku: &str, counts: &Counts) -> Result<Verdict, String> {
    let name = Sku::new(sku).map_err(|e| e.to_string())?;
    let stock = engine.stock(&name).await.map_err(|e| e.to_string())?.ok_or("the SKU is gone")?;
    let (available, held, sold) = (stock.available, stock.held, stock.sold);
    let stock = Stock { sku: sku.to_owned(), total: stock.total(), available, held, sold };
    let (skus, accepted, in_doubt) = ([sku.to_owned()], [counts.accepted], [counts.in_doubt]);
    let (accepted, in_doubt) = (&accepted[..], &in_doubt[..]);
    let verdict = compare(&[stock], Promised { skus: &skus, total: PLENTY, accepted, in_doubt, all_live: true });
    let audit = engine.audit().await.map_err(|e| e.to_string())?;
    Ok(Verdict { drift: verdict.drift + audit.drift.len() as u64, ..verdict })
}
