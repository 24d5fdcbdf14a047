//! The waiting rooms of this node's sales: the pure room behind a lock, its journal, and what it has to know of the stock.

use super::binding::{self, Shown};
use super::journal::Journal;
use super::registry::Sales;
use super::sale::{RoomOrder, Sale};
use crate::app::App;
use crate::problem::Problem;
use holdfast_admission::room::{Counts, OrderRule, ReplayEnd, Room, RoomRules, StockSignal, TicketId};
use holdfast_domain::{HoldStatus, OrderId, Time};
use holdfast_engine::clock::random_seed;
use holdfast_engine::{Engine, EngineError, HoldFilter};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

/// Holds that are looked at in one step to see whether they have ended.
const LOOKS: usize = 256;
/// Everybody who waits asks again within this time, in milliseconds.
const RETURN_MS: i64 = 36_000;
/// How long before the start of this process a journal may have lost its end, in milliseconds.
const UNSYNCED_MS: i64 = 120_000;

/// One room, and what goes with it.
pub(crate) struct LiveRoom {
    pub(crate) sale: String,
    seed: [u8; 32],
    state: Mutex<State>,
}

/// What is behind the lock.
pub(super) struct State {
    pub(super) room: Room,
    pub(super) stock: Stock,
    journal: Option<Journal>,
    /// The last moment at which somebody joined, in microseconds: no two join in the same one.
    joined_us: u64,
    /// The orders of those who have a hold, and their passes.
    orders: BTreeMap<TicketId, (OrderId, Shown)>,
    looked: Option<TicketId>,
    /// Before this moment nobody is called: those whose places were lost come back first.
    calls_from: Time,
}

/// The units of all SKUs of a sale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stock {
    pub(super) signal: StockSignal,
    pub(super) total: u64,
}

impl LiveRoom {
    fn open(sale: &Sale, rules: RoomRules, folder: Option<&PathBuf>, now: Time) -> Self {
        let mut room = Room::new(rules, random_seed());
        let mut journal = None;
        // A sale that was made just now has nothing to lose.
        let is_old = sale.kept.created_at.millis() + RETURN_MS < now.millis();
        let mut lost_from = Some(sale.kept.created_at);
        if let Some(folder) = folder {
            match Journal::open(folder, &sale.name, &sale.commitment()) {
                Ok((opened, bytes)) => {
                    let done = room.replay(&bytes);
                    lost_from = match done.end {
                        _ if bytes.is_empty() => lost_from,
                        // Whoever is unknown now has ended, and stays so.
                        ReplayEnd::Whole => None,
                        ReplayEnd::Torn => lost_from.max(Some(Time::from_millis(now.millis() - UNSYNCED_MS))),
                        ReplayEnd::Damaged => lost_from,
                    };
                    if done.end == ReplayEnd::Damaged {
                        tracing::error!(
                            sale = sale.name,
                            at = done.valid_len,
                            "the journal of the waiting room is damaged; its tickets are taken back as they come"
                        );
                    }
                    tracing::info!(sale = sale.name, records = done.applied, "the waiting room is as it was");
                    journal = Some(opened);
                }
                Err(error) => {
                    tracing::error!(sale = sale.name, %error, "the waiting room has no journal: after a restart, places are known as their tickets come back");
                }
            }
        }
        let is_lost = lost_from == Some(sale.kept.created_at) && is_old;
        if let Some(from) = lost_from {
            room.lose(from, now);
        }
        let state = State {
            room,
            stock: Stock::default(),
            journal,
            joined_us: 0,
            orders: BTreeMap::new(),
            looked: None,
            calls_from: if is_lost { Time::from_millis(now.millis() + RETURN_MS) } else { Time::default() },
        };
        let live = Self { sale: sale.name.clone(), seed: sale.kept.seed, state: Mutex::new(state) };
        live.change(|state| {
            // A torn end, and what has ended long ago, are left behind.
            let bytes = state.room.snapshot();
            state.rewrite(&live.sale, &bytes);
        });
        live
    }

