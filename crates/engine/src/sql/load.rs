//! The load step: what the commands of a batch want, looked up together.
//!
//! SKUs are locked first and in byte order, on every node: two batches that want the same SKUs wait for one another
//! instead of killing one another. What is only known after looking (the other SKUs of a lapsed cart) may be locked
//! out of order; the database ends a deadlock that comes of it, and the batch is decided again.

use super::fault::Fault;
use super::part::Part;
use super::store::{Asked, Found, Kept, Told, Tx};
use hashbrown::{HashMap, HashSet};
use holdfast_domain::{Command, Hold, HoldStatus, Key, OrderFile, OrderId, OrderRef, PaymentKey, Sku, Time};

/// Lapsed holds on one SKU that are looked up at once, at the least.
const LAPSED: usize = 200;

/// What of the asked is only found by its absence.
#[derive(Default)]
struct Later {
    lapsed: Vec<Sku>,
    rest: Vec<Sku>,
    due: Option<u32>,
    is_stale: bool,
}

/// Looks up what these commands want, until they want nothing more. `moment` makes the batch's moment of what the
/// database tells.
pub(super) async fn load<T: Tx>(
    tx: &mut T,
    part: &mut Part,
    commands: &[Command],
    moment: impl Fn(Told) -> Time,
) -> Result<(), Fault> {
    loop {
        let mut wanted = Vec::new();
        let now = part.now.unwrap_or_default();
        commands.iter().for_each(|command| part.inventory.wants(command, now, &mut wanted));
        if wanted.is_empty() && part.now.is_some() {
            return Ok(());
        }
        let (mut asked, keys, later) = sort(wanted);
        if part.now.is_none() {
            let holds: Vec<_> = asked.holds.clone();
            let orders = orders_to_peek(commands);
            if !holds.is_empty() || !orders.is_empty() {
                asked.stocks.extend(tx.peek(&holds, &orders).await?);
                asked.stocks.sort();
                asked.stocks.dedup();
            }
            if let Some(desk) = part.desk.take() {
                part.lease = desk.take(&asked.stocks).await;
            }
        }
        let (told, found) = tx.look_up(&asked).await?;
        let told = told.whole()?;
        let now = *part.now.get_or_insert_with(|| moment(told));
        put(tx, part, found, &asked).await?;
        for key in keys {
            // What was not found is not there.
            part.inventory.put_absent(key);
        }
        put_later(tx, part, later, now).await?;
    }
}

/// Orders whose holds have SKUs that the command does not name.
fn orders_to_peek(commands: &[Command]) -> Vec<OrderId> {
    let named = |command: &Command| match command {
        Command::Return { order, .. } => Some(order.clone()),
        Command::Settle(fact) => match &fact.order {
            Some(OrderRef::Order(order)) => Some(order.clone()),
            _ => None,
        },
        _ => None,
    };
    commands.iter().filter_map(named).collect()
}

/// What to look up at once; the keys for which absence has to be handed in; and what has to wait for the moment.
fn sort(wanted: Vec<Key>) -> (Asked, Vec<Key>, Later) {
    let (mut asked, mut keys, mut later) = (Asked::default(), Vec::new(), Later::default());
    let mut seen = HashSet::with_capacity(wanted.len());
    for key in wanted {
        if !seen.insert(key.clone()) {
            continue;
        }
        match &key {
            Key::Stock(sku) => asked.stocks.push(sku.clone()),
            Key::Hold(id) => asked.holds.push(*id),
            Key::Order(order) => asked.orders.push(order.clone()),
            Key::Latest(order) => asked.latest.push(order.clone()),
            Key::Bought(customer, sku) => asked.bought.push((customer.clone(), sku.clone())),
            Key::Payment(payment) => asked.payments.push(payment.clone()),
            Key::Event(provider, event) => asked.events.push((provider.clone(), event.clone())),
            Key::Receipt(receipt) => asked.receipts.push(receipt.clone()),
            Key::Lapsed(sku) => later.lapsed.push(sku.clone()),
            Key::Rest(sku) => later.rest.push(sku.clone()),
            Key::Due(limit) => later.due = later.due.max(Some(*limit)),
            Key::Stale => later.is_stale = true,
        }
        match key {
            // These are always found, or are answered otherwise.
            Key::Order(_) | Key::Bought(..) | Key::Lapsed(_) | Key::Rest(_) | Key::Stale => {}
            other => keys.push(other),
        }
    }
    asked.stocks.sort();
    (asked, keys, later)
}

