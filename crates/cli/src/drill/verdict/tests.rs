//! Planted breaches: a good sale, and one thing wrong with it at a time.

use super::super::evidence::{Books, Charge, Entry, Intent, Order, Payment, Refund};
use super::*;
use crate::api::Stock;

fn entry(moves: [i64; 3], order: Option<&str>) -> Entry {
    let [available, held, sold] = moves;
    let hold_id = order.map(|order| format!("hold-of-{order}"));
    Entry { available, held, sold, hold_id, order_id: order.map(str::to_owned) }
}

fn order(id: &str, payment: &str) -> Order {
    let payment = Some(Payment { payment_id: payment.into() });
    Order { id: id.into(), status: "confirmed".into(), payment }
}

fn reversal(payment: &str, kind: &str) -> Reversal {
    Reversal { payment_id: payment.into(), kind: kind.into(), status: "succeeded".into() }
}

fn refund(id: &str, payment: &str) -> Refund {
    Refund { id: id.into(), payment_intent: payment.into(), status: "succeeded".into() }
}

/// Where C's hold expires in the ledger.
const EXPIRY: usize = 2;

/// Two units: A and B bought them, C paid late and got the money back, D's authorisation was let go.
fn good() -> Evidence {
    let intent = |id: &str, status: &str| Intent { id: id.into(), status: status.into(), metadata: BTreeMap::new() };
    let charge = |id: &str, amount_captured, amount_refunded| Charge {
        payment_intent: id.into(),
        amount_captured,
        amount_refunded,
    };
    let sale = ["A", "B"].map(|order| [entry([-1, 1, 0], Some(order)), entry([0, -1, 1], Some(order))]);
    let lapsed = [entry([-1, 1, 0], Some("C")), entry([1, -1, 0], Some("C"))];
    let entries = [vec![entry([2, 0, 0], None)], lapsed.to_vec(), sale.concat()].concat();
    Evidence {
        units: 2,
        stock: Stock { sku: "S".into(), total: 2, available: 0, held: 0, sold: 2 },
        entries,
        orders: vec![order("A", "pi_a"), order("B", "pi_b")],
        reversals: vec![reversal("pi_c", "refund"), reversal("pi_d", "void")],
        books: Books {
            payment_intents: vec![
                intent("pi_a", "succeeded"),
                intent("pi_b", "succeeded"),
                intent("pi_c", "succeeded"),
                intent("pi_d", "canceled"),
                intent("pi_e", "requires_payment_method"),
            ],
            charges: vec![
                charge("pi_a", 100, 0),
                charge("pi_b", 100, 0),
                charge("pi_c", 100, 100),
                charge("pi_d", 0, 100),
                charge("pi_e", 0, 0),
            ],
            refunds: vec![refund("re_c", "pi_c")],
            undelivered_events: 0,
        },
        drift: Some(vec![]),
    }
}

/// The promises that are broken after a change, each with its ids.
fn broken(change: impl FnOnce(&mut Evidence)) -> Vec<(&'static str, String)> {
    let mut evidence = good();
    change(&mut evidence);
    Verdict::of(&evidence).breaches.into_iter().map(|breach| (breach.promise, breach.ids.join(" "))).collect()
}

