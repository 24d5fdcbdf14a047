//! Mails as a server gets them, and what its refusals mean.

mod server;

use super::*;
use holdfast_domain::Currency;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use server::{Script, Server, Taken};
use std::fs;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

fn notice() -> Notice {
    Notice {
        kind: NoticeKind::WindowLapsed,
        to: "jo@example.org".into(),
        order_id: "ORDER-1234".into(),
        provider: Ref::new("stripe").unwrap(),
        money: Money { amount: Some(15000), currency: Currency::new("usd") },
        reference: Ref::new("re_1").ok(),
        idempotency_key: "holdfast-refund-stripe:pi_1".into(),
    }
}

fn settings<'a>(smtp_url: &'a str, from: &'a str) -> Settings<'a> {
    Settings { smtp_url, from, templates: None, ca: None }
}

fn mailer(server: &Server) -> Mailer {
    Mailer::new(&settings(&url(server), "Palm Shop <orders@shop.example>")).unwrap()
}

fn url(server: &Server) -> String {
    format!("smtp://127.0.0.1:{}", server.port)
}

async fn sent(notice: &Notice) -> Taken {
    let server = Server::start(Script::default()).await;
    mailer(&server).send(notice).await.unwrap();
    let taken = server.taken();
    assert_eq!(taken.len(), 1);
    taken[0].clone()
}

fn header<'a>(mail: &'a Taken, name: &str) -> Vec<&'a str> {
    let head = mail.data.split("\n\n").next().unwrap();
    head.lines().filter_map(|l| l.strip_prefix(name)?.strip_prefix(": ")).collect()
}

#[tokio::test]
async fn a_mail_arrives_with_both_of_its_texts() {
    let mail = sent(&notice()).await;
    assert_eq!((mail.from.as_str(), mail.to.as_slice()), ("orders@shop.example", &["jo@example.org".to_owned()][..]));
    assert_eq!(header(&mail, "From"), ["\"Palm Shop\" <orders@shop.example>"]);
    assert_eq!(header(&mail, "To"), ["jo@example.org"]);
    assert_eq!(header(&mail, "Subject"), ["Order ORDER-1234: your payment is being returned"]);
    assert_eq!(header(&mail, "Auto-Submitted"), ["auto-generated"]);
    assert_eq!(header(&mail, "Date").len(), 1);
    assert!(header(&mail, "Content-Type")[0].starts_with("multipart/alternative"));
    assert!(mail.data.contains("Content-Type: text/plain; charset=utf-8"));
    assert!(mail.data.contains("Content-Type: text/html; charset=utf-8"));
    assert!(mail.data.find("text/plain") < mail.data.find("text/html"), "the last alternative is shown");
}

#[tokio::test]
async fn a_mail_that_is_sent_again_is_known_again() {
    let id = |notice: Notice| async move { header(&sent(&notice).await, "Message-ID")[0].to_owned() };
    let first = id(notice()).await;
    assert_eq!(first, id(Notice { order_id: "other".into(), ..notice() }).await);
    let digest = hex::encode(Sha256::digest(b"holdfast-refund-stripe:pi_1"));
    assert_eq!(first, format!("<refund-{}@shop.example>", &digest[..32]));
    assert_ne!(first, id(Notice { idempotency_key: "holdfast-refund-stripe:pi_1~2".into(), ..notice() }).await);
    assert_ne!(first, id(Notice { kind: NoticeKind::RefundDone, ..notice() }).await);
}

#[tokio::test]
async fn nothing_typed_becomes_a_header_or_a_tag() {
    let evil = Notice { order_id: "O\r\nBcc: eve@example.org\r\n\r\n<b>&\"'".into(), ..notice() };
    let mail = sent(&evil).await;
    assert_eq!(mail.to.len(), 1);
    assert!(header(&mail, "Bcc").is_empty() && header(&mail, "Subject")[0].contains("Bcc: eve"), "{}", mail.data);
    let mailer = Mailer::new(&settings("smtp://127.0.0.1", "<s@shop.example>")).unwrap();
    let html = mailer.templates.render(NoticeKind::WindowLapsed, &mailer.values(&evil)).html;
    assert!(!html.contains("<b>") && html.contains("&#60;b&#62;&#38;&#34;&#39;"), "{html}");

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("window-lapsed.txt"), "before\n{order_id}\nafter\n").unwrap();
    let server = Server::start(Script::default()).await;
    let url = url(&server);
    let settings = Settings { templates: Some(folder.path()), ..settings(&url, "<s@shop.example>") };
    Mailer::new(&settings).unwrap().send(&Notice { order_id: ".".into(), ..notice() }).await.unwrap();
    let data = &server.taken()[0].data;
    assert!(data.contains("before\n.\nafter\n") && data.contains("</html>"), "a dot ends no mail: {data}");
}

