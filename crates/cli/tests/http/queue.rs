//! `/v1/sales/{sale}/queue`: waiting, being drawn, the turn, the pass, and what it is good for.

use crate::sales::in_seconds;
use crate::support::webhook::{hex, mac};
use crate::support::{Answer, Call, Connection, Server, cart, eventually, holdfast, shared, skipped, with};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdfast_engine::clock::wall;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

const SOON: Duration = Duration::from_secs(10);

/// A sale of one SKU behind a room.
fn room(server: &Server, sale: &str, sku: &str, units: u64, room: impl Into<Value>) -> Value {
    server.stock(sku, units);
    let body = json!({"skus": [sku], "waiting_room": room.into()});
    server.put(&format!("/v1/sales/{sale}"), &body).is(201)
}

fn rules(max_active: u32) -> Value {
    json!({"max_active": max_active, "admit_per_second": 1000, "turn_seconds": 60})
}

fn join(server: &Server, sale: &str) -> String {
    let answer = server.post(&format!("/v1/sales/{sale}/queue"), &json!({}));
    let ticket = answer.is(201);
    let text = ticket["ticket"].as_str().unwrap().to_owned();
    assert_eq!(answer.header("location"), Some(&*path(sale, &text)));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    text
}

fn path(sale: &str, ticket: &str) -> String {
    format!("/v1/sales/{sale}/queue/{ticket}")
}

fn see(server: &Server, sale: &str, ticket: &str) -> Value {
    server.get(&path(sale, ticket)).is(200)
}

/// Waits for the turn of a ticket, and takes its pass.
fn pass(server: &Server, sale: &str, ticket: &str) -> String {
    let claim = format!("{}/claim", path(sale, ticket));
    let pass = eventually("a turn", SOON, || {
        let answer = server.touch(&claim);
        (answer.status != 202).then(|| answer.is(200))
    });
    assert_eq!(server.touch(&claim).is(200), pass, "the same one again");
    pass["pass"].as_str().unwrap().to_owned()
}

fn buy(server: &Server, order: &str, sku: &str, pass: &str) -> Answer {
    Call::new("POST", "/v1/holds").header("Waiting-Room-Pass", pass).json(&cart(order, sku, 1)).to(server)
}

#[test]
fn a_shopper_waits_gets_a_turn_and_buys_once() {
    let server = shared();
    room(&server, "queue-1", "QUEUE-1", 10, rules(1));
    let missing = server.post("/v1/holds", &cart("queue-1", "QUEUE-1", 1));
    let told = missing.refused(401, "pass_missing");
    assert_eq!((&told["sale"], &told["waiting_room_url"]), (&json!("queue-1"), &json!("/wait/queue-1")));
    assert_eq!(missing.header("www-authenticate"), Some("WaitingRoom sale=\"queue-1\""));
    let tickets: Vec<String> = (0..3).map(|_| join(&server, "queue-1")).collect();
    let good = pass(&server, "queue-1", &tickets[0]);
    let waits = see(&server, "queue-1", &tickets[2]);
    assert_eq!((&waits["state"], &waits["position"], &waits["ahead"]), (&json!("waiting"), &json!(2), &json!(1)));
    assert_eq!(
        (&waits["waiting_total"], &waits["room"], &waits["eta"]["known"]),
        (&json!(2), &json!("open"), &json!(false))
    );
    let mut bad = good.clone();
    bad.replace_range(
        bad.len() - 20..bad.len() - 19,
        if &bad[bad.len() - 20..bad.len() - 19] == "A" { "B" } else { "A" },
    );
    buy(&server, "queue-1", "QUEUE-1", &bad).refused(401, "pass_invalid");
    buy(&server, "queue-1", "QUEUE-1", "").refused(401, "pass_invalid");
    let hold = buy(&server, "queue-1", "QUEUE-1", &good).is(201);
    assert_eq!(buy(&server, "queue-1", "QUEUE-1", &good).is(200), hold, "a retry");
    assert_eq!(server.post("/v1/holds", &cart("queue-1", "QUEUE-1", 1)).is(200), hold, "known without a pass");
    buy(&server, "queue-1-friend", "QUEUE-1", &good).refused(401, "pass_used");
    let other = room(&server, "queue-1-other", "QUEUE-1-OTHER", 1, rules(1));
    assert_eq!(other["status"], "open");
    buy(&server, "queue-1-other", "QUEUE-1-OTHER", &good).refused(403, "pass_scope");
    assert_eq!(see(&server, "queue-1", &tickets[1])["state"], "waiting", "one at a time");
    server.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    let next = pass(&server, "queue-1", &tickets[1]);
    eventually("the first one's place is given back", SOON, || {
        (see(&server, "queue-1", &tickets[0])["state"] == "done").then_some(())
    });
    let second = buy(&server, "queue-1-second", "QUEUE-1", &next).is(201);
    server.touch(&format!("/v1/holds/{}/release", second["id"].as_str().unwrap())).is(200);
    pass(&server, "queue-1", &tickets[2]);
    buy(&server, "queue-1-second", "QUEUE-1", &next).refused(401, "pass_used");
}

