//! What a sale says to a hold before the engine is asked. A request that only repeats what was granted goes through
//! always: the engine knows it and moves nothing.

use super::binding::Shown;
use super::caller::Caller;
use super::keeper::Kept;
use super::registry::Sales;
use super::sale::{Phase, Sale};
use crate::app::App;
use crate::problem::Problem;
use crate::view::Moment;
use holdfast_admission::pass::{self, PassError};
use holdfast_admission::room::{TicketId, TicketState};
use holdfast_admission::ticket::Ticket;
use holdfast_domain::{CustomerId, Hold, HoldStatus, Lines, Money, OrderId, Refusal, Short, Sku, Stock, Time, Ttl};
use holdfast_engine::clock::monotonic;
use holdfast_engine::{EngineError, HoldFilter};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How old a look at the counters may be where a fresh one would not change the answer.
const GLANCE: Duration = Duration::from_millis(100);

/// A request for units.
pub(crate) struct Asked<'a> {
    pub(crate) order: &'a OrderId,
    pub(crate) lines: &'a Lines,
    pub(crate) customer: Option<&'a CustomerId>,
    pub(crate) caller: &'a Caller,
    pub(crate) pass: Option<&'a str>,
}

/// What a request may do.
#[derive(Debug, Default)]
pub(crate) struct Grant {
    /// How long its hold lives, if it does not say.
    pub(crate) ttl: Option<Ttl>,
    /// The pass that lets it through, and the ticket that it is for.
    used: Option<(Shown, TicketId)>,
}

/// Recent looks at the counters of SKUs in sales.
#[derive(Default)]
pub(crate) struct Glances(Mutex<HashMap<Sku, (Instant, Option<Stock>)>>);

impl Glances {
    /// The counters of a SKU, no older than this.
    async fn stock(&self, app: &App, sku: &Sku, age: Duration) -> Result<Option<Stock>, EngineError> {
        let known = self.0.lock().get(sku).filter(|(at, _)| at.elapsed() <= age).map(|(_, stock)| stock.clone());
        if let Some(stock) = known {
            return Ok(stock);
        }
        let stock = app.engine.stock(sku).await?;
        self.0.lock().insert(sku.clone(), (monotonic(), stock.clone()));
        Ok(stock)
    }

    /// Forgets SKUs that are in no sale any more.
    pub(crate) fn keep(&self, is_wanted: impl Fn(&Sku) -> bool) {
        self.0.lock().retain(|sku, _| is_wanted(sku));
    }

    /// What is short of a cart, as the engine would say it. Only SKUs of sales are looked at: others are anybody's words,
    /// and nothing is kept of them.
    async fn short(
        &self,
        app: &App,
        sales: &Sales,
        lines: &Lines,
        age: Duration,
    ) -> Result<Option<Refusal>, EngineError> {
        let (mut items, mut may_return) = (Vec::new(), false);
        for line in lines.iter().filter(|line| sales.has(&line.sku)) {
            let requested = line.quantity.get();
            if let Some(stock) = self.stock(app, &line.sku, age).await?.filter(|stock| stock.available < requested) {
                may_return |= stock.held > 0;
                items.push(Short { sku: line.sku.clone(), requested, available: stock.available });
            }
        }
        Ok((!items.is_empty()).then_some(Refusal::SoldOut { items, may_return }))
    }

    /// The same, and true at this moment: nobody is turned away by what was.
    async fn short_now(&self, app: &App, sales: &Sales, lines: &Lines) -> Result<Option<Refusal>, EngineError> {
        // Where the counters are in this process, looking costs nothing.
        let age = if app.engine.is_blocking() { Duration::ZERO } else { GLANCE };
        match self.short(app, sales, lines, age).await? {
            Some(_) if age > Duration::ZERO => self.short(app, sales, lines, Duration::ZERO).await,
            looked => Ok(looked),
        }
    }
}

/// What becomes of a request for a hold before the engine is asked.
pub(crate) enum Admitted {
    /// It may be asked.
    Go(Grant),
    /// It need not be: the order has this hold, and the request is that one again.
    Held(Box<Hold>),
}

/// Lets a request for a hold through, or says why not. What an order has already is told from reading alone: nothing can
/// be had that way, whatever happens to its hold in the same moment.
pub(crate) async fn admit(app: &App, asked: &Asked<'_>, money: Money) -> Result<Admitted, Problem> {
    match admit_more(app, asked).await {
        Ok(grant) => Ok(Admitted::Go(grant)),
        Err(problem) => {
            let filter = HoldFilter {
                order_id: Some(asked.order.clone()),
                status: Some(HoldStatus::Held),
                ..HoldFilter::default()
            };
            match app.engine.holds(filter, 1).await?.items.pop() {
                Some(hold) if hold.is_same_cart(asked.lines, asked.customer, money) => {
                    Ok(Admitted::Held(Box::new(hold)))
                }
                Some(_) => Err(Refusal::OrderConflict.into()),
                None if app.engine.order(asked.order).await?.is_some() => Err(Refusal::AlreadyConfirmed.into()),
                None => Err(problem),
            }
        }
    }
}

/// The same for units that come to a hold that there is.
pub(crate) async fn admit_more(app: &App, asked: &Asked<'_>) -> Result<Grant, Problem> {
    let sales = app.admission.sales()?;
    if sales.is_empty() {
        return Ok(Grant::default());
    }
    let now = app.engine.time();
    let concerned = asked.lines.iter().filter_map(|line| sales.of(&line.sku, now));
    let concerned: BTreeMap<&str, &Arc<Sale>> = concerned.map(|sale| (sale.name.as_str(), sale)).collect();
    if concerned.is_empty() {
        return Ok(Grant::default());
    }
    decide(app, asked, &sales, &concerned, now).await
}

