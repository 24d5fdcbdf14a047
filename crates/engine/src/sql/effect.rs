//! What a store that decides holds on its own has to be told once a batch is committed here, as values and as text.
//!
//! The text is noted in the same transaction, so that whoever comes later can tell the store in place of a node that
//! went away. Fields are written with their lengths before them: no identifier can be mistaken for punctuation.

use crate::records::{self, Corrupt};
use holdfast_domain::{CustomerId, Hold, HoldId, OrderId, Sku};
use std::fmt::Write;

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A SKU's counters move.
    Stock { sku: Sku, moved: Moves, terms: Option<Terms> },
    /// A SKU is known from now on, with so many units available.
    Made { sku: Sku, available: u64, terms: Terms },
    /// A SKU is not known any more.
    Removed(Sku),
    /// A hold claims nothing any more, or became an order. It had lines of these SKUs.
    Ended { hold: HoldId, order: OrderId, skus: Vec<Sku> },
    /// A live hold is different from now on; it had lines of these SKUs.
    Live { hold: Box<Hold>, skus: Vec<Sku> },
    /// An order is confirmed.
    Confirmed { order: OrderId, hold: HoldId },
    /// A customer has so many more units of a SKU, held and bought together.
    Has { customer: CustomerId, sku: Sku, units: i64 },
    /// So many more payments wait for a hold of this order.
    Waits { order: OrderId, payments: i64 },
}

/// What a SKU has from now on, where it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) limit: Option<u64>,
    pub(crate) version: u64,
}

/// How much more of each counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moves {
    pub(crate) available: i64,
    pub(crate) held: i64,
    pub(crate) sold: i64,
}

/// All of them as one text.
pub(crate) fn write_all(effects: &[Effect]) -> String {
    let mut out = String::new();
    for effect in effects {
        write_one(effect, &mut out);
    }
    out
}

/// Reads them back.
pub(crate) fn read_all(text: &str) -> Result<Vec<Effect>, Corrupt> {
    let mut fields = Fields(text);
    let mut effects = Vec::new();
    while !fields.0.is_empty() {
        effects.push(read_one(&mut fields)?);
    }
    Ok(effects)
}

/// A field with its length before it.
pub(crate) fn field(out: &mut String, text: &str) {
    let _ = write!(out, "{}:{text}", text.len());
}

fn numbers(out: &mut String, all: &[i64]) {
    all.iter().for_each(|number| field(out, &number.to_string()));
}

/// A field that may be missing.
pub(crate) fn option(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => field(out, &format!("+{text}")),
        None => field(out, ""),
    }
}

fn skus_fields(out: &mut String, skus: &[Sku]) {
    numbers(out, &[skus.len() as i64]);
    skus.iter().for_each(|sku| field(out, sku.as_str()));
}

fn write_one(effect: &Effect, out: &mut String) {
    match effect {
        Effect::Stock { sku, moved, terms } => {
            field(out, "stock");
            field(out, sku.as_str());
            numbers(out, &[moved.available, moved.held, moved.sold]);
            option(out, terms.map(|terms| terms.version.to_string()).as_deref());
            option(out, terms.and_then(|terms| terms.limit).map(|limit| limit.to_string()).as_deref());
        }
        Effect::Made { sku, available, terms } => {
            field(out, "made");
            field(out, sku.as_str());
            numbers(out, &[*available as i64, terms.version as i64]);
            option(out, terms.limit.map(|limit| limit.to_string()).as_deref());
        }
        Effect::Removed(sku) => {
            field(out, "removed");
            field(out, sku.as_str());
        }
        Effect::Ended { hold, order, skus } => {
            field(out, "ended");
            field(out, &hold.to_string());
            field(out, order.as_str());
            skus_fields(out, skus);
        }
        Effect::Live { hold, skus } => {
            field(out, "live");
            write_hold(hold, out);
            skus_fields(out, skus);
        }
        Effect::Confirmed { order, hold } => {
            field(out, "confirmed");
            field(out, order.as_str());
            field(out, &hold.to_string());
        }
        Effect::Has { customer, sku, units } => {
            field(out, "has");
            field(out, customer.as_str());
            field(out, sku.as_str());
            numbers(out, &[*units]);
        }
        Effect::Waits { order, payments } => {
            field(out, "waits");
            field(out, order.as_str());
            numbers(out, &[*payments]);
        }
    }
}

fn read_one(fields: &mut Fields<'_>) -> Result<Effect, Corrupt> {
    Ok(match fields.text()? {
        "stock" => {
            let sku = records::sku(fields.text()?)?;
            let moved = Moves { available: fields.number()?, held: fields.number()?, sold: fields.number()? };
            let (version, limit) = (fields.maybe_count()?, fields.maybe_count()?);
            Effect::Stock { sku, moved, terms: version.map(|version| Terms { limit, version }) }
        }
        "made" => {
            let sku = records::sku(fields.text()?)?;
            let (available, version) = (fields.count()?, fields.count()?);
            Effect::Made { sku, available, terms: Terms { limit: fields.maybe_count()?, version } }
        }
        "removed" => Effect::Removed(records::sku(fields.text()?)?),
        "ended" => {
            let (hold, order) = (records::hold_id(fields.text()?)?, records::order_id(fields.text()?)?);
            Effect::Ended { hold, order, skus: fields.skus()? }
        }
        "live" => Effect::Live { hold: Box::new(read_hold(fields)?), skus: fields.skus()? },
        "confirmed" => {
            Effect::Confirmed { order: records::order_id(fields.text()?)?, hold: records::hold_id(fields.text()?)? }
        }
        "has" => Effect::Has {
            customer: records::customer_id(fields.text()?)?,
            sku: records::sku(fields.text()?)?,
            units: fields.number()?,
        },
        "waits" => Effect::Waits { order: records::order_id(fields.text()?)?, payments: fields.number()? },
        other => return Err(Corrupt(format!("unknown effect {other:?}"))),
    })
}