async fn put<T: Tx>(tx: &mut T, part: &mut Part, found: Found, asked: &Asked) -> Result<(), Fault> {
    put_stocks(tx, part, found.stocks).await?;
    put_holds(tx, part, found.holds).await?;
    found.payments.iter().for_each(|payment| part.note_payment(payment));
    let inventory = &mut part.inventory;
    let mut files: HashMap<OrderId, OrderFile> =
        asked.orders.iter().map(|id| (id.clone(), OrderFile::default())).collect();
    for order in found.orders {
        if let Some(file) = files.get_mut(&order.order_id) {
            file.order = Some(order);
        }
    }
    for (order, payment) in found.waiting {
        if let Some(file) = files.get_mut(&order) {
            file.waiting.push(payment);
        }
    }
    files.into_iter().for_each(|(order, file)| inventory.put_order(order, file));
    found.latest.into_iter().for_each(|(order, hold)| inventory.put_latest(order, hold));
    let mut bought: HashMap<_, i64> = asked.bought.iter().map(|key| (key.clone(), 0)).collect();
    bought.extend(found.bought.into_iter().map(|(customer, sku, units)| ((customer, sku), units)));
    bought.into_iter().for_each(|((customer, sku), units)| inventory.put_bought(customer, sku, units));
    for payment in found.payments {
        let jobs = found.jobs.iter().filter(|job| job.payment == payment.key).cloned().collect();
        inventory.put_payment(payment, jobs);
    }
    found.events.into_iter().for_each(|(provider, event)| inventory.put_event(provider, event));
    found.receipts.into_iter().for_each(|(key, used_for)| inventory.put_receipt(key, used_for));
    Ok(())
}

/// Hands in SKUs. Where units stand in rows of their own, those rows say how many are left.
async fn put_stocks<T: Tx>(tx: &mut T, part: &mut Part, stocks: Vec<Kept>) -> Result<(), Fault> {
    let carved: Vec<Sku> = stocks.iter().filter(|kept| kept.carved > 0).map(|kept| kept.stock.sku.clone()).collect();
    let mut loose = HashMap::new();
    if !carved.is_empty() {
        loose.extend(tx.lock_units(&carved).await?.into_iter().map(|loose| (loose.sku.clone(), loose)));
    }
    for kept in stocks {
        let loose = loose.remove(&kept.stock.sku);
        part.put_stock(kept, loose);
    }
    Ok(())
}

/// Hands in holds, and before them the SKUs that they have lines of.
async fn put_holds<T: Tx>(tx: &mut T, part: &mut Part, holds: Vec<Hold>) -> Result<(), Fault> {
    let held = holds.iter().filter(|hold| hold.status == HoldStatus::Held);
    let mut missing: Vec<Sku> = held
        .flat_map(|hold| &hold.lines)
        .filter(|line| part.inventory.stock_change(&line.sku).is_none())
        .map(|line| line.sku.clone())
        .collect();
    if !missing.is_empty() {
        missing.sort();
        missing.dedup();
        let (_, found) = tx.look_up(&Asked { stocks: missing, ..Asked::default() }).await?;
        put_stocks(tx, part, found.stocks).await?;
    }
    holds.into_iter().for_each(|hold| part.put_hold(hold));
    Ok(())
}

