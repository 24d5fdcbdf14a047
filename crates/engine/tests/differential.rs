//! Every engine agrees with the bare inventory: seeded random batches with time steps, every answer and everything
//! that can be read compared after each step, until every command and every refusal has been met.
//!
//! The bare inventory applies one command at a time, so this also proves that a batch is the same as its commands one
//! after another. A failure prints its seed and the fewest steps that still fail. `HOLDFAST_SEED` starts elsewhere and
//! `HOLDFAST_ROUNDS` goes on for longer.

#![allow(missing_docs, clippy::unwrap_used)]

mod common;

use async_trait::async_trait;
use common::bare::Bare;
use common::databases::{Database, Kind};
use common::dice::Dice;
use common::invariants::{Everything, check};
use common::make::START;
use common::random::{NAMES, REFUSALS, Shop, Step, name};
use common::redis::{Hot, HotStore};
use holdfast_engine::domain::{EntryKind, HoldId, Outcome, Policy, Refusal, Stock, Time};
use holdfast_engine::embedded::Embedded;
use holdfast_engine::{Answer, Engine, Now, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const STEPS: usize = 70;

/// An engine under comparison.
#[async_trait]
trait Subject {
    fn name(&self) -> String;
    fn engine(&self) -> Arc<dyn Engine>;
    async fn reopen(&mut self);

    /// Whether lapsed holds may be expired at other moments, and what is written down may be in another order.
    fn is_lazy(&self) -> bool {
        false
    }
}

struct OnDisk {
    folder: tempfile::TempDir,
    policy: Policy,
    engine: Option<Arc<Embedded>>,
}

#[async_trait]
impl Subject for OnDisk {
    fn name(&self) -> String {
        "embedded".into()
    }

    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone().unwrap()
    }

    async fn reopen(&mut self) {
        self.engine = None;
        self.engine = Some(Arc::new(Embedded::open_with(self.folder.path(), self.policy.clone()).unwrap()));
    }
}

struct InParts(Arc<Bare>);

#[async_trait]
impl Subject for InParts {
    fn name(&self) -> String {
        "inventory in parts".into()
    }

    fn engine(&self) -> Arc<dyn Engine> {
        self.0.clone()
    }

    async fn reopen(&mut self) {}
}

/// Nodes on one namespace: the one that serves, and after a reopening another.
struct OnDatabase {
    database: Database,
    engine: Arc<dyn Engine>,
}

#[async_trait]
impl Subject for OnDatabase {
    fn name(&self) -> String {
        format!("{} {}", self.database.kind.name(), self.database.config.strategy)
    }

    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    async fn reopen(&mut self) {
        self.engine = self.database.node().await;
    }
}

/// Nodes on one namespace of a hot store and of its ledger.
struct OnHotStore {
    hot: Hot,
    store: HotStore,
    engine: Arc<dyn Engine>,
}

#[async_trait]
impl Subject for OnHotStore {
    fn name(&self) -> String {
        format!("redis ({:?}) on {}", self.hot, self.store.ledger.kind.name())
    }

    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    async fn reopen(&mut self) {
        self.engine = self.store.node().await;
    }

    fn is_lazy(&self) -> bool {
        true
    }
}

/// Which engines have to agree.
#[derive(Clone, Copy)]
enum Subjects {
    InProcess,
    Database(Kind, Strategy),
    HotStore(Hot, Kind),
}

impl Subjects {
    async fn fresh(self, policy: &Policy) -> Vec<Box<dyn Subject>> {
        match self {
            Self::InProcess => {
                let folder = tempfile::tempdir().unwrap();
                let mut on_disk = OnDisk { folder, policy: policy.clone(), engine: None };
                on_disk.reopen().await;
                vec![Box::new(on_disk), Box::new(InParts(Arc::new(Bare::in_parts(policy.clone()))))]
            }
            Self::Database(kind, strategy) => {
                let mut database = Database::shared(kind, strategy).await.unwrap();
                database.config.policy = policy.clone();
                let engine = database.node().await;
                vec![Box::new(OnDatabase { database, engine })]
            }
            Self::HotStore(hot, ledger) => {
                let mut store = HotStore::shared(hot, ledger).await.unwrap();
                store.config.ledger.policy = policy.clone();
                let engine = store.node().await;
                vec![Box::new(OnHotStore { hot, store, engine })]
            }
        }
    }
}

