//! Holds: make, read, change, extend, release, confirm.

use super::{orders, page_size};
use crate::admission::{Admitted, Asked, Caller, admit, admit_more, settle};
use crate::app::{Shared, json};
use crate::body::{Findings, JsonBytes, MaybeJsonBytes, Object, Path, StrictQuery, parse};
use crate::problem::Problem;
use crate::view::{HoldView, ListView, OrderJson};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, header};
use holdfast_domain::{
    Command, Currency, CustomerId, HoldId, HoldRequest, HoldStatus, Lines, LinesError, Money, OrderId, Outcome, Sku,
    Ttl,
};
use holdfast_engine::HoldFilter;
use holdfast_engine::clock::monotonic;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use utoipa::{IntoParams, ToSchema};

const MAX_METADATA: usize = 50;
const MAX_METADATA_BYTES: usize = 8 << 10;
const MAX_REF_BYTES: usize = 255;

/// One line of a cart.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 128)]
    sku: Cow<'a, str>,
    #[schema(minimum = 1, maximum = 1_000_000)]
    quantity: u64,
}

/// A cart to hold.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HoldRequest)]
pub(crate) struct HoldBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    order_id: Cow<'a, str>,
    #[serde(borrow)]
    #[schema(value_type = Vec<ItemBody>, min_items = 1, max_items = 100)]
    items: Vec<Object<ItemBody<'a>>>,
    /// Whole seconds; the server's default when missing.
    #[schema(minimum = 1)]
    ttl_seconds: Option<u64>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>, max_length = 255)]
    customer_id: Option<Cow<'a, str>>,
    /// Minor units.
    amount: Option<u64>,
    /// ISO 4217.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    currency: Option<Cow<'a, str>>,
    /// The provider's object, `provider:id`.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, max_length = 255)]
    payment_ref: Option<Cow<'a, str>>,
    /// Up to 50 string values, 8 KiB in all.
    #[serde(borrow)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<&'a RawValue>,
}

/// What to change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<ItemBody>>)]
    items: Option<Vec<Object<ItemBody<'a>>>>,
    amount: Option<u64>,
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    payment_ref: Option<Cow<'a, str>>,
}

/// How much longer.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtendBody {
    /// From now on, in whole seconds.
    ttl_seconds: u64,
}

/// What pays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmBody<'a> {
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    payment_ref: Option<Cow<'a, str>>,
}

/// Reads a cart and whether it says how long to hold it, or says everything that is wrong with it.
pub(crate) fn read_hold(bytes: &[u8], max_ttl: u32, default_ttl: u32) -> Result<(HoldRequest, bool), Problem> {
    let body: HoldBody<'_> = parse(bytes)?;
    let mut findings = Findings::default();
    let order_id = findings.take("/order_id", OrderId::new(&body.order_id));
    let lines = read_items(&body.items, &mut findings);
    let ttl = findings.take("/ttl_seconds", read_ttl(body.ttl_seconds.unwrap_or(default_ttl.into()), max_ttl));
    let customer_id = body.customer_id.map(|c| findings.take("/customer_id", CustomerId::new(&c)));
    let amount = body.amount.map(|a| findings.take("/amount", read_amount(a)));
    let currency = body.currency.map(|c| findings.take("/currency", read_currency(&c)));
    let payment_ref = body.payment_ref.map(|r| findings.take("/payment_ref", read_ref(&r)));
    let metadata = body.metadata.map(|m| findings.take("/metadata", read_metadata(m)));
    findings.done()?;
    match (order_id, lines, ttl) {
        (Some(order_id), Some(lines), Some(ttl)) => Ok((
            HoldRequest {
                id: HoldId::from_u128(0),
                order_id,
                lines,
                ttl,
                customer_id: customer_id.flatten(),
                money: Money { amount: amount.flatten(), currency: currency.flatten() },
                payment_ref: payment_ref.flatten(),
                metadata: metadata.flatten(),
            },
            body.ttl_seconds.is_some(),
        )),
        _ => Err(Problem::new("invalid_request", "the cart is not valid")),
    }
}

