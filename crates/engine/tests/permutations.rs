//! What a payment ends as depends on what was told of it, and on nothing else: not on the order, on how often, nor on
//! which of the facts named the shop's order. Every set of facts that a provider can truly tell, in every order, with the
//! hold in every state it can be in.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

#[path = "common/mod.rs"]
mod common;

use common::bare::Bare;
use common::make::{
    Fact, START, authorized, canceled, capture_failed, captured, cart, disputed, failed, named, order_id, orders_of,
    payment, refunded, set,
};
use holdfast_engine::Engine;
use holdfast_engine::domain::{
    Command, HoldId, JobKind, JobReason, JobState, OrderStatus, Outcome, PaymentKind, PaymentStatus, Policy, Time,
};

/// Where the hold is when the first fact is told.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Live,
    /// It has lapsed, and its units are there.
    Lapsed,
    /// It was released, and its units are gone.
    Gone,
    /// It asks for another amount.
    Dearer,
    /// It was confirmed without a payment.
    Confirmed,
    /// Another payment has paid for it.
    Paid,
    /// It is made after the last fact.
    Unmade,
}

const PLACES: [Place; 7] =
    [Place::Live, Place::Lapsed, Place::Gone, Place::Dearer, Place::Confirmed, Place::Paid, Place::Unmade];

type End = (PaymentStatus, u64, Option<OrderStatus>, (u64, u64, u64), Vec<(JobKind, JobReason, JobState)>);

/// A shop with its hold in place; what is asked once the facts have been told.
fn shop(place: Place) -> (Bare, Time, Option<Command>) {
    let bare = Bare::whole(Policy::default());
    let mut now = START;
    let hold = Command::from(cart("O1", &[("A", 2)]).costs(if place == Place::Dearer { 120 } else { 100 }, "EUR"));
    bare.apply_now(vec![Command::SetStock(set("A", 2))], now);
    if place == Place::Unmade {
        return (bare, now, Some(hold));
    }
    let id = match bare.apply_now(vec![hold], now).remove(0) {
        Ok(Outcome::Held { hold, .. }) => hold.id,
        other => panic!("{other:?}"),
    };
    match place {
        Place::Lapsed => now = now.plus_seconds(10_000),
        Place::Gone => {
            bare.apply_now(vec![Command::Release { hold: id }, cart("O2", &[("A", 1)]).into()], now);
        }
        Place::Confirmed => drop(bare.apply_now(vec![confirm(id)], now)),
        Place::Paid => drop(bare.apply_now(vec![captured("pi_0").order("O1").brings(100, "EUR").into()], now)),
        Place::Live | Place::Dearer | Place::Unmade => {}
    }
    (bare, now, None)
}

fn confirm(hold: HoldId) -> Command {
    Command::Confirm { hold, payment_ref: None }
}

async fn end_of(place: Place, facts: &[Fact]) -> End {
    let (bare, now, last) = shop(place);
    for fact in facts {
        bare.apply_now(vec![fact.clone().into()], now);
    }
    bare.apply_now(last.into_iter().collect(), now);
    let (found, mut jobs) = bare.payment(&payment("pi_1")).await.unwrap().unwrap();
    // Whether a capture was ever due is a matter of the order; whether one is due is not.
    let is_over = |state| matches!(state, JobState::Succeeded | JobState::NeedsAttention);
    jobs.retain(|job| job.kind != JobKind::Capture || !is_over(job.state));
    jobs.sort_by_key(|job| job.kind.as_str());
    let order = bare.order(&order_id("O1")).await.unwrap();
    let stock = bare.stocks(None, 10).await.unwrap().items.remove(0);
    let jobs = jobs.iter().map(|job| (job.kind, job.reason, job.state)).collect();
    (found.status, found.refunded, order.map(|o| o.order.status), (stock.available, stock.held, stock.sold), jobs)
}