/// An engine's ids by the number of the hold.
#[derive(Default)]
struct Ids {
    list: Vec<HoldId>,
    numbers: BTreeMap<HoldId, usize>,
}

impl Ids {
    fn learn(&mut self, answers: &[Answer]) {
        for answer in answers {
            if let Ok(Outcome::Held { hold, replay: false }) = answer {
                self.numbers.insert(hold.id, self.list.len());
                self.list.push(hold.id);
            }
        }
    }

    /// The text with every id replaced by the hold's number, so that engines can be compared.
    fn told(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(dash) = rest.find('-') {
            let id = dash.checked_sub(8).and_then(|from| Some((from, HoldId::parse(rest.get(from..from + 36)?)?)));
            if let Some((from, id)) = id {
                out.push_str(&rest[..from]);
                out.push_str(&self.numbers.get(&id).map_or("an unknown hold".into(), |n| format!("hold {n}")));
                rest = &rest[from + 36..];
            } else {
                out.push_str(&rest[..=dash]);
                rest = &rest[dash + 1..];
            }
        }
        out + rest
    }
}

#[derive(Default)]
struct Seen {
    commands: BTreeSet<&'static str>,
    refusals: BTreeSet<&'static str>,
    settlements: BTreeSet<String>,
    steps: usize,
}

async fn run(of: Subjects, steps: &[Step], policy: &Policy, seen: &mut Seen) {
    let bare = Bare::whole(policy.clone());
    let mut subjects: Vec<_> = of.fresh(policy).await.into_iter().map(|s| (s, Ids::default())).collect();
    let (mut ids, mut now) = (Ids::default(), START);
    for step in steps {
        seen.steps += 1;
        match step {
            Step::Wait(ms) => now = Time::from_millis(now.millis() + ms),
            Step::Reopen => {
                // Ids of one node grow; those of another that starts later do because it is later.
                now = Time::from_millis(now.millis() + 1);
                for (subject, _) in &mut subjects {
                    subject.reopen().await;
                }
            }
            Step::Batch(asked) => {
                let batch: Vec<_> = asked.iter().map(|ask| ask.resolve(&ids.list)).collect();
                seen.commands.extend(batch.iter().map(name));
                let expected = bare.apply_now(batch, now);
                seen.refusals.extend(expected.iter().filter_map(|a| a.as_ref().err().map(Refusal::code)));
                seen.settlements.extend(expected.iter().filter_map(settlement));
                for (subject, known) in &mut subjects {
                    let batch = asked.iter().map(|ask| ask.resolve(&known.list)).collect();
                    let answers = subject.engine().apply(batch, Now::At(now)).await.unwrap();
                    known.learn(&answers);
                    let mut told = Ids { list: ids.list.clone(), numbers: ids.numbers.clone() };
                    told.learn(&expected);
                    for ((answer, expected), ask) in answers.iter().zip(&expected).zip(asked) {
                        let is_sweep = |a: &Answer| matches!(a, Ok(Outcome::Swept { .. }));
                        if subject.is_lazy() && is_sweep(answer) && is_sweep(expected) {
                            // How many are left to it depends on how many others have expired before it.
                            continue;
                        }
                        let (answer, expected) =
                            (known.told(&format!("{answer:#?}")), told.told(&format!("{expected:#?}")));
                        assert_eq!(answer, expected, "{} answers {ask:?}", subject.name());
                    }
                    assert_eq!(answers.len(), expected.len());
                }
                ids.learn(&expected);
            }
        }
        let expected = check(&bare).await;
        for (subject, known) in &subjects {
            compare(&bare, &expected, &ids, &**subject, known, now).await;
        }
    }
}