fn has(breaches: &[(&'static str, String)], promise: &str, ids: &str) -> bool {
    breaches.iter().any(|(name, of)| *name == promise && of == ids)
}

#[test]
fn a_good_sale_breaks_nothing() {
    let verdict = Verdict::of(&good());
    assert_eq!(verdict.breaches, []);
    assert_eq!((verdict.sold, verdict.oversold, verdict.stranded), (2, 0, 0));
    assert_eq!((verdict.captures, verdict.orders, verdict.refunds, verdict.voids), (3, 2, 1, 1));
}

#[test]
fn an_oversold_unit() {
    let breaches = broken(|evidence| {
        evidence.entries.push(entry([-1, 0, 1], Some("C")));
        evidence.stock.sold = 3;
        evidence.orders.push(order("C", "pi_c"));
        evidence.books.refunds.clear();
        evidence.reversals.remove(0);
    });
    assert!(has(&breaches, "oversold", "C"), "{breaches:?}");
    let breaches = broken(|evidence| evidence.orders.push(order("Z", "pi_a")));
    assert!(has(&breaches, "oversold", "Z"), "an order that the ledger does not know: {breaches:?}");
}

#[test]
fn a_stranded_unit() {
    let breaches = broken(|evidence| {
        evidence.entries.remove(EXPIRY);
        evidence.stock.held = 1;
    });
    assert!(has(&breaches, "stranded", "hold-of-C"), "{breaches:?}");
    let breaches = broken(|evidence| {
        evidence.entries.truncate(evidence.entries.len() - 2);
        evidence.orders.pop();
        evidence.stock.sold = 1;
    });
    assert!(breaches.iter().any(|(promise, _)| *promise == "stranded"), "a unit that nobody has: {breaches:?}");
}

#[test]
fn counters_that_differ_from_the_ledger() {
    let breaches = broken(|evidence| evidence.stock.available = 1);
    assert!(has(&breaches, "counters", "S"), "{breaches:?}");
    assert_eq!(broken(|evidence| evidence.drift = Some(vec!["held".into()])), [("audit", "held".into())]);
}

#[test]
fn an_order_with_two_claims() {
    let breaches = broken(|evidence| {
        let again = [entry([-1, 1, 0], Some("A")), entry([1, -1, 0], Some("A"))];
        evidence.entries.extend(again);
    });
    assert_eq!(breaches, [("one_claim_an_order", "A".into())]);
}

#[test]
fn a_refund_that_is_missing() {
    let breaches = broken(|evidence| {
        evidence.books.refunds.clear();
        evidence.books.charges[2].amount_refunded = 0;
        evidence.reversals[0].status = "due".into();
    });
    assert_eq!(breaches, [("payment_settles_once", "pi_c".into()), ("reversal_carried_out", "pi_c".into())]);
    let breaches = broken(|evidence| evidence.books.refunds[0].status = "failed".into());
    assert!(has(&breaches, "payment_settles_once", "pi_c"), "a failed refund is none: {breaches:?}");
    assert!(has(&breaches, "refund_at_provider", "pi_c"), "{breaches:?}");
}

#[test]
fn a_refund_that_is_doubled() {
    let breaches = broken(|evidence| evidence.books.refunds.push(refund("re_c2", "pi_c")));
    assert_eq!(breaches, [("refund_once", "pi_c re_c re_c2".into())]);
    let breaches = broken(|evidence| evidence.reversals.push(reversal("pi_c", "refund")));
    assert_eq!(breaches, [("refund_once", "pi_c".into())]);
}

#[test]
fn a_refund_of_a_part_or_of_an_order_or_of_nobodys_making() {
    assert_eq!(broken(|evidence| evidence.books.charges[2].amount_refunded = 99), [("refund_whole", "pi_c".into())]);
    let breaches = broken(|evidence| {
        evidence.books.refunds.push(refund("re_a", "pi_a"));
        evidence.reversals.push(reversal("pi_a", "refund"));
    });
    assert_eq!(breaches, [("payment_settles_once", "pi_a".into())]);
    assert_eq!(broken(|evidence| evidence.reversals.truncate(0)), [("refund_in_server", "pi_c".into())]);
}

#[test]
fn an_order_without_money_of_its_own() {
    let unpaid = [("order_has_its_money", "B".into()), ("authorisation_ends", "pi_b".into())];
    let mut breaches = broken(|evidence| {
        evidence.books.payment_intents[1].status = "requires_capture".into();
        evidence.books.charges[1].amount_captured = 0;
    });
    breaches.reverse();
    assert_eq!(breaches, unpaid);
    assert!(has(&broken(|evidence| evidence.orders[0].payment = None), "order_has_its_money", "A"));
    let breaches = broken(|evidence| evidence.orders[1] = order("B", "pi_a"));
    assert!(has(&breaches, "payment_settles_once", "pi_a"), "one payment for two orders: {breaches:?}");
    assert!(has(&breaches, "payment_settles_once", "pi_b"), "money for nothing: {breaches:?}");
}

#[test]
fn a_void_that_was_not_made() {
    let breaches = broken(|evidence| evidence.books.payment_intents[3].status = "requires_capture".into());
    assert_eq!(breaches, [("authorisation_ends", "pi_d".into()), ("void_at_provider", "pi_d".into())]);
}
