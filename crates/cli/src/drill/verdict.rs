//! The verdict: which promise was broken, and by which orders and payments. Computed from what the server and the
//! provider have in their books, never from what the drill counted.

use super::evidence::{Evidence, Reversal};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Breach {
    /// A stable name.
    pub(super) promise: &'static str,
    /// What is wrong, in words.
    pub(super) what: String,
    /// The holds, orders, payments or refunds.
    pub(super) ids: Vec<String>,
}

/// What is left of the sale.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Verdict {
    pub(super) units: u64,
    pub(super) sold: u64,
    /// Units sold beyond those that there were.
    pub(super) oversold: u64,
    /// Units that nobody can buy and nobody has bought.
    pub(super) stranded: u64,
    /// Payments that took money.
    pub(super) captures: u64,
    /// Orders that stand.
    pub(super) orders: u64,
    /// Payments whose money went back.
    pub(super) refunds: u64,
    /// Authorisations that were let go.
    pub(super) voids: u64,
    pub(super) entries: u64,
    pub(super) breaches: Vec<Breach>,
}

impl Verdict {
    /// From what is in the books.
    pub(super) fn of(evidence: &Evidence) -> Self {
        let mut verdict = Self { units: evidence.units, entries: evidence.entries.len() as u64, ..Self::default() };
        verdict.units(evidence);
        verdict.carts(evidence);
        let money = Money::of(evidence);
        verdict.captures = money.captured.len() as u64;
        verdict.orders = evidence.orders.iter().filter(|order| order.status == "confirmed").count() as u64;
        verdict.payments(evidence, &money);
        verdict.orders(evidence, &money);
        verdict.reversals(evidence, &money);
        if let Some(drift) = evidence.drift.as_ref().filter(|drift| !drift.is_empty()) {
            verdict.breach("audit", "the audit found drift", drift.clone());
        }
        verdict
    }

    /// Whether every promise was kept.
    pub(super) fn is_good(&self) -> bool {
        self.breaches.is_empty()
    }

    /// One more broken promise.
    pub(super) fn breach(&mut self, promise: &'static str, what: impl Into<String>, ids: Vec<String>) {
        self.breaches.push(Breach { promise, what: what.into(), ids });
    }

