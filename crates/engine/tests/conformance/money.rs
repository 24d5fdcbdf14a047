//! The outcome depends on the set of facts, not on their order: every order of the same facts is told.

use crate::common::lab::Lab;
use crate::common::make::{Fact, authorized, capture_failed, captured, cart, failed, order_id, orders_of, refunded};
use holdfast_engine::domain::{OrderStatus, PaymentStatus, Policy};

type End = (PaymentStatus, Option<OrderStatus>, (u64, u64, u64), Vec<(&'static str, &'static str)>);

async fn end_of(lab: &Lab, facts: &[Fact], is_early: bool) -> End {
    let mut lab = lab.under(Policy::default()).await;
    lab.stocked("A", 5).await;
    let asked = || cart("O1", &[("A", 2)]).costs(100, "EUR");
    if is_early {
        for fact in facts {
            lab.pay(fact.clone()).await;
        }
        lab.ask(asked()).await.unwrap();
    } else {
        lab.ask(asked()).await.unwrap();
        for fact in facts {
            lab.pay(fact.clone()).await;
        }
    }
    let counts = lab.counts("A").await;
    let all = lab.everything().await;
    let order = all.orders.get(&order_id("O1")).map(|o| o.order.status);
    let jobs = all.refunds.iter().map(|j| (j.kind.as_str(), j.state.as_str())).collect();
    (all.payments[0].status, order, counts, jobs)
}

async fn same_end(lab: &Lab, facts: &[Fact], is_early: bool) -> End {
    let mut ends = Vec::new();
    for order in orders_of(facts) {
        let end = end_of(lab, &order, is_early).await;
        let kinds: Vec<_> = order.iter().map(|f| f.0.kind).collect();
        ends.push((end, kinds));
    }
    for (end, kinds) in &ends {
        assert_eq!(*end, ends[0].0, "{kinds:?} and {:?} are the same facts", ends[0].1);
    }
    ends.remove(0).0
}

fn paid() -> Vec<Fact> {
    vec![
        authorized("pi_1").order("O1").brings(100, "EUR"),
        captured("pi_1").order("O1").brings(100, "EUR"),
        failed("pi_1").order("O1").brings(100, "EUR"),
    ]
}

pub async fn failed_authorised_and_captured_confirm_in_any_order(lab: &mut Lab) {
    for is_early in [false, true] {
        let end = same_end(lab, &paid(), is_early).await;
        assert_eq!(end, (PaymentStatus::Settled, Some(OrderStatus::Confirmed), (3, 0, 2), vec![]));
    }
}

pub async fn a_wrong_amount_goes_back_in_any_order(lab: &mut Lab) {
    let facts: Vec<Fact> = paid().into_iter().map(|f| f.brings(90, "EUR")).collect();
    for is_early in [false, true] {
        let end = same_end(lab, &facts, is_early).await;
        assert_eq!(end, (PaymentStatus::Reversing, None, (3, 2, 0), vec![("refund", "due")]));
    }
}

pub async fn a_refund_gives_the_units_back_in_any_order(lab: &mut Lab) {
    let mut facts = paid();
    facts.push(refunded("pi_1", 100).brings(100, "EUR"));
    let end = same_end(lab, &facts, false).await;
    assert_eq!(end, (PaymentStatus::Refunded, Some(OrderStatus::Refunded), (5, 0, 0), vec![]));
}

pub async fn a_capture_that_failed_ends_the_order_in_any_order(lab: &mut Lab) {
    let mut facts = paid();
    facts.push(capture_failed("pi_1"));
    let end = same_end(lab, &facts, false).await;
    let order = Some(OrderStatus::CaptureFailed);
    assert_eq!(end, (PaymentStatus::Reversing, order, (5, 0, 0), vec![("void", "due")]));
}
