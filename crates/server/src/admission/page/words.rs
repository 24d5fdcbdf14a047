//! Numbers, times and ranges in words. The words themselves are in the template; `wait.js` builds with the same ones.

use super::TEMPLATE;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// A phrase of the template by its name.
pub(super) fn word(name: &str) -> &'static str {
    let start = TEMPLATE.split_once(&format!("data-word=\"{name}\">"));
    start.and_then(|(_, rest)| rest.split('<').next()).unwrap_or_default()
}

fn put(name: &str, values: &[(&str, u64)]) -> String {
    values.iter().fold(word(name).to_owned(), |text, (slot, value)| text.replace(slot, &value.to_string()))
}

/// With a comma at every third digit.
pub(super) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A range of waiting times: seldom less than the first, seldom more than the second, both in seconds.
pub(super) fn range(p50: u64, p90: u64) -> String {
    if p90 < MINUTE {
        return word("under_minute").to_owned();
    }
    if p90 > 90 * MINUTE {
        let a = ((p50 + HOUR / 2) / HOUR).max(1);
        let b = p90.div_ceil(HOUR).max(a);
        return match (a, b) {
            _ if a < b => put("hour_range", &[("{a}", a), ("{b}", b)]),
            (1, _) => word("one_hour").to_owned(),
            _ => put("hours", &[("{a}", a)]),
        };
    }
    // The longer the wait, the less a minute means.
    let step = if p90 > 20 * MINUTE { 5 } else { 1 };
    let a = (p50 / (step * MINUTE) * step).max(1);
    let b = (p90.div_ceil(step * MINUTE) * step).max(a);
    match (a, b) {
        _ if a < b => put("minute_range", &[("{a}", a), ("{b}", b)]),
        (1, _) => word("one_minute").to_owned(),
        _ => put("minutes", &[("{a}", a)]),
    }
}

/// A time left as a clock shows it.
pub(super) fn count(ms: i64) -> String {
    let seconds = u64::try_from(ms).unwrap_or(0).div_ceil(1000);
    let (hours, minutes) = (seconds / HOUR, seconds % HOUR / MINUTE);
    match hours {
        0 => format!("{minutes}:{:02}", seconds % MINUTE),
        1..24 => format!("{hours}:{minutes:02}:{:02}", seconds % MINUTE),
        _ => put("days", &[("{d}", hours / 24), ("{h}", hours % 24)]),
    }
}

struct Civil {
    year: i64,
    month: usize,
    day: i64,
    ms: i64,
}

/// Date and time of day in UTC, from the civil calendar whose years begin in March.
fn civil(at: i64) -> Civil {
    const DAY: i64 = 86_400_000;
    let days = at.div_euclid(DAY) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    Civil { year, month: usize::try_from(month).unwrap_or(1), day, ms: at.rem_euclid(DAY) }
}

/// As the API writes moments.
pub(super) fn rfc3339(at: i64) -> String {
    let Civil { year, month, day, ms } = civil(at);
    let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", ms % 1000)
}

/// For people, where only the server's zone is known. With JavaScript the page tells it in the shopper's own.
pub(super) fn day_and_time(at: i64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let Civil { month, day, ms, .. } = civil(at);
    let name = MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or_default();
    format!("{day} {name}, {:02}:{:02} UTC", ms / 3_600_000, ms / 60_000 % 60)
}
