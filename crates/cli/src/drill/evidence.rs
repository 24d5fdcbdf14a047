//! What the verdict is computed from: the server's ledger, stock, orders and reversals, and the provider's books. Must
//! never hold anything that the drill counted itself.

use crate::api::{Api, Stock, percent};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};

/// An entry of the ledger.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entry {
    pub(super) available: i64,
    pub(super) held: i64,
    pub(super) sold: i64,
    pub(super) hold_id: Option<String>,
    pub(super) order_id: Option<String>,
}

/// The payment of an order.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Payment {
    pub(super) payment_id: String,
}

/// An order as the server tells it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Order {
    #[serde(rename = "order_id")]
    pub(super) id: String,
    pub(super) status: String,
    pub(super) payment: Option<Payment>,
}

/// A refund or a void as the server tells it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Reversal {
    pub(super) payment_id: String,
    pub(super) kind: String,
    pub(super) status: String,
}

/// A PaymentIntent in the provider's books.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) metadata: BTreeMap<String, String>,
}

/// A charge in the provider's books.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Charge {
    pub(super) payment_intent: String,
    pub(super) amount_captured: u64,
    pub(super) amount_refunded: u64,
}

/// A refund in the provider's books.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) payment_intent: String,
    pub(super) status: String,
}

/// The provider's books.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Books {
    pub(super) payment_intents: Vec<Intent>,
    pub(super) charges: Vec<Charge>,
    pub(super) refunds: Vec<Refund>,
    pub(super) undelivered_events: usize,
}

/// Everything, read at one time when all is quiet.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    /// How many units there were.
    pub(super) units: u64,
    pub(super) stock: Stock,
    pub(super) entries: Vec<Entry>,
    pub(super) orders: Vec<Order>,
    /// Only those of payments in the books: other systems may use the server too.
    pub(super) reversals: Vec<Reversal>,
    pub(super) books: Books,
    /// What an audit found; `None` until one was run.
    pub(super) drift: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

/// Reads all of a list.
pub(super) async fn list<T: DeserializeOwned>(api: &mut Api, path: &str) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let mark = if path.contains('?') { '&' } else { '?' };
        let page: Page<T> = api.json("GET", &format!("{path}{mark}limit=1000{after}"), "", b"").await?;
        all.extend(page.items);
        match page.next {
            Some(next) => after = format!("&after={}", percent(&next)),
            None => return Ok(all),
        }
    }
}

/// An order, if there is one.
pub(super) async fn order(api: &mut Api, id: &str) -> Result<Option<Order>, String> {
    let path = format!("/v1/orders/{}", percent(id));
    match api.call("GET", &path, "", b"").await? {
        (200, body) => serde_json::from_slice(&body).map(Some).map_err(|e| format!("GET {path}: {e}")),
        (404, _) => Ok(None),
        (status, _) => Err(format!("GET {path} was answered {status}")),
    }
}

impl Evidence {
    /// Reads all of it.
    pub(super) async fn read(api: &mut Api, sku: &str, units: u64, books: Books) -> Result<Self, String> {
        let stock = api.stock(sku).await?;
        let entries: Vec<Entry> = list(api, &format!("/v1/ledger?sku={}", percent(sku))).await?;
        // Orders that the ledger knows, and those that payments were made for: neither may hide from the other.
        let sold = entries.iter().filter(|entry| entry.sold != 0).filter_map(|entry| entry.order_id.clone());
        let named = books.payment_intents.iter().filter_map(|intent| intent.metadata.get("order_id").cloned());
        let ids: BTreeSet<String> = sold.chain(named).collect();
        let mut orders = Vec::new();
        for id in &ids {
            orders.extend(order(api, id).await?);
        }
        let mine: BTreeSet<&str> = books.payment_intents.iter().map(|intent| intent.id.as_str()).collect();
        let mut reversals: Vec<Reversal> = list(api, "/v1/refunds").await?;
        reversals.retain(|reversal| mine.contains(reversal.payment_id.as_str()));
        Ok(Self { units, stock, entries, orders, reversals, books, drift: None })
    }

    /// Adds what an audit finds.
    pub(super) async fn audit(&mut self, api: &mut Api) -> Result<(), String> {
        self.drift = Some(api.audit().await?.drift.iter().map(ToString::to_string).collect());
        Ok(())
    }
}