    /// The seed of the draw that its tickets took part in.
    pub(super) fn seed(&self) -> &[u8; 32] {
        &self.seed
    }

    /// Does something with the room, and notes what changed.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let done = act(&mut state);
        state.note(&self.sale);
        done
    }
}

impl State {
    /// Joining moments, each once.
    pub(super) fn next_us(&mut self, now: Time) -> u64 {
        let now = u64::try_from(now.millis()).unwrap_or(0).saturating_mul(1000);
        self.joined_us = now.max(self.joined_us + 1);
        self.joined_us
    }

    fn note(&mut self, sale: &str) {
        let records = self.room.take_records();
        if records.is_empty() {
            return;
        }
        let Some(journal) = &mut self.journal else { return };
        if let Err(error) = journal.append(&records) {
            self.without_journal(sale, &error);
        } else if journal.is_long() {
            let bytes = self.room.snapshot();
            self.rewrite(sale, &bytes);
        }
    }

    fn rewrite(&mut self, sale: &str, bytes: &[u8]) {
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.replace(bytes)
        {
            self.without_journal(sale, &error);
        }
    }

    fn without_journal(&mut self, sale: &str, error: &std::io::Error) {
        tracing::error!(sale, %error, "the journal of the waiting room cannot be written: after a restart, places are known as their tickets come back");
        // A file that lacks what came later would be believed.
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.remove()
        {
            tracing::error!(sale, %error, "remove the journal of the waiting room before the next start");
        }
    }

    /// The next of those who have a hold: each is looked at in turn.
    fn next_holders(&mut self) -> Vec<(TicketId, (OrderId, Shown))> {
        let after = self.looked;
        let later = self.orders.iter().filter(|(ticket, _)| after.is_none_or(|after| **ticket > after));
        let next: Vec<_> = later.take(LOOKS).map(|(ticket, held)| (*ticket, held.clone())).collect();
        self.looked = next.last().filter(|_| next.len() == LOOKS).map(|(ticket, _)| *ticket);
        next
    }
}

/// All rooms of this node.
pub(super) struct Rooms {
    engine: Arc<dyn Engine>,
    folder: Option<PathBuf>,
    by_sale: RwLock<HashMap<String, Arc<LiveRoom>>>,
}

impl Rooms {
    pub(super) fn new(engine: Arc<dyn Engine>, folder: Option<PathBuf>) -> Self {
        Self { engine, folder, by_sale: RwLock::default() }
    }

