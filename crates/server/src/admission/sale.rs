//! A sale: which SKUs, from when to when, how fast, and through which room. Read from a request or from the store by one
//! and the same check.

use crate::body::{Findings, Object};
use crate::problem::Problem;
use crate::view::Moment;
use holdfast_admission::bucket::{Limits, Rate};
use holdfast_domain::{Sku, Time, Ttl};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// The most SKUs of one sale.
pub(crate) const MAX_SKUS: usize = 250;
const MAX_NAME_BYTES: usize = 64;
const MAX_RATE: f64 = 1e6;
const LEAST_RATE: f64 = 1e-6;

/// How fast: a bucket of `burst` tokens that is filled with `per_second` of them. 0 per second pauses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Rate)]
pub(crate) struct RateBody {
    /// Tokens a second; may be a fraction.
    per_second: f64,
    /// Tokens of a full bucket: how many may come at once.
    #[schema(minimum = 1)]
    burst: u64,
}

/// The virtual waiting room in front of a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WaitingRoom)]
pub(crate) struct RoomBody {
    /// How many may be in the shop at once: those in turn, and those with a pass whose hold has not ended.
    #[schema(minimum = 1)]
    pub(crate) max_active: u32,
    /// How many are let in a second, at most.
    #[schema(minimum = 1)]
    pub(crate) admit_per_second: u32,
    /// Seconds to claim a turn.
    #[serde(default = "turn")]
    pub(crate) turn_seconds: u32,
    /// Seconds that a pass is good for.
    #[serde(default = "session")]
    pub(crate) session_seconds: u32,
    /// Seconds before the start from which shoppers may join.
    #[serde(default = "prequeue")]
    pub(crate) prequeue_seconds: u32,
    /// Those who come before the start are served by lot (`draw`), or as they came (`fifo`).
    #[serde(default)]
    pub(crate) order: RoomOrder,
}

/// In which order those are served who came before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoomOrder {
    /// By lot; anyone can check it afterwards.
    #[default]
    Draw,
    /// As they came.
    Fifo,
}

/// How holds of a sale reach the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ingest {
    /// Each is decided as it comes.
    #[default]
    Direct,
}

fn turn() -> u32 {
    60
}

fn session() -> u32 {
    600
}

fn prequeue() -> u32 {
    900
}

/// What limits do when the budget that nodes share cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fallback {
    /// Each node goes on with its share.
    #[default]
    Local,
    /// Everybody is let through.
    Open,
    /// Nobody is.
    Closed,
}

/// A sale as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SaleRequest)]
pub(crate) struct SaleBody {
    /// What the page of the waiting room calls it; the sale's name, if not told.
    #[schema(max_length = 200)]
    title: Option<String>,
    /// A SKU is in at most one sale that has not ended.
    #[schema(min_items = 1, max_items = 250)]
    skus: Vec<String>,
    /// RFC 3339. The sale is open at once, if not told.
    starts_at: Option<String>,
    /// RFC 3339.
    ends_at: Option<String>,
    /// How long holds of the sale live that do not say.
    #[schema(minimum = 1)]
    hold_ttl_seconds: Option<u64>,
    /// For all holds of the sale together.
    #[serde(default, deserialize_with = "object")]
    rate: Option<RateBody>,
    /// For each client.
    #[serde(default, deserialize_with = "object")]
    per_client: Option<RateBody>,
    /// For each SKU.
    #[serde(default, deserialize_with = "object")]
    per_sku: Option<RateBody>,
    /// What the rates do when the Redis that keeps them for all nodes does not answer.
    #[serde(default)]
    rate_fallback: Fallback,
    /// Count what the rates would refuse, and let it through: for trying them out.
    #[serde(default)]
    shadow: bool,
    #[serde(default, deserialize_with = "object")]
    waiting_room: Option<RoomBody>,
    #[serde(default)]
    ingest: Ingest,
}

/// A member that is an object or null.
fn object<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<T>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(value)?.map(|Object(value)| value))
}

/// Whether holds of a sale are taken now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Scheduled,
    Open,
    Paused,
    Ended,
}

impl Phase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Ended => "ended",
        }
    }
}

/// A sale that was checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sale {
    pub(crate) name: String,
    pub(crate) skus: BTreeSet<Sku>,
    pub(crate) starts_at: Option<Time>,
    pub(crate) ends_at: Option<Time>,
    pub(crate) hold_ttl: Option<Ttl>,
    pub(crate) limits: Limits,
    pub(crate) fallback: Fallback,
    pub(crate) room: Option<RoomBody>,
    pub(crate) kept: Kept,
    body: SaleBody,
}

