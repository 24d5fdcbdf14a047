//! Tickets, passes and enqueue tokens: read by others as they are by us, and refused after any change of one bit.
//!
//! What is compared was made by Python's hmac, hashlib and cryptography.

#![allow(missing_docs, clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use holdfast_admission::enqueue::{self, EnqueueError};
use holdfast_admission::keys::KeyRing;
use holdfast_admission::pass::{self, Claims, PassError};
use holdfast_admission::ticket::{Ticket, TicketError, identity};
use holdfast_admission::{draw, ticket};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::Sha256;

const SALE: &str = "drop-1";
const NOW: u64 = 1_790_000_000;
const TICKET: &str = "AQAGW_7aJ8JAAAECAwQFBgcICXRQGfbLZuUfk5S1eQFqpNoujD00O5tW2EX4LK7M";
const PASS: &str = "eyJhbGciOiJFZERTQSIsImtpZCI6InlRVTRFTDRvNEN4cVFUQzZETllrN2EtXzVGOUhlcExJb19QdGRrVzZjUzgiLCJ0eXAiOiJKV1QifQ.eyJhdWQiOiJkcm9wLTEiLCJleHAiOjE3OTAwMDA2MDAsImlhdCI6MTc5MDAwMDAwMCwiaXNzIjoiaG9sZGZhc3QiLCJqdGkiOiJwMSIsIm5iZiI6MTc5MDAwMDAwMCwic3ViIjoiQVFBR1dfN2FKOEpBQUFFQ0F3UUZCZ2NJQ1hSUUdmYkxadVVmazVTMWVRRnFwTm91akQwME81dFcyRVg0TEs3TSJ9.DEkO982kNHesZ-A9Fyou2V1JX0kz70vCTjcV_kCSIRWbRzzMYE1XpQEjOZmmKKf8sEyu-8JgeMVFb4wvpP9ADQ";
const ENQUEUE: &str = "eyJ0eXAiOiAiSldUIiwgImFsZyI6ICJIUzI1NiJ9.eyJhdWQiOiJkcm9wLTEiLCJzdWIiOiJhbm5hIiwiZXhwIjoxNzkwMDAwMzAwLCJqdGkiOiJqMSJ9.Cs6w8DqZT3u8Ale-7TAx66jJ71EgWZAMYkn2bb2Oukw";
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

fn ring() -> KeyRing {
    KeyRing::new([7; 32])
}

fn claims() -> Claims {
    Claims { aud: SALE.into(), sub: TICKET.into(), jti: "p1".into(), iat: NOW, nbf: NOW, exp: NOW + 600 }
}

fn with_header(header: &Value, text: &str) -> String {
    let rest = text.split_once('.').unwrap().1;
    format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()))
}

/// As a shop would make it.
fn token(header: &Value, claims: &str, secret: &[u8]) -> String {
    let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

fn enqueued(claims: &str) -> Result<enqueue::Enqueue, EnqueueError> {
    enqueue::read(&token(&json!({ "alg": "HS256" }), claims, SECRET), &[SECRET], SALE, NOW)
}

/// Every text that differs in one bit, as far as it is a text.
fn flipped(text: &str) -> impl Iterator<Item = String> {
    (0..text.len() * 8).filter_map(|bit| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        String::from_utf8(bytes).ok()
    })
}

/// Every text that differs in its last character.
fn other_ends(text: &str) -> impl Iterator<Item = String> {
    let (start, end) = text.split_at(text.len() - 1);
    (0..128_u8).map(char::from).filter(move |c| !end.starts_with(*c)).map(move |c| format!("{start}{c}"))
}

