//! Charts of the report: HTML for text, SVG for bars and marks. Places are told in percent, so a chart is as wide as
//! the screen allows and its text stays readable. (Writing into a String cannot fail.)

use super::super::pgbench;
use super::super::rows::grouped;
use super::html::escaped;
use super::report::Row;
use std::fmt::Write;

/// A bar that is there can be seen.
const LEAST: f64 = 0.4;

/// Throughput and latency of each row of a scenario.
pub(super) fn throughput(rows: &[&Row], yardstick: Option<&pgbench::Measured>, html: &mut String) {
    let per_second = yardstick.map_or(0.0, |y| y.per_second);
    let most = rows.iter().map(|row| row.throughput()).fold(per_second, f64::max).max(1.0);
    let scale = Scale::of(rows);
    let _ = write!(
        html,
        "<div class=\"chart\"><div class=\"line head\"><div class=\"label\"></div>\
         <div class=\"value\">{}</div><div class=\"bar\"></div>\
         <div class=\"strip\">{}</div><div class=\"ms\">p50 / p99 ms</div></div>",
        if rows.iter().any(|row| row.scenario == "soldout") { "refused/s" } else { "accepted/s" },
        scale.ticks(),
    );
    for row in rows {
        let value = row.throughput();
        let class = if row.is_unsafe { "unsafe" } else { row.batches };
        let _ = write!(
            html,
            "<div class=\"line\"><div class=\"label\">{}{}</div><div class=\"value\">{}</div>\
             <div class=\"bar\">{}</div><div class=\"strip\">{}</div>\
             <div class=\"ms\">{} / {}</div></div>",
            label(row),
            wrong(row),
            grouped(value),
            bar(value / most, class, None),
            scale.marks(row),
            short(row.latency.p50_ms),
            short(row.latency.p99_ms),
        );
    }
    if let Some(yardstick) = yardstick {
        let _ = write!(
            html,
            "<div class=\"line\"><div class=\"label\">pgbench <span class=\"how\">yardstick</span></div>\
             <div class=\"value\">{}</div><div class=\"bar\">{}</div><div class=\"strip\"></div>\
             <div class=\"ms\">mean {}</div></div>",
            grouped(yardstick.per_second),
            bar(yardstick.per_second / most, "yardstick", None),
            short(yardstick.latency_ms),
        );
    }
    html.push_str("</div>");
}

/// Units promised of a stock that was too small for all, with a mark where it ends.
pub(super) fn last_units(rows: &[&Row], html: &mut String) {
    let last = || rows.iter().filter_map(|row| row.last_units.as_ref().map(|last| (row, last)));
    let most = last().map(|(_, last)| last.promised.max(last.stock)).max().unwrap_or(1) as f64 * 1.02;
    html.push_str("<div class=\"chart units\">");
    for (row, last) in last() {
        let over = last.promised.saturating_sub(last.stock);
        let class = if over > 0 { "unsafe" } else { row.batches };
        let told =
            if over > 0 { format!("<b class=\"bad\">{} too many</b>", grouped(over as f64)) } else { String::new() };
        let _ = write!(
            html,
            "<div class=\"line\"><div class=\"label\">{}</div><div class=\"value\">{}</div>\
             <div class=\"bar\">{}</div><div class=\"ms\">{told}</div></div>",
            label(row),
            grouped(last.promised as f64),
            bar(last.promised as f64 / most, class, Some(last.stock as f64 / most)),
        );
    }
    html.push_str("</div>");
}

/// Who it is.
fn label(row: &Row) -> String {
    let mut text = format!("{} <span class=\"how\">{}</span>", escaped(&row.who()), escaped(&row.how()));
    if row.is_unsafe {
        text.push_str(" <span class=\"badge\">unsafe</span>");
    }
    text
}

fn wrong(row: &Row) -> String {
    let wrong = row.wrong().map(|wrong| format!("<span class=\"bad\">{}</span>", escaped(&wrong)));
    wrong.unwrap_or_default()
}

fn bar(share: f64, class: &str, mark: Option<f64>) -> String {
    let mut svg = format!(
        "<svg width=\"100%\" height=\"18\" aria-hidden=\"true\">\
         <rect class=\"{class}\" width=\"{:.2}%\" height=\"18\" rx=\"2\"/>",
        (share * 100.0).clamp(if share > 0.0 { LEAST } else { 0.0 }, 100.0),
    );
    if let Some(mark) = mark {
        let x = mark * 100.0;
        let _ = write!(svg, "<line class=\"mark\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"18\"/>");
    }
    svg.push_str("</svg>");
    svg
}

