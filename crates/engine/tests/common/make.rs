//! Short names for values and commands. A bad value in a test is the test's mistake, so these panic.

use holdfast_engine::domain::{
    Command, Currency, CustomerId, HoldId, HoldRequest, Lines, Money, OrderId, OrderRef, PaymentFact, PaymentKey,
    PaymentKind, Ref, SetStock, Sku, Time, Total, Ttl,
};

/// Tests happen around the year 2100: no real clock reaches it, so reads tell what was recorded, not what lapsed since.
pub const START: Time = Time::from_millis(4_102_444_800_000);

pub fn sku(text: &str) -> Sku {
    Sku::new(text).unwrap()
}

pub fn order_id(text: &str) -> OrderId {
    OrderId::new(text).unwrap()
}

pub fn customer(text: &str) -> CustomerId {
    CustomerId::new(text).unwrap()
}

pub fn reference(text: &str) -> Ref {
    Ref::new(text).unwrap()
}

pub fn lines(asked: &[(&str, u64)]) -> Lines {
    Lines::new(asked.iter().map(|(s, q)| (sku(s), *q)).collect()).unwrap()
}

pub fn ttl(seconds: u64) -> Ttl {
    Ttl::new(seconds, u32::MAX).unwrap()
}

pub fn money(amount: u64, currency: &str) -> Money {
    Money { amount: Some(amount), currency: Some(Currency::new(currency).unwrap()) }
}

pub fn payment(id: &str) -> PaymentKey {
    PaymentKey { provider: reference("stripe"), payment_id: reference(id) }
}

pub fn set(text: &str, total: u64) -> SetStock {
    SetStock { sku: sku(text), total: Total::new(total).unwrap(), limit_per_customer: None, if_version: None }
}

pub fn adjust(text: &str, delta: i64) -> Command {
    Command::AdjustStock { sku: sku(text), delta, reason: None, key: None, create: false }
}

/// A cart that waits to be asked for.
#[derive(Debug, Clone)]
pub struct Cart(pub HoldRequest);

pub fn cart(order: &str, asked: &[(&str, u64)]) -> Cart {
    Cart(HoldRequest {
        id: HoldId::from_u128(0),
        order_id: order_id(order),
        lines: lines(asked),
        ttl: ttl(600),
        customer_id: None,
        money: Money::default(),
        payment_ref: None,
        metadata: None,
    })
}

impl Cart {
    pub fn by(mut self, name: &str) -> Self {
        self.0.customer_id = Some(customer(name));
        self
    }

    pub fn costs(mut self, amount: u64, currency: &str) -> Self {
        self.0.money = money(amount, currency);
        self
    }

    pub fn ttl(mut self, seconds: u64) -> Self {
        self.0.ttl = ttl(seconds);
        self
    }
}

impl From<Cart> for Command {
    fn from(cart: Cart) -> Self {
        Command::Hold(Box::new(cart.0))
    }
}

/// A provider's fact that waits to be told.
#[derive(Debug, Clone)]
pub struct Fact(pub PaymentFact);

fn fact(id: &str, kind: PaymentKind) -> Fact {
    let word = match kind {
        PaymentKind::Refunded(total) => format!("refunded-{total}"),
        other => format!("{other:?}").to_lowercase(),
    };
    Fact(PaymentFact {
        event_id: reference(&format!("evt-{id}-{word}")),
        payment: payment(id),
        kind,
        order: None,
        money: Money::default(),
        email: None,
        reference: None,
    })
}

pub fn captured(id: &str) -> Fact {
    fact(id, PaymentKind::Captured)
}

pub fn authorized(id: &str) -> Fact {
    fact(id, PaymentKind::Authorized)
}

pub fn failed(id: &str) -> Fact {
    fact(id, PaymentKind::Failed)
}

pub fn canceled(id: &str) -> Fact {
    fact(id, PaymentKind::Canceled)
}

pub fn refunded(id: &str, total: u64) -> Fact {
    fact(id, PaymentKind::Refunded(total))
}

pub fn refund_failed(id: &str, refund: &str) -> Fact {
    let mut fact = fact(id, PaymentKind::RefundFailed);
    fact.0.reference = Some(reference(refund));
    fact
}

pub fn disputed(id: &str) -> Fact {
    fact(id, PaymentKind::Disputed)
}

pub fn refunded_by(id: &str, part: u64) -> Fact {
    fact(id, PaymentKind::RefundedBy(part))
}

pub fn refund_succeeded(id: &str, refund: &str) -> Fact {
    let mut fact = fact(id, PaymentKind::RefundSucceeded);
    fact.0.reference = Some(reference(refund));
    fact
}

/// Says nothing but which order the payment is for.
pub fn named(id: &str) -> Fact {
    fact(id, PaymentKind::Named)
}

pub fn capture_failed(id: &str) -> Fact {
    fact(id, PaymentKind::CaptureFailed)
}

/// Every order that these facts can be told in.
pub fn orders_of(facts: &[Fact]) -> Vec<Vec<Fact>> {
    if facts.len() <= 1 {
        return vec![facts.to_vec()];
    }
    let mut all = Vec::new();
    for first in 0..facts.len() {
        let mut rest = facts.to_vec();
        let head = rest.remove(first);
        all.extend(orders_of(&rest).into_iter().map(|mut tail| {
            tail.insert(0, head.clone());
            tail
        }));
    }
    all
}

impl Fact {
    pub fn order(mut self, order: &str) -> Self {
        self.0.order = Some(OrderRef::Order(order_id(order)));
        self
    }

    pub fn hold(mut self, hold: HoldId) -> Self {
        self.0.order = Some(OrderRef::Hold(hold));
        self
    }

    pub fn brings(mut self, amount: u64, currency: &str) -> Self {
        self.0.money = money(amount, currency);
        self
    }

    pub fn event(mut self, id: &str) -> Self {
        self.0.event_id = reference(id);
        self
    }
}

impl From<Fact> for Command {
    fn from(fact: Fact) -> Self {
        Command::Settle(Box::new(fact.0))
    }
}
