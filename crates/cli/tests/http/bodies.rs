//! Bodies that are no JSON, no object, too large, or not told to be JSON; paths and methods that do not exist.

use crate::support::{Answer, Call, Connection, Server, cart, shared, stock_path};
use serde_json::json;

fn hold(server: &Server, body: impl Into<Vec<u8>>) -> Answer {
    Call::new("POST", "/v1/holds").raw("application/json", body).to(server)
}

#[test]
fn what_is_not_json() {
    let server = shared();
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(40_000), close.repeat(40_000));
    let bad: Vec<Vec<u8>> = vec![
        vec![],
        b" ".to_vec(),
        b"{".to_vec(),
        b"}".to_vec(),
        b"nul".to_vec(),
        b"{}{}".to_vec(),
        b"{} x".to_vec(),
        b"{'a':1}".to_vec(),
        b"{\"order_id\":\"a\",}".to_vec(),
        b"// c\n{}".to_vec(),
        b"\xef\xbb\xbf{}".to_vec(),
        b"{\"order_id\":\"\xff\"}".to_vec(),
        b"\xff".to_vec(),
        b"{\"order_id\":\"\xed\xa0\x80\"}".to_vec(),
        b"{\"order_id\":\"\\ud800\"}".to_vec(),
        b"{\"order_id\":\"a\nb\"}".to_vec(),
        b"\0".to_vec(),
        b"null".to_vec(),
        b"1".to_vec(),
        b"\"x\"".to_vec(),
        b"[]".to_vec(),
        b"true".to_vec(),
        nested("[", "]").into(),
        nested("{\"a\":", "}").into(),
        format!("{{\"order_id\":\"a\",\"items\":{}}}", nested("[", "]")).into(),
        format!("{{\"order_id\":\"a\",\"items\":[],\"metadata\":{}}}", nested("[", "]")).into(),
        format!("{{\"order_id\":\"a\",\"items\":[],\"metadata\":{}1{}}}", "{\"a\":".repeat(20_000), "}".repeat(20_000))
            .into(),
    ];
    for body in bad {
        let told = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let errors = hold(&server, body).refused(422, "invalid_request");
        assert!(errors["errors"].is_array(), "{told}: {errors}");
    }
    hold(&server, "{\"order_id\":\"a\",\"items\":[{\"sku\":\"\u{1}\",\"quantity\":1}]}")
        .refused(422, "invalid_request");
}

#[test]
fn members_that_are_unknown_or_told_twice() {
    let server = shared();
    server.stock("BODY-1", 9);
    let item = "{\"sku\":\"BODY-1\",\"quantity\":1}";
    let ask = |body: &str| hold(&server, body.to_owned());
    ask(&format!("{{\"order_id\":\"b\",\"items\":[{item}],\"ttl\":60}}")).invalid(&["/ttl"]);
    ask(&format!("{{\"order_id\":\"b\",\"items\":[{item}],\"a/b~c\":60}}")).invalid(&["/a~1b~0c"]);
    ask(&format!("{{\"orderId\":\"b\",\"items\":[{item}]}}")).invalid(&["/orderId"]);
    ask(&format!("{{\"items\":[{item}]}}")).invalid(&["/order_id"]);
    ask("{\"order_id\":\"b\"}").invalid(&["/items"]);
    ask(&format!("{{\"order_id\":\"b\",\"order_id\":\"b\",\"items\":[{item}]}}")).invalid(&["/order_id"]);
    ask(&format!("{{\"order_id\":\"b\",\"items\":[{item}],\"\\u0069tems\":[]}}")).invalid(&["/items"]);
    ask("{\"order_id\":\"b\",\"items\":[{\"sku\":\"BODY-1\",\"quantity\":1,\"quantity\":2}]}")
        .invalid(&["/items/0/quantity"]);
    ask("{\"order_id\":\"b\",\"items\":[{\"sku\":\"BODY-1\",\"Quantity\":1}]}").invalid(&["/items/0/Quantity"]);
    let put = |body: &str| Call::new("PUT", "/v1/stock/BODY-1").raw("application/json", body).to(&server);
    put("{\"total\":1,\"total\":1}").invalid(&["/total"]);
    put("[9]").invalid(&[""]);
    put("9").invalid(&[""]);
    let made = server.hold(&cart("body-1", "BODY-1", 1));
    let confirm = Call::new("POST", &format!("{made}/confirm"));
    confirm.clone().raw("application/json", "[null]").to(&server).invalid(&[""]);
    confirm.raw("application/json", "null").to(&server).invalid(&[""]);
    Call::new("POST", &format!("{made}/release")).raw("application/json", "[]").to(&server).invalid(&[""]);
    Call::new("POST", &format!("{made}/extend")).raw("application/json", "[9]").to(&server).invalid(&[""]);
    assert_eq!(server.counters("BODY-1"), (8, 1, 0), "nothing but the one hold");
}