/// What is kept of a sale besides what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Kept {
    pub(crate) paused: bool,
    /// Decides the draw. Told when the sale has started, and not before.
    pub(crate) seed: [u8; 32],
    /// What identities of shoppers are hashed with. Never told.
    pub(crate) secret: [u8; 32],
    /// Counts the changes of all sales.
    pub(crate) revision: u64,
    pub(crate) created_at: Time,
}

impl Sale {
    /// Checks what was asked for; everything that is wrong with it is noted.
    pub(crate) fn new(name: &str, body: SaleBody, max_ttl: u32, kept: Kept) -> Result<Self, Problem> {
        let mut findings = Findings::default();
        let skus = read_skus(&body.skus, &mut findings);
        if body.title.as_ref().is_some_and(|title| title.is_empty() || title.len() > 200) {
            findings.take::<(), _>("/title", Err("must be 1 to 200 bytes"));
        }
        let starts_at = body.starts_at.as_ref().map(|t| findings.take("/starts_at", moment(t)));
        let ends_at = body.ends_at.as_ref().map(|t| findings.take("/ends_at", moment(t)));
        let (starts_at, ends_at) = (starts_at.flatten(), ends_at.flatten());
        if let (Some(start), Some(end)) = (starts_at, ends_at)
            && end <= start
        {
            findings.take::<(), _>("/ends_at", Err("must be after starts_at"));
        }
        let ttl = |seconds| Ttl::new(seconds, max_ttl).ok_or(format!("must be a whole number from 1 to {max_ttl}"));
        let hold_ttl = body.hold_ttl_seconds.and_then(|s| findings.take("/hold_ttl_seconds", ttl(s)));
        let mut rate = |name: &str, rate: Option<RateBody>| rate.and_then(|r| r.check(name, &mut findings));
        let limits = Limits {
            sale: rate("/rate", body.rate),
            per_client: rate("/per_client", body.per_client),
            per_sku: rate("/per_sku", body.per_sku),
            shadow: body.shadow,
        };
        if let Some(room) = &body.waiting_room {
            room.check(&mut findings);
        }
        findings.done()?;
        let (room, fallback) = (body.waiting_room.clone(), body.rate_fallback);
        let name = name.to_owned();
        Ok(Self { name, skus, starts_at, ends_at, hold_ttl, limits, fallback, room, kept, body })
    }

    /// The same, with something else kept of it.
    pub(crate) fn with(&self, kept: Kept) -> Self {
        Self { kept, ..self.clone() }
    }

    pub(crate) fn phase(&self, now: Time) -> Phase {
        if self.ends_at.is_some_and(|end| end <= now) {
            Phase::Ended
        } else if !self.has_started(now) {
            Phase::Scheduled
        } else if self.kept.paused {
            Phase::Paused
        } else {
            Phase::Open
        }
    }

    pub(crate) fn has_started(&self, now: Time) -> bool {
        self.starts_at.is_none_or(|start| start <= now)
    }

    /// What shoppers read.
    pub(crate) fn title(&self) -> &str {
        self.body.title.as_deref().unwrap_or(&self.name)
    }

    /// What the draw is bound to before anybody joins.
    pub(crate) fn commitment(&self) -> String {
        hex::encode(Sha256::digest(self.kept.seed))
    }

    pub(crate) fn view(&self, now: Time) -> SaleView<'_> {
        SaleView {
            sale: &self.name,
            status: self.phase(now).as_str(),
            title: self.body.title.as_deref(),
            skus: &self.body.skus,
            starts_at: self.starts_at.map(Moment),
            ends_at: self.ends_at.map(Moment),
            hold_ttl_seconds: self.hold_ttl.map(Ttl::seconds),
            rate: self.body.rate,
            per_client: self.body.per_client,
            per_sku: self.body.per_sku,
            rate_fallback: self.body.rate_fallback,
            shadow: self.body.shadow,
            waiting_room: self.body.waiting_room.as_ref(),
            ingest: self.body.ingest,
            paused: self.kept.paused,
            draw_commitment: self.commitment(),
            created_at: Moment(self.kept.created_at),
            revision: self.kept.revision,
        }
    }

    /// As it is kept in the store.
    pub(crate) fn record(&self) -> Record {
        Record {
            sale: self.name.clone(),
            asked: self.body.clone(),
            paused: self.kept.paused,
            seed: hex::encode(self.kept.seed),
            secret: hex::encode(self.kept.secret),
            revision: self.kept.revision,
            created_ms: self.kept.created_at.millis(),
        }
    }
}