    /// A broken promise, if anybody broke it.
    fn unless_none<'a>(&mut self, promise: &'static str, what: &str, ids: impl IntoIterator<Item = &'a str>) {
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        if !ids.is_empty() {
            self.breach(promise, what, ids);
        }
    }

    /// What was sold, against what there was and against the counters.
    fn units(&mut self, evidence: &Evidence) {
        let (mut available, mut held, mut sold) = (0, 0, 0);
        for entry in &evidence.entries {
            available += entry.available;
            held += entry.held;
            sold += entry.sold;
        }
        self.sold = u64::try_from(sold).unwrap_or_default();
        let standing = evidence.orders.iter().filter(|order| order.status == "confirmed");
        // Whichever tells more: a unit that an order has and the ledger does not is sold as well.
        let (in_orders, by_name) = (standing.clone().count() as u64, standing.map(|order| order.id.clone()));
        self.oversold = self.sold.max(in_orders).saturating_sub(self.units);
        if self.oversold > 0 {
            let what = format!("{} of {} units were sold", self.sold.max(in_orders), self.units);
            self.breach("oversold", what, by_name.skip(self.units as usize).collect());
        }
        let stock = &evidence.stock;
        let told = [stock.available, stock.held, stock.sold].map(u64::cast_signed);
        if told != [available, held, sold] || stock.total != self.units || in_orders != self.sold {
            let what = format!(
                "of {} units, the counters say {} available, {} held, {} sold; the ledger {available}, {held}, {sold}; {in_orders} orders stand",
                self.units, stock.available, stock.held, stock.sold
            );
            self.breach("counters", what, vec![stock.sku.clone()]);
        }
        let mut holds: BTreeMap<&str, i64> = BTreeMap::new();
        for entry in &evidence.entries {
            *holds.entry(entry.hold_id.as_deref().unwrap_or_default()).or_default() += entry.held;
        }
        let open: Vec<&str> = holds.iter().filter(|(_, held)| **held != 0).map(|(hold, _)| *hold).collect();
        let lost = self.units.saturating_sub(stock.available + stock.held + stock.sold);
        self.stranded = stock.held.max(u64::try_from(held).unwrap_or_default()) + lost;
        if self.stranded > 0 || !open.is_empty() {
            let what = format!("{} units can neither be bought nor were", self.stranded);
            self.breach("stranded", what, open.into_iter().map(str::to_owned).collect());
        }
    }

    /// No order has more than its one unit, at any time.
    fn carts(&mut self, evidence: &Evidence) {
        let mut claims: BTreeMap<&str, i64> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for entry in &evidence.entries {
            let Some(order) = entry.order_id.as_deref() else { continue };
            let claim = claims.entry(order).or_default();
            *claim += entry.held + entry.sold;
            if *claim > 1 {
                twice.insert(order);
            }
        }
        self.unless_none("one_claim_an_order", "orders had more than the unit they asked for", twice);
    }

    /// Each payment that took money is in exactly one of: an order, one whole refund. Each authorisation was captured
    /// or let go.
    fn payments(&mut self, evidence: &Evidence, money: &Money) {
        let (mut nowhere, mut both, mut shared, mut twice, mut partly) = (vec![], vec![], vec![], vec![], vec![]);
        for (id, (captured, refunded)) in &money.captured {
            let orders = money.orders.get(id).map_or(0, Vec::len);
            let refunds = money.refunds.get(id).map_or(&[][..], Vec::as_slice);
            self.refunds += u64::from(!refunds.is_empty());
            if orders > 1 {
                shared.push(*id);
            }
            if refunds.len() > 1 {
                twice.extend(std::iter::once(*id).chain(refunds.iter().copied()));
            }
            match (orders, refunds.len()) {
                (0, 0) => nowhere.push(*id),
                (0, _) if captured != refunded => partly.push(*id),
                (0, _) | (_, 0) => {}
                _ => both.push(*id),
            }
        }
        self.unless_none(
            "payment_settles_once",
            "money was taken, for which there is neither order nor refund",
            nowhere,
        );
        self.unless_none("payment_settles_once", "money went back although it pays for an order", both);
        self.unless_none("payment_settles_once", "one payment pays for several orders", shared);
        self.unless_none("refund_once", "money was sent back twice", twice);
        self.unless_none("refund_whole", "not all of the money went back", partly);
        let is = |status: &'static str| {
            let found = evidence.books.payment_intents.iter().filter(move |intent| intent.status == status);
            found.map(|intent| intent.id.as_str())
        };
        self.unless_none(
            "authorisation_ends",
            "authorisations were neither captured nor let go",
            is("requires_capture"),
        );
        self.voids = is("canceled").filter(|id| money.authorised.contains(id)).count() as u64;
    }

    /// Each order that stands has its money.
    fn orders(&mut self, evidence: &Evidence, money: &Money) {
        let unpaid = evidence.orders.iter().filter(|order| {
            let paid_by = order.payment.as_ref().map(|payment| payment.payment_id.as_str());
            order.status == "confirmed" && !paid_by.is_some_and(|id| money.captured.contains_key(id))
        });
        self.unless_none("order_has_its_money", "orders stand without money", unpaid.map(|o| o.id.as_str()));
    }

    /// The server's reversals and the provider's, one to one.
    fn reversals(&mut self, evidence: &Evidence, money: &Money) {
        let open = evidence.reversals.iter().filter(|reversal| reversal.status != "succeeded");
        for (status, ids) in by_status(open) {
            let what = format!("reversals were not carried out: they are {status}");
            self.breach("reversal_carried_out", what, ids);
        }
        let done = |kind: &'static str| {
            let done = evidence.reversals.iter().filter(move |r| r.kind == kind && r.status == "succeeded");
            done.map(|reversal| reversal.payment_id.as_str())
        };
        let missing = done("refund").filter(|id| !money.refunds.contains_key(id));
        self.unless_none("refund_at_provider", "the provider knows nothing of refunds that the server did", missing);
        let voided: BTreeSet<&str> = {
            let canceled = evidence.books.payment_intents.iter().filter(|intent| intent.status == "canceled");
            canceled.map(|intent| intent.id.as_str()).collect()
        };
        let missing = done("void").filter(|id| !voided.contains(id));
        self.unless_none("void_at_provider", "the provider knows nothing of voids that the server did", missing);
        let known: BTreeSet<&str> = evidence.reversals.iter().map(|reversal| reversal.payment_id.as_str()).collect();
        let unknown = money.refunds.keys().copied().filter(|id| !known.contains(id));
        self.unless_none("refund_in_server", "the provider has refunds that the server knows nothing of", unknown);
        let mut seen = BTreeSet::new();
        let twice = evidence.reversals.iter().filter(|r| !seen.insert((&r.payment_id, &r.kind)));
        self.unless_none("refund_once", "the server reversed twice", twice.map(|r| r.payment_id.as_str()));
    }
}

fn by_status<'a>(reversals: impl Iterator<Item = &'a Reversal>) -> BTreeMap<&'a str, Vec<String>> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for reversal in reversals {
        found.entry(&reversal.status).or_default().push(reversal.payment_id.clone());
    }
    found
}

/// The provider's books and the orders, by payment.
struct Money<'a> {
    /// Taken, and gone back.
    captured: BTreeMap<&'a str, (u64, u64)>,
    /// Ever authorised or taken.
    authorised: BTreeSet<&'a str>,
    /// Refunds that did not fail.
    refunds: BTreeMap<&'a str, Vec<&'a str>>,
    /// Orders that stand.
    orders: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Money<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let mut money = Self {
            captured: BTreeMap::new(),
            authorised: BTreeSet::new(),
            refunds: BTreeMap::new(),
            orders: BTreeMap::new(),
        };
        for charge in &evidence.books.charges {
            let id = charge.payment_intent.as_str();
            if charge.amount_captured > 0 {
                money.captured.insert(id, (charge.amount_captured, charge.amount_refunded));
            }
            if charge.amount_captured > 0 || charge.amount_refunded > 0 {
                money.authorised.insert(id);
            }
        }
        for refund in evidence.books.refunds.iter().filter(|refund| refund.status != "failed") {
            money.refunds.entry(&refund.payment_intent).or_default().push(&refund.id);
        }
        for order in evidence.orders.iter().filter(|order| order.status == "confirmed") {
            if let Some(payment) = &order.payment {
                money.orders.entry(&payment.payment_id).or_default().push(&order.id);
            }
        }
        money
    }
}

#[cfg(test)]
mod tests;
