//! What a provider's webhook says, as facts for the domain: pure functions over the bytes that came.
//!
//! A body is read only after its signature was found good. Nothing here answers, logs or decides what a payment does.

pub(crate) mod adyen;
pub(crate) mod signature;
pub(crate) mod standard;
pub(crate) mod stripe;

use holdfast_domain::{Currency, HoldId, Money, OrderId, OrderRef, PaymentFact, Ref};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// The longest address that SMTP can carry.
const EMAIL_MAX_BYTES: usize = 254;

/// One event, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// The provider's id of the event.
    pub(crate) event_id: Ref,
    /// The provider's name for what happened.
    pub(crate) event_type: Ref,
    /// Whether real money moved, where the provider tells.
    pub(crate) livemode: Option<bool>,
    /// What it tells us. Empty exactly if it is ignored.
    pub(crate) facts: Vec<PaymentFact>,
    /// Why there is nothing in it for us.
    pub(crate) ignored: Option<&'static str>,
}

/// The event cannot be used, though it is of a kind that we act on: the answer is 400 with this detail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadEvent {
    /// What is wrong, and where. Names members, never repeats what they hold.
    pub(crate) detail: String,
}

impl BadEvent {
    fn new(detail: impl Into<String>) -> Self {
        Self { detail: detail.into() }
    }
}

impl fmt::Display for BadEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// What an event turned out to hold.
type Found = Result<Vec<PaymentFact>, &'static str>;

impl Received {
    fn new(event_id: Ref, event_type: Ref, livemode: Option<bool>, found: Found) -> Self {
        let (facts, ignored) = match found {
            Ok(facts) => (facts, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        Self { event_id, event_type, livemode, facts, ignored }
    }
}

fn read_json(body: &[u8]) -> Result<Value, BadEvent> {
    // The parser's words may quote what was sent; the place is enough.
    serde_json::from_slice(body)
        .map_err(|e| BadEvent::new(format!("the body is no JSON (line {}, column {})", e.line(), e.column())))
}

/// A JSON object that knows its place in the body, so that what is wrong with it can be told.
struct Object<'a> {
    members: &'a Map<String, Value>,
    place: Cow<'static, str>,
}

impl<'a> Object<'a> {
    fn new(value: &'a Value, place: impl Into<Cow<'static, str>>) -> Result<Self, BadEvent> {
        let place = place.into();
        match value {
            Value::Object(members) => Ok(Self { members, place }),
            _ if place.is_empty() => Err(BadEvent::new("the body is no JSON object")),
            _ => Err(BadEvent::new(format!("{place} is missing or no object"))),
        }
    }

    fn bad(&self, name: &str, what: &str) -> BadEvent {
        let dot = if self.place.is_empty() { "" } else { "." };
        BadEvent::new(format!("{}{dot}{name} {what}", self.place))
    }

    /// The member, unless it is absent or null.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|v| !v.is_null())
    }

    fn object(&self, name: &str) -> Result<Self, BadEvent> {
        let dot = if self.place.is_empty() { "" } else { "." };
        Self::new(self.members.get(name).unwrap_or(&Value::Null), format!("{}{dot}{name}", self.place))
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, BadEvent> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.bad(name, "must be a text")),
        }
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, BadEvent> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.bad(name, "must be true or false")),
        }
    }

    /// Somebody else's name for a thing. An empty one is no name.
    fn reference(&self, name: &str) -> Result<Option<Ref>, BadEvent> {
        let text = self.text(name)?.filter(|t| !t.is_empty());
        text.map(|t| Ref::new(t).map_err(|e| self.bad(name, &e.to_string()))).transpose()
    }

    fn required(&self, name: &str) -> Result<Ref, BadEvent> {
        self.reference(name)?.ok_or_else(|| self.bad(name, "is missing"))
    }

    /// Minor units: a whole number that JSON carries exactly.
    fn amount(&self, name: &str) -> Result<Option<u64>, BadEvent> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let amount = value.as_u64().filter(|a| *a <= Money::MAX_AMOUNT);
        amount.map(Some).ok_or_else(|| self.bad(name, "must be a whole number of minor units, from 0 to 2^53 - 1"))
    }

    fn currency(&self, name: &str) -> Result<Option<Currency>, BadEvent> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        Currency::new(text).map(Some).ok_or_else(|| self.bad(name, "must be a currency code of three letters"))
    }

    /// An address to write to. One that cannot be used is left out: no payment waits for it.
    fn email(&self, name: &str) -> Option<Box<str>> {
        let text = self.get(name)?.as_str()?;
        let is_usable = text.len() <= EMAIL_MAX_BYTES
            && text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
            && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        is_usable.then(|| text.into())
    }
}