    /// The room of a sale.
    pub(super) fn get(&self, sale: &str) -> Option<Arc<LiveRoom>> {
        self.by_sale.read().get(sale).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<LiveRoom>> {
        self.by_sale.read().values().cloned().collect()
    }

    /// Follows a change of the sales.
    pub(super) fn follow(&self, sales: &Sales, now: Time) {
        let mut rooms = self.by_sale.write();
        rooms.retain(|name, live| {
            let is_kept = sales.get(name).is_some_and(|sale| sale.room.is_some() && sale.kept.seed == live.seed);
            if !is_kept
                && let Some(journal) = live.state.lock().journal.take()
                && let Err(error) = journal.remove()
            {
                tracing::warn!(sale = name, %error, "the journal of a waiting room that is gone is left behind");
            }
            is_kept
        });
        for sale in sales.all() {
            let Some(rules) = rules(sale) else { continue };
            let open = || Arc::new(LiveRoom::open(sale, rules, self.folder.as_ref(), now));
            let live = rooms.entry(sale.name.clone()).or_insert_with(open);
            let mut state = live.state.lock();
            state.room.set_rules(rules);
            state.room.set_paused(sale.kept.paused);
        }
    }

    /// Begins anew, with empty rooms: this node keeps them from now on. Whoever waited comes back first.
    pub(super) fn begin(&self, sales: &Sales, now: Time) {
        self.by_sale.write().clear();
        self.follow(sales, now);
    }

    /// Who has a hold, after a restart: the passes that are bound to orders say it.
    pub(super) async fn recall(
        &self,
        tickets: impl Fn(&str, &str) -> Option<TicketId> + Send + Sync,
    ) -> Result<(), EngineError> {
        for live in self.all() {
            for (shown, order) in binding::all(&*self.engine, &live.sale).await? {
                let Some(ticket) = tickets(&live.sale, &shown.ticket) else { continue };
                // A pass is bound before its order has a hold, and may never get one.
                let is_known = live.change(|state| state.orders.contains_key(&ticket));
                if !is_known && held(&*self.engine, &order).await? != Held::Never {
                    live.holds(ticket, &order, &shown);
                }
            }
        }
        Ok(())
    }

    /// Moves one room on.
    pub(super) async fn step(&self, app: &App, live: &LiveRoom, sale: &Sale, pace: f64) -> Result<(), EngineError> {
        let mut stock = Stock { signal: StockSignal { known: true, ..StockSignal::default() }, total: 0 };
        for sku in &sale.skus {
            if let Some(of) = app.engine.stock(sku).await? {
                stock.signal.available += of.available;
                stock.signal.held += of.held;
                stock.total += of.total();
            }
        }
        let now = app.engine.time();
        let holders = live.change(|state| {
            state.stock = stock;
            let pace = if now < state.calls_from { 0.0 } else { pace };
            state.room.step(stock.signal, pace, now);
            state.next_holders()
        });
        for (ticket, (order, shown)) in holders {
            if held(&*app.engine, &order).await? == Held::Ended {
                // First the pass: whoever is told that the place is free must not find it good.
                shown.close(&*app.engine).await?;
                live.finish(ticket, app.engine.time());
            }
        }
        Ok(())
    }
}

impl LiveRoom {
    pub(super) fn counts(&self, now: Time) -> Counts {
        self.change(|state| state.room.counts(now))
    }

    /// The ticket's order has a hold now.
    pub(super) fn holds(&self, ticket: TicketId, order: &OrderId, shown: &Shown) {
        self.change(|state| {
            if state.room.holds(ticket) {
                state.orders.insert(ticket, (order.clone(), shown.clone()));
            }
        });
    }

    fn finish(&self, ticket: TicketId, now: Time) {
        self.change(|state| {
            state.orders.remove(&ticket);
            state.room.finish(ticket, now);
        });
    }
}

/// What is known of the hold of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// It never had one, or not yet.
    Never,
    Now,
    /// It was confirmed, released or has lapsed.
    Ended,
}

async fn held(engine: &dyn Engine, order: &OrderId) -> Result<Held, EngineError> {
    if engine.order(order).await?.is_some() {
        return Ok(Held::Ended);
    }
    let filter = HoldFilter { order_id: Some(order.clone()), ..HoldFilter::default() };
    let live = HoldFilter { status: Some(HoldStatus::Held), ..filter.clone() };
    Ok(if !engine.holds(live, 1).await?.items.is_empty() {
        Held::Now
    } else if engine.holds(filter, 1).await?.items.is_empty() {
        Held::Never
    } else {
        Held::Ended
    })
}

fn rules(sale: &Sale) -> Option<RoomRules> {
    let room = sale.room.as_ref()?;
    Some(RoomRules {
        max_active: room.max_active,
        admit_per_second: room.admit_per_second,
        turn_seconds: room.turn_seconds,
        session_seconds: room.session_seconds,
        prequeue_seconds: room.prequeue_seconds,
        order: match room.order {
            RoomOrder::Draw => OrderRule::Draw,
            RoomOrder::Fifo => OrderRule::Fifo,
        },
        starts_at: sale.starts_at,
        ends_at: sale.ends_at,
    })
}

/// A sale without a room has no queue.
pub(super) fn no_room() -> Problem {
    Problem::new("not_found", "this sale has no waiting room")
}
