//! What is answered: values of the domain as JSON, and the schemas of the OpenAPI document.

use holdfast_domain::{Currency, CustomerId, Entry, Hold, Job, OrderRef, Payment, Stock, Time};
use holdfast_engine::{AuditReport, NumberedEntry, OrderView};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::time::{Duration, UNIX_EPOCH};
use utoipa::ToSchema;

/// RFC 3339, UTC, milliseconds.
#[derive(Clone, Copy, ToSchema)]
#[schema(value_type = String, format = DateTime, examples("2026-11-30T12:00:00.000Z"))]
pub(crate) struct Moment(pub(crate) Time);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let since = Duration::from_millis(u64::try_from(self.0.millis()).unwrap_or(0));
        serializer.collect_str(&humantime::format_rfc3339_millis(UNIX_EPOCH + since))
    }
}

/// One line of a cart.
#[derive(Serialize, ToSchema)]
pub(crate) struct LineView<'a> {
    sku: &'a str,
    quantity: u64,
}

/// A cart's claim on units.
#[derive(Serialize, ToSchema)]
#[schema(as = Hold)]
pub(crate) struct HoldView<'a> {
    #[schema(format = "uuid")]
    id: String,
    order_id: &'a str,
    /// As of now: a lapsed hold reads `expired` before any sweep.
    #[schema(examples("held", "confirmed", "released", "expired"))]
    status: &'static str,
    items: Vec<LineView<'a>>,
    customer_id: Option<&'a str>,
    /// Minor units.
    amount: Option<u64>,
    /// ISO 4217, upper case.
    currency: Option<&'a str>,
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<&'a RawValue>,
    created_at: Moment,
    expires_at: Moment,
    /// Confirmed after it had lapsed.
    late: bool,
}

impl<'a> HoldView<'a> {
    pub(crate) fn new(hold: &'a Hold, now: Time) -> Self {
        Self {
            id: hold.id.to_string(),
            order_id: hold.order_id.as_str(),
            status: hold.status_at(now).as_str(),
            items: hold.lines.iter().map(|l| LineView { sku: l.sku.as_str(), quantity: l.quantity.get() }).collect(),
            customer_id: hold.customer_id.as_ref().map(CustomerId::as_str),
            amount: hold.money.amount,
            currency: hold.money.currency.as_ref().map(Currency::as_str),
            metadata: hold.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok()),
            created_at: Moment(hold.created_at),
            expires_at: Moment(hold.expires_at),
            late: hold.late,
        }
    }
}

/// The counters of one SKU.
#[derive(Serialize, ToSchema)]
#[schema(as = Stock)]
pub(crate) struct StockView<'a> {
    sku: &'a str,
    /// available + held + sold.
    total: u64,
    available: u64,
    held: u64,
    sold: u64,
    limit_per_customer: Option<u64>,
    /// Counts the changes of total and limit.
    version: u64,
}

impl<'a> StockView<'a> {
    pub(crate) fn new(stock: &'a Stock) -> Self {
        Self {
            sku: stock.sku.as_str(),
            total: stock.total(),
            available: stock.available,
            held: stock.held,
            sold: stock.sold,
            limit_per_customer: stock.limit_per_customer,
            version: stock.version,
        }
    }
}

/// One line of an order.
#[derive(Serialize, ToSchema)]
pub(crate) struct OrderLineView<'a> {
    sku: &'a str,
    quantity: u64,
    returned: u64,
}

/// A hold that was confirmed.
#[derive(Serialize, ToSchema)]
#[schema(as = Order)]
pub(crate) struct OrderJson<'a> {
    order_id: &'a str,
    #[schema(format = "uuid")]
    hold_id: String,
    #[schema(examples("confirmed", "refunded", "capture_failed", "returned"))]
    status: &'static str,
    items: Vec<OrderLineView<'a>>,
    /// Confirmed after the hold had lapsed.
    late: bool,
    payment: Option<PaymentView<'a>>,
    confirmed_at: Moment,
}

impl<'a> OrderJson<'a> {
    pub(crate) fn new(view: &'a OrderView) -> Self {
        let order = &view.order;
        let line = |l: &'a holdfast_domain::OrderLine| OrderLineView {
            sku: l.sku.as_str(),
            quantity: l.quantity,
            returned: l.returned,
        };
        Self {
            order_id: order.order_id.as_str(),
            hold_id: order.hold_id.to_string(),
            status: order.status.as_str(),
            items: order.lines.iter().map(line).collect(),
            late: order.late,
            payment: view.payment.as_ref().map(PaymentView::new),
            confirmed_at: Moment(order.confirmed_at),
        }
    }
}

/// What a provider told of one payment, and where it stands.
// Facts, as in the payment itself.
#[allow(clippy::struct_excessive_bools)]
#[derive(Serialize, ToSchema)]
#[schema(as = Payment)]
pub(crate) struct PaymentView<'a> {
    provider: &'a str,
    payment_id: &'a str,
    status: &'static str,
    order_id: Option<&'a str>,
    hold_id: Option<String>,
    amount: Option<u64>,
    currency: Option<&'a str>,
    authorized: bool,
    captured: bool,
    canceled: bool,
    capture_failed: bool,
    disputed: bool,
    /// Minor units given back so far.
    refunded: u64,
    received_at: Moment,
}