/// A latency in few characters.
pub(super) fn short(ms: f64) -> String {
    match ms {
        ms if ms >= 99.95 => grouped(ms),
        ms if ms >= 9.995 => format!("{ms:.1}"),
        ms => format!("{ms:.2}"),
    }
}

/// Latencies by their logarithm, from one power of ten to another.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(rows: &[&Row]) -> Self {
        let least = rows.iter().map(|row| row.latency.p50_ms).fold(f64::INFINITY, f64::min);
        let most = rows.iter().map(|row| row.latency.p99_ms).fold(0.0, f64::max);
        let low = least.clamp(0.001, 1e6).log10().floor();
        Self { low, high: most.clamp(0.001, 1e6).log10().ceil().max(low + 1.0) }
    }

    /// From 0 at the left to 100 at the right, with room for half a mark at both ends.
    fn x(&self, ms: f64) -> f64 {
        let share = (ms.max(1e-6).log10() - self.low) / (self.high - self.low);
        2.0 + share.clamp(0.0, 1.0) * 96.0
    }

    fn powers(&self) -> impl Iterator<Item = i32> + use<> {
        self.low as i32..=self.high as i32
    }

    fn ticks(&self) -> String {
        let mut svg = "<svg width=\"100%\" height=\"16\" aria-hidden=\"true\">".to_owned();
        for power in self.powers() {
            let ms = 10_f64.powi(power);
            let anchor = match f64::from(power) {
                p if p <= self.low => "start",
                p if p >= self.high => "end",
                _ => "middle",
            };
            let text = match power {
                ..0 => format!("{ms:.*}", power.unsigned_abs() as usize),
                0..3 => grouped(ms),
                3.. => format!("{} s", grouped(ms / 1000.0)),
            };
            let _ = write!(svg, "<text x=\"{:.2}%\" y=\"12\" text-anchor=\"{anchor}\">{text}</text>", self.x(ms));
        }
        svg.push_str("</svg>");
        svg
    }

    fn marks(&self, row: &Row) -> String {
        let mut svg = "<svg width=\"100%\" height=\"18\" aria-hidden=\"true\">".to_owned();
        for power in self.powers() {
            let x = self.x(10_f64.powi(power));
            let _ = write!(svg, "<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"18\"/>");
        }
        let (p50, p99) = (self.x(row.latency.p50_ms), self.x(row.latency.p99_ms));
        let _ = write!(
            svg,
            "<line class=\"span\" x1=\"{p50:.2}%\" x2=\"{p99:.2}%\" y1=\"9\" y2=\"9\"/>\
             <circle class=\"p50\" cx=\"{p50:.2}%\" cy=\"9\" r=\"5\"/>\
             <line class=\"p99\" x1=\"{p99:.2}%\" x2=\"{p99:.2}%\" y1=\"2\" y2=\"16\"/></svg>"
        );
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::row;
    use super::*;
    use holdfast_engine::Strategy;

    #[test]
    fn latencies_are_placed_by_their_logarithm() {
        let scale = Scale { low: 0.0, high: 2.0 };
        for (ms, x) in [(1.0, 2.0), (10.0, 50.0), (100.0, 98.0), (0.0, 2.0), (5000.0, 98.0)] {
            assert!((scale.x(ms) - x).abs() < 1e-9, "{ms} is at {}", scale.x(ms));
        }
        assert_eq!(
            ["0.04", "9.99", "10.0", "100", "1,235"],
            [0.04, 9.99, 9.996, 99.97, 1234.6].map(short).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn what_was_oversold_is_red_and_told() {
        let (bad, good) = (row(Strategy::Naive, 1703), row(Strategy::RowLock, 500));
        let mut html = String::new();
        last_units(&[&bad, &good], &mut html);
        assert!(html.contains("1,203 too many"), "{html}");
        assert_eq!((html.matches("class=\"unsafe\"").count(), html.matches("class=\"one\"").count()), (1, 1));
        html.clear();
        throughput(&[&bad, &good], None, &mut html);
        assert!(
            html.contains("postgres &lt;h&gt; naive") && html.contains("<span class=\"bad\">1,203 oversold"),
            "{html}"
        );
    }
}