fn settlement(answer: &Answer) -> Option<String> {
    match answer {
        Ok(Outcome::Settled(settled)) => {
            let text = format!("{settled:?}");
            Some(text.split('(').next().unwrap_or_default().to_owned())
        }
        _ => None,
    }
}

async fn compare(bare: &Bare, expected: &Everything, ids: &Ids, subject: &dyn Subject, known: &Ids, now: Time) {
    let engine = subject.engine();
    let before = engine.time();
    let mut all = check(&*engine).await;
    let after = engine.time();
    // A reader counts what has lapsed by the engine's own clock as available.
    let as_of = |now: Time| all.stocks.iter().map(|s| bare.stock_at(&s.sku, now)).collect::<Option<Vec<Stock>>>();
    let stocks = Some(all.stocks.clone());
    let is_within = || {
        // Which of the holds that lapsed by the test's clock are expired by now is an engine's choice, where it is lazy.
        let (least, most) = (as_of(now).unwrap_or_default(), as_of(before).unwrap_or_default());
        all.stocks.iter().zip(least.iter().zip(&most)).all(|(is, (least, most))| {
            let same = Stock { available: is.available, held: is.held, ..least.clone() };
            same == *is && is.total() == least.total() && (least.held..=most.held).contains(&is.held)
        })
    };
    let is_right = stocks == as_of(before) || stocks == as_of(after) || (subject.is_lazy() && is_within());
    assert!(is_right, "{}: {stocks:#?} {:#?}", subject.name(), as_of(before));
    all.stocks.clone_from(&expected.stocks);
    let mut expected = expected.clone();
    if subject.is_lazy() {
        let story = |all: &mut Everything, ids: &Ids| {
            let entries = std::mem::take(&mut all.ledger).into_iter().map(|n| n.entry);
            let told = entries.filter(|e| e.kind != EntryKind::Expired).map(|e| ids.told(&format!("{e:#?}")));
            let mut told: Vec<_> = told.collect();
            told.sort();
            all.holds.iter_mut().for_each(|hold| hold.status = hold.status_at(now));
            told
        };
        let (is, was) = (story(&mut all, known), story(&mut expected, ids));
        let other = is.iter().zip(&was).find(|(is, was)| is != was);
        assert!(is == was, "{} wrote down otherwise, {} of {}, at {other:#?}", subject.name(), is.len(), was.len());
    }
    let (told, expected) = (known.told(&format!("{all:#?}")), ids.told(&format!("{expected:#?}")));
    if told != expected {
        let differ = told.lines().zip(expected.lines()).find(|(a, b)| a != b);
        panic!("{} tells otherwise, first at {differ:?}", subject.name());
    }
}

/// What went wrong, if anything did.
fn failure(of: Subjects, steps: &[Step], policy: &Policy, seen: &mut Seen) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(of, steps, policy, seen))));
    result.err().map(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().map_or("it panicked".into(), |text| (*text).to_owned()),
    })
}

/// The fewest steps and commands that still fail, found by leaving out one after another.
fn shrink(of: Subjects, mut steps: Vec<Step>, policy: &Policy) -> Vec<Step> {
    std::panic::set_hook(Box::new(|_| {}));
    let fails = |steps: &[Step]| failure(of, steps, policy, &mut Seen::default()).is_some();
    let mut size = steps.len();
    while size > 0 {
        let mut from = 0;
        while from < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + size).min(fewer.len()));
            if fails(&fewer) { steps = fewer } else { from += size }
        }
        size /= 2;
    }
    for at in 0..steps.len() {
        let mut n = 0;
        while let Step::Batch(asked) = &steps[at]
            && n < asked.len()
            && asked.len() > 1
        {
            let mut fewer = asked.clone();
            fewer.remove(n);
            let mut other = steps.clone();
            other[at] = Step::Batch(fewer);
            if fails(&other) { steps = other } else { n += 1 }
        }
    }
    let _ = std::panic::take_hook();
    steps
}