impl<'a> PaymentView<'a> {
    pub(crate) fn new(payment: &'a Payment) -> Self {
        let (order_id, hold_id) = match &payment.order {
            Some(OrderRef::Order(id)) => (Some(id.as_str()), None),
            Some(OrderRef::Hold(id)) => (None, Some(id.to_string())),
            None => (None, None),
        };
        Self {
            provider: payment.key.provider.as_str(),
            payment_id: payment.key.payment_id.as_str(),
            status: payment.status.as_str(),
            order_id,
            hold_id,
            amount: payment.money.amount,
            currency: payment.money.currency.as_ref().map(Currency::as_str),
            authorized: payment.authorized,
            captured: payment.captured,
            canceled: payment.canceled,
            capture_failed: payment.capture_failed,
            disputed: payment.disputed,
            refunded: payment.refunded,
            received_at: Moment(payment.received_at),
        }
    }
}

/// Money that goes back: a refund of a capture, or a void of an authorisation.
#[derive(Serialize, ToSchema)]
#[schema(as = Refund)]
pub(crate) struct RefundView<'a> {
    /// `provider:payment_id`, for a retry.
    id: String,
    provider: &'a str,
    payment_id: &'a str,
    kind: &'static str,
    reason: &'static str,
    status: &'static str,
    amount: Option<u64>,
    currency: Option<&'a str>,
    /// How often the provider was asked.
    attempts: u32,
    /// The provider's id of the refund.
    reference: Option<&'a str>,
    /// What went wrong last.
    error: Option<&'a str>,
    created_at: Moment,
    /// When the provider is asked next; nothing is, once it succeeded or needs attention.
    next_at: Moment,
}

impl<'a> RefundView<'a> {
    pub(crate) fn new(job: &'a Job) -> Self {
        Self {
            id: job.payment.to_string(),
            provider: job.payment.provider.as_str(),
            payment_id: job.payment.payment_id.as_str(),
            kind: job.kind.as_str(),
            reason: job.reason.as_str(),
            status: job.state.as_str(),
            amount: job.money.amount,
            currency: job.money.currency.as_ref().map(Currency::as_str),
            attempts: job.attempts,
            reference: job.reference.as_ref().map(holdfast_domain::Ref::as_str),
            error: job.error.as_deref(),
            created_at: Moment(job.created_at),
            next_at: Moment(job.next_at),
        }
    }
}

/// One movement.
#[derive(Serialize, ToSchema)]
#[schema(as = Entry)]
pub(crate) struct EntryView<'a> {
    seq: u64,
    at: Moment,
    kind: &'static str,
    sku: Option<&'a str>,
    /// Change of available.
    available: i64,
    /// Change of held.
    held: i64,
    /// Change of sold.
    sold: i64,
    hold_id: Option<String>,
    order_id: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> EntryView<'a> {
    pub(crate) fn new(numbered: &'a NumberedEntry) -> Self {
        let Entry { at, kind, sku, available, held, sold, hold, order, reason } = &numbered.entry;
        Self {
            seq: numbered.seq,
            at: Moment(*at),
            kind: kind.as_str(),
            sku: sku.as_ref().map(holdfast_domain::Sku::as_str),
            available: *available,
            held: *held,
            sold: *sold,
            hold_id: hold.map(|h| h.to_string()),
            order_id: order.as_ref().map(holdfast_domain::OrderId::as_str),
            reason: reason.as_deref(),
        }
    }
}

/// Part of a list. `next` is the `after` of the following page; null at the end.
#[derive(Serialize, ToSchema)]
pub(crate) struct ListView<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

/// One difference between two counts of the same thing.
#[derive(Serialize, ToSchema)]
pub(crate) struct DriftView<'a> {
    sku: &'a str,
    field: &'static str,
    expected: i64,
    actual: i64,
    /// actual − expected.
    difference: i64,
}

/// What an audit found.
#[derive(Serialize, ToSchema)]
#[schema(as = Audit)]
pub(crate) struct AuditView<'a> {
    clean: bool,
    at: Moment,
    skus: u64,
    entries: u64,
    drift: Vec<DriftView<'a>>,
}

impl<'a> AuditView<'a> {
    pub(crate) fn new(report: &'a AuditReport) -> Self {
        let one = |d: &'a holdfast_engine::Drift| DriftView {
            sku: &d.sku,
            field: d.field,
            expected: d.expected,
            actual: d.actual,
            difference: d.actual - d.expected,
        };
        Self {
            clean: report.drift.is_empty(),
            at: Moment(report.at),
            skus: report.skus,
            entries: report.entries,
            drift: report.drift.iter().map(one).collect(),
        }
    }
}