#[test]
fn a_pass_is_for_the_first_order_that_shows_it_whatever_becomes_of_that() {
    let server = shared();
    room(&server, "queue-2", "QUEUE-2", 2, rules(5));
    let good = pass(&server, "queue-2", &join(&server, "queue-2"));
    let much = Call::new("POST", "/v1/holds").header("Waiting-Room-Pass", &good).json(&cart("queue-2a", "QUEUE-2", 3));
    assert_eq!(much.to(&server).refused(409, "sold_out")["items"][0]["available"], 2);
    let unknown = json!({"order_id": "queue-2a", "items": [{"sku": "QUEUE-2", "quantity": 1}, {"sku": "QUEUE-2-NO", "quantity": 1}]});
    let unknown = Call::new("POST", "/v1/holds").header("Waiting-Room-Pass", &good).json(&unknown);
    unknown.to(&server).refused(422, "unknown_sku");
    buy(&server, "queue-2b", "QUEUE-2", &good).refused(401, "pass_used");
    buy(&server, "queue-2a", "QUEUE-2", &good).is(201);
}

#[test]
fn a_repeated_request_gets_nothing_that_a_new_one_would_not() {
    let server = Server::fresh();
    room(&server, "drop", "A", 1000, rules(5));
    let much = cart("O1", "A", 30);
    for round in 0..20 {
        let good = pass(&server, "drop", &join(&server, "drop"));
        let order = format!("O{round}");
        let hold = buy(&server, &order, "A", &good).is(201);
        let release = format!("/v1/holds/{}/release", hold["id"].as_str().unwrap());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let body = with(much.clone(), "order_id", order.as_str());
                        let status = server.post("/v1/holds", &body).status;
                        assert!(matches!(status, 401 | 409), "{status}");
                    }
                });
            }
            scope.spawn(|| server.touch(&release).is(200));
        });
    }
    assert_eq!(server.counters("A"), (1000, 0, 0));
}

#[test]
fn a_pass_ends_with_its_place_and_with_its_sale() {
    let mut server = Server::fresh();
    room(&server, "drop", "A", 10, rules(5));
    let tickets: Vec<String> = (0..3).map(|_| join(&server, "drop")).collect();
    let passes: Vec<String> = tickets.iter().map(|ticket| pass(&server, "drop", ticket)).collect();
    assert_eq!(server.delete(&path("drop", &tickets[0])).status, 204);
    let hold = buy(&server, "O1", "A", &passes[1]).is(201);
    server.touch(&format!("/v1/holds/{}/release", hold["id"].as_str().unwrap())).is(200);
    eventually("the place is given on", SOON, || (see(&server, "drop", &tickets[1])["state"] == "done").then_some(()));
    // Nor does a server that has forgotten all about them believe them.
    let folder = server.kill();
    std::fs::remove_dir_all(folder.path().join("data/rooms")).unwrap();
    server = Server::with(&folder, &[]);
    buy(&server, "O0", "A", &passes[0]).refused(401, "pass_used");
    buy(&server, "O1", "A", &passes[1]).refused(401, "pass_used");
    assert_eq!(server.delete("/v1/sales/drop").status, 204);
    server.put("/v1/sales/drop", &json!({"skus": ["A"], "waiting_room": rules(5)})).is(201);
    buy(&server, "O2", "A", &passes[2]).refused(401, "pass_invalid");
    server.get(&path("drop", &tickets[2])).refused(410, "ticket_over");
    let journals: Vec<_> = std::fs::read_dir(folder.path().join("data/rooms")).unwrap().collect();
    assert_eq!(journals.len(), 1, "{journals:?}");
}