fn policy(seed: u64) -> Policy {
    Policy {
        reverse_unmatched: seed % 3 == 1,
        release_on_canceled: seed % 4 == 2,
        restock_on_refund: seed % 5 != 3,
        ..Policy::default()
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |text| text.parse().unwrap())
}

/// At least so many rounds, and until every command and every refusal was met.
fn agree(of: Subjects, first: u64, rounds: u64) {
    let (first, rounds) = (number("HOLDFAST_SEED", first), number("HOLDFAST_ROUNDS", rounds));
    let mut seen = Seen::default();
    let mut seed = first;
    let is_complete = |seen: &Seen| seen.commands.len() == NAMES.len() && seen.refusals.len() == REFUSALS.len();
    while seed < first + rounds || (!is_complete(&seen) && seed < first + rounds + 100) {
        let policy = policy(seed);
        let mut shop = Shop { dice: Dice::new(seed), window: 0, reopens: true, deadlines: 0 };
        let steps: Vec<Step> = (0..STEPS)
            .map(|n| {
                shop.window = n as u64 / 12;
                shop.step()
            })
            .collect();
        if let Some(why) = failure(of, &steps, &policy, &mut seen) {
            let fewest = shrink(of, steps, &policy);
            let again = failure(of, &fewest, &policy, &mut Seen::default()).unwrap_or(why);
            panic!("seed {seed}, {} steps under {policy:?}:\n{fewest:#?}\n{again}", fewest.len());
        }
        seed += 1;
    }
    println!("{} seeds, {} steps, settlements {:?}", seed - first, seen.steps, seen.settlements);
    assert_eq!(seen.commands, BTreeSet::from(NAMES), "every command was met");
    assert_eq!(seen.refusals, BTreeSet::from(REFUSALS), "every refusal was met");
    assert!(seen.settlements.len() >= 7, "nearly every settlement was met: {:?}", seen.settlements);
}

#[test]
fn every_engine_answers_as_the_rules_do() {
    agree(Subjects::InProcess, 1, 24);
}

/// Each round trip counts: fewer rounds, from a seed that soon meets everything.
const DATABASE_ROUNDS: (u64, u64) = (73, 5);

macro_rules! databases {
    ($($module:ident = $kind:expr),+) => {
        $(mod $module {
            use super::{DATABASE_ROUNDS, Kind, Strategy, Subjects, agree};

            fn nodes_agree(strategy: Strategy) {
                if $kind.shared_url().is_some() {
                    let (first, rounds) = DATABASE_ROUNDS;
                    agree(Subjects::Database($kind, strategy), first, rounds);
                }
            }

            #[test]
            fn row_lock_answers_as_the_rules_do() {
                nodes_agree(Strategy::RowLock);
            }

            #[test]
            fn optimistic_answers_as_the_rules_do() {
                nodes_agree(Strategy::Optimistic);
            }

            #[test]
            fn skip_locked_answers_as_the_rules_do() {
                nodes_agree(Strategy::SkipLocked);
            }

            #[test]
            fn redlock_answers_as_the_rules_do() {
                nodes_agree(Strategy::Redlock);
            }
        })+
    };
}

databases!(postgres = Kind::Postgres, mariadb = Kind::MariaDb);

macro_rules! hot_stores {
    ($($name:ident = $hot:expr, $ledger:expr;)+) => {
        $(#[test]
        fn $name() {
            if $hot.shared_url().is_some() && $ledger.shared_url().is_some() {
                let (first, rounds) = DATABASE_ROUNDS;
                agree(Subjects::HotStore($hot, $ledger), first, rounds);
            }
        })+
    };
}

hot_stores! {
    redis_on_postgres_answers_as_the_rules_do = Hot::Single, Kind::Postgres;
    redis_on_mariadb_answers_as_the_rules_do = Hot::Single, Kind::MariaDb;
    redis_cluster_on_postgres_answers_as_the_rules_do = Hot::Cluster, Kind::Postgres;
}
