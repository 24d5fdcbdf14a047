//! What a database has to be able to do besides, for an engine that decides elsewhere and keeps its ledger here: the
//! bookkeeping of the hot store, and reads of everything that it is rebuilt from.
//!
//! Writes are for transactions that write, together with whatever else is written in them. Pages follow one another by
//! what the last one ended with; a page that is shorter than asked is the last.

use super::fault::Fault;
use super::note_store::NoteTx;
use super::store::Tx;
use async_trait::async_trait;
use holdfast_domain::{CustomerId, Hold, HoldId, OrderId, PaymentKey, Sku, Stock, Time};

/// How far a partition of the hot store is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HotRow {
    pub(crate) part: u32,
    pub(crate) epoch: i64,
    pub(crate) is_auditing: bool,
    pub(crate) since: Time,
    /// Which server it was last audited on; empty: none.
    pub(crate) server: String,
    pub(crate) drained_epoch: i64,
    pub(crate) drained_seq: i64,
}

/// A fact that could not be written down, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parked {
    pub(crate) part: u32,
    pub(crate) epoch: i64,
    pub(crate) seq: i64,
    pub(crate) fact: String,
    pub(crate) why: String,
}

/// One transaction that knows of the hot store.
#[async_trait]
pub(crate) trait HotTx: Tx + NoteTx {
    /// Makes the rows of partitions 0 to `parts - 1` that are missing: epoch 0, not auditing, nothing drained.
    async fn hot_make(&mut self, parts: u32) -> Result<(), Fault>;

    /// The database's clock, and these rows in order of partition; locked for writing when asked. Locks are taken in
    /// order of partition, and the clock is read after them. A row that is missing is left out.
    async fn hot_rows(&mut self, parts: &[u32], lock: bool) -> Result<(Time, Vec<HotRow>), Fault>;

    /// Writes these rows, which are there, each named once.
    async fn hot_write(&mut self, rows: &[HotRow]) -> Result<(), Fault>;

    /// Notes a step; empty effects: as given up. `false`: its token was noted before; nothing is changed then, and the
    /// transaction stays usable. Waits for another transaction that is noting the same token.
    async fn hot_step(&mut self, token: &str, effects: &str, at: Time) -> Result<bool, Fault>;

    /// The effects of a step, if it was noted; empty: it was given up.
    async fn hot_step_of(&mut self, token: &str) -> Result<Option<String>, Fault>;

    /// Steps noted with effects that are not done, oldest first: token, effects.
    async fn hot_steps(&mut self, limit: usize) -> Result<Vec<(String, String)>, Fault>;

    /// Forgets steps whose effects are done, and steps given up before a moment. A token of a step that was given up
    /// later is kept: it must not become free while somebody may still try to commit under it.
    async fn hot_forget(&mut self, tokens: &[String], given_up_before: Time) -> Result<(), Fault>;

    /// Keeps facts that could not be written down, for a person to look at.
    async fn hot_park(&mut self, parked: &[Parked], at: Time) -> Result<(), Fault>;

    /// How many facts are parked.
    async fn hot_parked(&mut self) -> Result<u64, Fault>;

    /// SKUs after the given one, in byte order, as they are recorded: lapsed holds count as held until they are swept,
    /// and units taken out of rows of their own as held too.
    async fn stocks_after(&mut self, after: Option<&Sku>, limit: usize) -> Result<Vec<Stock>, Fault> {
        // As of long ago nothing has lapsed.
        self.stocks(after, Time::from_millis(0), limit).await
    }

    /// Holds with status held after this id, lapsed or not, by id.
    async fn held_after(&mut self, after: Option<HoldId>, limit: usize) -> Result<Vec<Hold>, Fault>;

    /// Orders with their holds after this id, in byte order.
    async fn orders_after(&mut self, after: Option<&OrderId>, limit: usize) -> Result<Vec<(OrderId, HoldId)>, Fault>;

    /// Units bought and not returned, by customer and SKU in byte order; those that are not 0.
    async fn bought_after(
        &mut self,
        after: Option<(&CustomerId, &Sku)>,
        limit: usize,
    ) -> Result<Vec<(CustomerId, Sku, i64)>, Fault>;

    /// Payments numbered above this that wait for an order's hold: with status unmatched or needs_attention, and named
    /// by order id. With their numbers, in that order.
    async fn waiting_after(&mut self, after: i64, limit: usize) -> Result<Vec<(i64, OrderId, PaymentKey)>, Fault>;
}