#[test]
fn a_ticket_is_the_one_that_others_compute() {
    let who = identity(&[5; 32], SALE, "anna@example.com");
    let made = Ticket::make(&ring(), SALE, 1_790_000_000_123_456, Some(who), std::array::from_fn(|n| n as u8));
    assert_eq!(made.to_string(), TICKET);
    assert_eq!(TICKET.len(), Ticket::LENGTH);
    let read = Ticket::read(TICKET, &ring(), SALE).unwrap();
    assert_eq!((read, read.id()), (made, made.id()));
    assert_eq!((read.joined_at_us(), read.identity()), (1_790_000_000_123_456, Some(who)));
    assert_eq!(who.get(), 0x7450_19f6_cb66_e51f);
    let place = draw::place(&std::array::from_fn(|n| n as u8), TICKET);
    assert_eq!(draw::hex(&place), "772297c0a727a4c1c0ef72c4f8d4eabe5f883305c8d7229134ccd2afe8d2c277");
    assert!(!format!("{read:?}").contains(&TICKET[..8]));
}

#[test]
fn a_ticket_is_for_one_sale_and_for_the_life_of_its_key() {
    let mut ring = ring();
    assert_eq!(Ticket::read(TICKET, &ring, "drop-2"), Err(TicketError::OtherSale));
    assert_eq!(Ticket::read(TICKET, &KeyRing::new([8; 32]), SALE), Err(TicketError::Invalid));
    ring.rotate([8; 32]);
    assert!(Ticket::read(TICKET, &ring, SALE).is_ok());
    let next = Ticket::make(&ring, SALE, 1, None, [0; 10]);
    assert_eq!(next.identity(), None);
    assert_eq!(Ticket::read(&next.to_string(), &ring, SALE), Ok(next));
    ring.rotate([9; 32]);
    assert_eq!(Ticket::read(TICKET, &ring, SALE), Err(TicketError::Invalid));
    assert_eq!(Ticket::read(&next.to_string(), &ring, SALE), Ok(next));
    let others = [("drop-1", "bnna"), ("drop-2", "anna"), ("drop-", "1anna")];
    let anna = identity(&[5; 32], SALE, "anna");
    assert!(others.iter().all(|(sale, who)| ticket::identity(&[5; 32], sale, who) != anna));
}

#[test]
fn a_changed_ticket_is_refused() {
    let ring = ring();
    let longer = [format!("{TICKET}="), format!("{TICKET}A"), format!(" {TICKET}"), TICKET[1..].into(), String::new()];
    let standard = TICKET.replace('_', "/");
    assert_ne!(standard, TICKET);
    for bad in flipped(TICKET).chain(other_ends(TICKET)).chain(longer).chain([standard]) {
        assert_eq!(Ticket::read(&bad, &ring, SALE), Err(TicketError::Invalid), "{bad}");
    }
}

#[test]
fn a_pass_is_the_one_that_others_verify() {
    let mut ring = ring();
    assert_eq!(pass::sign(&ring, &claims()), PASS);
    assert_eq!(pass::verify(&ring, PASS, SALE, NOW), Ok(claims()));
    let key = &ring.jwks()["keys"][0];
    let x = "bapZuC-vgKclP7glX6E-lOqMMvHO0YXlWphrAVgQ20w";
    let kid = "yQU4EL4o4CxqQTC6DNYk7a-_5F9HepLIo_PtdkW6cS8";
    assert_eq!(*key, json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "alg": "EdDSA", "use": "sig" }));
    ring.rotate([8; 32]);
    assert_eq!(pass::verify(&ring, PASS, SALE, NOW), Ok(claims()));
    assert_eq!(ring.jwks()["keys"].as_array().unwrap().len(), 2);
    ring.rotate([9; 32]);
    assert_eq!(pass::verify(&ring, PASS, SALE, NOW), Err(PassError::Invalid));
}

#[test]
fn a_pass_is_for_one_sale_and_its_time() {
    let ring = ring();
    assert_eq!(pass::verify(&ring, PASS, "drop-2", NOW), Err(PassError::Scope));
    assert_eq!(pass::verify(&ring, PASS, "drop-2", NOW + 600), Err(PassError::Scope));
    assert_eq!(
        pass::verify(&KeyRing::new([8; 32]), PASS, "drop-2", NOW),
        Err(PassError::Invalid),
        "not told to forgers"
    );
    assert!(pass::verify(&ring, PASS, SALE, NOW + 599).is_ok());
    assert_eq!(pass::verify(&ring, PASS, SALE, NOW + 600), Err(PassError::Expired));
    assert!(pass::verify(&ring, PASS, SALE, NOW - 5).is_ok(), "another node's clock");
    assert_eq!(pass::verify(&ring, PASS, SALE, NOW - 6), Err(PassError::Invalid));
}