#[test]
fn whoever_left_does_not_come_back_with_a_restart() {
    let mut server = Server::fresh();
    room(&server, "drop", "A", 10, json!({"max_active": 1, "admit_per_second": 1, "turn_seconds": 60}));
    let tickets: Vec<String> = (0..3).map(|_| join(&server, "drop")).collect();
    for _ in 0..2 {
        assert_eq!(server.delete(&path("drop", &tickets[0])).status, 204);
        server = Server::with(&server.kill(), &[]);
        assert_eq!(see(&server, "drop", &tickets[0])["state"], "left");
    }
    let good = pass(&server, "drop", &tickets[1]);
    server
        .put(
            "/v1/sales/drop",
            &json!({"skus": ["A"], "waiting_room":
        {"max_active": 1, "admit_per_second": 1, "turn_seconds": 60, "session_seconds": 60}}),
        )
        .is(200);
    assert_eq!(pass(&server, "drop", &tickets[1]), good, "whatever the rules are now");
    buy(&server, "O1", "A", &good).is(201);
}

#[test]
fn those_who_come_before_the_start_are_drawn_by_the_seed() {
    let server = shared();
    server.stock("QUEUE-3", 100);
    let at = |start: &str| {
        json!({"skus": ["QUEUE-3"], "starts_at": start,
        "waiting_room": {"max_active": 1, "admit_per_second": 1, "turn_seconds": 60, "prequeue_seconds": 60}})
    };
    server.put("/v1/sales/queue-3", &at(&in_seconds(3600))).is(201);
    let early = server.post("/v1/sales/queue-3/queue", &json!({})).refused(403, "queue_not_open");
    assert!(early["opens_at"].is_string());
    let sale = server.put("/v1/sales/queue-3", &at(&in_seconds(3))).is(200);
    let tickets: Vec<String> = (0..20).map(|_| join(&server, "queue-3")).collect();
    let before = see(&server, "queue-3", &tickets[0]);
    assert_eq!((&before["state"], &before["position"]), (&json!("prequeue"), &Value::Null));
    assert_eq!((&before["waiting_total"], &before["starts_at"]), (&json!(20), &sale["starts_at"]));
    server.touch(&format!("{}/claim", path("queue-3", &tickets[0]))).is(202);
    eventually("the sale starts", SOON, || (see(&server, "queue-3", &tickets[0])["state"] != "prequeue").then_some(()));
    let late = join(&server, "queue-3");
    let seed = server.get("/v1/sales/queue-3/draw").is(200)["seed"].as_str().unwrap().to_owned();
    let seed: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&seed[at..at + 2], 16).unwrap()).collect();
    assert_eq!(hex(&<sha2::Sha256 as sha2::Digest>::digest(&seed)), sale["draw_commitment"].as_str().unwrap());
    let mut drawn = tickets.clone();
    drawn.sort_by_key(|ticket| mac(&seed, ticket.as_bytes()));
    assert_ne!(drawn, tickets);
    eventually("the first one has a turn", SOON, || {
        (see(&server, "queue-3", &drawn[0])["state"] == "turn").then_some(())
    });
    for (index, ticket) in drawn.iter().enumerate().skip(1) {
        assert_eq!(see(&server, "queue-3", ticket)["position"], index, "{ticket}");
    }
    assert_eq!(see(&server, "queue-3", &late)["position"], 20, "who comes late is behind");
}

