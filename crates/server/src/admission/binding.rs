//! Which order a pass is for: its first use decides, on whichever node, and no other order can use it.

use crate::problem::Problem;
use holdfast_domain::{OrderId, Time};
use holdfast_engine::{Engine, EngineError, Note};

const PAGE: usize = 500;
/// Nodes' clocks may differ by so much, in milliseconds.
const LEEWAY_MS: i64 = 60_000;

/// A pass as it was shown: the sale and the ticket that it was given for, and until when it is good.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) sale: String,
    pub(super) ticket: String,
    pub(super) expires_at: Time,
}

impl Shown {
    fn name(&self) -> String {
        format!("{}{}", prefix(&self.sale), self.ticket)
    }

    /// Refuses an order if the pass is another one's.
    pub(super) async fn check(&self, engine: &dyn Engine, order: &OrderId) -> Result<(), Problem> {
        match engine.note(&self.name()).await? {
            Some(note) if parsed(&note).and_then(|(_, bound)| bound).is_none_or(|bound| bound != *order) => {
                Err(Problem::new("pass_used", "the pass was used for another order, or has served this one"))
            }
            _ => Ok(()),
        }
    }

    /// Binds the pass to an order, for good: whatever becomes of the request, only this order can come again with it.
    pub(super) async fn bind(&self, engine: &dyn Engine, order: &OrderId) -> Result<(), Problem> {
        let text = format!("{} {order}", self.expires_at.millis());
        if engine.put_note(&self.name(), 0, Some(&text)).await? {
            return Ok(());
        }
        self.check(engine, order).await
    }

    /// The pass is good for nothing any more: its place was given up, or has served its order.
    pub(super) async fn close(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        let version = engine.note(&self.name()).await?.map_or(0, |note| note.version);
        // Whoever was faster has bound it, or closed it as well.
        engine.put_note(&self.name(), version, Some(&format!("{} ", self.expires_at.millis()))).await.map(drop)
    }
}

fn prefix(sale: &str) -> String {
    format!("pass/{sale}/")
}

/// Until when, and which order; none when it is closed.
fn parsed(note: &Note) -> Option<(Time, Option<OrderId>)> {
    let (until, order) = note.text.split_once(' ')?;
    Some((Time::from_millis(until.parse().ok()?), OrderId::new(order).ok()))
}

/// Calls with each page of a sale's passes.
async fn pages(
    engine: &dyn Engine,
    sale: &str,
    after: &mut Option<String>,
) -> Result<Vec<(String, Note)>, EngineError> {
    let page = engine.notes(&prefix(sale), after.as_deref(), PAGE).await?;
    *after = page.last().map(|(name, _)| name.clone());
    Ok(page)
}

/// All tickets of a sale whose passes are bound, and to which orders.
pub(super) async fn all(engine: &dyn Engine, sale: &str) -> Result<Vec<(Shown, OrderId)>, EngineError> {
    let (mut bound, mut after) = (Vec::new(), None);
    loop {
        let page = pages(engine, sale, &mut after).await?;
        if page.is_empty() {
            return Ok(bound);
        }
        for (name, note) in &page {
            if let (Some(ticket), Some((until, Some(order)))) = (name.strip_prefix(&prefix(sale)), parsed(note)) {
                let shown = Shown { sale: sale.to_owned(), ticket: ticket.to_owned(), expires_at: until };
                bound.push((shown, order));
            }
        }
    }
}

/// Forgets what nobody can show any more.
pub(super) async fn sweep(engine: &dyn Engine, sale: &str, now: Time) -> Result<(), EngineError> {
    let mut after = None;
    loop {
        let page = pages(engine, sale, &mut after).await?;
        if page.is_empty() {
            return Ok(());
        }
        for (name, note) in &page {
            let is_over = parsed(note).is_none_or(|(until, _)| until.millis() + LEEWAY_MS < now.millis());
            if is_over {
                engine.put_note(name, note.version, None).await?;
            }
        }
    }
}