/// Reads lines; what is wrong is noted with its place.
pub(super) fn read_items(items: &[Object<ItemBody<'_>>], findings: &mut Findings) -> Option<Lines> {
    let mut read = Vec::with_capacity(items.len());
    // Too many lines are refused as such, not line by line.
    for (index, Object(item)) in items.iter().take(holdfast_domain::MAX_LINES).enumerate() {
        if let Some(sku) = findings.take(format!("/items/{index}/sku"), Sku::new(&item.sku)) {
            read.push((sku, item.quantity));
        } else {
            return None;
        }
    }
    if items.len() > holdfast_domain::MAX_LINES {
        return findings.take("/items", Err(LinesError::TooMany));
    }
    let lines = Lines::new(read);
    let pointer = match &lines {
        Err(LinesError::Quantity(index)) => format!("/items/{index}/quantity"),
        _ => "/items".to_owned(),
    };
    findings.take(pointer, lines)
}

fn read_ttl(seconds: u64, max: u32) -> Result<Ttl, String> {
    Ttl::new(seconds, max).ok_or_else(|| format!("must be a whole number from 1 to {max}"))
}

fn read_amount(amount: u64) -> Result<u64, String> {
    if amount <= Money::MAX_AMOUNT { Ok(amount) } else { Err(format!("must be at most {}", Money::MAX_AMOUNT)) }
}

fn read_currency(code: &str) -> Result<Currency, &'static str> {
    Currency::new(code).ok_or("must be an ISO 4217 code of three letters")
}

fn read_ref(text: &str) -> Result<Box<str>, String> {
    let is_decent = (1..=MAX_REF_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_decent {
        Ok(text.into())
    } else {
        Err(format!("must be 1 to {MAX_REF_BYTES} bytes without control characters"))
    }
}

/// An object of strings, in the order in which the merchant wrote them.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, String>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Checks the object and writes it without white space; what it says is the merchant's own business.
fn read_metadata(raw: &RawValue) -> Result<Box<str>, String> {
    let strings = |_| "must be an object whose values are strings".to_owned();
    let members: Members = serde_json::from_str(raw.get()).map_err(strings)?;
    if members.0.len() > MAX_METADATA {
        return Err(format!("must have at most {MAX_METADATA} members"));
    }
    if members.0.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>() > MAX_METADATA_BYTES {
        return Err(format!("must be at most {MAX_METADATA_BYTES} bytes of names and values"));
    }
    let mut names = BTreeSet::new();
    if let Some((twice, _)) = members.0.iter().find(|(name, _)| !names.insert(name)) {
        return Err(format!("names {twice:?} twice"));
    }
    serde_json::to_string(&members).map(Into::into).map_err(strings)
}

fn read_id(id: &str) -> Result<HoldId, Problem> {
    HoldId::parse(id).ok_or_else(|| Problem::new("not_found", "no hold has this id"))
}

/// The pass of the waiting room, if one is shown.
fn pass(headers: &HeaderMap) -> Option<&str> {
    headers.get("waiting-room-pass").map(|pass| pass.to_str().unwrap_or_default())
}

fn hold_json(app: &Shared, outcome: &Outcome) -> Response<Body> {
    match outcome {
        Outcome::Held { hold, replay } => {
            let status = if *replay { 200 } else { 201 };
            let mut response = json(status, &HoldView::new(hold, app.engine.time()));
            if let Ok(location) = HeaderValue::from_str(&format!("/v1/holds/{}", hold.id)) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            response
        }
        Outcome::Hold(hold) => json(200, &HoldView::new(hold, app.engine.time())),
        other => unexpected(other),
    }
}

/// An outcome of another command: a bug, said so.
pub(super) fn unexpected(outcome: &Outcome) -> Response<Body> {
    tracing::error!(?outcome, "an answer does not belong to its command");
    axum::response::IntoResponse::into_response(Problem::new("outcome_unknown", "repeat the same request"))
}

/// Take a hold: all lines or none. The same request again answers the same hold.
#[utoipa::path(post, path = "/v1/holds", request_body = HoldBody, responses(
    (status = 201, description = "Held", body = HoldView), (status = 200, description = "The same hold again", body = HoldView),
    (status = 409, description = "sold_out, order_conflict, already_confirmed, customer_limit"),
    (status = 422, description = "invalid_request, unknown_sku, customer_required"), (status = 503, description = "Repeat the request")))]
