//! TLS: certificates are verified, and the operator's are trusted. A proxy speaks it for the receiver and the broker.

use super::desk::TestDesk;
use super::rabbitmq;
use super::receiver::Receiver;
use super::shop::{all_ids, drain, relay, settle, trade};
use holdfast_server::outbox::{Pass, SinkConfig, admin};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Speaks TLS with a certificate of its own, and passes on what it hears.
struct Proxy {
    port: u16,
    ca: PathBuf,
    _folder: TempDir,
}

impl Proxy {
    async fn start(to: String) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let folder = TempDir::new().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, made.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, to) = (acceptor.clone(), to.clone());
                tokio::spawn(async move {
                    // A client that does not trust us hangs up.
                    let Ok(mut secret) = acceptor.accept(stream).await else { return };
                    let mut plain = TcpStream::connect(to).await.unwrap();
                    let _ = copy_bidirectional(&mut secret, &mut plain).await;
                });
            }
        });
        Self { port, ca, _folder: folder }
    }
}

/// Not trusted: nothing is sent. Trusted: everything is.
async fn is_verified(mut config: SinkConfig, proxy: &Proxy) -> Arc<TestDesk> {
    let desk = TestDesk::new();
    trade(&desk, "o", 2).await;
    assert!(matches!(settle(&mut relay(&desk, &config)).await, Pass::Wait(_)));
    let state = admin::state(&*desk, &config.name).await.unwrap().unwrap();
    let error = state.last_error.unwrap();
    assert!(error.to_lowercase().contains("certificate"), "{error}");
    assert_eq!(state.cursor, 0);
    config.ca = Some(proxy.ca.clone());
    admin::enable(&*desk, &config.name).await.unwrap();
    desk.pass(std::time::Duration::from_secs(31));
    drain(&desk, &mut relay(&desk, &config)).await;
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_behind_tls_is_verified() {
    let receiver = Receiver::start().await;
    let place = receiver.url.trim_start_matches("http://").trim_end_matches("/in").to_owned();
    let proxy = Proxy::start(place).await;
    let mut config = receiver.config("crm");
    config.url = format!("https://localhost:{}/in", proxy.port);
    let desk = is_verified(config, &proxy).await;
    assert_eq!(receiver.ids(), all_ids(&desk).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn rabbitmq_behind_tls_is_verified() {
    let Some(place) = rabbitmq::Place::shared().await else { return };
    let mut config = place.config();
    let proxy = Proxy::start(config.url.rsplit('@').next().unwrap().to_owned()).await;
    config.url = format!("amqps://guest:guest@localhost:{}", proxy.port);
    let desk = is_verified(config, &proxy).await;
    assert_eq!(place.read().await.len(), all_ids(&desk).await.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_certificates_is_refused() {
    let receiver = Receiver::start().await;
    let folder = TempDir::new().unwrap();
    let mut config = receiver.config("crm");
    for (name, text) in [("none.pem", None), ("empty.pem", Some("")), ("odd.pem", Some("certificate"))] {
        let file = folder.path().join(name);
        text.iter().for_each(|text| std::fs::write(&file, text).unwrap());
        config.ca = Some(file);
        let error = config.check().unwrap_err().0;
        assert!(error.contains(name) && error.contains("PEM"), "{error}");
    }
}
