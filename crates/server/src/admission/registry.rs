//! The sales that there are: in the engine's store, and a copy of them in memory on every node.
//!
//! All changes go through one note that is compared and set. It carries the whole change, so that a node that dies in
//! between has its change finished by whoever comes next, and two nodes never put one SKU into two sales.

use super::sale::{Phase, Record, Sale};
use crate::problem::Problem;
use holdfast_domain::{Sku, Time};
use holdfast_engine::{Engine, EngineError, Note};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Counts all changes, and carries the last one.
const INDEX: &str = "sales";
const PREFIX: &str = "sale/";
const PAGE: usize = 500;
/// What fits into a note, with room for what stands around it.
const MAX_BYTES: usize = 60 << 10;
/// How often a change is tried again when other nodes were faster.
const TRIES: usize = 20;

/// The sales as they were read at some moment.
#[derive(Debug, Default)]
pub(crate) struct Sales {
    version: u64,
    by_name: BTreeMap<String, Arc<Sale>>,
    by_sku: HashMap<Sku, Vec<Arc<Sale>>>,
}

impl Sales {
    fn new(version: u64, sales: Vec<Sale>) -> Self {
        let mut read = Self { version, ..Self::default() };
        for sale in sales.into_iter().map(Arc::new) {
            for sku in &sale.skus {
                read.by_sku.entry(sku.clone()).or_default().push(sale.clone());
            }
            read.by_name.insert(sale.name.clone(), sale);
        }
        read
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Sale>> {
        self.by_name.get(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Sale>> {
        self.by_name.values()
    }

    pub(crate) fn has(&self, sku: &Sku) -> bool {
        self.by_sku.contains_key(sku)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Refuses a sale that wants a SKU of another one that has not ended.
    pub(crate) fn check_skus(&self, sale: &Sale, now: Time) -> Result<(), Problem> {
        for sku in &sale.skus {
            let others = self.by_sku.get(sku).into_iter().flatten();
            let mut others = others.filter(|other| other.name != sale.name && other.phase(now) != Phase::Ended);
            if let Some(other) = others.next() {
                let detail = format!("{:?} is in the sale {:?}, which has not ended", sku.as_str(), other.name);
                return Err(Problem::new("sku_in_other_sale", detail)
                    .with("sku", sku.as_str())
                    .with("sale", &other.name));
            }
        }
        Ok(())
    }

    /// The sale that decides on a SKU: the one that has not ended, else the one that ended last.
    pub(crate) fn of(&self, sku: &Sku, now: Time) -> Option<&Arc<Sale>> {
        let sales = self.by_sku.get(sku)?;
        let rank = |sale: &&Arc<Sale>| (sale.phase(now) != Phase::Ended, sale.ends_at, sale.kept.revision);
        sales.iter().max_by_key(rank)
    }
}

/// A change of one sale: what it becomes, or nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Intent {
    revision: u64,
    sale: String,
    becomes: Option<Record>,
}

/// A sale's note. A sale that is gone leaves its revision, so that no late writer brings it back.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    revision: u64,
    record: Option<Record>,
}

/// What is called with sales that were read, before they are known.
pub(super) type Follow<'a> = &'a (dyn Fn(&Sales) + Send + Sync);

/// The sales, and the only way to change them.
pub(crate) struct Registry {
    engine: Arc<dyn Engine>,
    known: RwLock<Option<Arc<Sales>>>,
    /// One change or reading at a time on this node.
    turn: Mutex<()>,
}

impl Registry {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, known: RwLock::default(), turn: Mutex::default() }
    }

    /// The sales. Nothing is sold past the rules of sales that could not be read.
    pub(crate) fn sales(&self) -> Result<Arc<Sales>, Problem> {
        let unread = || Problem::new("engine_unavailable", "the sales could not be read yet");
        self.known.read().clone().ok_or_else(unread)
    }

    /// Reads what other nodes changed.
    pub(crate) async fn refresh(&self, follow: Follow<'_>) -> Result<(), EngineError> {
        let _turn = self.turn.lock().await;
        let index = self.engine.note(INDEX).await?;
        let version = index.as_ref().map_or(0, |note| note.version);
        if self.known.read().as_ref().is_some_and(|known| known.version == version) {
            return Ok(());
        }
        self.read(index.as_ref(), follow).await.map(drop)
    }

    /// Finishes the last change, and reads all sales as they are after it.
    async fn read(&self, index: Option<&Note>, follow: Follow<'_>) -> Result<Arc<Sales>, EngineError> {
        if let Some(note) = index {
            self.finish(&parsed::<Intent>(note)?).await?;
        }
        let mut sales = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.engine.notes(PREFIX, after.as_deref(), PAGE).await?;
            for (_, note) in &page {
                if let Some(record) = parsed::<Kept>(note)?.record {
                    sales.push(record.sale().map_err(|problem| EngineError::Corrupt(problem.detail().to_owned()))?);
                }
            }
            match page.last() {
                Some((name, _)) if page.len() == PAGE => after = Some(name.clone()),
                _ => break,
            }
        }
        let sales = Arc::new(Sales::new(index.map_or(0, |note| note.version), sales));
        // Whatever obeys a sale is there before anybody can see the sale.
        follow(&sales);
        *self.known.write() = Some(sales.clone());
        Ok(sales)
    }

    /// Does what an intent says, unless it has been done.
    async fn finish(&self, intent: &Intent) -> Result<(), EngineError> {
        let name = format!("{PREFIX}{}", intent.sale);
        loop {
            let note = self.engine.note(&name).await?;
            let done = note.as_ref().map(parsed::<Kept>).transpose()?.map_or(0, |kept| kept.revision);
            if done >= intent.revision {
                return Ok(());
            }
            let kept = Kept { revision: intent.revision, record: intent.becomes.clone() };
            let version = note.map_or(0, |note| note.version);
            if self.engine.put_note(&name, version, Some(&text(&kept)?)).await? {
                return Ok(());
            }
        }
    }

    /// Changes one sale: what `decide` makes of it, given all sales. `None` from it removes the sale.
    pub(crate) async fn change(
        &self,
        name: &str,
        decide: impl Fn(&Sales, u64) -> Result<Option<Sale>, Problem>,
        follow: Follow<'_>,
    ) -> Result<Arc<Sales>, Problem> {
        let _turn = self.turn.lock().await;
        for _ in 0..TRIES {
            let index = self.engine.note(INDEX).await?;
            let version = index.as_ref().map_or(0, |note| note.version);
            let sales = self.read(index.as_ref(), follow).await?;
            let becomes = decide(&sales, version + 1)?.map(|sale| sale.record());
            let intent = Intent { revision: version + 1, sale: name.to_owned(), becomes };
            let text = text(&intent)?;
            if text.len() > MAX_BYTES {
                return Err(Problem::new(
                    "invalid_request",
                    "the sale is too large: its SKUs are too many or too long",
                ));
            }
            if self.engine.put_note(INDEX, version, Some(&text)).await? {
                return Ok(self.read(Some(&Note { version: version + 1, text }), follow).await?);
            }
        }
        Err(Problem::new("overloaded", "other changes of sales were always faster; repeat the request"))
    }
}

fn parsed<'a, T: Deserialize<'a>>(note: &'a Note) -> Result<T, EngineError> {
    serde_json::from_str(&note.text).map_err(|error| EngineError::Corrupt(format!("a sale in the store: {error}")))
}

fn text(value: &impl Serialize) -> Result<String, EngineError> {
    serde_json::to_string(value).map_err(|error| EngineError::Unavailable(error.to_string()))
}