/// A sale in the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) sale: String,
    asked: SaleBody,
    paused: bool,
    seed: String,
    secret: String,
    pub(crate) revision: u64,
    created_ms: i64,
}

impl Record {
    /// The sale of this record. What was asked for was checked when it was written.
    pub(crate) fn sale(self) -> Result<Sale, Problem> {
        let (mut seed, mut secret) = ([0; 32], [0; 32]);
        let read = hex::decode_to_slice(&self.seed, &mut seed);
        read.and_then(|()| hex::decode_to_slice(&self.secret, &mut secret))
            .map_err(|_| Problem::new("engine_unavailable", "a sale in the store is damaged"))?;
        let created_at = Time::from_millis(self.created_ms);
        let kept = Kept { paused: self.paused, seed, secret, revision: self.revision, created_at };
        Sale::new(&self.sale, self.asked, u32::MAX, kept)
    }
}

/// A sale.
#[derive(Serialize, ToSchema)]
#[schema(as = Sale)]
pub(crate) struct SaleView<'a> {
    sale: &'a str,
    /// As of now.
    #[schema(examples("scheduled", "open", "paused", "ended"))]
    status: &'static str,
    title: Option<&'a str>,
    skus: &'a [String],
    starts_at: Option<Moment>,
    ends_at: Option<Moment>,
    hold_ttl_seconds: Option<u32>,
    rate: Option<RateBody>,
    per_client: Option<RateBody>,
    per_sku: Option<RateBody>,
    rate_fallback: Fallback,
    /// The rates refuse nothing and only count.
    shadow: bool,
    waiting_room: Option<&'a RoomBody>,
    ingest: Ingest,
    paused: bool,
    /// SHA-256 of the seed of the draw, in hexadecimal. The seed is told at `…/draw` once the sale has started.
    draw_commitment: String,
    created_at: Moment,
    /// Counts the changes of all sales.
    revision: u64,
}

impl RateBody {
    fn check(self, pointer: &str, findings: &mut Findings) -> Option<Rate> {
        let is_pause = self.per_second == 0.0;
        let per_second = if is_pause || (LEAST_RATE..=MAX_RATE).contains(&self.per_second) {
            Ok((self.per_second * 1e6).round() as u64)
        } else {
            Err("must be 0, or from 0.000001 to 1000000")
        };
        let burst = u32::try_from(self.burst).ok().filter(|burst| (1..=Rate::MAX_BURST).contains(burst));
        let burst = burst.ok_or_else(|| format!("must be a whole number from 1 to {}", Rate::MAX_BURST));
        let micro_per_second = findings.take(format!("{pointer}/per_second"), per_second);
        let burst = findings.take(format!("{pointer}/burst"), burst);
        Rate::new(micro_per_second?, burst?)
    }
}

impl RoomBody {
    /// Whether those who come before the start are served by lot.
    pub(crate) fn is_draw(&self) -> bool {
        self.order == RoomOrder::Draw
    }

    fn check(&self, findings: &mut Findings) {
        let mut within = |name: &str, value: u32, least: u32, most: u32| {
            if !(least..=most).contains(&value) {
                let why = format!("must be a whole number from {least} to {most}");
                findings.take::<(), _>(format!("/waiting_room/{name}"), Err(why));
            }
        };
        within("max_active", self.max_active, 1, 10_000_000);
        within("admit_per_second", self.admit_per_second, 1, 1_000_000);
        within("turn_seconds", self.turn_seconds, 1, 3600);
        within("session_seconds", self.session_seconds, 1, 86_400);
        within("prequeue_seconds", self.prequeue_seconds, 0, 7 * 86_400);
    }
}

/// A name that fits a path, a cookie and a file as it stands.
pub(crate) fn check_name(name: &str) -> Result<(), Problem> {
    let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~'));
    let has_letter = name.bytes().any(|b| b.is_ascii_alphanumeric());
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && is_plain && has_letter {
        return Ok(());
    }
    let what = format!("a sale's name has 1 to {MAX_NAME_BYTES} letters, digits, and - _ . ~");
    Err(Problem::new("invalid_request", what))
}