#[test]
fn a_thousand_tabs_of_one_shopper_hold_one_place() {
    let server = shared();
    room(&server, "queue-4", "QUEUE-4", 10, json!({"max_active": 1, "admit_per_second": 1}));
    let first = join(&server, "queue-4");
    let ask = |identity: &str| server.post("/v1/sales/queue-4/queue", &json!({"identity": identity}));
    let ticket = ask("cus_1").is(201)["ticket"].clone();
    let mut connection = Connection::open(server.port);
    let call = Call::new("POST", "/v1/sales/queue-4/queue").json(&json!({"identity": "cus_1"}));
    for _ in 0..300 {
        assert_eq!(connection.call(&call).is(200)["ticket"], ticket);
    }
    assert_ne!(ask("cus_2").is(201)["ticket"], ticket);
    let cookie = server.post("/v1/sales/queue-4/queue", &json!({}));
    let mine = cookie.is(201)["ticket"].clone();
    let cookie = cookie.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for _ in 0..10 {
        let again = Call::new("POST", "/v1/sales/queue-4/queue").header("Cookie", &cookie).json(&json!({})).to(&server);
        assert_eq!(again.is(200)["ticket"], mine);
    }
    let board = server.get("/v1/sales/queue-4/queue").is(200);
    assert_eq!(board["waiting"].as_u64().unwrap() + board["turn"].as_u64().unwrap(), 4, "{board}");
    assert!(first != mine);
    ask("").refused(422, "invalid_request");
}

#[test]
fn a_kill_keeps_every_place() {
    let mut server = Server::fresh();
    room(&server, "drop", "A", 100, json!({"max_active": 3, "admit_per_second": 100, "turn_seconds": 60}));
    let tickets: Vec<String> = (0..50).map(|_| join(&server, "drop")).collect();
    let good = pass(&server, "drop", &tickets[0]);
    let named = server.post("/v1/sales/drop/queue", &json!({"identity": "cus_1"})).is(201)["ticket"].clone();
    let hold = buy(&server, "O1", "A", &good).is(201);
    eventually("three are in", SOON, || (see(&server, "drop", &tickets[2])["state"] == "turn").then_some(()));
    assert_eq!(server.delete(&path("drop", &tickets[10])).status, 204);
    let places = |server: &Server| -> Vec<Value> {
        let tickets = tickets.iter().filter(|ticket| **ticket != tickets[10]);
        tickets
            .map(|ticket| see(server, "drop", ticket))
            .map(|t| json!([t["state"], t["position"], t["claim_by"]]))
            .collect()
    };
    let before = places(&server);
    assert_eq!(see(&server, "drop", &tickets[10])["state"], "left");
    server = Server::with(&server.kill(), &[]);
    assert_eq!(places(&server), before);
    assert_eq!(see(&server, "drop", &tickets[10])["state"], "left");
    assert_eq!(server.post("/v1/sales/drop/queue", &json!({"identity": "cus_1"})).is(200)["ticket"], named);
    assert_eq!(pass(&server, "drop", &tickets[0]), good);
    assert_eq!(buy(&server, "O1", "A", &good).is(200), hold);
    buy(&server, "O2", "A", &good).refused(401, "pass_used");
    assert_eq!(see(&server, "drop", &tickets[3])["state"], "waiting", "the hold keeps its place");
    server.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    eventually("the place is given on", SOON, || (see(&server, "drop", &tickets[3])["state"] == "turn").then_some(()));
}

