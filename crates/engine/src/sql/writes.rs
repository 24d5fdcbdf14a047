//! The persist step: what a batch changed, sorted by what has to be written, in the order in which it has to be.

use super::fault::Fault;
use super::part::Part;
use hashbrown::HashMap;
use holdfast_domain::{CustomerId, Entry, Hold, HoldId, HoldStatus, Job, Mark, Order, Payment, Ref, Sku, Stock, Time};

/// Rows to write. A hold that ends is written before one that begins, since an order has one current hold at a time.
#[derive(Default)]
pub(crate) struct Writes<'a> {
    pub(crate) new_stocks: Vec<&'a Stock>,
    /// With the revision at which they were read.
    pub(crate) stocks: Vec<(&'a Stock, i64)>,
    pub(crate) removed_stocks: Vec<(&'a Sku, i64)>,
    /// SKUs that were read at these revisions and left as they are: what was refused rests on them.
    pub(crate) unchanged: Vec<(&'a Sku, i64)>,
    /// Holds that claim nothing any more, of which nothing but the status has changed.
    pub(crate) ended: Vec<&'a Hold>,
    /// Other holds that have changed, with the status they had.
    pub(crate) holds: Vec<(&'a Hold, HoldStatus)>,
    pub(crate) new_holds: Vec<&'a Hold>,
    /// Holds whose claims are there no more, or otherwise, and how many each had.
    pub(crate) gone_claims: Vec<(HoldId, usize)>,
    pub(crate) new_claims: Vec<(&'a Sku, Time, HoldId, u64)>,
    pub(crate) new_orders: Vec<&'a Order>,
    pub(crate) orders: Vec<&'a Order>,
    /// Inserted, never overwritten: somebody else may have heard of the same payment at the same moment, and there was
    /// no row that could be locked.
    pub(crate) new_payments: Vec<&'a Payment>,
    pub(crate) payments: Vec<&'a Payment>,
    pub(crate) jobs: Vec<&'a Job>,
    pub(crate) events: &'a [(Ref, Ref)],
    pub(crate) receipts: &'a [(Ref, Box<str>)],
    /// Net sums, none of them 0.
    pub(crate) bought: Vec<(&'a CustomerId, &'a Sku, i64)>,
    pub(crate) entries: &'a [Entry],
    /// The moment of the batch.
    pub(crate) now: Time,
    /// How many more holds claim units.
    pub(crate) more_holds: i64,
    /// How many more SKUs are known.
    pub(crate) more_skus: i64,
    /// Write a SKU whatever its revision is by now.
    pub(crate) is_naive: bool,
}

fn lost(what: &str) -> Fault {
    Fault::Corrupt(format!("a changed {what} is not in the inventory"))
}

impl<'a> Writes<'a> {
    /// What the batch changed.
    pub(super) fn of(part: &'a Part, now: Time) -> Result<Self, Fault> {
        let changes = part.inventory.changes();
        let mut writes = Self {
            events: &changes.events,
            receipts: &changes.receipts,
            entries: &changes.entries,
            now,
            ..Self::default()
        };
        writes.take_stocks(part)?;
        for id in &changes.holds {
            let (hold, mark) = part.inventory.hold_change(*id).ok_or_else(|| lost("hold"))?;
            writes.take_hold(part, hold, mark);
        }
        for id in &changes.orders {
            let (file, mark) = part.inventory.order_change(id).ok_or_else(|| lost("order"))?;
            let order = file.order.as_ref().ok_or_else(|| lost("order"))?;
            if mark == Mark::New { &mut writes.new_orders } else { &mut writes.orders }.push(order);
        }
        for key in &changes.payments {
            let (payment, mark) = part.inventory.payment_change(key).ok_or_else(|| lost("payment"))?;
            if mark == Mark::New { &mut writes.new_payments } else { &mut writes.payments }.push(payment);
        }
        for key in &changes.jobs {
            writes.jobs.push(part.inventory.job_change(key).ok_or_else(|| lost("job"))?.0);
        }
        let mut bought: HashMap<(&CustomerId, &Sku), i64> = HashMap::new();
        for (customer, sku, units) in &changes.bought {
            *bought.entry((customer, sku)).or_default() += units;
        }
        let bought = bought.into_iter().filter(|(_, units)| *units != 0);
        writes.bought = bought.map(|((customer, sku), units)| (customer, sku, units)).collect();
        // All nodes write rows of other tables in one order too.
        writes.bought.sort();
        Ok(writes)
    }

    fn take_stocks(&mut self, part: &'a Part) -> Result<(), Fault> {
        for sku in &part.inventory.changes().stocks {
            let (stock, mark) = part.inventory.stock_change(sku).ok_or_else(|| lost("SKU"))?;
            let read_at = part.revisions.get(sku).copied();
            match (stock, mark) {
                (Some(stock), Mark::New) => {
                    self.new_stocks.push(stock);
                    self.more_skus += 1;
                }
                (Some(stock), _) => self.stocks.push((stock, read_at.ok_or_else(|| lost("SKU"))?)),
                // Made and removed by the same batch: there is no row.
                (None, Mark::New) => {}
                (None, _) => {
                    if let Some(read_at) = read_at {
                        self.removed_stocks.push((sku, read_at));
                        self.more_skus -= 1;
                    }
                }
            }
        }
        let is_read_only = |sku: &&Sku| part.inventory.stock_change(sku).is_some_and(|(_, mark)| mark == Mark::Clean);
        self.unchanged =
            part.revisions.iter().filter(|(sku, _)| is_read_only(sku)).map(|(sku, at)| (sku, *at)).collect();
        self.stocks.sort_by(|a, b| a.0.sku.cmp(&b.0.sku));
        Ok(())
    }

    fn take_hold(&mut self, part: &'a Part, hold: &'a Hold, mark: Mark) {
        let before = part.before.get(&hold.id);
        let claimed = before.filter(|before| before.status == HoldStatus::Held);
        let claims = hold.status == HoldStatus::Held;
        let is_moved = |before: &Hold| before.expires_at != hold.expires_at || before.lines != hold.lines;
        if let Some(before) = claimed
            && (!claims || is_moved(before))
        {
            self.gone_claims.push((hold.id, before.lines.iter().count()));
        }
        if claims && claimed.is_none_or(is_moved) {
            let lines = hold.lines.iter();
            self.new_claims.extend(lines.map(|l| (&l.sku, hold.expires_at, hold.id, l.quantity.get())));
        }
        self.more_holds += i64::from(claims) - i64::from(claimed.is_some());
        let has_ended = matches!(hold.status, HoldStatus::Released | HoldStatus::Expired);
        match before.filter(|_| mark != Mark::New) {
            None => self.new_holds.push(hold),
            Some(before) if has_ended && *hold == (Hold { status: hold.status, ..before.clone() }) => {
                self.ended.push(hold);
            }
            Some(before) => self.holds.push((hold, before.status)),
        }
    }
}
