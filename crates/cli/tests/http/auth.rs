//! Who may do what.

use crate::support::{Answer, Call, Server, cart, refused_start};
use serde_json::json;
use std::sync::Arc;
use tempfile::tempdir;

const READ: &str = "read-key-0123456789";
const CHECKOUT: &str = "checkout-key-0123456789";
const ADMIN: &str = "admin-key-0123456789";

fn keyed(flags: &[&str]) -> Server {
    let keys = format!("look:read:{READ}, shop:checkout:{CHECKOUT},ops:admin:{ADMIN}");
    let mut command = crate::support::holdfast();
    command.env("HOLDFAST_API_KEYS", keys);
    Server::with_command(command, &Arc::new(tempdir().unwrap()), flags).keyed(ADMIN)
}

fn unauthenticated(answer: &Answer) {
    answer.refused(401, "unauthenticated");
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn each_call_needs_its_role() {
    let server = keyed(&["--log", "trace"]);
    let as_admin = |call: Call| call.key(ADMIN).to(&server);
    as_admin(Call::new("PUT", "/v1/stock/A").json(&json!({"total": 100}))).is(201);
    let hold = as_admin(Call::new("POST", "/v1/holds").json(&cart("o", "A", 1))).is(201);
    let hold = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
    let hold = hold.as_str();
    let release = format!("{hold}/release");
    let (confirm, extend) = (format!("{hold}/confirm"), format!("{hold}/extend"));
    let calls = [
        ("read", "GET", "/v1/stock/A"),
        ("read", "HEAD", "/v1/stock/A"),
        ("read", "GET", "/v1/stock"),
        ("read", "GET", "/v1/stock/import"),
        ("read", "GET", "/v1/holds"),
        ("read", "GET", hold),
        ("read", "GET", "/v1/orders/o"),
        ("read", "GET", "/v1/ledger"),
        ("read", "GET", "/v1/audit"),
        ("read", "GET", "/v1/payments"),
        ("read", "GET", "/v1/refunds"),
        ("checkout", "POST", "/v1/holds"),
        ("checkout", "PATCH", hold),
        ("checkout", "POST", &extend),
        ("checkout", "POST", &confirm),
        ("checkout", "POST", &release),
        ("checkout", "POST", "/v1/orders/o/returns"),
        ("admin", "PUT", "/v1/stock/B"),
        ("admin", "DELETE", "/v1/stock/B"),
        ("admin", "POST", "/v1/stock/A/adjust"),
        ("admin", "POST", "/v1/stock/import"),
        ("admin", "PUT", "/v1/stock/import"),
        ("admin", "DELETE", "/v1/stock/import"),
        ("admin", "POST", "/v1/audit"),
    ];
    let rank = |role: &str| ["read", "checkout", "admin"].iter().position(|r| *r == role).unwrap();
    for (needed, method, path) in calls {
        let bare = Call::new(method, path);
        if method == "HEAD" {
            assert_eq!(bare.clone().to(&server).status, 401);
        } else {
            unauthenticated(&bare.clone().to(&server));
            for wrong in [
                "Bearer",
                "Bearer ",
                "Bearer nobody-knows-this-key",
                "Basic cmVhZDpyZWFk",
                ADMIN,
                &format!("Token {ADMIN}"),
                &format!("Bearer {ADMIN}x"),
                &format!("Bearer ops:admin:{ADMIN}"),
            ] {
                unauthenticated(&bare.clone().header("authorization", wrong).to(&server));
            }
        }
        for (role, key) in [("read", READ), ("checkout", CHECKOUT), ("admin", ADMIN)] {
            let answer = bare.clone().key(key).to(&server);
            if rank(role) < rank(needed) {
                answer.refused(403, "forbidden");
                assert!(answer.text().contains(needed), "{}", answer.text());
            } else {
                assert!(![401, 403].contains(&answer.status), "{role} on {method} {path}: {}", answer.status);
            }
        }
    }
    assert_eq!(
        Call::new("GET", "/v1/stock").header("Authorization", &format!("bEARER   {READ} ")).to(&server).status,
        200
    );
    for open in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(server.get(open).status, 200, "{open} is open to all");
    }
    unauthenticated(&server.get("/v1/nowhere"));
    unauthenticated(&server.import("", "sku,total\nX,1\n"));
    unauthenticated(&server.import("", vec![b'x'; 10 << 20]));
    as_admin(Call::new("GET", "/v1/stock/X")).refused(404, "not_found");
    server.get("/nowhere").refused(404, "not_found");
    let query = format!("/v1/stock?key={READ}");
    unauthenticated(&server.get(&query));
    server.is_clean();
    let log = server.stop().1;
    assert!(log.contains("served"), "debug and more is logged");
    for key in [READ, CHECKOUT, ADMIN, "nobody-knows-this-key"] {
        assert!(!log.contains(key), "a key is in the log: {log}");
    }
}