#[tokio::test]
async fn addresses_are_checked_before_anybody_is_asked() {
    let server = Server::start(Script::default()).await;
    for bad in [
        "",
        "jo",
        "jo@",
        "@example.org",
        "jo@example.org, eve@example.org",
        "jo@example.org\r\nBcc: eve@example.org",
        "Jo <jo@example.org>",
        "jo@exa mple.org",
        "jo@example.org>",
    ] {
        let error = mailer(&server).send(&Notice { to: bad.into(), ..notice() }).await.unwrap_err();
        assert!(error.permanent && !error.error.contains("eve"), "{bad:?} {error}");
    }
    assert!(server.taken().is_empty());
    let idn = sent(&Notice { to: "jo@bücher.example".into(), ..notice() }).await;
    assert_eq!(idn.to, ["jo@xn--bcher-kva.example"]);
}

#[tokio::test]
async fn a_name_that_needs_utf8_needs_a_server_that_takes_it() {
    let josé = Notice { to: "josé@example.org".into(), ..notice() };
    let server = Server::start(Script::default()).await;
    assert!(mailer(&server).send(&josé).await.unwrap_err().permanent);
    let server = Server::start(Script { smtp_utf8: true, ..Script::default() }).await;
    mailer(&server).send(&josé).await.unwrap();
    assert_eq!(server.taken()[0].to, ["josé@example.org"]);
}

#[tokio::test]
async fn refusals_for_now_and_for_good() {
    for (at, says, permanent) in [
        ("greeting", Some("421 too busy"), false),
        ("greeting", Some("554 not from your network"), false),
        ("EHLO", Some("550 who are you"), false),
        ("MAIL", Some("451 try again"), false),
        ("MAIL", Some("553 sender not allowed"), true),
        ("MAIL", Some("530 5.7.0 authentication required"), false),
        ("RCPT", Some("450 mailbox busy"), false),
        ("RCPT", Some("452 mailbox full"), false),
        ("RCPT", Some("550 5.1.1 no such user"), true),
        ("DATA", Some("451 disk full"), false),
        (".", Some("451 greylisted"), false),
        (".", Some("554 looks like spam"), true),
        ("greeting", None, false),
        ("RCPT", None, false),
        (".", None, false),
        ("EHLO", Some("what?"), false),
    ] {
        let server = Server::start(Script { says: Some((at, says)), ..Script::default() }).await;
        let mut mailer = mailer(&server);
        if says.is_none() {
            mailer.smtp = mailer.smtp.impatient();
        }
        let error = mailer.send(&notice()).await.unwrap_err();
        assert_eq!(error.permanent, permanent, "{at} {says:?}: {error}");
        assert!(error.error.contains("127.0.0.1"), "it names the server: {error}");
        assert!(server.taken().is_empty());
    }
    let closed = settings("smtp://127.0.0.1:1", "s@shop.example");
    assert!(!Mailer::new(&closed).unwrap().send(&notice()).await.unwrap_err().permanent);
}

#[tokio::test]
async fn a_server_that_does_not_say_goodbye_has_the_mail_all_the_same() {
    let server = Server::start(Script { never_quits: true, ..Script::default() }).await;
    let mut mailer = mailer(&server);
    mailer.smtp = mailer.smtp.in_a_hurry();
    mailer.send(&notice()).await.unwrap();
    assert_eq!(server.taken().len(), 1);
}

