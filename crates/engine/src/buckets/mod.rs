//! Token buckets that nodes share through a Redis: one script, on that server's clock, decides over all buckets of a
//! request, all or nothing.
//!
//! They must never be what stock depends on, nor keep anybody waiting: who gets no answer within the limit decides alone.
//! A decision that comes too late may still take its tokens. So fewer are admitted than might be, and never more.

mod breaker;

use crate::OpenError;
use crate::clock::monotonic;
use crate::redis::net::{Net, NetConfig, NetError, Script};
use breaker::Breaker;
use redis::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

const TAKE: &str = include_str!("take.lua");

/// Sales are spread over so many hash tags. Each sale's buckets are under one.
const TAGS: u32 = 256;
/// The work of an ask that nobody waits for any more ends by itself after so long.
const LONGEST: Duration = Duration::from_secs(2);
/// How long the server may be silent before the connection is given up.
const SILENCE: Duration = Duration::from_millis(500);

/// One token, in millionths.
const TOKEN: u64 = 1_000_000;
/// Within these, the script's numbers are exact: ten million tokens, and a thousand million tokens per second.
const MOST_MICRO: u64 = 10_000_000 * TOKEN;
const FASTEST_MICRO: u64 = 1_000_000_000 * TOKEN;

/// One bucket that a request has to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask<'a> {
    /// What tells it from the sale's other buckets: `g`, `s:<sku>`, `c:<client>`. No two in one ask are the same.
    pub key: &'a str,
    /// What it has when it is full, in millionths of a token; from one token to ten million are possible, and what is
    /// beyond is as if it were that.
    pub capacity_micro: u64,
    /// How fast it fills, in millionths of a token per second, up to a thousand million tokens. 0 is a pause.
    pub micro_per_second: u64,
}

/// What a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may go on, and has taken a token from every bucket.
    Admitted,
    /// It may not, and has taken nothing.
    Refused {
        /// After exactly so many microseconds on the server's clock it would be admitted, if nobody else was.
        retry_after_us: u64,
        /// The same for each bucket, as they were asked for; 0 for those that had a token.
        waits_us: Vec<u64>,
    },
    /// One of the buckets never fills; nothing was asked.
    Paused,
}

/// The shared buckets gave no answer in time, or gave none lately and were not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shared token buckets cannot be reached")
    }
}

impl std::error::Error for Gone {}

/// The buckets on one Redis, or on a cluster. A clone is the same.
#[derive(Clone)]
pub struct SharedBuckets {
    shared: Arc<Shared>,
}

struct Shared {
    config: NetConfig,
    net: OnceCell<Net>,
    script: Script,
    breaker: Breaker,
}

impl SharedBuckets {
    /// Those at a URL: `redis://`, `rediss://`, `redis+cluster://`, `rediss+cluster://`. Nothing is connected to before
    /// the first ask: a node starts without.
    ///
    /// # Errors
    /// When the URL is not understood. It is not repeated, since it may carry a password.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        let mut config = NetConfig::parse(url).map_err(OpenError)?;
        (config.timeout, config.connect_timeout) = (SILENCE, SILENCE * 2);
        let script = Script::new("take", TAKE);
        let shared = Shared { config, net: OnceCell::new(), script, breaker: Breaker::default() };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Takes a token from each of these buckets of a sale, or from none; never takes longer than the limit.
    ///
    /// # Errors
    /// When there is no answer within the limit, or was none lately. Then the caller decides.
    pub async fn ask(&self, sale: &str, buckets: &[Ask<'_>], limit: Duration) -> Result<Decision, Gone> {
        if buckets.iter().any(|bucket| bucket.micro_per_second == 0) {
            return Ok(Decision::Paused);
        }
        if buckets.is_empty() {
            return Ok(Decision::Admitted);
        }
        if !self.shared.breaker.may_ask(monotonic()) {
            return Err(Gone);
        }
        let tag = tag(sale);
        let keys =
            buckets.iter().map(|bucket| format!("hf:ac:{{p{tag}}}:{sale}:{}", bucket.key).into_bytes()).collect();
        let args = buckets.iter().flat_map(numbers).collect();
        // On a task of its own: a connection is found to be dead by those who wait longer than a request may.
        let asked = tokio::spawn(self.shared.clone().take(tag, keys, args));
        let answer = match tokio::time::timeout(limit, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(ended)) => Err(ended.to_string()),
            Err(_) => Err(format!("no answer within {limit:?}")),
        };
        match answer {
            Ok(waits) => {
                self.shared.breaker.succeeded();
                Ok(decision(waits))
            }
            Err(why) => {
                if self.shared.breaker.failed(monotonic()) {
                    tracing::warn!(%why, "the shared token buckets do not answer; this node decides alone");
                }
                Err(Gone)
            }
        }
    }
}

impl Shared {
    /// Runs the script; the waits, or why there are none.
    async fn take(self: Arc<Self>, tag: u32, keys: Vec<Vec<u8>>, args: Vec<Vec<u8>>) -> Result<Vec<u64>, String> {
        let taken = async {
            let net = self.net.get_or_try_init(|| Net::connect(self.config.clone(), TAGS)).await?;
            net.eval(tag, None, &self.script, &keys, &args).await
        };
        let answer = tokio::time::timeout(LONGEST, taken).await.map_err(|_| "no answer".to_owned())?;
        let answer = answer.map_err(|error: NetError| error.to_string())?;
        read(&answer).filter(|waits| waits.len() == keys.len()).ok_or_else(|| format!("an odd answer: {answer:?}"))
    }
}

/// Where it leads, without the login.
impl fmt::Debug for SharedBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBuckets({})", self.shared.config)
    }
}

/// FNV-1a: the same on every node, of whatever version.
fn tag(sale: &str) -> u32 {
    sale.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) % TAGS
}

fn numbers(bucket: &Ask<'_>) -> [Vec<u8>; 2] {
    let capacity = bucket.capacity_micro.clamp(TOKEN, MOST_MICRO);
    let rate = bucket.micro_per_second.min(FASTEST_MICRO);
    [capacity.to_string().into_bytes(), rate.to_string().into_bytes()]
}

fn read(answer: &Value) -> Option<Vec<u64>> {
    let Value::Array(waits) = answer else { return None };
    let wait = |value: &Value| match value {
        Value::Int(wait) => u64::try_from(*wait).ok(),
        _ => None,
    };
    waits.iter().map(wait).collect()
}

fn decision(waits_us: Vec<u64>) -> Decision {
    match waits_us.iter().copied().max() {
        None | Some(0) => Decision::Admitted,
        Some(retry_after_us) => Decision::Refused { retry_after_us, waits_us },
    }
}
