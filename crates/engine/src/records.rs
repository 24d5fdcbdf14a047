//! Rows of a store as values of the domain, and back: the same words and the same texts in every engine.
//!
//! An engine fills a record from a row of its driver; reading the record checks every word. What does not read is a
//! store that contradicts the rules.

use crate::EngineError;
use crate::moving::Phase;
use holdfast_domain::{
    Currency, CustomerId, Entry, EntryKind, Hold, HoldId, HoldStatus, Job, JobKind, JobReason, JobState, Lines, Money,
    Order, OrderId, OrderLine, OrderRef, OrderStatus, Payment, PaymentKey, PaymentStatus, Ref, Sku, Stock, Time,
};
use std::fmt::{Display, Write};

/// What is stored contradicts the rules; carries the finding, for logs only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Corrupt(pub(crate) String);

impl From<Corrupt> for EngineError {
    fn from(found: Corrupt) -> Self {
        Self::Corrupt(found.0)
    }
}

type Read<T> = Result<T, Corrupt>;

fn bad<T: Display>(what: &'static str) -> impl Fn(T) -> Corrupt {
    move |why| Corrupt(format!("{what}: {why}"))
}

fn word<T>(text: &str, parse: fn(&str) -> Option<T>) -> Read<T> {
    parse(text).ok_or_else(|| Corrupt(format!("unknown word {text:?}")))
}

fn count(number: i64) -> Read<u64> {
    u64::try_from(number).map_err(bad("a count"))
}

pub(crate) fn reference(text: &str) -> Read<Ref> {
    Ref::new(text).map_err(bad("a reference"))
}

pub(crate) fn sku(text: &str) -> Read<Sku> {
    Sku::new(text).map_err(bad("a SKU"))
}

pub(crate) fn order_id(text: &str) -> Read<OrderId> {
    OrderId::new(text).map_err(bad("an order id"))
}

pub(crate) fn customer_id(text: &str) -> Read<CustomerId> {
    CustomerId::new(text).map_err(bad("a customer"))
}

pub(crate) fn payment_key(provider: &str, payment_id: &str) -> Read<PaymentKey> {
    Ok(PaymentKey { provider: reference(provider)?, payment_id: reference(payment_id)? })
}

pub(crate) fn phase(text: &str) -> Read<Phase> {
    word(text, Phase::parse)
}

fn money(amount: Option<i64>, currency: Option<&str>) -> Read<Money> {
    Ok(Money {
        amount: amount.map(u64::try_from).transpose().map_err(bad("an amount"))?,
        currency: currency
            .map(|c| Currency::new(c).ok_or_else(|| Corrupt(format!("a currency: {c:?}"))))
            .transpose()?,
    })
}

/// A row of `stock`.
pub(crate) struct StockRecord<'a> {
    pub(crate) sku: &'a str,
    pub(crate) available: i64,
    pub(crate) held: i64,
    pub(crate) sold: i64,
    pub(crate) limit_per_customer: Option<i64>,
    pub(crate) version: i64,
}

impl StockRecord<'_> {
    pub(crate) fn read(&self) -> Read<Stock> {
        Ok(Stock {
            sku: sku(self.sku)?,
            available: count(self.available)?,
            held: count(self.held)?,
            sold: count(self.sold)?,
            limit_per_customer: self.limit_per_customer.map(count).transpose()?,
            version: count(self.version)?,
        })
    }
}

/// A row of `holds`.
pub(crate) struct HoldRecord<'a> {
    pub(crate) id: HoldId,
    pub(crate) order_id: &'a str,
    pub(crate) status: &'a str,
    pub(crate) lines: &'a str,
    pub(crate) customer_id: Option<&'a str>,
    pub(crate) amount: Option<i64>,
    pub(crate) currency: Option<&'a str>,
    pub(crate) created_at: i64,
    pub(crate) expires_at: i64,
    pub(crate) late: bool,
    pub(crate) payment_ref: Option<&'a str>,
    pub(crate) metadata: Option<&'a str>,
}

