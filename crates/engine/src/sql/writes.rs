//! The persist step: what a batch changed, sorted by what has to be written, in the order in which it has to be.

use super::config::Strategy;
use super::fault::Fault;
use super::leased::Taken;
use super::part::Part;
use hashbrown::HashMap;
use holdfast_domain::{CustomerId, Entry, Hold, HoldId, HoldStatus, Job, Mark, Order, Payment, Ref, Sku, Stock, Time};

/// Units of a SKU that stand in rows of their own at the most.
const CARVED: u64 = 200;
/// A batch that changes more SKUs than this puts no units into rows: those are for a few SKUs that all want.
const CARVED_SKUS: usize = 16;

/// Rows to write. A hold that ends is written before one that begins, since an order has one current hold at a time.
#[derive(Default)]
pub(crate) struct Writes<'a> {
    pub(crate) new_stocks: Vec<&'a Stock>,
    pub(crate) stocks: Vec<ChangedStock<'a>>,
    /// With the revision at which they were read.
    pub(crate) removed_stocks: Vec<(&'a Sku, i64)>,
    /// SKUs that have more units in rows of their own than they shall have, and how many more.
    pub(crate) gone_units: Vec<(&'a Sku, u64)>,
    /// Units to be put into rows of their own: SKU, first and last number.
    pub(crate) new_units: Vec<(&'a Sku, i64, i64)>,
    /// SKUs that were read at these revisions and left as they are: what was refused rests on them.
    pub(crate) unchanged: Vec<(&'a Sku, i64)>,
    /// Holds that claim nothing any more, of which nothing but the status has changed.
    pub(crate) ended: Vec<&'a Hold>,
    /// Other holds that have changed.
    pub(crate) holds: Vec<Changed<'a>>,
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
    /// Of a move only: name and text.
    pub(super) notes: &'a [(String, String)],
    /// The moment of the batch.
    pub(crate) now: Time,
    /// How many more holds claim units.
    pub(crate) more_holds: i64,
    /// How many more SKUs are known.
    pub(crate) more_skus: i64,
    /// The lease that some of the SKUs are written under.
    pub(super) lease: Option<&'a Taken>,
    /// Write a SKU whatever its revision is by now.
    pub(crate) is_naive: bool,
    /// Rows of a move: the database must be in the middle of one, and in none for anything else.
    pub(crate) is_move: bool,
}

/// A SKU that has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedStock<'a> {
    pub(crate) stock: &'a Stock,
    /// The revision at which it was read.
    pub(crate) revision: i64,
    /// Units of `available` that stand in rows of their own.
    pub(crate) carved: u64,
}

/// A hold that has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changed<'a> {
    pub(crate) hold: &'a Hold,
    /// The status that it had.
    pub(crate) was: HoldStatus,
    /// Nothing but its status, and whether it is late, has changed.
    pub(crate) is_plain: bool,
}

fn lost(what: &str) -> Fault {
    Fault::Corrupt(format!("a changed {what} is not in the inventory"))
}

impl<'a> Writes<'a> {
    /// Whether the row of totals changes.
    pub(crate) fn changes_totals(&self) -> bool {
        !self.entries.is_empty() || self.more_holds != 0 || self.more_skus != 0
    }

    /// What a SKU's row is written under: 0 where there is no lease.
    pub(crate) fn fence(&self, sku: &Sku) -> i64 {
        self.lease.map_or(0, |lease| lease.fence(sku))
    }

    /// What the batch changed.
    pub(super) fn of(part: &'a Part, now: Time, strategy: Strategy) -> Result<Self, Fault> {
        let changes = part.inventory.changes();
        let mut writes = Self {
            events: &changes.events,
            receipts: &changes.receipts,
            entries: &changes.entries,
            now,
            lease: part.lease.as_ref(),
            is_naive: strategy == Strategy::Naive,
            ..Self::default()
        };
        writes.take_stocks(part, strategy)?;
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

    fn take_stocks(&mut self, part: &'a Part, strategy: Strategy) -> Result<(), Fault> {
        for sku in &part.inventory.changes().stocks {
            let (stock, mark) = part.inventory.stock_change(sku).ok_or_else(|| lost("SKU"))?;
            let read_at = part.revisions.get(sku).copied();
            match (stock, mark) {
                (Some(stock), Mark::New) => {
                    self.new_stocks.push(stock);
                    self.more_skus += 1;
                }
                (Some(stock), _) => {
                    let revision = read_at.ok_or_else(|| lost("SKU"))?;
                    let carved = self.carve(part, stock, strategy);
                    self.stocks.push(ChangedStock { stock, revision, carved });
                }
                // Made and removed by the same batch: there is no row.
                (None, Mark::New) => {}
                (None, _) => {
                    if let Some(read_at) = read_at {
                        self.gone_units.push((sku, part.loose.get(sku).map_or(0, |loose| loose.rows)));
                        self.removed_stocks.push((sku, read_at));
                        self.more_skus -= 1;
                    }
                }
            }
        }
        let is_read_only = |sku: &&Sku| part.inventory.stock_change(sku).is_some_and(|(_, mark)| mark == Mark::Clean);
        self.unchanged =
            part.revisions.iter().filter(|(sku, _)| is_read_only(sku)).map(|(sku, at)| (sku, *at)).collect();
        self.stocks.sort_by(|a, b| a.stock.sku.cmp(&b.stock.sku));
        Ok(())
    }

    /// How many of a SKU's available units shall stand in rows of their own: few when others claim by other means or a
    /// limit has to be watched, and not more than there are.
    fn carve(&mut self, part: &'a Part, stock: &'a Stock, strategy: Strategy) -> u64 {
        let (rows, last) = part.loose.get(&stock.sku).map_or((0, 0), |loose| (loose.rows, loose.last));
        let is_hot = part.inventory.changes().stocks.len() <= CARVED_SKUS;
        let wanted = match strategy {
            Strategy::SkipLocked if stock.limit_per_customer.is_some() => 0,
            Strategy::SkipLocked if is_hot && rows < CARVED / 4 => CARVED,
            Strategy::SkipLocked => rows,
            _ => 0,
        };
        let carved = wanted.min(stock.available);
        if carved > rows {
            self.new_units.push((&stock.sku, last + 1, last + (carved - rows) as i64));
        } else if carved < rows {
            self.gone_units.push((&stock.sku, rows - carved));
        }
        carved
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
            Some(before) => {
                let (was, late) = (before.status, hold.late);
                let is_plain = *hold == (Hold { status: hold.status, late, ..before.clone() });
                self.holds.push(Changed { hold, was, is_plain });
            }
        }
    }
}
