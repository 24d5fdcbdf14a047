//! P8: very many holds lapse within one second. What does that add to the latency of those who come just then?

use super::args::Args;
use super::check::{Promised, Verdict, check};
use super::everyday::{PLENTY, names};
use super::load::{Fill, Plan, fill, run};
use super::progress::Progress;
use super::report::Report;
use super::rows::{Ratio, Row, grouped};
use super::shape::{Life, Shape};
use super::tally::{Phase, Tally};
use crate::api::Api;
use crate::server::Target;
use holdfast_engine::clock::monotonic;
use std::time::{Duration, Instant};

/// Connections that make the holds, so that they are made fast.
const FILLERS: usize = 256;
/// Connections of the new holds.
const NEWCOMERS: usize = 64;
/// Calm before the lapse in which the latency is measured, and a pause before that.
const CALM: u64 = 10;
/// How long the new holds go on after the lapse.
const AFTER: u64 = 15;
/// Nothing lapses before this much ahead of the moment: a TTL is rounded to the second.
const ROUNDING: Duration = Duration::from_millis(600);
const SECOND: Duration = Duration::from_secs(1);

/// Runs it.
pub(super) async fn lapse(args: &Args, target: &Target, report: &mut Report) -> Result<Verdict, String> {
    let progress = Progress::new("lapse");
    let mut api = Api::new(target);
    let skus = names("LAPSE", 1);
    api.create(&skus, PLENTY).await?;
    let holds = |until| Shape::holds(&skus, Life::Until(until), args.random_order_ids);
    let load = |holds| Fill { holds, clients: FILLERS, threads: args.threads };
    // The first few tell how long the others will take, and so when all of them can lapse.
    let all = args.lapse_holds as u64;
    let some = (all / 20).max(1);
    let far = monotonic() + Duration::from_hours(1);
    let trial = names("TRIAL", 1);
    api.create(&trial, PLENTY).await?;
    let trial = Shape::holds(&trial, Life::Until(far), args.random_order_ids);
    let tried = fill(target, trial, load(some), &progress).await?;
    let expected = tried.spent.mul_f64(all as f64 / some as f64);
    let moment = monotonic() + expected.mul_f64(1.3) + Duration::from_secs(CALM + 4);
    let filled = fill(target, holds(moment), load(all), &progress).await?;
    let left = moment.saturating_duration_since(monotonic());
    if left < Duration::from_secs(5) {
        return Err("making the holds took longer than its first part promised; run it again".into());
    }
    progress.say("waiting for the lapse");
    tokio::time::sleep(left.saturating_sub(Duration::from_secs(CALM + 2))).await;
    let newcomers = names("NEW", 1);
    api.create(&newcomers, PLENTY).await?;
    let trickle = Plan {
        shape: Shape::holds(&newcomers, Life::Seconds(args.ttl.max(300)), args.random_order_ids),
        clients: NEWCOMERS,
        threads: 1,
        rate: Some(f64::from(args.lapse_rate)),
        phases: vec![SECOND; (moment.saturating_duration_since(monotonic()).as_secs() + AFTER) as usize],
        requests: None,
    };
    let came = run(target, &trickle, &progress).await?;
    progress.say("checking");
    tell(args, &came, moment, report)?;
    wait_until_back(&mut api, &skus[0], &filled).await?;
    let fresh = Promised {
        skus: &newcomers,
        total: PLENTY,
        accepted: &came.accepted,
        in_doubt: &came.in_doubt,
        all_live: true,
    };
    let gone = Promised { skus: &skus, total: PLENTY, accepted: &[0], in_doubt: &[0], all_live: true };
    Ok(check(&mut api, fresh).await?.and(check(&mut api, gone).await?))
}

/// The seconds before the moment together, and those from it on.
fn tell(args: &Args, came: &Tally, moment: Instant, report: &mut Report) -> Result<(), String> {
    let (mut before, mut after) = (Phase::new(SECOND)?, Phase::new(SECOND)?);
    let (mut seconds_before, mut seconds_after, mut worst) = (0, 0, 0.0_f64);
    // The first second warms up; the last phase holds what came after the end.
    for (n, phase) in came.phases.iter().enumerate().take(came.phases.len() - 1).skip(1) {
        let from = came.start + SECOND * n as u32;
        if from + SECOND + ROUNDING <= moment {
            before.add(phase);
            seconds_before += 1;
        } else if from + SECOND + ROUNDING > moment && from < moment + Duration::from_secs(10) {
            after.add(phase);
            seconds_after += 1;
            worst = worst.max(phase.latencies.summary().p99_ms);
        }
    }
    before.length = SECOND * seconds_before;
    after.length = SECOND * seconds_after;
    let rate = Some(f64::from(args.lapse_rate));
    report.rows.push(Row::new("lapse: before", NEWCOMERS, rate, &before, 0));
    report.rows.push(Row::new("lapse: then", NEWCOMERS, rate, &after, came.missed));
    let calm = before.latencies.summary().p99_ms;
    report.ratios.push(Ratio {
        promise: "P8",
        what: format!("{} holds lapse in a second, p99 added in the worst second", grouped(args.lapse_holds as f64)),
        value: (worst - calm).max(0.0),
        unit: " ms",
        bar: Some(20.0),
        less_is_better: true,
    });
    Ok(())
}

/// Every unit is to be available again.
async fn wait_until_back(api: &mut Api, sku: &str, filled: &Tally) -> Result<(), String> {
    let began = monotonic();
    loop {
        let stock = api.stock(sku).await?;
        if stock.held == 0 {
            return Ok(());
        }
        if began.elapsed() > Duration::from_mins(1) {
            let (held, all) = (stock.held, filled.accepted_in_all());
            return Err(format!("{held} units of {all} lapsed holds are still held a minute later"));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
