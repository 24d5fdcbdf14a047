//! The pool: how connections are made, secured and set up.

use crate::sql::{OpenError, SqlConfig};
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A transaction that waits for its client longer than this is undone by the server.
const IDLE: Duration = Duration::from_secs(30);

pub(super) fn pool(config: &SqlConfig) -> Result<Pool, OpenError> {
    let mut database: tokio_postgres::Config = config.url.parse().map_err(|e: tokio_postgres::Error| {
        let why = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
        OpenError(format!(
            "the database URL is not understood: {why}; the form is postgres://user:password@host/database"
        ))
    })?;
    check_schema(&config.schema)?;
    if !config.url.contains("sslmode=") {
        database.ssl_mode(if is_local(&database) { SslMode::Disable } else { SslMode::Require });
    }
    database.application_name("holdfast").connect_timeout(config.wait).tcp_user_timeout(config.timeout);
    let tls = MakeRustlsConnect::new(crate::tls::client(config.ca.as_deref())?);
    let manager = Manager::from_config(database, tls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    let setup = Arc::new(setup(config));
    let set_up = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
        let setup = setup.clone();
        Box::pin(async move { client.batch_execute(&setup).await.map_err(HookError::Backend) })
    });
    Pool::builder(manager)
        .max_size(config.pool)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(config.wait))
        .create_timeout(Some(config.wait))
        .recycle_timeout(Some(config.wait))
        .post_create(set_up)
        .build()
        .map_err(|e| OpenError(e.to_string()))
}

/// What a connection is told once. An asynchronous commit would be answered before it is durable. Every lookup has an
/// index, but a statement that is prepared while the tables are empty would be planned to read them whole, and go on
/// doing so while they grow. And compiling a statement takes longer than it runs.
fn setup(config: &SqlConfig) -> String {
    format!(
        "SET search_path TO \"{}\"; SET statement_timeout TO {}; SET idle_in_transaction_session_timeout TO {};
         SET lock_timeout TO 0;
         SET enable_seqscan TO off; SET enable_mergejoin TO off; SET jit TO off;
         SET plan_cache_mode TO force_generic_plan;
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        config.schema,
        config.timeout.as_millis(),
        IDLE.as_millis(),
    )
}

fn check_schema(schema: &str) -> Result<(), OpenError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if schema.is_empty() || schema.len() > 63 || !schema.chars().all(is_plain) {
        return Err(OpenError(format!("the schema {schema:?} must be 1 to 63 of a-z, 0-9 and _")));
    }
    Ok(())
}

/// Whether nothing between us and the database can listen.
fn is_local(database: &tokio_postgres::Config) -> bool {
    database.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    })
}