pub(super) async fn create_hold(
    State(app): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    let (mut request, has_ttl) = read_hold(&bytes, app.config.max_hold_ttl, app.config.default_hold_ttl)?;
    let asked = Asked {
        order: &request.order_id,
        lines: &request.lines,
        customer: request.customer_id.as_ref(),
        caller: &caller,
        pass: pass(&headers),
    };
    let grant = match admit(&app, &asked, request.money).await? {
        Admitted::Go(grant) => grant,
        Admitted::Held(hold) => return Ok(hold_json(&app, &Outcome::Held { hold: *hold, replay: true })),
    };
    request.ttl = grant.ttl.filter(|_| !has_ttl).unwrap_or(request.ttl);
    let (order, start) = (request.order_id.clone(), monotonic());
    let got = app.submit(Command::Hold(Box::new(request))).await;
    app.admission.took(start.elapsed());
    let outcome = got?;
    settle(&app, &grant, &order);
    Ok(hold_json(&app, &outcome))
}

/// Which holds to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HoldsQuery {
    order_id: Option<String>,
    sku: Option<String>,
    status: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// List holds in the order in which they were made.
#[utoipa::path(get, path = "/v1/holds", params(HoldsQuery), responses((status = 200, body = ListView<HoldView>)))]
pub(super) async fn list_holds(
    State(app): State<Shared>,
    StrictQuery(query): StrictQuery<HoldsQuery>,
) -> Result<Response<Body>, Problem> {
    let limit = page_size(query.limit)?;
    let mut findings = Findings::default();
    let order_id = query.order_id.map(|o| findings.take("/order_id", OrderId::new(&o)));
    let sku = query.sku.map(|s| findings.take("/sku", Sku::new(&s)));
    let word = |s: String| HoldStatus::parse(&s).ok_or("must be held, confirmed, released or expired");
    let status = query.status.map(|s| findings.take("/status", word(s)));
    findings.done()?;
    let filter =
        HoldFilter { order_id: order_id.flatten(), sku: sku.flatten(), status: status.flatten(), after: query.after };
    if !app.engine.knows_cursor(&filter) {
        return Err(super::bad_cursor());
    }
    let page = app.engine.holds(filter, limit).await?;
    let now = app.engine.time();
    let items = page.items.iter().map(|hold| HoldView::new(hold, now)).collect();
    Ok(json(200, &ListView { items, next: page.next }))
}

/// Read one hold.
#[utoipa::path(get, path = "/v1/holds/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = HoldView), (status = 404, description = "not_found")))]
pub(super) async fn get_hold(State(app): State<Shared>, Path(id): Path<String>) -> Result<Response<Body>, Problem> {
    let hold = app.engine.hold(read_id(&id)?).await?;
    let hold = hold.ok_or_else(|| Problem::new("not_found", "no hold has this id"))?;
    Ok(json(200, &HoldView::new(&hold, app.engine.time())))
}

/// Change a live hold: all or nothing on the difference; the deadline stays.
#[utoipa::path(patch, path = "/v1/holds/{id}", params(("id" = String, Path)), request_body = ChangeBody, responses(
    (status = 200, body = HoldView), (status = 409, description = "sold_out, customer_limit, already_confirmed"),
    (status = 410, description = "hold_expired"), (status = 404, description = "not_found")))]
pub(super) async fn change_hold(
    State(app): State<Shared>,
    Path(id): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    let hold = read_id(&id)?;
    let body: ChangeBody<'_> = parse(&bytes)?;
    if body.items.is_none() && body.amount.is_none() && body.payment_ref.is_none() {
        return Err(Problem::new("invalid_request", "tell at least one of items, amount, payment_ref"));
    }
    let mut findings = Findings::default();
    let lines = body.items.and_then(|items| read_items(&items, &mut findings));
    let amount = body.amount.and_then(|a| findings.take("/amount", read_amount(a)));
    let payment_ref = body.payment_ref.and_then(|r| findings.take("/payment_ref", read_ref(&r)));
    findings.done()?;
    if let Some(lines) = &lines {
        may_grow(&app, hold, lines, &caller, pass(&headers)).await?;
    }
    let outcome = app.submit(Command::Change { hold, lines, amount, payment_ref }).await?;
    Ok(hold_json(&app, &outcome))
}

