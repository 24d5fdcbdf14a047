//! TLS to whatever the service talks to: rustls with one provider, the public certificates, and those that the operator
//! trusts besides.

use crate::sql::OpenError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// How to connect: certificates are always verified.
///
/// # Errors
/// The file cannot be read, is not PEM, or holds no certificate.
pub fn client(ca: Option<&Path>) -> Result<ClientConfig, OpenError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = ca {
        let bad = |why: &dyn std::fmt::Display| {
            OpenError(format!("cannot use the certificates in {}: {why}; the file must be PEM", file.display()))
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
    let config = config.map_err(|e| OpenError(format!("TLS cannot be set up: {e}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