#[test]
fn keys_of_the_file_are_digests_and_add_to_the_others() {
    let folder = Arc::new(tempdir().unwrap());
    let made = crate::support::holdfast().args(["keys", "new", "--name", "file", "--role", "admin"]).output().unwrap();
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let told = String::from_utf8(made.stderr).unwrap();
    let table = told.split("--config:").nth(1).unwrap();
    let file = folder.path().join("holdfast.toml");
    std::fs::write(&file, table).unwrap();
    let server = Server::with_command(
        {
            let mut command = crate::support::holdfast();
            command.env("HOLDFAST_API_KEYS", format!("shop:read:{READ}"));
            command
        },
        &folder,
        &["--config", file.to_str().unwrap()],
    )
    .keyed(&key);
    Call::new("PUT", "/v1/stock/A").key(&key).json(&json!({"total": 1})).to(&server).is(201);
    Call::new("GET", "/v1/stock/A").key(READ).to(&server).is(200);
    unauthenticated(&server.get("/v1/stock/A"));
}

#[test]
fn an_open_door_is_refused() {
    let folder = tempdir().unwrap();
    for open in ["0.0.0.0:0", "[::]:0"] {
        let (code, log) = refused_start(folder.path(), &["--listen", open], &[]);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("API keys") && log.contains("holdfast keys new") && log.contains("127.0.0.1"), "{log}");
    }
    let log = Server::fresh().stop().1;
    assert!(log.contains("\"WARN\"") && log.contains("no API keys are configured"), "{log}");
}

#[test]
fn keys_that_are_none_are_refused_and_not_told() {
    let folder = tempdir().unwrap();
    let secret = "0123456789abcdef-secret";
    for (keys, what) in [
        (format!("shop:boss:{secret}"), "role"),
        ("shop:admin:short-secret".to_owned(), "16 characters"),
        (secret.to_owned(), "role"),
        (format!(":admin:{secret}"), "name"),
        ("shop:admin:".to_owned(), "no key"),
        (format!("a:read:{READ},shop:Admin:{secret}"), "API key 2"),
    ] {
        let (code, log) = refused_start(folder.path(), &["--listen", "127.0.0.1:0"], &[("HOLDFAST_API_KEYS", &keys)]);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains(what) && !log.contains("secret"), "{keys}: {log}");
    }
    let file = folder.path().join("bad.toml");
    for (text, what) in
        [("sha256 = \"12\"", "64 hexadecimal digits"), ("key = \"x\"", "line 4"), ("sha256 = 1", "line 4")]
    {
        std::fs::write(&file, format!("[[api_keys]]\nname = \"x\"\nrole = \"read\"\n{text}\n")).unwrap();
        let (code, log) =
            refused_start(folder.path(), &["--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()], &[]);
        assert_eq!(code, Some(2));
        assert!(log.contains(what), "{log}");
    }
}