/// Units that come to a hold obey the sales of their SKUs, as a new hold's do.
async fn may_grow(
    app: &Shared,
    hold: HoldId,
    lines: &Lines,
    caller: &Caller,
    pass: Option<&str>,
) -> Result<(), Problem> {
    let Some(held) = app.engine.hold(hold).await? else { return Ok(()) };
    let more =
        lines.iter().map(|line| (&line.sku, line.quantity.get().saturating_sub(held.lines.quantity_of(&line.sku))));
    let more: Vec<(Sku, u64)> = more.filter(|(_, units)| *units > 0).map(|(sku, units)| (sku.clone(), units)).collect();
    let Ok(more) = Lines::new(more) else { return Ok(()) };
    let customer = held.customer_id.as_ref();
    admit_more(app, &Asked { order: &held.order_id, lines: &more, customer, caller, pass }).await.map(drop)
}

/// Move a live hold's deadline to at least now + ttl_seconds.
#[utoipa::path(post, path = "/v1/holds/{id}/extend", params(("id" = String, Path)), request_body = ExtendBody, responses(
    (status = 200, body = HoldView), (status = 409, description = "extension_limit, already_confirmed"),
    (status = 410, description = "hold_expired"), (status = 404, description = "not_found")))]
pub(super) async fn extend_hold(
    State(app): State<Shared>,
    Path(id): Path<String>,
    JsonBytes(bytes): JsonBytes,
) -> Result<Response<Body>, Problem> {
    let hold = read_id(&id)?;
    let body: ExtendBody = parse(&bytes)?;
    let mut findings = Findings::default();
    let ttl = findings.take("/ttl_seconds", read_ttl(body.ttl_seconds, app.config.max_hold_ttl));
    findings.done()?;
    let ttl = ttl.ok_or_else(|| Problem::new("invalid_request", "ttl_seconds is not valid"))?;
    let outcome = app.submit(Command::Extend { hold, ttl }).await?;
    Ok(hold_json(&app, &outcome))
}

/// Give a hold's units back. Released or lapsed before: answered with its state.
#[utoipa::path(post, path = "/v1/holds/{id}/release", params(("id" = String, Path)), responses(
    (status = 200, body = HoldView), (status = 409, description = "already_confirmed"), (status = 404, description = "not_found")))]
pub(super) async fn release_hold(
    State(app): State<Shared>,
    Path(id): Path<String>,
    MaybeJsonBytes(bytes): MaybeJsonBytes,
) -> Result<Response<Body>, Problem> {
    let hold = read_id(&id)?;
    if let Some(bytes) = bytes {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        let Nothing {} = parse(&bytes)?;
    }
    let outcome = app.submit(Command::Release { hold }).await?;
    Ok(hold_json(&app, &outcome))
}

/// Turn a hold into an order; a lapsed one takes its units again if they are there.
#[utoipa::path(post, path = "/v1/holds/{id}/confirm", params(("id" = String, Path)), request_body = Option<ConfirmBody>, responses(
    (status = 200, body = OrderJson), (status = 409, description = "stock_gone, already_confirmed"), (status = 404, description = "not_found")))]
pub(super) async fn confirm_hold(
    State(app): State<Shared>,
    Path(id): Path<String>,
    MaybeJsonBytes(bytes): MaybeJsonBytes,
) -> Result<Response<Body>, Problem> {
    let hold = read_id(&id)?;
    let body = bytes.as_deref().map(parse::<ConfirmBody<'_>>).transpose()?;
    let mut findings = Findings::default();
    let payment_ref = body.and_then(|b| b.payment_ref).and_then(|r| findings.take("/payment_ref", read_ref(&r)));
    findings.done()?;
    let outcome = app.submit(Command::Confirm { hold, payment_ref }).await?;
    orders::answer(&app, outcome).await
}