/// One of the names that we give to providers ourselves.
fn provider(name: &'static str) -> Result<Ref, BadEvent> {
    Ref::new(name).map_err(|e| BadEvent::new(format!("the provider's name {e}")))
}

/// A reference that is a hold's id means the hold, any other the merchant's order. `None`: nothing that could be ours.
fn order_or_hold(text: &str) -> Option<OrderRef> {
    match HoldId::parse(text) {
        Some(id) => Some(OrderRef::Hold(id)),
        None => OrderId::new(text).ok().map(OrderRef::Order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_member_that_is_wrong_is_named_with_its_place() {
        let value = json!({"data": {"amount": "12", "id": 7}});
        let body = Object::new(&value, "").unwrap();
        let data = body.object("data").unwrap();
        assert_eq!(data.amount("amount").unwrap_err().detail.split(' ').next(), Some("data.amount"));
        assert_eq!(data.text("id").unwrap_err().detail, "data.id must be a text");
        assert_eq!(data.required("none").unwrap_err().detail, "data.none is missing");
        assert_eq!(body.object("else").err().unwrap().detail, "else is missing or no object");
    }

    #[test]
    fn amounts_are_whole_numbers_in_range() {
        for bad in [json!("5"), json!(-1), json!(1.5), json!(1e3), json!(1_u64 << 53), json!([1]), json!(true)] {
            let value = json!({"amount": bad});
            assert!(Object::new(&value, "").unwrap().amount("amount").is_err(), "{value}");
        }
        let value = json!({"most": (1_u64 << 53) - 1, "null": null});
        let object = Object::new(&value, "").unwrap();
        assert_eq!((object.amount("most"), object.amount("null")), (Ok(Some(Money::MAX_AMOUNT)), Ok(None)));
    }

    #[test]
    fn an_address_that_could_carry_more_than_an_address_is_left_out() {
        for bad in ["", "a", "@b", "a@", "a@b\r\nBcc: c@d", "a b@c", "a@\u{2028}b", &format!("{}@b", "a".repeat(300))] {
            assert_eq!(Object::new(&json!({"email": bad}), "").unwrap().email("email"), None, "{bad:?}");
        }
        assert!(Object::new(&json!({"email": "jo+1@exämple.org"}), "").unwrap().email("email").is_some());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzzing::stripe_event(&bytes);
            crate::fuzzing::adyen_events(&bytes);
            crate::fuzzing::standard_event(&bytes);
            crate::fuzzing::signatures(&bytes);
        }

        #[test]
        fn no_cut_or_flipped_event_makes_it_panic(at in 0_usize..2000, with in any::<u8>(), cut in any::<bool>()) {
            for event in [stripe::EXAMPLE, adyen::EXAMPLE, standard::EXAMPLE] {
                let mut bytes = event.as_bytes().to_vec();
                let at = at % bytes.len();
                if cut {
                    bytes.truncate(at);
                } else {
                    bytes[at] = with;
                }
                crate::fuzzing::stripe_event(&bytes);
                crate::fuzzing::adyen_events(&bytes);
                crate::fuzzing::standard_event(&bytes);
            }
        }
    }
}
