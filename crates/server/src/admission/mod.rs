//! Who gets to ask, and how fast: sales, their limits, their waiting rooms. Stock is what prevents overselling; nothing
//! here ever is.

mod binding;
mod caller;
mod client;
mod cookie;
mod forward;
mod gate;
mod journal;
mod keeper;
mod keyring;
mod limits;
mod metrics;
mod pace;
pub(crate) mod page;
mod queue;
mod registry;
mod rooms;
mod sale;
mod shared;
mod stream;
mod turns;

pub(crate) use caller::{Caller, Peer};
pub use client::TrustedProxies;
pub(crate) use cookie::{cookie_of, set_cookie};
pub(crate) use forward::{forward, told_caller};
pub(crate) use gate::{Admitted, Asked, admit, admit_more, settle};
pub(crate) use metrics::AdmissionMetrics;
pub(crate) use queue::{Claimed, Place, Queue, room_word, state_word, stock_word};
pub(crate) use registry::Sales;
pub(crate) use sale::{Kept, Record, RoomBody, Sale, SaleBody, SaleView, check_name};
pub(crate) use stream::watch_place;
pub(crate) use turns::{keeper, turner, watcher};

use crate::app::App;
use crate::config::{Config, Role};
use crate::payments::Secret;
use crate::problem::Problem;
use gate::Glances;
use holdfast_admission::bucket::{Decision, Limiter, Limits, Rate};
use holdfast_admission::enqueue;
use holdfast_admission::keys::KeyRing;
use holdfast_engine::buckets::SharedBuckets;
use holdfast_engine::{Engine, EngineError, OpenError};
use keeper::Keeper;
use keyring::Ring;
use limits::{Limiters, is_limited, micros};
use pace::Pace;
use parking_lot::Mutex;
use registry::Registry;
use rooms::Rooms;
use shared::Budget;
use std::sync::Arc;
use stream::Streams;

const MAX_IDENTITY_BYTES: usize = 255;
/// Places that one client may take without a name: a family behind one address, and no more.
const JOINS: (u32, u32) = (2, 20);

/// Everything between a request and the engine.
pub(crate) struct Admission {
    engine: Arc<dyn Engine>,
    registry: Registry,
    glances: Glances,
    limiters: Limiters,
    budget: Option<Budget>,
    joins: Mutex<Limiter>,
    ring: Ring,
    rooms: Rooms,
    keeper: Keeper,
    streams: Streams,
    pace: Pace,
    enqueue_secrets: Vec<Secret>,
}

impl Admission {
    pub(crate) fn new(engine: Arc<dyn Engine>, config: &Config) -> Result<Self, OpenError> {
        let joins = Limits { per_client: Rate::per_second(JOINS.0, JOINS.1), ..Limits::default() };
        let buckets = config.coordination.as_ref().map(|url| SharedBuckets::open(&url.0)).transpose()?;
        Ok(Self {
            budget: buckets.map(|buckets| Budget { buckets, nodes: config.nodes }),
            registry: Registry::new(engine.clone()),
            glances: Glances::default(),
            limiters: Limiters::default(),
            joins: Mutex::new(Limiter::new(joins, micros())),
            ring: Ring::new(engine.clone()),
            rooms: Rooms::new(engine.clone(), config.rooms_dir.clone()),
            keeper: Keeper::new(engine.clone(), config.rooms_dir.is_some()),
            streams: Streams::default(),
            pace: Pace::default(),
            enqueue_secrets: config.enqueue_secrets.clone(),
            engine,
        })
    }

    /// The sales, as this node knows them: other nodes' changes are a quarter of a second late.
    pub(crate) fn sales(&self) -> Result<Arc<Sales>, Problem> {
        self.registry.sales()
    }

