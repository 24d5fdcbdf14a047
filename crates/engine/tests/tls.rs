//! TLS to databases: certificates are verified, those that the operator names are trusted, and nothing falls back.

#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_engine::domain::{Command, SetStock, Sku, Total};
use holdfast_engine::{Database, Now, SqlConfig};
use holdfast_services::{MariaDb, Postgres};
use std::path::PathBuf;

/// A certificate for the loopback address, its key, and the file that an operator would name.
struct Identity {
    certificate: String,
    key: String,
    ca: PathBuf,
    _folder: tempfile::TempDir,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, &certificate).unwrap();
        Self { certificate, key, ca, _folder: folder }
    }

    fn files(&self) -> [(&str, &str); 2] {
        [("server.crt", &self.certificate), ("server.key", &self.key)]
    }
}

fn is_here(here: bool, name: &str) -> bool {
    assert!(here || std::env::var_os("CI").is_none(), "{name} is missing");
    if !here {
        eprintln!("SKIPPED: {name} is missing");
    }
    here
}

async fn works(url: &str, ca: Option<&PathBuf>) -> Result<(), String> {
    let config = SqlConfig { ca: ca.cloned(), ..SqlConfig::new(url) };
    let engine = Database::of(url).unwrap().open(&config).await.map_err(|e| e.to_string())?;
    let sku = Sku::new("A").unwrap();
    let set = SetStock { sku: sku.clone(), total: Total::new(5).unwrap(), limit_per_customer: None, if_version: None };
    engine.apply(vec![Command::SetStock(set)], Now::Clock).await.unwrap().remove(0).unwrap();
    assert_eq!(engine.stock(&sku).await.unwrap().unwrap().available, 5);
    Ok(())
}

#[tokio::test]
async fn a_database_behind_tls_is_verified() {
    let identity = Identity::new();
    let mut urls = Vec::new();
    let postgres = is_here(Postgres::is_here(), "PostgreSQL").then(|| {
        let options = ["ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"];
        Postgres::start_with(&options, &identity.files()).unwrap()
    });
    if let Some(postgres) = &postgres {
        // Whoever comes without TLS is turned away from now on.
        postgres.sql("COPY (SELECT 'hostssl all all 127.0.0.1/32 trust') TO PROGRAM 'cat > pg_hba.conf'").unwrap();
        postgres.sql("SELECT pg_reload_conf()").unwrap();
        urls.push((postgres.url(), "sslmode"));
    }
    let mariadb = is_here(MariaDb::is_here(), "MariaDB").then(|| {
        let options = ["--ssl-cert=server.crt", "--ssl-key=server.key", "--require-secure-transport=ON"];
        MariaDb::start_with(&options, &identity.files()).unwrap()
    });
    if let Some(mariadb) = &mariadb {
        urls.push((mariadb.url(), "require_ssl"));
    }
    for (url, parameter) in urls {
        let (on, off) = if parameter == "sslmode" { ("require", "disable") } else { ("true", "false") };
        works(&format!("{url}?{parameter}={on}"), Some(&identity.ca)).await.unwrap();
        let unknown = works(&format!("{url}?{parameter}={on}"), None).await.unwrap_err();
        assert!(unknown.to_lowercase().contains("certificate"), "{unknown}");
        let other = Identity::new();
        works(&format!("{url}?{parameter}={on}"), Some(&other.ca)).await.unwrap_err();
        works(&format!("{url}?{parameter}={off}"), Some(&identity.ca)).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_host_elsewhere_is_asked_for_tls() {
    // Nothing answers with TLS on a port of ours that just accepts: the engine must not go on without.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let said = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut said = [0; 8];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut said).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"N").await.unwrap();
        said
    });
    // A name that is not known to be this machine, though it leads here.
    let url = format!("postgres://u:secret@127.0.0.1.nip:{port}/d?hostaddr=127.0.0.1");
    let error = works(&url, None).await.unwrap_err();
    assert!(error.contains("TLS") && !error.contains("secret"), "{error}");
    // PostgreSQL's request for TLS, before anything else.
    assert_eq!(said.await.unwrap(), [0, 0, 0, 8, 4, 210, 22, 47]);
}

#[tokio::test]
async fn a_file_of_no_certificates_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate here").unwrap();
    for url in ["postgres://u@127.0.0.1:1/d", "mysql://u@127.0.0.1:1/d?require_ssl=true"] {
        let error = works(url, Some(&empty)).await.unwrap_err();
        assert!(error.contains("empty.pem"), "{error}");
    }
}
