//! `holdfast drill`: a flash sale with everything that goes wrong in one, and a verdict from the books of both sides.
//! Must never judge by what it counted itself.

mod args;
mod evidence;
mod place;
mod plan;
mod pool;
mod progress;
mod queue;
mod quiet;
mod report;
mod shop;
mod shopper;
mod verdict;

pub(crate) use args::Args;

use crate::Failure;
use crate::api::Api;
use holdfast_engine::clock::{monotonic, random_seed, random_token};
use place::Place;
use pool::Pool;
use progress::Progress;
use report::{Asked, Report};
use serde_json::{Value, json};
use shop::Shop;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use verdict::Verdict;

/// How often the bar moves.
const SHOW: Duration = Duration::from_millis(100);
/// What goes wrong unless --script says otherwise.
const SCRIPT: &[u8] = include_bytes!("script.json");

/// Runs a drill and tells the verdict.
///
/// # Errors
/// When it could not be held; [`Failure::Found`] when a promise was broken.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let held = tokio::select! {
        held = hold(&args) => held,
        // Dropping what runs stops the server that was started and removes its folder.
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    let report = held?;
    print!("{}", report.text());
    if let Some(file) = &args.json {
        let json = serde_json::to_vec_pretty(&report)?;
        std::fs::write(file, json).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    if report.verdict.is_good() { Ok(()) } else { Err(Failure::Found) }
}

async fn hold(args: &Args) -> Result<Report, String> {
    let script = match &args.script {
        Some(file) => std::fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?,
        None => SCRIPT.to_vec(),
    };
    let seed = args.seed.unwrap_or_else(random_seed);
    let run = format!("drill-{}", &random_token()[..8]);
    let sku = args.sku.clone().unwrap_or_else(|| run.to_uppercase());
    let progress = Progress::new();
    progress.say("starting");
    let place = Place::open(args, seed, Path::new(".")).await?;
    let mut api = Api::new(&place.target);
    if api.stock(&sku).await.is_ok() {
        return Err(format!("{sku} exists already, and its orders would count: choose another name with --sku"));
    }
    progress.say("one payment to see that server and provider hear each other");
    place.probe(&run, args.patience).await?;
    place.provider.follow(&script).map_err(|e| format!("the script: {e}"))?;
    api.create(std::slice::from_ref(&sku), args.units.into()).await?;
    let server = Pool::new(&place.target, args.connections);
    // The provider's answers are not what is measured.
    let provider = Pool::new(&place.bank, args.connections);
    let mut shop = Shop::new(server, provider, sku.clone(), run, args.ttl())?;
    if let Some(rate) = args.waiting_room {
        shop.sale = Some(open_room(&mut api, &sku, rate, args).await?);
    }
    let shop = Arc::new(shop);
    let began = monotonic();
    everybody(&place, &shop, (args, seed), began, &progress).await?;
    let mut verdict = quiet::judge(&place, &sku, args.units.into(), args.patience, |what| progress.say(what)).await?;
    no_failures(&shop, &mut verdict);
    let asked = Asked {
        shoppers: args.shoppers,
        units: args.units,
        over_seconds: args.over.as_secs_f64(),
        ttl_seconds: args.ttl(),
        waiting_room_per_second: args.waiting_room,
        sku,
        seed,
    };
    let report = Report::new(asked, &shop.seen.lock(), verdict, began.elapsed().as_secs_f64());
    progress.end();
    place.close().await?;
    Ok(report)
}

/// A sale with a room in front of it. As many are in the shop as there are units: nobody comes in for nothing.
async fn open_room(api: &mut Api, sku: &str, rate: u32, args: &Args) -> Result<String, String> {
    let sale = sku.to_ascii_lowercase();
    // Shoppers are told to ask at least twice within a turn: in a short drill, turns are short.
    let turn = args.ttl().clamp(6, 60);
    let room =
        json!({"max_active": args.units, "admit_per_second": rate, "turn_seconds": turn, "session_seconds": 600});
    let body = json!({"skus": [sku], "waiting_room": room}).to_string();
    let _: Value = api.json("PUT", &format!("/v1/sales/{sale}"), "application/json", body.as_bytes()).await?;
    Ok(sale)
}

/// No answer to a decent request says that the server failed. This is the one promise that only the shoppers can
/// witness.
fn no_failures(shop: &Shop, verdict: &mut Verdict) {
    let seen = shop.seen.lock();
    let failed = seen.others.iter().filter(|((_, status), _)| *status >= 500 && *status != 503);
    let failed: Vec<String> = failed.map(|((call, status), n)| format!("{call}: {n} times {status}")).collect();
    if !failed.is_empty() {
        verdict.breach("no_server_errors", "the server failed where it should have answered", failed);
    }
}

/// Sends everybody in at their time, and waits until the last one is done.
async fn everybody(
    place: &Place,
    shop: &Arc<Shop>,
    (args, seed): (&Args, u64),
    began: Instant,
    progress: &Progress,
) -> Result<(), String> {
    let shoppers = plan::draw(seed, args.shoppers, args.over);
    let mut inside = JoinSet::new();
    let mut shown = Duration::ZERO;
    for shopper in shoppers {
        tokio::time::sleep_until((began + shopper.at).into()).await;
        let with = shop.clone();
        inside.spawn(async move { shopper::live(&with, &shopper).await });
        // Those who are done are let go, so that memory holds only those who are inside.
        while inside.try_join_next().is_some() {}
        let spent = began.elapsed();
        if spent > shown {
            shown = spent + SHOW;
            progress.show(spent, args.over, &shop.seen.lock(), place.provider.refunds());
        }
    }
    while let Some(done) = inside.join_next().await {
        done.map_err(|e| format!("a shopper did not come to an end: {e}"))?;
        progress.show(began.elapsed(), args.over, &shop.seen.lock(), place.provider.refunds());
    }
    Ok(())
}
