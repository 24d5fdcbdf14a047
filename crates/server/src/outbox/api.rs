//! The sinks over HTTP: how far they are, what they did not accept, and going on. Never tells a URL or a secret.

use super::config::SinkConfig;
use super::dead::DeadLetter;
use super::desk::Desk;
use super::{admin, state};
use crate::app::json;
use crate::body::{Findings, Path, StrictQuery, json_within, parse};
use crate::problem::Problem;
use crate::view::{ListView, Moment};
use axum::body::Body;
use axum::extract::{FromRef, FromRequest, Request, State};
use axum::http::Response;
use holdfast_domain::Time;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

/// The most items of a page, and the number when none is asked.
const MAX_PAGE: usize = 1000;
const DEFAULT_PAGE: usize = 100;
/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the handlers need: the desk, and which sinks there are.
#[derive(Clone)]
pub struct Outbox {
    desk: Arc<dyn Desk>,
    sinks: Arc<[(String, &'static str)]>,
}

impl Outbox {
    /// For these sinks.
    pub fn new(desk: Arc<dyn Desk>, sinks: &[SinkConfig]) -> Self {
        Self::with(desk, sinks, &[])
    }

    /// For these, and for the service's own.
    pub(crate) fn with(desk: Arc<dyn Desk>, sinks: &[SinkConfig], own: &[&str]) -> Self {
        let theirs = sinks.iter().map(|sink| (sink.name.clone(), sink.kind.as_str()));
        Self { desk, sinks: theirs.chain(own.iter().map(|name| ((*name).to_owned(), "own"))).collect() }
    }

    fn known(&self, name: &str) -> Result<(), Problem> {
        let is_known = self.sinks.iter().any(|(known, _)| known == name);
        if is_known { Ok(()) } else { Err(Problem::new("not_found", "there is no sink of this name")) }
    }
}

/// All routes, for a router whose state has an [`Outbox`]. Reading needs the role `read`, everything else `admin`.
pub fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S>
where
    Outbox: FromRef<S>,
{
    OpenApiRouter::new()
        .routes(routes!(list_sinks))
        .routes(routes!(list_dead))
        .routes(routes!(replay))
        .routes(routes!(skip))
        .routes(routes!(enable))
}

/// How far a sink is.
#[derive(Serialize, ToSchema)]
#[schema(as = Sink)]
struct SinkView<'a> {
    name: &'a str,
    #[schema(examples("http", "kafka", "rabbitmq", "nats", "own"))]
    kind: &'static str,
    /// The number of the last ledger entry that it has got; null before its first pass.
    cursor: Option<u64>,
    /// Entries that it does not have yet.
    lag: u64,
    /// Events that were given up; 1000 stands for 1000 or more.
    dead: usize,
    /// Failed attempts to send the next event.
    attempts: u32,
    /// Why the last one failed.
    last_error: Option<String>,
    /// When the next one is made.
    next_attempt_at: Option<Moment>,
    /// Why nothing is sent until the sink is enabled.
    disabled: Option<String>,
}

/// An event that was given up.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
struct DeadView {
    /// The number of its ledger entry.
    seq: u64,
    at: Moment,
    attempts: u32,
    error: String,
    /// It is about to be sent again.
    replay: bool,
}

impl DeadView {
    fn new(letter: DeadLetter) -> Self {
        let DeadLetter { seq, at, attempts, error, replay } = letter;
        Self { seq, at: Moment(Time::from_millis(at)), attempts, error, replay }
    }
}

/// What to send again: exactly one member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReplayBody {
    /// Everything after this ledger entry.
    after: Option<u64>,
    /// All dead letters.
    dead: Option<bool>,
    /// The dead letter with this number.
    seq: Option<u64>,
}

/// Which part of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PageQuery {
    after: Option<String>,
    limit: Option<usize>,
}

/// A small body that must be JSON.
struct JsonBody(Vec<u8>);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        json_within(request, PATIENCE).await.map(Self)
    }
}

/// List the sinks and how far they are.
#[utoipa::path(get, path = "/v1/sinks", responses((status = 200, body = ListView<SinkView>)))]
async fn list_sinks(State(outbox): State<Outbox>) -> Result<Response<Body>, Problem> {
    let desk = &*outbox.desk;
    let (mut items, mut end) = (Vec::new(), 0);
    for (name, kind) in &*outbox.sinks {
        let known = admin::state(desk, name).await?;
        let cursor = known.as_ref().map(|state| state.cursor);
        end = desk.end(end.max(cursor.unwrap_or(0))).await?;
        let state = known.unwrap_or_else(state::SinkState::default);
        items.push(SinkView {
            name,
            kind,
            cursor,
            lag: cursor.map_or(0, |cursor| end.saturating_sub(cursor)),
            dead: admin::dead(desk, name, 0, MAX_PAGE).await?.len(),
            attempts: state.attempts.max(state.away),
            last_error: state.last_error,
            next_attempt_at: (state.next_at > 0).then(|| Moment(Time::from_millis(state.next_at))),
            disabled: state.disabled,
        });
    }
    Ok(json(200, &ListView { items, next: None }))
}

