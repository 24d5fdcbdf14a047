//! `holdfast serve`: flags, variables and the file become one configuration; then the service runs until told to stop.

use crate::Failure;
use crate::admission_args::AdmissionArgs;
use crate::engine::EngineArgs;
use crate::payment_args::PaymentArgs;
use clap::{Parser, ValueEnum};
use holdfast_server::{ApiKey, Config, FileConfig, LockNodes};
use std::io::IsTerminal;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(after_help = "Examples:
  holdfast serve
  holdfast serve --listen 127.0.0.1:9000 --data-dir /var/lib/holdfast
  HOLDFAST_ENGINE=postgres://shop:…@db.internal/shop holdfast serve
  HOLDFAST_ENGINE=redis://shop:…@redis.internal:6379 HOLDFAST_LEDGER=postgres://shop:…@db.internal/shop holdfast serve
  HOLDFAST_API_KEYS=shop:checkout:…,ops:admin:… holdfast serve --listen 0.0.0.0:8080

Every flag has a variable; a flag wins over its variable, a variable over the file, the file over the default.")]
pub(crate) struct Args {
    /// The address to serve on [default: 127.0.0.1:8080].
    #[arg(long, env = "HOLDFAST_LISTEN", value_name = "HOST:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    engine: EngineArgs,
    /// A configuration file in TOML.
    #[arg(long, env = "HOLDFAST_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Who may call: name:role:key,… with role read, checkout or admin.
    #[arg(long, env = "HOLDFAST_API_KEYS", value_name = "KEYS", hide_env_values = true)]
    api_keys: Option<String>,
    /// Seconds a hold lives when its request does not say [default: 600].
    #[arg(long, env = "HOLDFAST_DEFAULT_HOLD_TTL", value_name = "SECONDS")]
    default_hold_ttl: Option<u32>,
    /// The most seconds a hold may ask for [default: 3600].
    #[arg(long, env = "HOLDFAST_MAX_HOLD_TTL", value_name = "SECONDS")]
    max_hold_ttl: Option<u32>,
    /// No hold lives longer than this after it was made, extensions included [default: 7200].
    #[arg(long, env = "HOLDFAST_MAX_HOLD_LIFETIME", value_name = "SECONDS")]
    max_hold_lifetime: Option<u32>,
    /// Seconds between two audits; 0 for none [default: 300].
    #[arg(long, env = "HOLDFAST_AUDIT_INTERVAL", value_name = "SECONDS")]
    audit_interval: Option<u32>,
    #[command(flatten)]
    admission: AdmissionArgs,
    #[command(flatten)]
    payments: PaymentArgs,
    /// What to log: a level, or directives like info,holdfast_server=debug (debug logs every request).
    #[arg(long, env = "HOLDFAST_LOG", value_name = "FILTER", default_value = "info")]
    log: String,
    /// How to log [default: text on a terminal, else json].
    #[arg(long, env = "HOLDFAST_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    start_log(args)?;
    let file = read_file(args.config.as_deref())?;
    let mut config = decide(args, &file)?;
    let engine = args.engine.choose(&file, config.policy.clone())?;
    config.lock_nodes = LockNodes { urls: args.engine.lock_nodes(&file), scope: engine.scope() };
    config.rooms_dir = engine.rooms_dir();
    config.lanes.workers = file.lane_workers.unwrap_or_else(|| engine.workers());
    config.check()?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // The address is taken before the folder is opened: a mistake in either is told before any waiting.
        let listener = listen(config.listen)
            .map_err(|e| format!("cannot listen on {}: {e}; choose another address with --listen", config.listen))?;
        let engine = engine.open().await?;
        // Whoever reads that the service is ready may stop it in the same moment.
        let stop = stop_signal()?;
        announce(listener.local_addr()?, config.api_keys.is_empty());
        holdfast_server::serve(config, engine, listener, stop).await?;
        tracing::info!("stopped");
        Ok(())
    })
}

/// Connections that arrive together wait here; one that finds no room tries again a whole second later. The system
/// lowers the number to what it allows.
const BACKLOG: u32 = 65_535;

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The configuration file, if one is named.
pub(crate) fn read_file(path: Option<&Path>) -> Result<FileConfig, Failure> {
    let Some(path) = path else { return Ok(FileConfig::default()) };
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {name}: {e}"))?;
    FileConfig::parse(&text).map_err(|e| format!("{name}: {e}").into())
}