async fn put_later<T: Tx>(tx: &mut T, part: &mut Part, mut later: Later, now: Time) -> Result<(), Fault> {
    if let Some(follows) = &part.follows {
        // The other store has expired what the answers depend on.
        later.rest.drain(..).chain(later.lapsed.drain(..)).for_each(|sku| part.inventory.put_rest(&sku, 0, now));
        later.due = None;
        if std::mem::take(&mut later.is_stale) {
            let payments = follows.stale.clone();
            put_stale(tx, part, payments).await?;
        }
    }
    for sku in later.rest {
        let units = tx.lapsed_units(&sku, now, &part.lapsed(Some(&sku), now)).await?;
        part.inventory.put_rest(&sku, units, now);
    }
    if !later.lapsed.is_empty() {
        let with_some: HashSet<Sku> = tx.with_lapsed(&later.lapsed, now).await?.into_iter().collect();
        for sku in later.lapsed {
            if with_some.contains(&sku) {
                put_lapsed(tx, part, &sku, now).await?;
            } else {
                part.inventory.put_rest(&sku, 0, now);
            }
        }
    }
    if let Some(limit) = later.due {
        put_due(tx, part, limit as usize + 1, now).await?;
    }
    if later.is_stale {
        let long_ago = Time::from_millis(now.millis() - i64::from(part.inventory.policy().unmatched_grace) * 1000);
        let payments = tx.stale(long_ago).await?;
        put_stale(tx, part, payments).await?;
    }
    Ok(())
}

async fn put_stale<T: Tx>(tx: &mut T, part: &mut Part, payments: Vec<PaymentKey>) -> Result<(), Fault> {
    let (_, found) = tx.look_up(&Asked { payments, ..Asked::default() }).await?;
    found.payments.iter().for_each(|payment| part.note_payment(payment));
    let with_jobs = |payment: holdfast_domain::Payment| {
        let jobs = found.jobs.iter().filter(|job| job.payment == payment.key).cloned().collect();
        (payment, jobs)
    };
    part.inventory.put_stale(found.payments.into_iter().map(with_jobs).collect());
    Ok(())
}

/// More of a SKU's lapsed holds: each time as many as were known before, so that even a great many take few looks.
async fn put_lapsed<T: Tx>(tx: &mut T, part: &mut Part, sku: &Sku, now: Time) -> Result<(), Fault> {
    let known = part.lapsed(Some(sku), now);
    let limit = known.len().max(LAPSED);
    let more = tx.lapsed(sku, now, &known, limit).await?;
    let is_all = more.len() < limit;
    put_holds(tx, part, more).await?;
    if is_all {
        part.inventory.put_rest(sku, 0, now);
    } else {
        part.inventory.put_more(sku);
    }
    Ok(())
}

/// So many lapsed holds on any SKU, if there are.
async fn put_due<T: Tx>(tx: &mut T, part: &mut Part, limit: usize, now: Time) -> Result<(), Fault> {
    let known = part.lapsed(None, now);
    // A cart has a claim for each of its SKUs: look further until so many carts were met.
    let mut claims = limit;
    let holds = loop {
        let mut found = tx.due(now, &known, claims).await?;
        let is_all = found.len() < claims;
        let mut seen = HashSet::new();
        found.retain(|id| seen.insert(*id));
        if is_all || found.len() >= limit {
            found.truncate(limit);
            break found;
        }
        claims *= 2;
    };
    if holds.is_empty() {
        return Ok(());
    }
    // The SKUs before the holds, as everywhere. What was settled meanwhile is not due any more.
    let mut stocks = tx.peek(&holds, &[]).await?;
    stocks.retain(|sku| part.inventory.stock_change(sku).is_none());
    stocks.sort();
    stocks.dedup();
    let (_, found) = tx.look_up(&Asked { stocks, holds, ..Asked::default() }).await?;
    put_stocks(tx, part, found.stocks).await?;
    put_holds(tx, part, found.holds).await
}
