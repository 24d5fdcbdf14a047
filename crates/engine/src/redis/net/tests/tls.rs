//! TLS.

use super::super::{Net, NetConfig, NetError};
use super::starter::Server;
use super::{bump, config};

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("cert"), key.cert.pem()).unwrap();
    std::fs::write(path("key"), key.signing_key.serialize_pem()).unwrap();
    let server = Server::start(&[]);
    // The plain port stays, so that the starter can ask whether it runs.
    let tls = server.port + 10_000;
    for (name, value) in [("tls-cert-file", path("cert")), ("tls-key-file", path("key"))] {
        assert_eq!(server.cli(&format!("CONFIG SET {name} {value}")), "OK");
    }
    assert_eq!(server.cli("CONFIG SET tls-auth-clients no"), "OK");
    assert_eq!(server.cli(&format!("CONFIG SET tls-port {tls}")), "OK");
    let url = format!("rediss://127.0.0.1:{tls}");
    let stranger = Net::connect(config(&url), 1).await.unwrap_err();
    assert!(matches!(&stranger, NetError::Unavailable(why) if why.contains("certificate")), "{stranger}");
    let trusting = NetConfig { ca: Some(path("cert").into()), ..config(&url) };
    let net = Net::connect(trusting, 1).await.unwrap();
    assert_eq!(bump(&net, 0, None).await, Ok(1));
    let plain = Net::connect(config(&url.replace("rediss", "redis")), 1).await.unwrap_err();
    assert!(matches!(plain, NetError::Unavailable(_)), "{plain}");
}