/// What no provider can truly tell of one payment: that it was let go and money went back, for one.
fn is_contradiction(kinds: &[PaymentKind]) -> bool {
    let has = |kind| kinds.contains(&kind);
    let went_back = kinds.iter().any(|kind| matches!(kind, PaymentKind::Refunded(_)));
    let came = has(PaymentKind::Captured);
    (has(PaymentKind::Canceled) && (went_back || has(PaymentKind::CaptureFailed)))
        || (went_back && has(PaymentKind::CaptureFailed))
        || (went_back && !came && !has(PaymentKind::Authorized))
}

fn pool() -> Vec<Fact> {
    let brings = |fact: Fact| fact.brings(100, "EUR");
    vec![
        brings(authorized("pi_1")),
        brings(captured("pi_1")),
        brings(failed("pi_1")),
        canceled("pi_1"),
        capture_failed("pi_1"),
        disputed("pi_1"),
        refunded("pi_1", 40),
        refunded("pi_1", 100),
        named("pi_1").order("O1"),
    ]
}

/// Sets of up to four facts of which one names the order.
fn sets() -> Vec<Vec<Fact>> {
    let pool = pool();
    let mut sets = Vec::new();
    for mask in 1_u32..1 << pool.len() {
        let chosen = || pool.iter().enumerate().filter(|(n, _)| mask >> n & 1 == 1).map(|(_, fact)| fact.clone());
        let kinds: Vec<_> = chosen().map(|fact| fact.0.kind).collect();
        if kinds.len() > 4 || is_contradiction(&kinds) {
            continue;
        }
        if kinds.contains(&PaymentKind::Named) {
            sets.push(chosen().collect());
            continue;
        }
        sets.push(chosen().map(|fact| fact.order("O1")).collect());
        // Only one of them names it.
        for naming in 0..kinds.len() {
            let named = chosen().enumerate().map(|(n, fact)| if n == naming { fact.order("O1") } else { fact });
            sets.push(named.collect());
        }
    }
    sets
}

#[tokio::test]
async fn an_end_depends_on_the_set_of_facts_only() {
    let sets = sets();
    assert!(sets.len() > 300, "{}", sets.len());
    let (mut ends, mut orders) = (std::collections::BTreeSet::new(), 0);
    for place in PLACES {
        for set in &sets {
            let first = end_of(place, set).await;
            ends.insert(format!("{:?} {:?}", first.0, first.2));
            for mut order in orders_of(set) {
                orders += 1;
                if orders % 3 == 0 {
                    // Told twice, the second time as another event, and late.
                    let again = order[0].clone();
                    order.push(again.clone());
                    order.push(again.event("told again"));
                }
                let end = end_of(place, &order).await;
                let told: Vec<_> = order.iter().map(|fact| (fact.0.kind, fact.0.order.is_some())).collect();
                assert_eq!(
                    end,
                    first,
                    "{place:?}: {told:?} and {:?}",
                    set.iter().map(|f| f.0.kind).collect::<Vec<_>>()
                );
            }
        }
    }
    assert!(ends.len() >= 10, "{ends:?}");
}

/// Of two payments for one order, one pays and the other goes back, whichever came first.
#[tokio::test]
async fn two_payments_make_one_order_and_one_refund_in_any_order() {
    let facts: Vec<Fact> = ["pi_1", "pi_2"]
        .into_iter()
        .flat_map(|id| [authorized(id), captured(id)])
        .map(|fact| fact.order("O1").brings(100, "EUR"))
        .collect();
    for place in [Place::Live, Place::Lapsed, Place::Confirmed, Place::Unmade] {
        for order in orders_of(&facts) {
            let (bare, now, last) = shop(place);
            for fact in &order {
                bare.apply_now(vec![fact.clone().into()], now);
            }
            bare.apply_now(last.into_iter().collect(), now);
            let mut ends = Vec::new();
            for id in ["pi_1", "pi_2"] {
                let (found, jobs) = bare.payment(&payment(id)).await.unwrap().unwrap();
                ends.push((found.status.as_str(), jobs.iter().filter(|j| j.kind == JobKind::Refund).count()));
            }
            ends.sort_unstable();
            assert_eq!(ends, [("reversing", 1), ("settled", 0)], "{place:?}");
        }
    }
}