/// A certificate for `localhost`: what a server needs, and the file that makes a client trust it.
fn certificate(folder: &Path) -> (TlsAcceptor, std::path::PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let file = folder.join("ca.pem");
    fs::write(&file, made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    (TlsAcceptor::from(Arc::new(config)), file)
}

#[tokio::test]
async fn passwords_travel_encrypted() {
    let folder = tempfile::tempdir().unwrap();
    let (tls, ca) = certificate(folder.path());
    let login = Some(("shop@x", "p:ss/w@rd"));
    let start = |script: Script| Server::start(Script { login, ..script });
    let send = |url: String, ca: Option<std::path::PathBuf>| async move {
        let settings = Settings { ca: ca.as_deref(), ..settings(&url, "s@shop.example") };
        Mailer::new(&settings).unwrap().send(&notice()).await
    };
    let user = "shop%40x:p%3Ass%2Fw%40rd@localhost";

    let server = start(Script { starttls: Some(tls.clone()), ..Script::default() }).await;
    send(format!("smtp://{user}:{}?tls=required", server.port), Some(ca.clone())).await.unwrap();
    send(format!("smtp://{user}:{}?tls=opportunistic", server.port), Some(ca.clone())).await.unwrap();
    assert!(server.taken().len() == 2 && server.taken().iter().all(|mail| mail.was_encrypted));
    let untrusted = send(format!("smtp://{user}:{}?tls=required", server.port), None).await.unwrap_err();
    assert!(!untrusted.permanent && server.taken().len() == 2, "{untrusted}");

    let server = start(Script { wrapped: Some(tls), ..Script::default() }).await;
    send(format!("smtps://{user}:{}", server.port), Some(ca.clone())).await.unwrap();
    let wrong = send(format!("smtps://shop%40x:wrong-pass@localhost:{}", server.port), Some(ca)).await.unwrap_err();
    assert!(!wrong.permanent && !wrong.error.contains("wrong-pass"), "settings can be put right: {wrong}");
    assert_eq!(server.taken().len(), 1);

    let plain = start(Script::default()).await;
    let refused = send(format!("smtp://{user}:{}?tls=required", plain.port), None).await.unwrap_err();
    assert!(!refused.permanent && plain.taken().is_empty(), "a server that cannot encrypt is not used: {refused}");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    let new = |url: &str| Mailer::new(&settings(url, "s@shop.example"));
    for good in ["smtp://mail.example", "smtps://u:p@mail.example", "smtp://u:p@127.0.0.1:2525", "smtp://[::1]:25/"] {
        assert!(new(good).is_ok(), "{good} {:?}", new(good).err());
    }
    for (bad, word) in [
        ("mail.example", "cannot be read"),
        ("http://mail.example", "smtp://"),
        ("smtp://", "host"),
        ("smtp://u:hunter2@mail.example?tls=none", "clear"),
        ("smtp://u:hunter2@mail.example?tls=opportunistic", "clear"),
        ("smtp://u@mail.example", "password"),
        ("smtp://mail.example/inbox", "path"),
        ("smtp://mail.example?starttls=1", "option"),
        ("smtp://mail.example?tls=maybe", "kind of tls"),
        ("smtps://mail.example?tls=none", "first byte"),
    ] {
        let error = new(bad).unwrap_err();
        assert!(error.contains(word) && !error.contains("hunter2"), "{bad}: {error}");
    }
    assert!(!format!("{:?}", new("smtps://u:hunter2@mail.example").unwrap()).contains("hunter2"));
    for bad in ["", "shop", "shop.example", "Shop <orders>"] {
        assert!(Mailer::new(&settings("smtp://localhost", bad)).is_err(), "{bad}");
    }
    let missing = Settings { ca: Some(Path::new("/nowhere/ca.pem")), ..settings("smtps://localhost", "s@x.example") };
    assert!(Mailer::new(&missing).unwrap_err().contains("/nowhere/ca.pem"));
}

#[test]
fn what_shoppers_read() {
    let mailer = Mailer::new(&settings("smtp://localhost", "Palm Shop <orders@shop.example>")).unwrap();
    let write = |kind| mailer.templates.render(kind, &mailer.values(&Notice { kind, ..notice() }));
    let (lapsed, done) = (write(NoticeKind::WindowLapsed), write(NoticeKind::RefundDone));
    assert_eq!(lapsed.text, include_str!("tests/window-lapsed.txt"));
    assert_eq!(lapsed.html, include_str!("tests/window-lapsed.html"));
    assert_eq!(done.text, include_str!("tests/refund-done.txt"));
    assert_eq!(done.html, include_str!("tests/refund-done.html"));
    assert_eq!(done.subject, "Order ORDER-1234: your payment has been returned");
    for html in [lapsed.html, done.html] {
        for remote in ["http:", "https:", "src=", "url(", "@import", "<link", "<script"] {
            assert!(!html.contains(remote), "nothing is loaded from elsewhere: {remote}");
        }
    }
}

#[test]
fn a_shop_may_use_words_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let load = || Templates::load(Some(folder.path()));
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let values = || Values {
        order_id: "<O>".into(),
        amount: "150.00 USD".into(),
        shop: "Palm".into(),
        reference: "re_1".into(),
    };
    write("window-lapsed.subject.txt", "\u{feff}Zu spät: {order_id}\n");
    write("window-lapsed.html", "<style>p{color:red}</style>{<p>{order_id} {amount}{shop}{}{ x}{");
    let mail = load().unwrap().render(NoticeKind::WindowLapsed, &values());
    assert_eq!(mail.subject, "Zu spät: <O>");
    assert_eq!(mail.html, "<style>p{color:red}</style>{<p>&#60;O&#62; 150.00 USDPalm{}{ x}{");
    assert!(mail.text.starts_with("Hello,"), "what is not replaced stays");

    for (name, text, told) in [
        (
            "window-lapsed.txt",
            "one\ntwo {order_id}\n{ordr_id}",
            "window-lapsed.txt, line 3: nothing is filled in for {ordr_id}",
        ),
        ("window-lapsed.txt", "{order_id} {a}", "line 1"),
        ("window-lapsed.subject.txt", "one\ntwo", "line 2"),
        ("window-lapsed.subject.txt", " \n", "subject"),
        ("window_lapsed.html", "", "no mail has this name"),
    ] {
        write("window-lapsed.subject.txt", "fine");
        write("window-lapsed.txt", "fine");
        write(name, text);
        let error = load().unwrap_err();
        assert!(error.contains(told), "{error}");
    }
    fs::remove_file(folder.path().join("window_lapsed.html")).unwrap();
    write("README.md", "{whatever}");
    write("window-lapsed.subject.txt", "fine");
    fs::write(folder.path().join("window-lapsed.txt"), b"\xff").unwrap();
    assert!(load().unwrap_err().contains("UTF-8"));
    assert!(Templates::load(Some(&folder.path().join("none"))).is_err());
}