    /// Changes one sale; see [`Registry::change`].
    pub(crate) async fn change(
        &self,
        name: &str,
        decide: impl Fn(&Sales, u64) -> Result<Option<Sale>, Problem>,
    ) -> Result<Arc<Sales>, Problem> {
        self.registry.change(name, decide, &|sales| self.follow(sales)).await
    }

    fn follow(&self, sales: &Sales) {
        self.limiters.follow(sales, |limits| self.budget.as_ref().map_or(limits, |budget| budget.share(limits)));
        self.glances.keep(|sku| sales.has(sku));
        self.rooms.follow(sales, self.engine.time());
    }

    /// Reads what other nodes changed.
    pub(crate) async fn refresh(&self) -> Result<(), EngineError> {
        self.ring.refresh().await?;
        self.registry.refresh(&|sales| self.follow(sales)).await
    }

    /// The keys of tickets and passes.
    pub(crate) fn keys(&self) -> Result<Arc<KeyRing>, Problem> {
        self.ring.keys()
    }

    pub(crate) async fn rotate_keys(&self) -> Result<(), Problem> {
        self.ring.rotate().await
    }

    /// A token from every bucket that a request has to pass.
    async fn take(&self, app: &App, sale: &Sale, asked: &Asked<'_>) -> Result<(), Problem> {
        match &self.budget {
            Some(budget) if is_limited(sale.limits) => {
                budget.ask(&self.limiters, &app.metrics.admission, sale, asked).await
            }
            _ => self.limiters.ask(sale, asked),
        }
    }

    /// What was taken for a cart that another sale has refused. A budget that nodes share keeps it.
    fn give_back(&self, sale: &Sale, asked: &Asked<'_>) {
        if self.budget.is_none() {
            self.limiters.give_back(sale, asked);
        }
    }

    /// Who wants to join, if somebody answers for it: a caller with a key, or the shop's signature.
    pub(crate) fn who(
        &self,
        queue: &Queue<'_>,
        caller: &Caller,
        identity: Option<&str>,
        token: Option<&str>,
    ) -> Result<Option<String>, Problem> {
        if let Some(token) = token {
            let secrets: Vec<&str> = self.enqueue_secrets.iter().map(|secret| secret.0.as_str()).collect();
            let now = u64::try_from(self.engine.time().millis() / 1000).unwrap_or(0);
            let read = enqueue::read(token, &secrets, &queue.sale.name, now);
            return read
                .map(|read| Some(read.identity))
                .map_err(|e| Problem::new("enqueue_token_invalid", e.to_string()));
        }
        let Some(identity) = identity else { return Ok(None) };
        if caller.role.is_none_or(|role| role < Role::Checkout) {
            let detail = "only a caller with a key of role checkout says who joins; a shopper needs an enqueue_token";
            return Err(Problem::new("unauthenticated", detail));
        }
        if !(1..=MAX_IDENTITY_BYTES).contains(&identity.len()) {
            let what = format!("must be 1 to {MAX_IDENTITY_BYTES} bytes");
            return Err(Problem::invalid(&[("/identity".to_owned(), what)]));
        }
        Ok(Some(identity.to_owned()))
    }

    /// Whether a shopper whom nobody answers for may have another place.
    fn may_join(&self, caller: &Caller) -> Result<(), Problem> {
        if caller.role.is_some_and(|role| role >= Role::Checkout) {
            return Ok(());
        }
        match self.joins.lock().ask(&[], caller.client(None), micros()) {
            Decision::Refused { retry_after_us, .. } => {
                let problem = Problem::new("rate_limited", "too many places were taken from this address");
                Err(problem.retry_after_ms(retry_after_us.div_ceil(1000)))
            }
            Decision::Admitted | Decision::Paused => Ok(()),
        }
    }

    /// Where other nodes find this one.
    pub(crate) fn is_at(&self, url: Option<String>) {
        self.keeper.is_at(url);
    }

    /// How long a hold took.
    pub(crate) fn took(&self, time: std::time::Duration) {
        self.pace.took(time);
    }
}
