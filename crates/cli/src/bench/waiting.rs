//! P11: very many tickets wait in one room. How many more join, and how many ask where they stand, in a second?

use super::args::Args;
use super::check::Verdict;
use super::everyday::{PLENTY, names};
use super::load::{Fill, Plan, fill, run};
use super::progress::Progress;
use super::report::Report;
use super::rows::{Ratio, Row, grouped};
use super::shape::{Asks, Life, Shape};
use crate::api::Api;
use crate::server::Target;
use holdfast_engine::clock::wall;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// Tickets that are asked about, chosen at random. They stand all over the line, as the draw has put them.
const KNOWN: usize = 20_000;
/// Connections that fill the room.
const FILLERS: usize = 64;
const JSON: &str = "application/json";

/// Runs it.
pub(super) async fn waiting(args: &Args, target: &Target, report: &mut Report) -> Result<Verdict, String> {
    let progress = Progress::new("waiting");
    let mut api = Api::new(target);
    let skus = names("WAIT", 1);
    api.create(&skus, PLENTY).await?;
    let sale = skus[0].to_ascii_lowercase();
    let path = format!("/v1/sales/{sale}");
    let queue = format!("{path}/queue");
    let body = |starts_at: Option<String>| {
        let sale = json!({"skus": [skus[0]], "starts_at": starts_at, "waiting_room":
            {"max_active": 1, "admit_per_second": 1, "turn_seconds": 3600, "prequeue_seconds": 86_400}});
        sale.to_string().into_bytes()
    };
    // Whoever waits for the start need not ask meanwhile, and is there when it comes.
    let _: Value = api.json("PUT", &path, JSON, &body(Some(in_an_hour()))).await?;
    let mut known = Vec::with_capacity(KNOWN);
    progress.say("joining one by one");
    for _ in 0..KNOWN.min(args.tickets) {
        let ticket: Value = api.json("POST", &queue, JSON, b"{}").await?;
        let text = ticket["ticket"].as_str().ok_or("an answer without a ticket")?;
        known.push(format!("{queue}/{text}"));
    }
    let shape = |asks: Asks, accepted: u16| Shape {
        asks,
        accepted,
        ..Shape::holds(&skus, Life::Seconds(args.ttl), args.random_order_ids)
    };
    let join = || shape(Asks::Post(queue.as_str().into()), 201);
    let rest = (args.tickets - known.len()) as u64;
    if rest > 0 {
        fill(target, join(), Fill { holds: rest, clients: FILLERS, threads: args.threads }, &progress).await?;
    }
    if !api.has_noop().await {
        return Err("this server has no POST /bench/noop to compare with: start it with HOLDFAST_BENCH=1".into());
    }
    let noop = measure(args, target, "noop", shape(Asks::Post("/bench/noop".into()), 200), report).await?;
    let joined = measure(args, target, "join", join(), report).await?;
    let _: Value = api.json("PUT", &path, JSON, &body(None)).await?;
    let polled = measure(args, target, "poll", shape(Asks::Get(known.into()), 200), report).await?;
    let board: Value = api.json("GET", &queue, JSON, b"").await?;
    report.notes.push(format!("the room at the end: {} waiting", grouped(board["waiting"].as_f64().unwrap_or(0.0))));
    for (what, rate) in [("joins", joined), ("polls", polled)] {
        report.ratios.push(Ratio {
            promise: "P11",
            what: format!("{what} per second with {} tickets ÷ no-op", grouped(args.tickets as f64)),
            value: rate / noop,
            unit: "",
            bar: Some(0.3),
            less_is_better: false,
        });
    }
    api.call("DELETE", &path, JSON, b"").await?;
    Ok(Verdict::default())
}

/// Answers per second.
async fn measure(args: &Args, target: &Target, name: &str, shape: Shape, report: &mut Report) -> Result<f64, String> {
    let rate = args.rate.map(f64::from);
    let phases = vec![args.warmup, args.seconds];
    let plan = Plan { shape, clients: args.clients, threads: args.threads, rate, phases, requests: None };
    let tally = run(target, &plan, &Progress::new(name)).await?;
    let row = Row::new(&format!("waiting: {name}"), args.clients, rate, &tally.phases[1], tally.missed);
    let throughput = row.throughput();
    report.rows.push(row);
    Ok(throughput)
}

fn in_an_hour() -> String {
    let at = Duration::from_millis(u64::try_from(wall().millis()).unwrap_or(0)) + Duration::from_hours(1);
    humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + at).to_string()
}