async fn decide(
    app: &App,
    asked: &Asked<'_>,
    all: &Sales,
    sales: &BTreeMap<&str, &Arc<Sale>>,
    now: Time,
) -> Result<Grant, Problem> {
    for sale in sales.values() {
        is_open(sale, now)?;
    }
    let ttl = sales.values().filter_map(|sale| sale.hold_ttl).min();
    // Whoever comes for what is gone is told so first: nobody waits for it, and no token is spent on it.
    let glances = &app.admission.glances;
    if let Some(sold_out) = glances.short_now(app, all, asked.lines).await? {
        return Err(sold_out.into());
    }
    let mut shown = None;
    for sale in sales.values().filter(|sale| sale.room.is_some()) {
        shown = Some(pass_for(app, sale, asked).await.map_err(|problem| with_way_in(problem, sale))?);
    }
    let mut taken: Vec<&Arc<Sale>> = Vec::new();
    for sale in sales.values() {
        if let Err(problem) = app.admission.take(app, sale, asked).await {
            // A cart over several sales takes from all of them or from none.
            taken.iter().for_each(|sale| app.admission.give_back(sale, asked));
            return match glances.short(app, all, asked.lines, Duration::ZERO).await? {
                Some(sold_out) => Err(sold_out.into()),
                None => Err(problem.with("sale", &sale.name)),
            };
        }
        taken.push(sale);
    }
    if let Some((shown, _)) = &shown {
        shown.bind(&*app.engine, asked.order).await?;
    }
    Ok(Grant { ttl, used: shown })
}

/// The pass for a sale with a room, if it is good and no other order's.
async fn pass_for(app: &App, sale: &Sale, asked: &Asked<'_>) -> Result<(Shown, TicketId), Problem> {
    let text = asked.pass.ok_or_else(|| Problem::new("pass_missing", "wait for a turn first; then send its pass"))?;
    let keys = app.admission.keys()?;
    let now = app.engine.time();
    let seconds = u64::try_from(now.millis() / 1000).unwrap_or(0);
    let claims = pass::verify(&keys, text, &sale.name, seconds).map_err(|error| {
        let code = match error {
            PassError::Invalid => "pass_invalid",
            PassError::Expired => "pass_expired",
            PassError::Scope => "pass_scope",
        };
        Problem::new(code, error.to_string())
    })?;
    let ticket = Ticket::read(&claims.sub, &keys, &sale.name);
    let ticket = ticket.map_err(|error| Problem::new("pass_invalid", error.to_string()))?;
    if is_older(&ticket, sale) {
        return Err(Problem::new("pass_invalid", "the pass is for an earlier sale of this name"));
    }
    let ticket = ticket.id();
    let expires_at = Time::from_millis(i64::try_from(claims.exp).unwrap_or(0).saturating_mul(1000));
    let shown = Shown { sale: sale.name.clone(), ticket: claims.sub, expires_at };
    shown.check(&*app.engine, asked.order).await?;
    // A room that this node does not keep knows nothing.
    let is_kept = matches!(app.admission.keeper.kept(), Kept::Here);
    let live = app.admission.rooms.get(&sale.name).filter(|_| is_kept);
    match live.and_then(|live| live.change(|state| state.room.peek(ticket, now))).map(|view| view.state) {
        Some(TicketState::Done) => Err(Problem::new("pass_used", "the pass has served its order; join again")),
        Some(TicketState::Left | TicketState::Expired) => {
            Err(Problem::new("pass_expired", "the place was given up; join again"))
        }
        // A room that has lost its memory takes the word of a pass that it signed.
        _ => Ok((shown, ticket)),
    }
}

/// Where a pass is to be had.
fn with_way_in(problem: Problem, sale: &Sale) -> Problem {
    let problem = problem.with("sale", &sale.name).with("waiting_room_url", &format!("/wait/{}", sale.name));
    problem.header("www-authenticate", &format!("WaitingRoom sale=\"{}\"", sale.name))
}

/// Whether a ticket is of a sale that was removed, and made again under the same name.
pub(super) fn is_older(ticket: &Ticket, sale: &Sale) -> bool {
    let joined_ms = i64::try_from(ticket.joined_at_us() / 1000).unwrap_or(i64::MAX);
    joined_ms < sale.kept.created_at.millis()
}

/// A request that was let through with a pass has a hold now.
pub(crate) fn settle(app: &App, grant: &Grant, order: &OrderId) {
    if let Some((shown, ticket)) = &grant.used
        && let Some(live) = app.admission.rooms.get(&shown.sale)
    {
        live.holds(*ticket, order, shown);
    }
}

fn is_open(sale: &Sale, now: Time) -> Result<(), Problem> {
    let problem = match sale.phase(now) {
        Phase::Open => return Ok(()),
        Phase::Scheduled => {
            let problem = Problem::new("sale_not_started", "the sale has not started; come back at starts_at");
            match sale.starts_at {
                Some(start) => problem.with("starts_at", &Moment(start)),
                None => problem,
            }
        }
        Phase::Paused => Problem::new("sale_paused", "the shop has paused the sale; holds that there are stay"),
        Phase::Ended => Problem::new("sale_ended", "the sale is over"),
    };
    Err(problem.with("sale", &sale.name))
}
