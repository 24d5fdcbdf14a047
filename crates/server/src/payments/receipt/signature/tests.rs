//! Signatures: published vectors, and everything that must not pass.

use super::*;
use crate::payments::receipt::adyen;

const STRIPE_BODY: &[u8] = br#"{"id":"evt_test_1","object":"event","type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","amount":1000,"currency":"eur","metadata":{"hold_id":"h_1"}}}}"#;
const STRIPE_V1: &str = "071d6ca5a85aee8806a91c4d9087a19fc3e466e6630c298efed24edb826e2895";
const STANDARD_BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;
const STANDARD_V1: &str = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
const STANDARD_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const STANDARD_ID: &str = "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk";
const ADYEN_KEY: &str = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1000)
}

fn stripe_keys() -> Keys {
    Keys::for_stripe("whsec_test_secret").unwrap()
}

fn is_unreadable(result: Result<(), BadSignature>) -> bool {
    matches!(result, Err(BadSignature::Unreadable(_)))
}

#[test]
fn stripe_vectors() {
    assert_eq!(STRIPE_BODY.len(), 162);
    let header = format!("t=1760000000,v1={STRIPE_V1}");
    assert_eq!(stripe(&stripe_keys(), &header, STRIPE_BODY, at(1_760_000_000)), Ok(()));
    assert_eq!(sign_stripe(&stripe_keys(), 1_760_000_000, STRIPE_BODY), header);
    let keys = Keys::for_stripe("whsec_test_vector_secret").unwrap();
    assert_eq!(
        sign_stripe(&keys, 1_791_496_587, br#"{"id":"evt_vector","object":"event"}"#),
        "t=1791496587,v1=62f168c739e46de5dd2a13a63690c3cac6c7df363866987235316438907f4b66"
    );
}

#[test]
fn stripe_takes_any_signature_by_any_secret_in_any_order() {
    let (old, new) = ("whsec_old_old_old_old", "whsec_new_new_new_new");
    let body = b"{}";
    let by = |list: &str| Keys::for_stripe(list).unwrap();
    let both = sign_stripe(&by(&format!("{old},{new}")), 1000, body);
    assert_eq!(both.matches("v1=").count(), 2);
    for list in [format!("{old},{new}"), format!(" {new} , {old},"), old.into(), new.into()] {
        let header = sign_stripe(&by(new), 1000, body);
        let expected = if list == old { Err(BadSignature::Wrong) } else { Ok(()) };
        assert_eq!(stripe(&by(&list), &header, body, at(1000)), expected, "{list}");
        assert_eq!(stripe(&by(&list), &both, body, at(1000)), Ok(()));
    }
    let v1 = sign_stripe(&by(new), 1000, body).split_once("v1=").unwrap().1.to_owned();
    let odd = format!("v0=00, v1={}, v2=x, v1={v1} ,t=1000", "0".repeat(64));
    assert_eq!(stripe(&by(new), &odd, body, at(1000)), Ok(()));
}

#[test]
fn stripe_refuses_what_was_not_signed_so() {
    let (keys, now) = (stripe_keys(), at(1_760_000_000));
    let good = format!("t=1760000000,v1={STRIPE_V1}");
    let wrong = Err(BadSignature::Wrong);
    assert_eq!(stripe(&keys, &good, &STRIPE_BODY[..161], now), wrong, "a truncated body");
    assert_eq!(stripe(&keys, &good, &[STRIPE_BODY, b"\n"].concat(), now), wrong, "a line end more");
    assert_eq!(stripe(&keys, &good, b"", now), wrong);
    assert_eq!(stripe(&keys, &format!("t=1760000001,v1={STRIPE_V1}"), STRIPE_BODY, now), wrong, "another time");
    assert_eq!(stripe(&keys, &format!("t=01760000000,v1={STRIPE_V1}"), STRIPE_BODY, now), wrong, "written otherwise");
    assert_eq!(stripe(&keys, &format!("t=1760000000,v1={}", "0".repeat(64)), STRIPE_BODY, now), wrong);
    let decoded = Keys::for_standard(&format!("whsec_{}", BASE64.encode([7; 24]))).unwrap();
    assert_eq!(stripe(&decoded, &good, STRIPE_BODY, now), wrong);
    for header in [
        "",
        "t=1760000000",
        &format!("v1={STRIPE_V1}"),
        &format!("t=,v1={STRIPE_V1}"),
        &format!("t=+1760000000,v1={STRIPE_V1}"),
        &format!("t=1760000000.0,v1={STRIPE_V1}"),
        &format!("t=9999999999999999999,v1={STRIPE_V1}"),
        &format!("t=1760000000,t=1760000000,v1={STRIPE_V1}"),
        &format!("t=1760000000,v0={STRIPE_V1}"),
        &format!("t=1760000000,v1={}", &STRIPE_V1[..62]),
        "t=1760000000,v1=",
        "t=1760000000,v1=zz",
    ] {
        assert!(is_unreadable(stripe(&keys, header, STRIPE_BODY, now)), "{header}");
    }
}

#[test]
fn time_is_checked_both_ways() {
    let (keys, header) = (stripe_keys(), format!("t=1760000000,v1={STRIPE_V1}"));
    for (now, expected) in [
        (1_760_000_300, Ok(())),
        (1_760_000_301, Err(BadSignature::Stale(301))),
        (1_759_999_700, Ok(())),
        (1_759_999_699, Err(BadSignature::Stale(-301))),
        (0, Err(BadSignature::Stale(-1_760_000_000))),
    ] {
        assert_eq!(stripe(&keys, &header, STRIPE_BODY, at(now)), expected, "{now}");
    }
    let keys = Keys::for_standard(STANDARD_SECRET).unwrap();
    let check = |now| standard(&keys, STANDARD_ID, "1649367553", STANDARD_V1, STANDARD_BODY, at(now));
    assert_eq!(check(1_649_367_853), Ok(()));
    assert_eq!(check(1_649_367_854), Err(BadSignature::Stale(301)));
    assert_eq!(check(1_649_367_252), Err(BadSignature::Stale(-301)));
}

#[test]
fn standard_vector() {
    let keys = Keys::for_standard(STANDARD_SECRET).unwrap();
    let now = at(1_649_367_553);
    assert_eq!(standard(&keys, STANDARD_ID, "1649367553", STANDARD_V1, STANDARD_BODY, now), Ok(()));
    assert_eq!(sign_standard(&keys, STANDARD_ID, 1_649_367_553, STANDARD_BODY), STANDARD_V1);
    let several = format!("v1a,AAAA v1,{} {STANDARD_V1} v2,x", BASE64.encode([1; 32]));
    assert_eq!(standard(&keys, STANDARD_ID, "1649367553", &several, STANDARD_BODY, now), Ok(()));
    let unpadded = STANDARD_V1.trim_end_matches('=');
    assert_eq!(standard(&keys, STANDARD_ID, "1649367553", unpadded, STANDARD_BODY, now), Ok(()));
    let rotated = Keys::for_standard(&format!("whsec_{},{STANDARD_SECRET}", BASE64.encode([9; 32]))).unwrap();
    assert_eq!(standard(&rotated, STANDARD_ID, "1649367553", STANDARD_V1, STANDARD_BODY, now), Ok(()));
    assert_eq!(sign_standard(&rotated, STANDARD_ID, 1_649_367_553, STANDARD_BODY).split(' ').nth(1), Some(STANDARD_V1));
}

#[test]
fn standard_refuses_what_was_not_signed_so() {
    let keys = Keys::for_standard(STANDARD_SECRET).unwrap();
    let now = at(1_649_367_553);
    let check = |id: &str, time: &str, header: &str, body: &[u8]| standard(&keys, id, time, header, body, now);
    let wrong = Err(BadSignature::Wrong);
    assert_eq!(check("msg_2", "1649367553", STANDARD_V1, STANDARD_BODY), wrong);
    assert_eq!(check(STANDARD_ID, "1649367554", STANDARD_V1, STANDARD_BODY), wrong);
    assert_eq!(check(STANDARD_ID, "1649367553", STANDARD_V1, &STANDARD_BODY[1..]), wrong);
    for (id, time, header) in [
        ("", "1649367553", STANDARD_V1),
        ("a.b", "1649367553", STANDARD_V1),
        (STANDARD_ID, "", STANDARD_V1),
        (STANDARD_ID, "-5", STANDARD_V1),
        (STANDARD_ID, "1649367553", ""),
        (STANDARD_ID, "1649367553", "v1a,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
        (STANDARD_ID, "1649367553", "tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="),
        (STANDARD_ID, "1649367553", "v1,!!"),
        (STANDARD_ID, "1649367553", "v1,AAAA"),
    ] {
        assert!(is_unreadable(check(id, time, header, STANDARD_BODY)), "{id} {time} {header}");
    }
}

fn adyen_items(edit: impl Fn(String) -> String) -> Vec<adyen::Item> {
    adyen::read(edit(adyen::EXAMPLE.to_owned()).as_bytes()).unwrap().items
}

#[test]
fn adyen_vectors() {
    let keys = Keys::for_adyen(ADYEN_KEY).unwrap();
    assert_eq!(adyen(&keys, &adyen_items(|e| e)), Ok(()));
    let refund = adyen_items(|e| {
        e.replace(r#""pspReference":"7914073381342284""#, r#""pspReference":"9313547924770610""#)
            .replace(r#""originalReference":"""#, r#""originalReference":"7914073381342284""#)
            .replace("AUTHORISATION", "REFUND")
            .replace("coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=", "p9zdvM6KulWzroflIs0PtF47TFCy2WllME6XfUzIwXM=")
    });
    assert_eq!(adyen(&keys, &refund), Ok(()));
    let other = Keys::for_adyen(&"ab".repeat(32)).unwrap();
    assert_eq!(adyen(&other, &refund), Err(BadSignature::Wrong));
    assert_eq!(adyen(&Keys::for_adyen(&format!("{},{ADYEN_KEY}", "ab".repeat(32))).unwrap(), &refund), Ok(()));
}

#[test]
fn every_adyen_item_has_to_be_signed() {
    let keys = Keys::for_adyen(ADYEN_KEY).unwrap();
    let good = || adyen_items(|e| e).remove(0);
    let forged = || adyen_items(|e| e.replace("1130", "1")).remove(0);
    let unsigned = || adyen_items(|e| e.replace("hmacSignature", "other")).remove(0);
    assert_eq!(adyen(&keys, &[good(), good()]), Ok(()));
    assert_eq!(adyen(&keys, &[good(), forged()]), Err(BadSignature::Wrong));
    assert_eq!(adyen(&keys, &[forged(), good()]), Err(BadSignature::Wrong));
    assert!(is_unreadable(adyen(&keys, &[good(), unsigned()])));
    assert_eq!(adyen(&keys, &[]), Err(BadSignature::Wrong), "nothing is signed by nobody");
    for (from, to) in [
        ("TestMerchant", "TestMerchan7"),
        ("TestPayment-1407325143704", "TestPayment-1407325143705"),
        ("\"EUR\"", "\"USD\""),
        ("\"success\":\"true\"", "\"success\":\"false\""),
        ("AUTHORISATION", "CAPTURE"),
        ("\"pspReference\":\"7914073381342284\"", "\"pspReference\":\"7914073381342285\""),
    ] {
        assert_eq!(adyen(&keys, &adyen_items(|e| e.replace(from, to))), Err(BadSignature::Wrong), "{to}");
    }
}

#[test]
fn adyen_parts_cannot_be_shifted_past_a_colon() {
    let keys = Keys::for_adyen(ADYEN_KEY).unwrap();
    // The same signed text, cut elsewhere: the account takes a part of the reference.
    let shifted = adyen_items(|e| {
        e.replace(r#""originalReference":"""#, r#""originalReference":":TestMerchant""#)
            .replace(r#""merchantAccountCode":"TestMerchant""#, r#""merchantAccountCode":"x""#)
    });
    assert!(is_unreadable(adyen(&keys, &shifted)));
    let colon = |text: &str| adyen_items(|e| e.replace("TestPayment-1407325143704", text)).remove(0).signed_text();
    assert_eq!(
        colon("a:b").as_deref(),
        Some("7914073381342284::TestMerchant:a:b:1130:EUR:AUTHORISATION:true"),
        "a merchant's own reference may have one: all others have none, so it is clear where it ends"
    );
}

#[test]
fn secrets_that_cannot_work_are_refused_and_never_repeated() {
    let stripe = ["sk_live_0123456789abcdef", "rk_test_0123456789abcdef", "we_0123456789abcdef", "whsec_", " , "];
    for list in stripe {
        let error = Keys::for_stripe(list).unwrap_err();
        assert!(!error.contains("0123456789abcdef"), "{error}");
    }
    let error = Keys::for_stripe("whsec_0123456789abcdef,sk_live_0123456789abcdef").unwrap_err();
    assert!(error.starts_with("webhook secret 2 is an API key"), "{error}");
    for list in ["whsk_AAAA", "whpk_AAAA", "whsec_!!", "whsec_AAAA", ""] {
        assert!(Keys::for_standard(list).is_err(), "{list}");
    }
    for list in ["xyz", "abc", "00", ""] {
        assert!(Keys::for_adyen(list).is_err(), "{list}");
    }
    assert_eq!(format!("{:?}", Keys::for_stripe("whsec_0123456789abcdef").unwrap()), "Keys(1)");
}