#[test]
fn content_types() {
    let server = shared();
    server.stock("BODY-2", 100);
    for (n, good) in
        ["application/json", "Application/JSON", "application/json; charset=utf-8", " application/json ;x=y"]
            .iter()
            .enumerate()
    {
        let body = cart(&format!("body-2-{n}"), "BODY-2", 1).to_string();
        Call::new("POST", "/v1/holds").raw(good, body).to(&server).is(201);
    }
    let body = cart("body-2", "BODY-2", 1).to_string();
    for bad in [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json5",
        "application/problem+json",
        "text/json",
        "json",
    ] {
        Call::new("POST", "/v1/holds").raw(bad, body.clone()).to(&server).refused(415, "unsupported_media_type");
    }
    let without = format!("POST /v1/holds HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut connection = Connection::open(server.port);
    connection.send(without.as_bytes());
    connection.answer().refused(415, "unsupported_media_type");
    Call::new("PUT", "/v1/stock/BODY-2")
        .raw("text/plain", "{\"total\":1}")
        .to(&server)
        .refused(415, "unsupported_media_type");
    Call::new("PATCH", "/v1/holds/0198c7f2-0000-7000-8000-000000000000")
        .to(&server)
        .refused(415, "unsupported_media_type");
    let hold = server.hold(&cart("body-2-x", "BODY-2", 1));
    for verb in ["confirm", "release"] {
        let call = Call::new("POST", &format!("{hold}/{verb}")).raw("text/plain", "{}");
        call.to(&server).refused(415, "unsupported_media_type");
    }
    assert_eq!(server.get(&hold).is(200)["status"], "held");
}

#[test]
fn bodies_that_are_too_large() {
    let server = shared();
    server.stock("BODY-3", 9);
    let padded = |size: usize| {
        let body = cart("body-3", "BODY-3", 1).to_string();
        format!("{body}{}", " ".repeat(size - body.len()))
    };
    hold(&server, padded(256 << 10)).is(201);
    let refused = hold(&server, padded((256 << 10) + 1));
    refused.refused(413, "body_too_large");
    assert_eq!(refused.header("connection"), Some("close"));
    hold(&server, padded(10 << 20)).refused(413, "body_too_large");
    hold(&server, vec![b'['; 10 << 20]).refused(413, "body_too_large");

    let mut chunked = Connection::open(server.port);
    chunked.send(
        b"POST /v1/holds HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for _ in 0..5 {
        chunked.send(format!("10000\r\n{}\r\n", "[".repeat(65536)).as_bytes());
    }
    chunked.answer().refused(413, "body_too_large");

    let mut announced = Connection::open(server.port);
    announced.send(
        b"POST /v1/holds HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n",
    );
    announced.answer().refused(413, "body_too_large");
    assert!(announced.is_closed());
}

#[test]
fn a_chunked_body_is_as_good_as_any() {
    let server = shared();
    server.stock("BODY-4", 9);
    let body = cart("body-4", "BODY-4", 2).to_string();
    let mut connection = Connection::open(server.port);
    connection.send(
        b"POST /v1/holds HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for part in body.as_bytes().chunks(7) {
        connection.send(format!("{:x}\r\n{}\r\n", part.len(), std::str::from_utf8(part).unwrap()).as_bytes());
    }
    connection.send(b"0\r\n\r\n");
    connection.answer().is(201);
    let waiting = format!(
        "POST /v1/holds HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.send(waiting.as_bytes());
    assert_eq!(connection.answer().status, 100);
    connection.send(body.as_bytes());
    connection.answer().is(200);
}

#[test]
fn paths_and_methods_that_do_not_exist() {
    let server = shared();
    server.stock("BODY-5", 9);
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v2/holds",
        "/v1/hold",
        "/v1/holds/",
        "/v1/stock/",
        "//v1/holds",
        "/v1/stock/BODY-5/x",
        "/V1/holds",
        "/v1/holds/a/b/c",
        "/bench/noop",
        "/favicon.ico",
        "/v1/sale/x",
        "/%76%31/holds",
    ] {
        server.get(path).refused(404, "not_found");
        server.touch(path).refused(404, "not_found");
    }
    for (method, path) in [
        ("DELETE", "/v1/holds"),
        ("PUT", "/v1/holds"),
        ("POST", "/v1/stock"),
        ("PATCH", "/v1/stock/BODY-5"),
        ("POST", "/v1/stock/BODY-5"),
        ("GET", "/v1/stock/BODY-5/adjust"),
        ("POST", "/healthz"),
        ("DELETE", "/metrics"),
        ("DELETE", "/v1/audit"),
        ("POST", "/openapi.json"),
        ("OPTIONS", "/v1/holds"),
        ("TRACE", "/v1/holds"),
        ("BREW", "/v1/holds"),
        ("PUT", "/v1/orders/x"),
        ("OPTIONS", "/v1/stock/BODY-5"),
    ] {
        let answer = Call::new(method, path).to(&server);
        answer.refused(405, "method_not_allowed");
        assert!(answer.header("allow").is_some_and(|a| !a.is_empty()), "Allow of {method} {path}");
    }
    let head = Call::new("HEAD", &stock_path("BODY-5")).to(&server);
    assert_eq!((head.status, head.header("etag"), head.body.len()), (200, Some("\"1\""), 0));
    assert_eq!(Call::new("HEAD", &stock_path("BODY-NONE")).to(&server).status, 404);
    let get = server.get(&stock_path("BODY-5"));
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(get.is(200)["sku"], json!("BODY-5"));
}