#[test]
fn a_changed_pass_is_refused() {
    let ring = ring();
    let kid = ring.jwks()["keys"][0]["kid"].clone();
    let headers = [
        json!({ "alg": "none", "kid": kid, "typ": "JWT" }),
        json!({ "alg": "HS256", "kid": kid, "typ": "JWT" }),
        json!({ "alg": "EdDSA", "kid": kid }),
        json!({ "alg": "EdDSA", "kid": "", "typ": "JWT" }),
        json!({ "alg": "EdDSA", "kid": kid, "typ": "JWT", "crit": [] }),
    ];
    let headers = headers.iter().map(|header| with_header(header, PASS));
    let (signed, _) = PASS.rsplit_once('.').unwrap();
    let others = [signed.to_owned(), format!("{signed}."), format!("{PASS}="), format!("{PASS}."), "..".into()];
    for bad in flipped(PASS).chain(other_ends(PASS)).chain(headers).chain(others).chain(["a".repeat(1 << 20)]) {
        assert_eq!(pass::verify(&ring, &bad, SALE, NOW), Err(PassError::Invalid), "{bad}");
    }
}

#[test]
fn an_enqueue_token_is_for_one_sale_and_a_day_at_the_most() {
    let read = enqueue::read(ENQUEUE, &[b"an older one, that is still good".as_slice(), SECRET], SALE, NOW).unwrap();
    assert_eq!((read.identity.as_str(), read.expires_at, read.jti.as_deref()), ("anna", NOW + 300, Some("j1")));
    assert!(!format!("{read:?}").contains("anna"));
    let at = |sale, now| enqueue::read(ENQUEUE, &[SECRET], sale, now).map(drop);
    assert_eq!(at("drop-2", NOW), Err(EnqueueError::Scope));
    assert_eq!((at(SALE, NOW + 299), at(SALE, NOW + 300)), (Ok(()), Err(EnqueueError::Expired)));
    let day = NOW + 86_400;
    let good = |exp: &str| enqueued(&format!(r#"{{"aud":["x","drop-1"],"sub":"a","exp":{exp}}}"#)).map(drop);
    assert_eq!(good(&day.to_string()), Ok(()));
    assert_eq!(good(&format!("{}.75", NOW + 1)), Ok(()));
    assert_eq!(good(&(day + 1).to_string()), Err(EnqueueError::TooLong));
    assert_eq!(good(&format!("{}000", NOW + 300)), Err(EnqueueError::TooLong));
    assert_eq!(good("1e300"), Err(EnqueueError::TooLong));
    assert_eq!(good("-1"), Err(EnqueueError::Expired));
    let early = format!(r#"{{"aud":"drop-1","sub":"a","exp":{day},"nbf":{}}}"#, NOW + 61);
    assert_eq!(enqueued(&early).map(drop), Err(EnqueueError::Invalid));
    assert!(enqueued(&early.replace(&(NOW + 61).to_string(), &(NOW + 60).to_string())).is_ok());
}

#[test]
fn an_enqueue_token_says_what_it_has_to() {
    let long = "x".repeat(257);
    let good = format!(r#"{{"aud":"drop-1","sub":"anna","exp":{}}}"#, NOW + 1);
    assert!(enqueued(&good).is_ok());
    let bad = [
        good.replace("sub", "who"),
        good.replace("aud", "who"),
        good.replace("exp", "who"),
        good.replace("\"anna\"", "\"\""),
        good.replace("\"anna\"", "7"),
        good.replace("anna", &long),
        good.replace('}', ",\"sub\":\"eve\"}"),
        good.replace('}', ",\"jti\":7}"),
        "[]".into(),
        String::new(),
    ];
    for claims in bad {
        assert_eq!(enqueued(&claims), Err(EnqueueError::Invalid), "{claims}");
    }
}

#[test]
fn a_changed_enqueue_token_is_refused() {
    let read = |text: &str| enqueue::read(text, &[SECRET], SALE, NOW).map(drop);
    let claims = format!(r#"{{"aud":"drop-1","sub":"anna","exp":{}}}"#, NOW + 1);
    let made = |header: Value, secret: &[u8]| token(&header, &claims, secret);
    assert_eq!(read(&made(json!({ "alg": "HS256", "kid": "any" }), SECRET)), Ok(()));
    let (signed, _) = ENQUEUE.rsplit_once('.').unwrap();
    let others = [
        made(json!({ "alg": "none" }), SECRET),
        made(json!({ "alg": "hs256" }), SECRET),
        made(json!({ "alg": "HS512" }), SECRET),
        made(json!({ "alg": "EdDSA" }), SECRET),
        made(json!({ "alg": "HS256", "crit": ["b64"] }), SECRET),
        made(json!({ "alg": "HS256" }), b""),
        with_header(&json!({ "alg": "none" }), &format!("{signed}.")),
        format!("{signed}."),
        format!("{ENQUEUE}="),
    ];
    for bad in flipped(ENQUEUE).chain(other_ends(ENQUEUE)).chain(others) {
        assert_eq!(read(&bad), Err(EnqueueError::Invalid), "{bad}");
    }
    let short = made(json!({ "alg": "HS256" }), &SECRET[1..]);
    assert_eq!(enqueue::read(&short, &[&SECRET[1..]], SALE, NOW), Err(EnqueueError::Invalid));
    assert_eq!(enqueue::read::<&[u8]>(ENQUEUE, &[], SALE, NOW), Err(EnqueueError::Invalid));
}

/// Anything, and things that look like ours.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![".*", "[A-Za-z0-9_-]{0,90}", Just(PASS.to_owned()), Just(ENQUEUE.to_owned())];
    let dotted = proptest::collection::vec(parts, 1..5).prop_map(|parts| parts.join("."));
    let cut = (0..PASS.len(), 0..PASS.len(), ".*")
        .prop_map(|(from, to, middle)| format!("{}{middle}{}", &PASS[..from.min(to)], &PASS[from.max(to)..]));
    prop_oneof![
        dotted,
        cut,
        "[A-Za-z0-9_-]{64}",
        proptest::collection::vec(any::<char>(), 64).prop_map(String::from_iter)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(text in texts(), now in any::<u64>()) {
        let ring = ring();
        let _ = Ticket::read(&text, &ring, SALE);
        let _ = pass::verify(&ring, &text, SALE, now);
        let _ = enqueue::read(&text, &[SECRET], SALE, now);
        let _ = KeyRing::from_json(&text);
    }

    #[test]
    fn what_a_shop_signs_makes_no_reader_panic(claims in ".*", exp in any::<f64>(), now in any::<u64>()) {
        let _ = enqueued(&claims);
        let text = format!(r#"{{"aud":"drop-1","sub":"a","exp":{exp:?}}}"#);
        let _ = enqueue::read(&token(&json!({ "alg": "HS256" }), &text, SECRET), &[SECRET], SALE, now);
    }

    #[test]
    fn a_ticket_comes_back_as_it_was_made(at in any::<u64>(), who in any::<u64>(), random in any::<[u8; 10]>(), sale in ".*") {
        let ring = ring();
        let made = Ticket::make(&ring, &sale, at, std::num::NonZeroU64::new(who), random);
        let read = Ticket::read(&made.to_string(), &ring, &sale).unwrap();
        prop_assert_eq!((read.joined_at_us(), read.identity().map_or(0, u64::from), read.id()), (at, who, made.id()));
    }
}
