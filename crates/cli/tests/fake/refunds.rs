//! Refunds, strictly.

use crate::rig::{PATIENCE, Provider, refused, rule};
use crate::support::eventually;
use serde_json::{Value, json};

#[test]
fn a_refund_takes_no_more_than_there_is() {
    let provider = Provider::start();
    let (intent, charge) = provider.paid();
    let refund = |form: &str| provider.post("/v1/refunds", form);
    let first = refund(&format!(
        "payment_intent={intent}&amount=300&reason=requested_by_customer&metadata[cause]=hold_expired"
    ));
    let first = first.is(200);
    assert_eq!((&first["status"], &first["charge"]), (&"succeeded".into(), &charge.as_str().into()));
    assert_eq!(first["metadata"], json!({"cause": "hold_expired"}));
    assert_eq!(provider.charge(&charge)["refunded"], false);
    refused(&refund(&format!("payment_intent={intent}&amount=701")), 400, None::<&str>);
    let rest = refund(&format!("charge={charge}")).is(200);
    assert_eq!(rest["amount"], 700);
    let after = provider.charge(&charge);
    assert_eq!((&after["refunded"], &after["amount_refunded"]), (&true.into(), &1000.into()));
    let error = refused(&refund(&format!("payment_intent={intent}")), 400, "charge_already_refunded");
    assert_eq!(error["message"], format!("Charge {charge} has already been refunded."));
    assert_eq!(provider.told()[3..], ["refund.created", "charge.refunded", "refund.created", "charge.refunded"]);
    assert_eq!(provider.get(&format!("/v1/refunds/{}", rest["id"].as_str().unwrap())).is(200), rest);
}

#[test]
fn a_refund_names_a_payment_and_one_of_three_reasons() {
    let provider = Provider::start();
    let (intent, _) = provider.paid();
    let (other, charge) = provider.paid();
    let refund = |form: String| provider.post("/v1/refunds", &form);
    refused(&refund(String::new()), 400, "parameter_missing");
    refused(&refund("payment_intent=pi_no".into()), 404, "resource_missing");
    refused(&refund("charge=ch_no".into()), 404, "resource_missing");
    refused(&refund(format!("payment_intent={intent}&charge={charge}")), 404, "resource_missing");
    refused(&refund(format!("payment_intent={intent}&reason=hold_expired")), 400, None::<&str>);
    refused(&refund(format!("payment_intent={intent}&currency=eur")), 400, "parameter_unknown");
    refund(format!("payment_intent={other}&charge={charge}&reason=duplicate")).is(200);
    let bare = provider.post("/v1/payment_intents", "amount=5&currency=eur").is(200);
    refused(&refund(format!("payment_intent={}", bare["id"].as_str().unwrap())), 400, None::<&str>);
}

#[test]
fn refunds_are_listed_the_newest_first_and_in_pages() {
    let provider = Provider::start();
    let (intent, _) = provider.paid();
    let (other, _) = provider.paid();
    let id = |refund: Value| refund["id"].as_str().unwrap().to_owned();
    let mut made: Vec<String> = (0..3)
        .map(|_| id(provider.post("/v1/refunds", &format!("payment_intent={intent}&amount=10")).is(200)))
        .collect();
    provider.post("/v1/refunds", &format!("payment_intent={other}")).is(200);
    made.reverse();
    let page = |query: &str| provider.get(&format!("/v1/refunds?payment_intent={intent}{query}")).is(200);
    let ids = |page: &Value| page["data"].as_array().unwrap().iter().cloned().map(id).collect::<Vec<_>>();
    let first = page("&limit=2");
    assert_eq!((ids(&first), &first["has_more"]), (made[..2].to_vec(), &true.into()));
    let last = page(&format!("&limit=2&starting_after={}", made[1]));
    assert_eq!((ids(&last), &last["has_more"]), (made[2..].to_vec(), &false.into()));
    refused(&provider.get("/v1/refunds?limit=101"), 400, "parameter_invalid_integer");
    refused(&provider.get("/v1/refunds?payment_intent=pi_no"), 404, "resource_missing");
    refused(&provider.get("/v1/refunds?status=pending"), 400, "parameter_unknown");
}

#[test]
fn a_pending_refund_ends_well_or_badly() {
    let provider = Provider::start();
    let (intent, charge) = provider.paid();
    provider.script(&rule("refund", json!({"refund_pending": {}})));
    let refund = provider.post("/v1/refunds", &format!("payment_intent={intent}")).is(200);
    assert_eq!((&refund["status"], &refund["pending_reason"]), (&"pending".into(), &"processing".into()));
    let path = format!("refunds/{}", refund["id"].as_str().unwrap());
    let failed = provider.control(&path, &json!({"status": "failed", "failure_reason": "declined"}));
    assert_eq!((&failed["status"], &failed["failure_reason"]), (&"failed".into(), &"declined".into()));
    assert_eq!(provider.charge(&charge)["amount_refunded"], 0, "the money is still there");
    let events = provider.events();
    let updated = &events[5]["event"];
    assert_eq!((&updated["type"], &updated["data"]["object"]["status"]), (&"refund.updated".into(), &"failed".into()));
    assert_eq!(updated["data"]["previous_attributes"], json!({"status": "pending"}));
    assert_eq!(updated["request"], json!({"id": null, "idempotency_key": null}), "no call of ours caused it");
    assert_eq!(events[6]["type"], "refund.failed");
    provider.post("/v1/refunds", &format!("payment_intent={intent}")).is(200);
}

#[test]
fn a_refund_settles_later_as_the_script_has_it() {
    let provider = Provider::start();
    for (fault, end) in [
        (json!({"refund_pending": {"ms": 20, "then": "succeeded"}}), "succeeded"),
        (json!({"refund_pending": {"ms": 20, "then": "failed"}}), "failed"),
        (json!({"refund_fails_later": {"ms": 20, "reason": "expired_or_canceled_card"}}), "failed"),
    ] {
        let (intent, _) = provider.paid();
        provider.script(&rule("refund", fault.clone()));
        let refund = provider.post("/v1/refunds", &format!("payment_intent={intent}")).is(200);
        let at_first = if fault.get("refund_pending").is_some() { "pending" } else { "succeeded" };
        assert_eq!(refund["status"], at_first);
        let path = format!("/v1/refunds/{}", refund["id"].as_str().unwrap());
        eventually("it is settled", PATIENCE, || {
            let now = provider.get(&path).is(200);
            (now["status"] == end && provider.told().contains(&"refund.updated".to_owned())).then_some(())
        });
    }
}

#[test]
fn a_disputed_charge_is_not_refunded() {
    let provider = Provider::start();
    let (intent, _) = provider.paid();
    let dispute = provider.control(&format!("payment_intents/{intent}/dispute"), &json!({}));
    assert_eq!((&dispute["amount"], &dispute["is_charge_refundable"]), (&1000.into(), &false.into()));
    assert_eq!(provider.told().last().unwrap(), "charge.dispute.created");
    refused(&provider.post("/v1/refunds", &format!("payment_intent={intent}")), 400, "charge_disputed");
}