impl HoldRecord<'_> {
    pub(crate) fn read(&self) -> Read<Hold> {
        Ok(Hold {
            id: self.id,
            order_id: order_id(self.order_id)?,
            status: word(self.status, HoldStatus::parse)?,
            lines: read_lines(self.lines)?,
            customer_id: self.customer_id.map(customer_id).transpose()?,
            money: money(self.amount, self.currency)?,
            created_at: Time::from_millis(self.created_at),
            expires_at: Time::from_millis(self.expires_at),
            late: self.late,
            payment_ref: self.payment_ref.map(Into::into),
            metadata: self.metadata.map(Into::into),
        })
    }
}

/// A row of `orders`, with what its hold knows.
pub(crate) struct OrderRecord<'a> {
    pub(crate) hold: HoldId,
    pub(crate) order_id: &'a str,
    pub(crate) status: &'a str,
    pub(crate) lines: &'a str,
    pub(crate) payment_provider: Option<&'a str>,
    pub(crate) payment_id: Option<&'a str>,
    pub(crate) confirmed_at: i64,
    pub(crate) late: bool,
    pub(crate) customer_id: Option<&'a str>,
    pub(crate) amount: Option<i64>,
    pub(crate) currency: Option<&'a str>,
}

impl OrderRecord<'_> {
    pub(crate) fn read(&self) -> Read<Order> {
        let payment = self.payment_provider.zip(self.payment_id);
        Ok(Order {
            hold_id: self.hold,
            order_id: order_id(self.order_id)?,
            status: word(self.status, OrderStatus::parse)?,
            lines: read_order_lines(self.lines)?,
            payment: payment.map(|(provider, id)| payment_key(provider, id)).transpose()?,
            confirmed_at: Time::from_millis(self.confirmed_at),
            late: self.late,
            customer_id: self.customer_id.map(customer_id).transpose()?,
            money: money(self.amount, self.currency)?,
        })
    }
}

/// A row of `payments`.
// The columns are facts, as in the payment itself.
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct PaymentRecord<'a> {
    pub(crate) provider: &'a str,
    pub(crate) payment_id: &'a str,
    pub(crate) order_id: Option<&'a str>,
    pub(crate) hold: Option<HoldId>,
    pub(crate) amount: Option<i64>,
    pub(crate) currency: Option<&'a str>,
    pub(crate) email: Option<&'a str>,
    pub(crate) authorized: bool,
    pub(crate) captured: bool,
    pub(crate) failed: bool,
    pub(crate) canceled: bool,
    pub(crate) refunded: i64,
    pub(crate) status: &'a str,
    pub(crate) received_at: i64,
    pub(crate) capture_failed: bool,
    pub(crate) refund_failed: bool,
    pub(crate) disputed: bool,
}

impl PaymentRecord<'_> {
    pub(crate) fn read(&self) -> Read<Payment> {
        let order = self.order_id.map(order_id).transpose()?;
        Ok(Payment {
            key: payment_key(self.provider, self.payment_id)?,
            order: order.map(OrderRef::Order).or(self.hold.map(OrderRef::Hold)),
            money: money(self.amount, self.currency)?,
            email: self.email.map(Into::into),
            authorized: self.authorized,
            captured: self.captured,
            failed: self.failed,
            canceled: self.canceled,
            capture_failed: self.capture_failed,
            refund_failed: self.refund_failed,
            disputed: self.disputed,
            refunded: count(self.refunded)?,
            status: word(self.status, PaymentStatus::parse)?,
            received_at: Time::from_millis(self.received_at),
        })
    }
}

/// A row of `jobs`.
pub(crate) struct JobRecord<'a> {
    pub(crate) provider: &'a str,
    pub(crate) payment_id: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) state: &'a str,
    pub(crate) idempotency_key: &'a str,
    pub(crate) amount: Option<i64>,
    pub(crate) currency: Option<&'a str>,
    pub(crate) created_at: i64,
    pub(crate) attempts: i64,
    pub(crate) next_at: i64,
    pub(crate) reference: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
}