#[test]
fn a_lost_journal_loses_no_place() {
    let server = Server::fresh();
    room(&server, "drop", "A", 100, json!({"max_active": 1, "admit_per_second": 100, "turn_seconds": 60}));
    let tickets: Vec<String> = (0..10).map(|_| join(&server, "drop")).collect();
    let folder = server.kill();
    std::fs::remove_dir_all(folder.path().join("data/rooms")).unwrap();
    let server = Server::with(&folder, &[]);
    // Whoever comes back first, everybody finds the old order.
    for ticket in tickets.iter().rev() {
        assert!(matches!(see(&server, "drop", ticket)["state"].as_str().unwrap(), "waiting" | "turn"));
    }
    let late = join(&server, "drop");
    let position = |ticket: &str| see(&server, "drop", ticket)["position"].as_u64().unwrap_or(0);
    let mut places: Vec<u64> = tickets.iter().map(|ticket| position(ticket)).collect();
    places.retain(|place| *place > 0);
    assert!(places.is_sorted() && places.len() >= 9, "{places:?}");
    assert!(position(&late) > *places.last().unwrap());
}

#[test]
fn a_room_ends_when_all_is_sold_and_waits_when_all_is_held() {
    let server = shared();
    room(&server, "queue-5", "QUEUE-5", 1, rules(5));
    let tickets: Vec<String> = (0..3).map(|_| join(&server, "queue-5")).collect();
    let good = pass(&server, "queue-5", &tickets[0]);
    assert_eq!(see(&server, "queue-5", &tickets[1])["stock"]["likely_gone_before_turn"], true);
    let hold = buy(&server, "queue-5", "QUEUE-5", &good).is(201);
    let becomes = |word: &str| {
        eventually(word, Duration::from_secs(2), || {
            let ticket = see(&server, "queue-5", &tickets[1]);
            (ticket["room"] == word && ticket["stock"]["state"] == word).then_some(ticket)
        })
    };
    assert_eq!(becomes("held")["position"], 1, "the order is kept");
    server.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    becomes("sold_out");
    server.put("/v1/stock/QUEUE-5", &json!({"total": 2})).is(200);
    let next = pass(&server, "queue-5", &tickets[1]);
    buy(&server, "queue-5b", "QUEUE-5", &next).is(201);
}

#[test]
fn a_missed_turn_goes_to_the_next_one() {
    let server = shared();
    let rules = json!({"max_active": 1, "admit_per_second": 100, "turn_seconds": 1, "session_seconds": 1});
    room(&server, "queue-6", "QUEUE-6", 10, rules);
    let tickets: Vec<String> = (0..2).map(|_| join(&server, "queue-6")).collect();
    eventually("the turn is missed", SOON, || {
        (see(&server, "queue-6", &tickets[0])["state"] == "expired").then_some(())
    });
    server.touch(&format!("{}/claim", path("queue-6", &tickets[0]))).refused(410, "turn_missed");
    let good = pass(&server, "queue-6", &tickets[1]);
    eventually("the session ends", SOON, || (see(&server, "queue-6", &tickets[1])["state"] == "done").then_some(()));
    let over = buy(&server, "queue-6", "QUEUE-6", &good);
    assert_eq!(over.status, 401);
    assert!(["pass_expired", "pass_used"].contains(&over.json()["code"].as_str().unwrap()), "{}", over.text());
    assert_eq!(server.counters("QUEUE-6"), (10, 0, 0));
    server.get(&path("queue-6", "nonsense")).refused(404, "not_found");
    server.get(&path("queue-6", &"A".repeat(64))).refused(404, "not_found");
    server.post("/v1/sales/nothing/queue", &json!({})).refused(404, "not_found");
}

#[test]
fn a_pause_gives_no_turns_and_resuming_goes_on() {
    let server = shared();
    room(&server, "queue-7", "QUEUE-7", 10, rules(5));
    server.touch("/v1/sales/queue-7/pause").is(200);
    let ticket = join(&server, "queue-7");
    std::thread::sleep(Duration::from_millis(600));
    let waits = see(&server, "queue-7", &ticket);
    assert_eq!((&waits["state"], &waits["room"]), (&json!("waiting"), &json!("paused")));
    server.touch("/v1/sales/queue-7/resume").is(200);
    pass(&server, "queue-7", &ticket);
}

