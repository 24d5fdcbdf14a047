//! When an event that was not accepted is tried again.

use holdfast_engine::clock::random_seed;
use std::time::Duration;

/// Between one attempt and the next, as Standard Webhooks proposes; the first attempt is made at once.
const DELAYS: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
/// A sink that asks for more time than this is tried nevertheless.
const LONGEST: Duration = Duration::from_hours(24);
/// A broker that is away is looked for at least this often.
const AWAY: Duration = Duration::from_mins(1);

/// How long to wait after so many failed attempts; `None` when that was the last one.
pub(super) fn after(attempts: u32, asked: Option<Duration>) -> Option<Duration> {
    let index = usize::try_from(attempts.saturating_sub(1)).ok()?;
    let delay = with_jitter(Duration::from_secs(*DELAYS.get(index)?));
    Some(delay.max(asked.unwrap_or_default().min(LONGEST)))
}

/// How long to wait for a broker that was away so many times.
pub(super) fn away(times: u32) -> Duration {
    with_jitter(Duration::from_secs(1 << times.saturating_sub(1).min(6)).min(AWAY))
}

/// Up to a tenth more, so that not everybody comes back at once.
fn with_jitter(delay: Duration) -> Duration {
    let millis = delay.as_millis() as u64;
    Duration::from_millis(millis + random_seed() % (millis / 10).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_attempts_over_about_three_days() {
        let waits: Vec<Duration> = (1..).map_while(|attempts| after(attempts, None)).collect();
        assert_eq!(waits.len(), 9);
        let sum: Duration = waits.iter().sum();
        let days = sum.as_secs_f64() / 86_400.0;
        assert!((3.1..3.6).contains(&days), "{days}");
        assert!(waits[0] >= Duration::from_secs(5) && waits[0] < Duration::from_secs(6));
    }

    #[test]
    fn a_sink_may_ask_for_more_time_but_not_for_ever() {
        assert_eq!(after(1, Some(Duration::from_mins(1))), Some(Duration::from_mins(1)));
        assert!(after(2, Some(Duration::from_secs(1))) >= Some(Duration::from_mins(5)));
        assert_eq!(after(1, Some(Duration::MAX)), Some(LONGEST));
        assert_eq!(after(10, Some(Duration::from_mins(1))), None);
    }

    #[test]
    fn a_broker_that_is_away_is_looked_for_every_minute() {
        assert!(away(1) < Duration::from_millis(1100));
        assert!((Duration::from_secs(4)..Duration::from_millis(4400)).contains(&away(3)));
        assert!(away(u32::MAX) < Duration::from_secs(66));
    }
}
