//! TLS to sinks: rustls with the one provider that the engine uses too, the public certificates, and the operator's.

use super::config::SinkConfig;
use crate::config::ConfigError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// How to connect: certificates are always verified.
pub(super) fn client(sink: &SinkConfig) -> Result<ClientConfig, ConfigError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = &sink.ca {
        let bad = |why: &dyn std::fmt::Display| {
            sink.bad(&format!("cannot use the certificates in {}: {why}; the file must be PEM", file.display()))
        };
        let found: Vec<_> = CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|e| bad(&e))?;
        if found.is_empty() {
            return Err(bad(&"there is none"));
        }
        for certificate in found {
            roots.add(certificate).map_err(|e| bad(&e))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|e| sink.bad(&format!("TLS cannot be set up: {e}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