#[test]
fn tickets_and_passes_outlive_one_change_of_keys() {
    let server = Server::fresh();
    room(&server, "drop", "A", 10, rules(5));
    let ticket = join(&server, "drop");
    let good = pass(&server, "drop", &ticket);
    let kids = |keys: &Value| -> Vec<String> {
        keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
    };
    let before = kids(&server.get("/.well-known/jwks.json").is(200));
    let after = kids(&server.touch("/v1/waiting-room/keys/rotate").is(200));
    assert_eq!((before.len(), after.len(), &after[1]), (1, 2, &before[0]));
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(good.split('.').next().unwrap()).unwrap()).unwrap();
    assert_eq!((&header["kid"], &header["alg"]), (&json!(before[0]), &json!("EdDSA")));
    see(&server, "drop", &ticket);
    buy(&server, "O1", "A", &good).is(201);
    server.touch("/v1/waiting-room/keys/rotate").is(200);
    server.get(&path("drop", &ticket)).refused(404, "not_found");
    let fresh = join(&server, "drop");
    see(&server, "drop", &fresh);
}

#[test]
fn shoppers_need_no_key_but_cannot_name_others() {
    let secret = "a secret of the shop that has 32 bytes or more";
    let mut command = holdfast();
    command.env("HOLDFAST_API_KEYS", "shop:checkout:0123456789abcdef,ops:admin:fedcba9876543210");
    command.env("HOLDFAST_ENQUEUE_SECRETS", secret);
    let server = Server::with_command(command, &Arc::new(tempdir().unwrap()), &[]).keyed("fedcba9876543210");
    let admin = |path: &str, body: &Value| Call::new("PUT", path).key("fedcba9876543210").json(body).to(&server);
    admin("/v1/stock/A", &json!({"total": 10})).is(201);
    admin("/v1/sales/drop", &json!({"skus": ["A"], "waiting_room": rules(1)})).is(201);
    let open = |body: &Value| Call::new("POST", "/v1/sales/drop/queue").json(body).to(&server);
    let bare = |method: &str, path: &str| Call::new(method, path).to(&server);
    let ticket = open(&json!({})).is(201)["ticket"].as_str().unwrap().to_owned();
    bare("GET", &path("drop", &ticket)).is(200);
    bare("GET", "/v1/sales/drop/queue").is(200);
    bare("GET", "/v1/sales/drop/draw").is(200);
    bare("GET", "/v1/sales/drop").refused(401, "unauthenticated");
    bare("POST", "/v1/sales/drop/pause").refused(401, "unauthenticated");
    bare("POST", "/v1/waiting-room/keys/rotate").refused(401, "unauthenticated");
    open(&json!({"identity": "cus_1"})).refused(401, "unauthenticated");
    let token = |claims: &Value| {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "HS256", "typ": "JWT"})), part(claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac(secret.as_bytes(), signed.as_bytes())))
    };
    let claims = json!({"aud": "drop", "sub": "cus_1", "exp": wall().millis() / 1000 + 600});
    let mine = open(&json!({"enqueue_token": token(&claims)})).is(201)["ticket"].clone();
    assert_eq!(open(&json!({"enqueue_token": token(&claims)})).is(200)["ticket"], mine);
    let told = Call::new("POST", "/v1/sales/drop/queue").key("0123456789abcdef").json(&json!({"identity": "cus_1"}));
    assert_eq!(told.to(&server).is(200)["ticket"], mine);
    let other = with(claims, "aud", "another");
    open(&json!({"enqueue_token": token(&other)})).refused(401, "enqueue_token_invalid");
    let statuses: Vec<u16> = (0..40).map(|_| open(&json!({})).status).collect();
    assert!(statuses.contains(&429), "one address takes no more than a few places: {statuses:?}");
    let junk = Call::new("POST", "/v1/sales/drop/queue").header("Cookie", "wr-drop=junk").json(&json!({})).to(&server);
    junk.refused(429, "rate_limited");
}

