//! Sockets: accepting, the limits on connections and slow clients, and a stop that answers what is in flight.

use crate::admission::{self, Peer};
use crate::app::{App, Shared};
use crate::config::Config;
use crate::duty::Duties;
use crate::{api, chores, payments, relays};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use holdfast_engine::Engine;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// Serves on the listener until `stop` resolves, then answers what is in flight and returns.
///
/// # Errors
/// When no thread can be started for the engine's lane.
pub async fn serve(
    config: Config,
    engine: Arc<dyn Engine>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let drain = config.drain_timeout;
    let duties = Duties::new(&config.lock_nodes.urls, &config.lock_nodes.scope).map_err(io::Error::other)?;
    let permits = Arc::new(Semaphore::new(config.max_connections));
    let app = App::new(config, engine.clone())?;
    let router = api::router(&app);
    let (stopping, stopped) = watch::channel(false);
    let mut loops = vec![
        tokio::spawn(chores::janitor(app.clone(), duties.duty("janitor"), stopped.clone())),
        tokio::spawn(chores::auditor(app.clone(), duties.duty("audit"), stopped.clone())),
        tokio::spawn(chores::watcher(app.clone(), stopped.clone())),
        tokio::spawn(admission::watcher(app.clone(), stopped.clone())),
        tokio::spawn(admission::turner(app.clone(), stopped.clone())),
        tokio::spawn(admission::keeper(app.clone(), stopped.clone())),
    ];
    loops.extend(payments::start(&app, &stopped));
    loops.extend(relays::start(&app, &stopped).map_err(io::Error::other)?);
    let own = listener.local_addr().ok().filter(|address| !address.ip().is_unspecified());
    let own = own.map(|address| format!("http://{address}"));
    app.admission.is_at(app.config.advertise.clone().map(|url| url.trim_end_matches('/').to_owned()).or(own));
    if let Err(error) = app.admission.refresh().await {
        tracing::warn!(%error, "the sales cannot be read; nothing is held until they can");
    }
    let graceful = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        match accepted {
            Ok((stream, peer, permit)) => {
                let connection = connection(&app, router.clone(), stream, peer);
                let watched = graceful.watch(connection);
                let app = app.clone();
                tokio::spawn(async move {
                    app.metrics.connections.inc();
                    // A connection that breaks is the client's business.
                    let _ = watched.await;
                    app.metrics.connections.dec();
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    tracing::info!("stopping: answering what is in flight");
    app.stopping.store(true, Ordering::Relaxed);
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!(seconds = drain.as_secs(), "some connections did not end in time and are cut");
    }
    let _ = stopping.send(true);
    for chore in loops {
        let _ = chore.await;
    }
    match tokio::time::timeout(drain, engine.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "what is left is done at the next start"),
        Err(_) => tracing::warn!(seconds = drain.as_secs(), "what is left is done at the next start"),
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, Peer, tokio::sync::OwnedSemaphorePermit)> {
    let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, Peer(address.ip()), permit))
}

fn connection(
    app: &Shared,
    router: Router,
    stream: TcpStream,
    peer: Peer,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + use<> {
    let app = app.clone();
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(app.config.header_timeout).max_buf_size(64 << 10);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = Request::from(request.map(Body::new));
        request.extensions_mut().insert(peer);
        app.clone().serve(router.clone(), request)
    });
    builder.serve_connection(TokioIo::new(stream), service)
}