/// A hold that claims units, as fields.
pub(crate) fn write_hold(hold: &Hold, out: &mut String) {
    field(out, &hold.id.to_string());
    field(out, hold.order_id.as_str());
    numbers(out, &[hold.created_at.millis(), hold.expires_at.millis()]);
    field(out, &records::lines_text(&hold.lines));
    option(out, hold.customer_id.as_ref().map(CustomerId::as_str));
    option(out, hold.money.amount.map(|amount| amount.to_string()).as_deref());
    option(out, hold.money.currency.as_ref().map(holdfast_domain::Currency::as_str));
    option(out, hold.payment_ref.as_deref());
    option(out, hold.metadata.as_deref());
}

/// Reads it back.
pub(crate) fn read_hold(fields: &mut Fields<'_>) -> Result<Hold, Corrupt> {
    let id = records::hold_id(fields.text()?)?;
    let order_id = fields.text()?;
    let (created_at, expires_at) = (fields.number()?, fields.number()?);
    let lines = fields.text()?;
    let customer_id = fields.option()?;
    let amount = fields.option()?.map(|text| text.parse().map_err(|_| bad(text))).transpose()?;
    let (currency, payment_ref, metadata) = (fields.option()?, fields.option()?, fields.option()?);
    records::HoldRecord {
        id,
        order_id,
        status: "held",
        lines,
        customer_id,
        amount,
        currency,
        created_at,
        expires_at,
        late: false,
        payment_ref,
        metadata,
    }
    .read()
}

fn bad(text: &str) -> Corrupt {
    Corrupt(format!("unreadable text {text:?}"))
}

/// Fields that were written with their lengths.
pub(crate) struct Fields<'a>(pub(crate) &'a str);

impl<'a> Fields<'a> {
    pub(crate) fn text(&mut self) -> Result<&'a str, Corrupt> {
        let (length, rest) = self.0.split_once(':').ok_or_else(|| bad(self.0))?;
        let length: usize = length.parse().map_err(|_| bad(length))?;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(|| bad(rest))?;
        self.0 = rest;
        Ok(text)
    }

    pub(crate) fn option(&mut self) -> Result<Option<&'a str>, Corrupt> {
        let text = self.text()?;
        match text.strip_prefix('+') {
            Some(text) => Ok(Some(text)),
            None if text.is_empty() => Ok(None),
            None => Err(bad(text)),
        }
    }

    pub(crate) fn number(&mut self) -> Result<i64, Corrupt> {
        let text = self.text()?;
        text.parse().map_err(|_| bad(text))
    }

    fn count(&mut self) -> Result<u64, Corrupt> {
        let text = self.text()?;
        text.parse().map_err(|_| bad(text))
    }

    fn maybe_count(&mut self) -> Result<Option<u64>, Corrupt> {
        self.option()?.map(|text| text.parse().map_err(|_| bad(text))).transpose()
    }

    fn skus(&mut self) -> Result<Vec<Sku>, Corrupt> {
        (0..self.count()?).map(|_| records::sku(self.text()?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::{Currency, HoldStatus, Lines, Money, Time};

    #[test]
    fn what_is_written_is_read() {
        let sku = |text: &str| Sku::new(text).unwrap();
        let order = OrderId::new("3:O'1:+").unwrap();
        let hold = Hold {
            id: HoldId::from_u128(7),
            order_id: order.clone(),
            lines: Lines::new(vec![(sku("A b"), 2), (sku("7:é"), 1)]).unwrap(),
            customer_id: Some(CustomerId::new("+").unwrap()),
            money: Money { amount: Some(15_000), currency: Currency::new("USD") },
            payment_ref: None,
            metadata: Some("{\"a\":\"\\n:\"}".into()),
            created_at: Time::from_millis(5),
            expires_at: Time::from_millis(1_764_500_000_000),
            status: HoldStatus::Held,
            late: false,
        };
        let moved = Moves { available: -1, held: 0, sold: 1 };
        let customer = CustomerId::new("c").unwrap();
        let effects = vec![
            Effect::Stock { sku: sku("A"), moved, terms: Some(Terms { limit: Some(3), version: 9 }) },
            Effect::Stock { sku: sku("B"), moved, terms: None },
            Effect::Made { sku: sku("{"), available: 1_000_000_000_000, terms: Terms { limit: None, version: 1 } },
            Effect::Removed(sku("🧢")),
            Effect::Ended { hold: hold.id, order: order.clone(), skus: vec![sku("A"), sku("12:B")] },
            Effect::Live { hold: Box::new(hold.clone()), skus: vec![] },
            Effect::Confirmed { order: order.clone(), hold: hold.id },
            Effect::Has { customer, sku: sku("A"), units: -4 },
            Effect::Waits { order, payments: 1 },
        ];
        assert_eq!(read_all(&write_all(&effects)), Ok(effects));
        assert!(read_all("5:stock1:A").is_err() && read_all("9").is_err() && read_all("99:x").is_err());
    }
}
