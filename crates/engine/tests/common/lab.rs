//! A bench for scenarios: one engine, a clock that only the scenario moves, and the invariants after every step.

use super::invariants::{self, Everything};
use super::make::{Cart, Fact, START, adjust, lines, order_id, reference, set, sku, ttl};
use holdfast_engine::domain::{
    Command, EntryKind, Hold, HoldId, HoldStatus, Job, Order, Outcome, Payment, PaymentStatus, Policy, Settlement,
    Stock, Time,
};
use holdfast_engine::{Answer, Engine, LedgerFilter, Now};
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A fresh engine, and whatever must live as long as it does.
pub struct Opened {
    pub engine: Arc<dyn Engine>,
    pub keep: Box<dyn Any + Send>,
}

/// How a subject makes a fresh engine with this policy.
/// `None`: what it needs is not there, and the test is skipped.
pub type Open = fn(Policy) -> Pin<Box<dyn Future<Output = Option<Opened>> + Send>>;

/// See the file's header.
pub struct Lab {
    pub engine: Arc<dyn Engine>,
    pub now: Time,
    open: Open,
    _keep: Box<dyn Any + Send>,
}

impl Lab {
    pub async fn new(open: Open) -> Option<Self> {
        let Opened { engine, keep } = open(Policy::default()).await?;
        Some(Self { engine, now: START, open, _keep: keep })
    }

    /// A fresh engine under another policy.
    pub async fn under(&self, policy: Policy) -> Self {
        let Opened { engine, keep } = (self.open)(policy).await.unwrap();
        Self { engine, now: START, open: self.open, _keep: keep }
    }

    /// Lets time pass.
    pub fn wait(&mut self, seconds: u32) {
        self.now = self.now.plus_seconds(seconds);
    }

    /// Applies a batch, then checks every invariant.
    pub async fn ask_all(&mut self, batch: Vec<Command>) -> Vec<Answer> {
        let answers = self.engine.apply(batch, Now::At(self.now)).await.unwrap();
        invariants::check(&*self.engine).await;
        answers
    }

    /// Applies one command, then checks every invariant.
    pub async fn ask(&mut self, command: impl Into<Command>) -> Answer {
        let mut answers = self.ask_all(vec![command.into()]).await;
        assert_eq!(answers.len(), 1);
        answers.remove(0)
    }

    pub async fn everything(&self) -> Everything {
        invariants::everything(&*self.engine).await
    }

    /// Sets the total of a SKU.
    pub async fn stocked(&mut self, name: &str, total: u64) {
        self.ask(Command::SetStock(set(name, total))).await.unwrap();
    }

    /// Sets the total of a SKU, and how many one customer may have.
    pub async fn limited(&mut self, name: &str, total: u64, limit: u64) {
        let mut asked = set(name, total);
        asked.limit_per_customer = Some(Some(limit));
        self.ask(Command::SetStock(asked)).await.unwrap();
    }

    /// The counters as of the lab's clock: an adjustment by nothing answers them and changes nothing.
    pub async fn stock(&mut self, name: &str) -> Stock {
        match self.ask(adjust(name, 0)).await {
            Ok(Outcome::Stock { stock, created: false, changed: false }) => stock,
            other => panic!("the counters of {name}: {other:?}"),
        }
    }

    /// Available, held and sold as of the lab's clock.
    pub async fn counts(&mut self, name: &str) -> (u64, u64, u64) {
        let stock = self.stock(name).await;
        (stock.available, stock.held, stock.sold)
    }

    /// A hold that must be made anew.
    pub async fn held(&mut self, cart: Cart) -> Hold {
        match self.ask(cart).await {
            Ok(Outcome::Held { hold, replay: false }) => hold,
            other => panic!("a new hold was wanted: {other:?}"),
        }
    }

    pub async fn change(&mut self, hold: HoldId, asked: &[(&str, u64)]) -> Answer {
        self.ask(Command::Change { hold, lines: Some(lines(asked)), amount: None, payment_ref: None }).await
    }

    pub async fn extend(&mut self, hold: HoldId, seconds: u64) -> Answer {
        self.ask(Command::Extend { hold, ttl: ttl(seconds) }).await
    }

    pub async fn release(&mut self, hold: HoldId) -> Answer {
        self.ask(Command::Release { hold }).await
    }

    /// The status of a hold whose release must be answered with the hold.
    pub async fn released(&mut self, hold: HoldId) -> HoldStatus {
        match self.release(hold).await {
            Ok(Outcome::Hold(hold)) => hold.status,
            other => panic!("a release was wanted: {other:?}"),
        }
    }

    pub async fn confirm(&mut self, hold: HoldId) -> Answer {
        self.ask(Command::Confirm { hold, payment_ref: None }).await
    }

    /// A confirmation that must succeed.
    pub async fn confirmed(&mut self, hold: HoldId) -> Order {
        match self.confirm(hold).await {
            Ok(Outcome::Order(order)) => order,
            other => panic!("an order was wanted: {other:?}"),
        }
    }

    pub async fn give_back(&mut self, order: &str, asked: &[(&str, u64)], key: Option<&str>) -> Answer {
        let key = key.map(reference);
        self.ask(Command::Return { order: order_id(order), lines: lines(asked), key }).await
    }

    /// Tells a fact; its settlement.
    pub async fn pay(&mut self, fact: Fact) -> Settlement {
        match self.ask(fact).await {
            Ok(Outcome::Settled(settlement)) => settlement,
            other => panic!("a settlement was wanted: {other:?}"),
        }
    }

    /// One pass of the janitor without a bound: how many holds it expired.
    pub async fn sweep(&mut self) -> u32 {
        match self.ask(Command::Sweep { limit: 1000 }).await {
            Ok(Outcome::Swept { expired, more: false }) => expired,
            other => panic!("a sweep was wanted: {other:?}"),
        }
    }

    pub async fn hold(&self, id: HoldId) -> Hold {
        self.engine.hold(id).await.unwrap().unwrap()
    }

    pub async fn order(&self, id: &str) -> Option<Order> {
        self.engine.order(&order_id(id)).await.unwrap().map(|view| view.order)
    }

    pub async fn payment(&self, id: &str) -> Payment {
        let all = self.everything().await.payments;
        all.into_iter().find(|p| p.key.payment_id.as_str() == id).unwrap()
    }

    pub async fn payment_status(&self, id: &str) -> PaymentStatus {
        self.payment(id).await.status
    }

    /// What is to be done at a provider as of the lab's clock.
    pub async fn due(&self, provider: &str) -> Vec<Job> {
        self.engine.due_jobs(provider, self.now, 100).await.unwrap()
    }

    /// The kinds of a SKU's entries, in order.
    pub async fn story(&self, name: &str) -> Vec<&'static str> {
        let filter = LedgerFilter { sku: Some(sku(name)), ..LedgerFilter::default() };
        let page = self.engine.ledger(filter, 1000).await.unwrap();
        page.items.iter().map(|n| n.entry.kind.as_str()).collect()
    }

    /// How many entries of this kind there are.
    pub async fn count(&self, kind: EntryKind) -> usize {
        self.everything().await.ledger.iter().filter(|n| n.entry.kind == kind).count()
    }
}
