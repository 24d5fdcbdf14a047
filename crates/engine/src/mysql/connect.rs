//! The pool: how connections are made, secured and set up.

use crate::sql::{OpenError, SqlConfig};
use mysql_async::{Opts, OptsBuilder, Pool, PoolConstraints, PoolOpts, SslOpts};

/// Statements kept prepared on each connection: each kind, in a few sizes.
const STATEMENTS: usize = 300;

pub(super) fn pool(config: &SqlConfig) -> Result<Pool, OpenError> {
    let opts = Opts::from_url(&config.url).map_err(|e| {
        OpenError(format!("the database URL is not understood: {e}; the form is mysql://user:password@host/database"))
    })?;
    if opts.db_name().is_none_or(str::is_empty) {
        return Err(OpenError(
            "the database URL names no database; the form is mysql://user:password@host/database".into(),
        ));
    }
    let is_told = config.url.contains("require_ssl=");
    let wants_tls = if is_told { opts.ssl_opts().is_some() } else { !is_local(&opts) };
    let tls = wants_tls.then(|| {
        let tls = opts.ssl_opts().cloned().unwrap_or_else(SslOpts::default);
        match &config.ca {
            Some(file) => tls.with_root_certs(vec![file.clone().into()]),
            None => tls,
        }
    });
    // The driver would say nothing of a file that holds no certificate.
    crate::tls::client(config.ca.as_deref())?;
    let constraints = PoolConstraints::new(0, config.pool).unwrap_or_default();
    // Resetting a connection would forget its statements; a transaction that has not ended well is never pooled.
    let pool = PoolOpts::default().with_constraints(constraints).with_reset_connection(false);
    let opts = OptsBuilder::from_opts(opts)
        .ssl_opts(tls)
        .pool_opts(pool)
        .prefer_socket(false)
        .stmt_cache_size(STATEMENTS)
        .client_found_rows(true)
        .tcp_nodelay(true)
        .init(setup(config));
    // rustls needs to be told which cryptography to use where more than one is built in; a second telling is an error
    // that changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Pool::new(opts))
}

/// What a connection is told once.
fn setup(config: &SqlConfig) -> Vec<String> {
    let seconds = config.timeout.as_secs().max(1);
    vec![
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE".into(),
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'".into(),
        format!("SET SESSION innodb_lock_wait_timeout = {seconds}, time_zone = '+00:00', autocommit = 1"),
        "SET NAMES utf8mb4".into(),
    ]
}

/// Whether nothing between us and the database can listen.
fn is_local(opts: &Opts) -> bool {
    let host = opts.ip_or_hostname();
    opts.socket().is_some()
        || host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