impl JobRecord<'_> {
    pub(crate) fn read(&self) -> Read<Job> {
        Ok(Job {
            payment: payment_key(self.provider, self.payment_id)?,
            kind: word(self.kind, JobKind::parse)?,
            reason: word(self.reason, JobReason::parse)?,
            state: word(self.state, JobState::parse)?,
            idempotency_key: self.idempotency_key.into(),
            money: money(self.amount, self.currency)?,
            created_at: Time::from_millis(self.created_at),
            attempts: u32::try_from(self.attempts).map_err(bad("a count"))?,
            next_at: Time::from_millis(self.next_at),
            reference: self.reference.map(reference).transpose()?,
            error: self.error.map(Into::into),
        })
    }
}

/// A row of `ledger`.
pub(crate) struct EntryRecord<'a> {
    pub(crate) at: i64,
    pub(crate) kind: &'a str,
    pub(crate) sku: Option<&'a str>,
    pub(crate) available: i64,
    pub(crate) held: i64,
    pub(crate) sold: i64,
    pub(crate) hold: Option<HoldId>,
    pub(crate) order_id: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
}

impl EntryRecord<'_> {
    pub(crate) fn read(&self) -> Read<Entry> {
        Ok(Entry {
            at: Time::from_millis(self.at),
            kind: word(self.kind, EntryKind::parse)?,
            sku: self.sku.map(sku).transpose()?,
            available: self.available,
            held: self.held,
            sold: self.sold,
            hold: self.hold,
            order: self.order_id.map(order_id).transpose()?,
            reason: self.reason.map(Into::into),
        })
    }
}

/// Reads a hold's id from its text.
pub(crate) fn hold_id(text: &str) -> Read<HoldId> {
    HoldId::parse(text).ok_or_else(|| Corrupt(format!("bad hold id {text:?}")))
}

/// One line of text per SKU: quantity, a space, the SKU. A SKU contains no line break.
pub(crate) fn write_lines(lines: &Lines, out: &mut String) {
    out.clear();
    for line in lines {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = write!(out, "{} {}", line.quantity.get(), line.sku);
    }
}

/// The same as a text of its own.
pub(crate) fn lines_text(lines: &Lines) -> String {
    let mut text = String::new();
    write_lines(lines, &mut text);
    text
}

/// A number as databases count: what the domain lets through fits.
pub(crate) fn signed(number: Option<u64>) -> Option<i64> {
    number.map(|number| number as i64)
}

pub(crate) fn read_lines(text: &str) -> Read<Lines> {
    let mut lines = Vec::with_capacity(1);
    for line in text.split('\n') {
        let (quantity, name) = line.split_once(' ').ok_or_else(|| Corrupt("a line without a quantity".into()))?;
        lines.push((sku(name)?, quantity.parse::<u64>().map_err(bad("a quantity"))?));
    }
    Lines::new(lines).map_err(bad("lines"))
}

/// One line of text per SKU: quantity, returned, the SKU, separated by spaces.
pub(crate) fn write_order_lines(lines: &[OrderLine]) -> String {
    let told: Vec<String> = lines.iter().map(|l| format!("{} {} {}", l.quantity, l.returned, l.sku)).collect();
    told.join("\n")
}

pub(crate) fn read_order_lines(text: &str) -> Read<Vec<OrderLine>> {
    let read = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().ok_or_else(|| Corrupt("a short order line".into()));
        let quantity = part()?.parse::<u64>().map_err(bad("a quantity"))?;
        let returned = part()?.parse::<u64>().map_err(bad("a returned quantity"))?;
        let sku = sku(part()?)?;
        if returned > quantity {
            return Err(Corrupt("more returned than bought".into()));
        }
        Ok(OrderLine { sku, quantity, returned })
    };
    text.split('\n').map(read).collect()
}