fn decide(args: &Args, file: &FileConfig) -> Result<Config, Failure> {
    let mut config = Config::default();
    if let Some(listen) = args.listen.as_ref().or(file.listen.as_ref()) {
        config.listen = resolve(listen)?;
    }
    config.api_keys = file.keys()?;
    if let Some(keys) = &args.api_keys {
        config.api_keys.extend(ApiKey::parse_list(keys)?);
    }
    let engine = args.engine.engine.as_deref().or(file.engine.as_deref());
    args.admission.choose(file, engine, &mut config)?;
    config.payments = args.payments.choose(file);
    config.mail = args.payments.mail(file);
    config.sinks.clone_from(&file.sinks);
    config.sinks.extend(holdfast_server::outbox::from_variables(|name| std::env::var(name).ok())?);
    let pick = |flag: Option<u32>, file: Option<u32>, default: u32| flag.or(file).unwrap_or(default);
    config.default_hold_ttl = pick(args.default_hold_ttl, file.default_hold_ttl, config.default_hold_ttl);
    config.max_hold_ttl = pick(args.max_hold_ttl, file.max_hold_ttl, config.max_hold_ttl);
    config.audit_interval = pick(args.audit_interval, file.audit_interval, config.audit_interval);
    let policy = &mut config.policy;
    policy.max_hold_lifetime = pick(args.max_hold_lifetime, file.max_hold_lifetime, policy.max_hold_lifetime);
    policy.unmatched_grace = file.unmatched_grace.unwrap_or(policy.unmatched_grace);
    policy.reverse_unmatched = file.reverse_unmatched.unwrap_or(policy.reverse_unmatched);
    policy.release_on_canceled = file.release_on_canceled.unwrap_or(policy.release_on_canceled);
    policy.restock_on_refund = file.restock_on_refund.unwrap_or(policy.restock_on_refund);
    config.lanes.depth = file.lane_depth.unwrap_or(config.lanes.depth);
    config.lanes.max_batch = file.max_batch.unwrap_or(config.lanes.max_batch);
    config.max_connections = file.max_connections.unwrap_or(config.max_connections);
    config.bench = std::env::var_os("HOLDFAST_BENCH").is_some_and(|v| v == "1");
    Ok(config)
}

fn resolve(listen: &str) -> Result<SocketAddr, Failure> {
    let bad = |why: String| Failure::Told(format!("cannot listen on {listen:?}: {why}; the form is HOST:PORT"));
    let mut found = listen.to_socket_addrs().map_err(|e| bad(e.to_string()))?;
    found.next().ok_or_else(|| bad("no such host".into()))
}

fn start_log(args: &Args) -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_new(&args.log)
        .map_err(|e| format!("--log {:?}: {e}; try --log info or --log holdfast_server=debug", args.log))?;
    let is_terminal = std::io::stderr().is_terminal();
    let format = args.log_format.unwrap_or(if is_terminal { LogFormat::Text } else { LogFormat::Json });
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    match format {
        LogFormat::Text => log.with_target(false).with_ansi(is_terminal).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

/// The one line that tells that the service is ready, and where; below it, on a terminal, something to try.
fn announce(address: SocketAddr, is_open: bool) {
    if is_open {
        tracing::warn!("no API keys are configured: anybody on this machine may do everything");
    }
    println!("listening on http://{address}");
    if std::io::stdout().is_terminal() {
        println!(
            "
Try it from another terminal:

  curl -X PUT http://{address}/v1/stock/PALM-PRO-BLK -H 'content-type: application/json' -d '{{\"total\":350}}'
  curl http://{address}/v1/holds -H 'content-type: application/json' \\
       -d '{{\"order_id\":\"ORDER-1\",\"items\":[{{\"sku\":\"PALM-PRO-BLK\",\"quantity\":1}}]}}'

All calls: http://{address}/docs   Stop: Ctrl-C
"
        );
    }
}

/// Listens for the signals that stop the service, from now on; what it returns resolves at the first one.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    })
}

/// Thousands of idle connections need thousands of files: use what the system allows.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the number of open files could not be raised");
    }
}