/// List the events that a sink did not accept, by number.
#[utoipa::path(get, path = "/v1/sinks/{name}/dead", params(("name" = String, Path), PageQuery), responses(
    (status = 200, body = ListView<DeadView>), (status = 404, description = "not_found")))]
async fn list_dead(
    State(outbox): State<Outbox>,
    Path(name): Path<String>,
    StrictQuery(query): StrictQuery<PageQuery>,
) -> Result<Response<Body>, Problem> {
    outbox.known(&name)?;
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    let after = query.after.as_deref().map_or(Ok(0), str::parse::<u64>);
    let mut findings = Findings::default();
    let is_fine = (1..=MAX_PAGE).contains(&limit);
    findings.take("/limit", if is_fine { Ok(()) } else { Err(format!("must be from 1 to {MAX_PAGE}")) });
    let after = findings.take("/after", after.map_err(|_| "must be the next of an earlier page"));
    findings.done()?;
    let mut letters = admin::dead(&*outbox.desk, &name, after.unwrap_or(0), limit + 1).await?;
    let more = letters.len() > limit;
    letters.truncate(limit);
    let next = letters.last().filter(|_| more).map(|letter| letter.seq.to_string());
    let items: Vec<DeadView> = letters.into_iter().map(DeadView::new).collect();
    Ok(json(200, &ListView { items, next }))
}

/// Send events again: everything after an entry, all dead letters, or one of them.
#[utoipa::path(post, path = "/v1/sinks/{name}/replay", params(("name" = String, Path)), request_body = ReplayBody,
    responses((status = 200, description = "The new cursor, or how many dead letters are sent again"),
        (status = 404, description = "not_found"), (status = 422, description = "invalid_request")))]
async fn replay(
    State(outbox): State<Outbox>,
    Path(name): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Response<Body>, Problem> {
    outbox.known(&name)?;
    let desk = &*outbox.desk;
    let chosen = match parse::<ReplayBody>(&body)? {
        ReplayBody { after: Some(after), dead: None, seq: None } => {
            let cursor = admin::replay_from(desk, &name, after).await?;
            return Ok(json(200, &json!({"cursor": cursor})));
        }
        ReplayBody { after: None, dead: Some(true), seq: None } => admin::replay_dead(desk, &name, None).await?,
        ReplayBody { after: None, dead: None, seq: Some(seq) } => {
            let chosen = admin::replay_dead(desk, &name, Some(seq)).await?;
            if chosen == 0 {
                return Err(Problem::new("not_found", "this sink has no dead letter of this number"));
            }
            chosen
        }
        _ => {
            let how = "send exactly one of {\"after\": NUMBER}, {\"dead\": true}, {\"seq\": NUMBER}";
            return Err(Problem::new("invalid_request", how));
        }
    };
    Ok(json(200, &json!({"replayed": chosen})))
}

/// Give up the event that a sink does not accept, and go on with the next one.
#[utoipa::path(post, path = "/v1/sinks/{name}/skip", params(("name" = String, Path)), responses(
    (status = 200, description = "The number of the event, now a dead letter; null when none was in the way"),
    (status = 404, description = "not_found")))]
async fn skip(State(outbox): State<Outbox>, Path(name): Path<String>) -> Result<Response<Body>, Problem> {
    outbox.known(&name)?;
    let skipped = admin::skip(&*outbox.desk, &name).await?;
    Ok(json(200, &json!({"skipped": skipped})))
}

/// Let a sink go on at once that was disabled or waits for its next attempt.
#[utoipa::path(post, path = "/v1/sinks/{name}/enable", params(("name" = String, Path)), responses(
    (status = 200, description = "Whether there was a state to change"), (status = 404, description = "not_found")))]
async fn enable(State(outbox): State<Outbox>, Path(name): Path<String>) -> Result<Response<Body>, Problem> {
    outbox.known(&name)?;
    let enabled = admin::enable(&*outbox.desk, &name).await?;
    Ok(json(200, &json!({"enabled": enabled})))
}