fn read_skus(skus: &[String], findings: &mut Findings) -> BTreeSet<Sku> {
    if skus.is_empty() || skus.len() > MAX_SKUS {
        findings.take::<(), _>("/skus", Err(format!("must be from 1 to {MAX_SKUS} SKUs")));
        return BTreeSet::new();
    }
    let mut read = BTreeSet::new();
    for (index, sku) in skus.iter().enumerate() {
        let pointer = format!("/skus/{index}");
        if let Some(sku) = findings.take(&*pointer, Sku::new(sku))
            && !read.insert(sku)
        {
            findings.take::<(), _>(pointer, Err("is there twice"));
        }
    }
    read
}

fn moment(text: &str) -> Result<Time, &'static str> {
    let bad = "must be a time like 2026-11-30T12:00:00Z";
    let parsed = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| bad)?;
    let ms = parsed.timestamp_millis();
    // What comes out of here can be written as RFC 3339 again, with four digits of a year.
    if (0..253_402_300_800_000).contains(&ms) { Ok(Time::from_millis(ms)) } else { Err(bad) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::parse;
    use proptest::prelude::*;

    fn read(json: &str) -> Result<Sale, Problem> {
        Sale::new("drop", parse(json.as_bytes())?, 3600, Kept::default())
    }

    #[test]
    fn a_sale_comes_back_from_the_store_as_it_was() {
        let sale = read(
            r#"{"skus":["B","A"],"starts_at":"2026-11-30T13:00:00+01:00","hold_ttl_seconds":300,
               "rate":{"per_second":0.5,"burst":3},"waiting_room":{"max_active":5,"admit_per_second":2}}"#,
        )
        .unwrap();
        assert_eq!(sale.starts_at, Some(Time::from_millis(1_796_040_000_000)));
        assert_eq!(sale.limits.sale, Rate::new(500_000, 3));
        let kept = serde_json::to_string(&sale.record()).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&kept).unwrap().sale().unwrap(), sale);
        assert_eq!(sale.phase(Time::from_millis(1_796_039_999_999)), Phase::Scheduled);
        assert_eq!(sale.phase(Time::from_millis(1_796_040_000_000)), Phase::Open);
    }

    proptest! {
        #[test]
        fn no_cut_or_flipped_sale_makes_it_panic(at in 0_usize..2000, with in any::<u8>(), cut in any::<bool>()) {
            for seed in [
                &include_bytes!("../../../../fuzz/seeds/sale_json/whole.json")[..],
                include_bytes!("../../../../fuzz/seeds/sale_json/rate_huge.json"),
                include_bytes!("../../../../fuzz/seeds/sale_json/offset.json"),
                include_bytes!("../../../../fuzz/seeds/sale_json/list_for_object.json"),
            ] {
                let mut bytes = seed.to_vec();
                let at = at % bytes.len();
                if cut {
                    bytes.truncate(at);
                } else {
                    bytes[at] = with;
                }
                crate::fuzzing::sale(&bytes);
            }
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told() {
        for (json, pointer) in [
            (r#"{"skus":[]}"#, "/skus"),
            (r#"{"skus":["A","A"]}"#, "/skus/1"),
            (r#"{"skus":[""]}"#, "/skus/0"),
            (r#"{"skus":["A"],"starts_at":"tomorrow"}"#, "/starts_at"),
            (r#"{"skus":["A"],"starts_at":"2026-11-30T12:00:00Z","ends_at":"2026-11-30T12:00:00Z"}"#, "/ends_at"),
            (r#"{"skus":["A"],"hold_ttl_seconds":0}"#, "/hold_ttl_seconds"),
            (r#"{"skus":["A"],"rate":{"per_second":-1,"burst":1}}"#, "/rate/per_second"),
            (r#"{"skus":["A"],"per_client":{"per_second":1,"burst":0}}"#, "/per_client/burst"),
            (r#"{"skus":["A"],"waiting_room":{"max_active":0,"admit_per_second":1}}"#, "/waiting_room/max_active"),
            (r#"{"skus":["A"],"waiting_room":[1,1]}"#, "/waiting_room"),
            (r#"{"skus":["A"],"sku":"A"}"#, "unknown field"),
        ] {
            let problem = read(json).unwrap_err();
            let told = serde_json::to_string(&problem).unwrap();
            assert!(problem.code() == "invalid_request" && told.contains(pointer), "{json} {told}");
        }
        for name in ["", "a/b", "a b", "ä", ".", "..", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name("drop-2026.11~a_b").is_ok());
    }
}
