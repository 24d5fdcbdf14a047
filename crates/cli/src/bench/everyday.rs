//! The everyday scenarios: noop, hot, half, soldout, spread, cart, clients.

use super::args::{Args, Scenario};
use super::check::{Promised, Verdict, check};
use super::load::{Plan, run};
use super::progress::Progress;
use super::rows::Row;
use super::shape::{Asks, Life, Shape};
use crate::api::Api;
use crate::random::Random;
use crate::server::Target;
use holdfast_engine::clock::monotonic;
use holdfast_engine::redis::Backlog;
use std::sync::Arc;
use std::time::Duration;

/// Units of a SKU that never sells out here.
pub(super) const PLENTY: u64 = 1_000_000_000;

/// How long the ledger of an engine on Redis may take to have everything.
const CATCHING_UP: Duration = Duration::from_mins(5);

/// Names that no other run has used on the same server.
pub(super) fn names(kind: &str, n: usize) -> Arc<[String]> {
    let run = Random::new().next() >> 32;
    (0..n).map(|i| format!("BENCH-{run:08x}-{kind}-{i:06}")).collect()
}

/// Runs scenarios against one server and keeps what came out.
pub(super) struct Everyday<'a> {
    args: &'a Args,
    target: &'a Target,
    api: Api,
    /// A line for each run.
    pub(super) rows: Vec<Row>,
    /// Over all of them.
    pub(super) verdict: Option<Verdict>,
    /// What else is worth telling.
    pub(super) notes: Vec<String>,
    hot: f64,
    backlog: Option<Backlog>,
}

/// How to load it.
struct Load {
    name: String,
    clients: usize,
    rate: Option<f64>,
}

impl<'a> Everyday<'a> {
    /// Against this server.
    pub(super) fn new(args: &'a Args, target: &'a Target, backlog: Option<Backlog>) -> Self {
        let (rows, notes) = (Vec::new(), Vec::new());
        Self { args, target, api: Api::new(target), rows, verdict: None, notes, hot: 0.0, backlog }
    }

    /// Runs one of them.
    pub(super) async fn run(&mut self, scenario: Scenario) -> Result<(), String> {
        let shape = |skus: &Arc<[String]>| Shape::holds(skus, Life::Seconds(self.args.ttl), self.args.random_order_ids);
        let load = |name: &str| Load {
            name: name.to_owned(),
            clients: self.args.clients,
            rate: self.args.rate.map(f64::from),
        };
        match scenario {
            Scenario::Noop => self.noop(shape(&names("NOOP", 1)), load("noop")).await,
            Scenario::Hot => {
                self.holds(shape(&names("HOT", 1)), PLENTY, load("hot")).await?;
                self.hot = self.rows.last().map_or(0.0, |row| row.accepted_per_second);
                Ok(())
            }
            Scenario::Half => {
                let half = Load { rate: Some((self.hot / 2.0).max(1.0)), ..load("half") };
                self.holds(shape(&names("HALF", 1)), PLENTY, half).await
            }
            Scenario::Soldout => self.holds(shape(&names("NONE", 1)), 0, load("soldout")).await,
            Scenario::Spread => self.holds(shape(&names("SPREAD", 1000)), PLENTY, load("spread")).await,
            Scenario::Cart => {
                let cart = Shape { lines: 3..=10, ..shape(&names("CART", 100)) };
                self.holds(cart, PLENTY, load("cart")).await
            }
            Scenario::Clients => {
                for clients in self.args.concurrencies(&[64, 256]) {
                    let shape = Shape::holds(&names("K", 1), Life::Seconds(self.args.ttl), self.args.random_order_ids);
                    let many = Load { name: format!("clients {clients}"), clients, rate: None };
                    self.holds(shape, PLENTY, many).await?;
                }
                Ok(())
            }
            Scenario::All | Scenario::Lapse | Scenario::Startup | Scenario::Waiting => {
                Err("not an everyday scenario".into())
            }
        }
    }

    async fn noop(&mut self, shape: Shape, load: Load) -> Result<(), String> {
        if !self.api.has_noop().await {
            eprintln!("noop: this server has no POST /bench/noop (start it with HOLDFAST_BENCH=1); left out");
            return Ok(());
        }
        let shape = Shape { asks: Asks::Hold("/bench/noop"), accepted: 200, ..shape };
        let (plan, progress) = (self.plan(shape, &load), Progress::new(&load.name));
        let tally = run(self.target, &plan, &progress).await?;
        self.rows.push(Row::new(&load.name, load.clients, load.rate, &tally.phases[1], tally.missed));
        Ok(())
    }

    async fn holds(&mut self, shape: Shape, total: u64, load: Load) -> Result<(), String> {
        let progress = Progress::new(&load.name);
        progress.say("creating stock");
        self.api.create(&shape.skus, total).await?;
        let skus = shape.skus.clone();
        let plan = self.plan(shape, &load);
        let tally = run(self.target, &plan, &progress).await?;
        self.catch_up(&load.name, &progress).await?;
        progress.say("checking");
        let promised = Promised {
            skus: &skus,
            total,
            accepted: &tally.accepted,
            in_doubt: &tally.in_doubt,
            all_live: tally.start.elapsed() < Duration::from_secs(self.args.ttl.into()),
        };
        let verdict = check(&mut self.api, promised).await?;
        self.verdict = Some(self.verdict.unwrap_or_default().and(verdict));
        self.rows.push(Row::new(&load.name, load.clients, load.rate, &tally.phases[1], tally.missed));
        Ok(())
    }

    /// Waits until the ledger has everything, if there is one, and tells how long that took.
    async fn catch_up(&mut self, name: &str, progress: &Progress) -> Result<(), String> {
        let Some(backlog) = &self.backlog else { return Ok(()) };
        progress.say("waiting for the ledger");
        let start = monotonic();
        let entries = || async { backlog.entries().await.map_err(|e| e.to_string()) };
        let behind = entries().await?;
        let mut left = behind;
        while left > 0 && start.elapsed() < CATCHING_UP {
            tokio::time::sleep(Duration::from_millis(20)).await;
            left = entries().await?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let end = if left == 0 {
            format!("caught up in {seconds:.1} s")
        } else {
            format!("{left} left after {seconds:.0} s")
        };
        self.notes.push(format!("ledger after {name}: {behind} log entries behind at the end, {end}"));
        Ok(())
    }

    fn plan(&self, shape: Shape, load: &Load) -> Plan {
        Plan {
            shape,
            clients: load.clients,
            threads: self.args.threads,
            rate: load.rate,
            phases: vec![self.args.warmup, self.args.seconds],
            requests: None,
        }
    }
}