#[test]
fn a_stream_tells_the_turn_and_does_not_keep_the_server_from_stopping() {
    let server = Server::fresh();
    room(&server, "drop", "A", 10, rules(1));
    let tickets: Vec<String> = (0..2).map(|_| join(&server, "drop")).collect();
    eventually("a turn", SOON, || (see(&server, "drop", &tickets[0])["state"] == "turn").then_some(()));
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let request = format!("GET {}/events HTTP/1.1\r\nHost: x\r\n\r\n", path("drop", &tickets[1]));
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut listen = |until: &str| {
        while !heard.contains(until) {
            let mut bytes = [0; 4096];
            let n = std::io::Read::read(&mut stream, &mut bytes).unwrap();
            assert!(n > 0, "{heard}");
            heard += &String::from_utf8_lossy(&bytes[..n]);
        }
    };
    listen("event: position");
    assert_eq!(server.delete(&path("drop", &tickets[0])).status, 204);
    listen("event: turn");
    let events = format!("{}/events", path("drop", &tickets[1]));
    let open: Vec<std::net::TcpStream> = (0..2)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            let request = format!("GET {events} HTTP/1.1\r\nHost: x\r\n\r\n");
            std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
            let mut status = [0; 12];
            std::io::Read::read_exact(&mut stream, &mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 200");
            stream
        })
        .collect();
    server.get(&events).refused(503, "overloaded");
    drop(open);
    server.stop();
}

/// Two nodes on one database; `None` where there is none.
fn two_nodes(name: &str, variables: &[(&str, &str)]) -> Option<(Server, Server)> {
    let Ok(url) = std::env::var("HOLDFAST_TEST_POSTGRES") else {
        assert!(std::env::var_os("CI").is_none(), "HOLDFAST_TEST_POSTGRES is not set");
        skipped("no PostgreSQL here");
        return None;
    };
    let schema = format!("{name}{}", std::process::id());
    let start = || {
        let mut command = holdfast();
        command.env("HOLDFAST_ENGINE", &url).env("HOLDFAST_DATABASE_SCHEMA", &schema);
        command.envs(variables.iter().copied());
        Server::with_command(command, &Arc::new(tempdir().unwrap()), &[])
    };
    Some((start(), start()))
}

#[test]
fn two_nodes_have_one_room_and_the_second_takes_it_over() {
    let Some((first, second)) = two_nodes("room", &[]) else { return };
    first.stock("A", 100);
    let rules = json!({"max_active": 1, "admit_per_second": 100, "turn_seconds": 60});
    first.put("/v1/sales/drop", &json!({"skus": ["A"], "waiting_room": rules})).is(201);
    let join = |server: &Server| {
        eventually("a place", SOON, || {
            let answer = server.post("/v1/sales/drop/queue", &json!({}));
            (answer.status == 201).then(|| answer.json()["ticket"].as_str().unwrap().to_owned())
        })
    };
    let tickets: Vec<String> = (0..6).map(|n| join(if n % 2 == 0 { &first } else { &second })).collect();
    let good = pass(&second, "drop", &tickets[0]);
    for server in [&first, &second] {
        assert_eq!(see(server, "drop", &tickets[5])["position"], 5, "one room for both");
        assert_eq!(server.get("/v1/sales/drop/queue").is(200)["admitted"], 1);
    }
    let hold = buy(&second, "O1", "A", &good).is(201);
    buy(&first, "O2", "A", &good).refused(401, "pass_used");
    first.touch(&format!("/v1/holds/{}/confirm", hold["id"].as_str().unwrap())).is(200);
    let next = pass(&first, "drop", &tickets[1]);
    let page = second.get("/wait/drop").text();
    assert!(page.contains("<h1"), "{page}");
    // The one that keeps the room is the first; it had to begin before the second was there.
    first.kill();
    eventually("the other one takes over", SOON + SOON, || {
        tickets[2..].iter().rev().all(|ticket| second.get(&path("drop", ticket)).status == 200).then_some(())
    });
    for (index, ticket) in tickets[2..].iter().enumerate() {
        assert_eq!(see(&second, "drop", ticket)["position"], index + 1, "every place is kept");
    }
    buy(&second, "O3", "A", &next).is(201);
    assert!(join(&second) != tickets[5]);
    assert_eq!(see(&second, "drop", &tickets[5])["position"], 4);
}
