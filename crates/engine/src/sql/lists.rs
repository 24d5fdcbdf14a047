//! Pages, each a bounded pass: where few rows match, it may hold fewer items than asked and still say where to go on.

use super::fault::Fault;
use super::store::Tx;
use crate::{HoldFilter, Page};
use hashbrown::HashSet;
use holdfast_domain::{Hold, HoldId, Time};

/// Rows looked at for one page at the most.
const PASS: usize = 10_000;
/// Rows looked at together where many may not match.
const STEP: usize = 1_000;

/// A page of numbered items, of which at most `limit` were asked for.
pub(super) fn page<T>(found: Vec<(i64, T)>, limit: usize) -> Page<T> {
    let next = (found.len() == limit).then(|| found.last().map(|(n, _)| n.to_string())).flatten();
    Page { items: found.into_iter().map(|(_, item)| item).collect(), next }
}

pub(super) async fn holds<T: Tx>(
    tx: &mut T,
    filter: &HoldFilter,
    limit: usize,
    now: Time,
) -> Result<Page<Hold>, Fault> {
    let is_asked = |hold: &Hold| {
        filter.status.is_none_or(|status| hold.status_at(now) == status)
            && filter.order_id.as_ref().is_none_or(|order| hold.order_id == *order)
            && filter.sku.as_ref().is_none_or(|sku| hold.lines.quantity_of(sku) > 0)
    };
    if let Some(order) = &filter.order_id {
        let after = cursor_id(filter);
        let all = tx.holds_of_order(order).await?.into_iter().filter(|hold| hold.id > after && is_asked(hold));
        let mut items: Vec<Hold> = all.take(limit + 1).collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let next = more.then(|| items.last().map(|hold| hold.id.to_string())).flatten();
        return Ok(Page { items, next });
    }
    if let Some(sku) = &filter.sku {
        let mut after = filter.after.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        let (mut items, mut seen) = (Vec::new(), HashSet::new());
        for _ in 0..PASS / STEP {
            let found = tx.holds_of_sku(sku, after, STEP).await?;
            let is_all = found.len() < STEP;
            for (seq, hold) in found {
                after = seq;
                if seen.insert(hold.id) && is_asked(&hold) {
                    items.push(hold);
                }
                if items.len() == limit {
                    return Ok(Page { items, next: Some(after.to_string()) });
                }
            }
            if is_all {
                return Ok(Page { items, next: None });
            }
        }
        return Ok(Page { items, next: Some(after.to_string()) });
    }
    let step = if filter.status.is_none() { limit } else { STEP };
    let (mut items, mut after) = (Vec::new(), cursor_id(filter));
    for _ in 0..PASS.div_ceil(step) {
        let found = tx.holds_after(after, step).await?;
        let is_all = found.len() < step;
        for hold in found {
            after = hold.id;
            if is_asked(&hold) {
                items.push(hold);
            }
            if items.len() == limit {
                return Ok(Page { items, next: Some(after.to_string()) });
            }
        }
        if is_all {
            return Ok(Page { items, next: None });
        }
    }
    Ok(Page { items, next: Some(after.to_string()) })
}

/// Whether the cursor is one of the list that the filter asks for.
pub(super) fn knows_cursor(filter: &HoldFilter) -> bool {
    let is_by_entry = filter.order_id.is_none() && filter.sku.is_some();
    let is_known =
        |after: &str| if is_by_entry { after.parse::<u64>().is_ok() } else { HoldId::parse(after).is_some() };
    filter.after.as_deref().is_none_or(is_known)
}

/// Where a list that is ordered by hold goes on.
fn cursor_id(filter: &HoldFilter) -> HoldId {
    filter.after.as_deref().and_then(HoldId::parse).unwrap_or(HoldId::from_u128(0))
}
