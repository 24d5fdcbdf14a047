//! The report as one page that needs nothing else: no scripts, no fonts, no images from anywhere.
//! (Writing into a String cannot fail.)

use super::super::rows::grouped;
use super::charts::{last_units, short, throughput};
use super::report::{Report, Row};
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
const LEGEND: &str = include_str!("legend.html");

/// What a scenario asks, for people who have not read the manual.
const SCENARIOS: [(&str, &str, &str); 4] = [
    ("hot", "One hot SKU", "Everybody wants one unit of the same SKU; there are enough for all."),
    ("spread", "1,000 SKUs", "Everybody wants one unit of a random SKU."),
    ("cart", "Carts", "Everybody wants one unit each of 3 to 10 of 100 SKUs, in random order."),
    ("soldout", "Sold out", "Everybody wants a SKU that has no units: how fast is no?"),
];

/// Text as it may stand in HTML, within quotes as well.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The page.
pub(super) fn page(report: &Report) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>holdfast bench {}</title><style>{STYLE}</style></head><body><main>",
        escaped(&report.began),
    );
    head(report, &mut html);
    verdict(report, &mut html);
    for (name, title, what) in SCENARIOS {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.scenario == name).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(html, "<section><h2>{title}</h2><p>{what}</p>");
        throughput(&rows, report.yardstick.as_ref().filter(|_| name == "hot"), &mut html);
        if let Some(last) = rows.iter().find_map(|row| row.last_units.as_ref()) {
            let stock = last.stock;
            let _ = write!(
                html,
                "<h3>The last {stock} units</h3><p>Before that, {} callers wanted the last {stock} units of another \
                 SKU until each was told that it is sold out. Units promised; the mark is where the stock ends.</p>",
                report.clients
            );
            last_units(&rows, &mut html);
        }
        html.push_str("</section>");
    }
    table(&report.rows, &mut html);
    remarks(report, &mut html);
    html.push_str("</main></body></html>\n");
    html
}

fn head(report: &Report, html: &mut String) {
    let m = &report.machine;
    let fsync = m.fsync_ms.map_or_else(|| "not measured".into(), |ms| format!("{ms:.2} ms for a lone sync, here"));
    let _ = write!(
        html,
        "<header><h1>Holds per second, and whether they are right</h1><dl>\
         <dt>Machine</dt><dd>{}, {} cores, {}</dd><dt>Version</dt><dd>holdfast {}</dd>\
         <dt>Date</dt><dd>{}</dd><dt>Load</dt><dd>{} callers in process, {} s a row, on the same machine</dd>\
         <dt>Disk</dt><dd>{fsync}</dd><dt>Durable</dt><dd>{}",
        escaped(&m.processor),
        m.cores,
        escaped(&m.system),
        escaped(&m.version),
        escaped(&report.began),
        report.clients,
        report.seconds,
        escaped(m.durability),
    );
    for database in &report.databases {
        let _ = write!(html, "<br>{}", escaped(database));
    }
    let _ = write!(html, "</dd><dt>Command</dt><dd><code>{}</code></dd></dl></header>", escaped(&report.command));
}

fn verdict(report: &Report, html: &mut String) {
    if report.rows.iter().any(|row| !row.is_unsafe) {
        let class = if report.verdict.is_good() { "good" } else { "wrong" };
        let told = escaped(&report.verdict.to_string());
        let _ = write!(html, "<p class=\"verdict {class}\"><b>Every row but naive:</b> {told}.</p>");
    }
    if report.rows.iter().any(|row| row.is_unsafe) {
        html.push_str(
            "<p class=\"verdict note\"><b>naive is unsafe.</b> It reads, decides and writes without looking whether \
             anybody else did so meanwhile. It is here to show what that costs: units sold twice. No server runs \
             it.</p>",
        );
    }
    html.push_str(LEGEND);
}

fn table(rows: &[Row], html: &mut String) {
    html.push_str("<section><h2>All figures</h2><div class=\"scroll\"><table><thead><tr>");
    for name in [
        "scenario",
        "engine",
        "batches",
        "nodes",
        "accepted/s",
        "refused/s",
        "errors",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "max ms",
        "retries",
        "last units",
        "oversold",
        "stranded",
        "lost",
        "in doubt",
        "drift",
    ] {
        let _ = write!(html, "<th>{name}</th>");
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        let verdict = &row.verdict;
        let class = if row.is_unsafe || !verdict.is_good() { " class=\"row-bad\"" } else { "" };
        let _ = write!(html, "<tr{class}><td>{}</td>", row.scenario);
        let _ = write!(html, "<td>{}</td><td>{}</td><td>{}</td>", escaped(&row.who()), row.batches, row.nodes);
        let figures = [row.accepted_per_second, row.refused_per_second, row.errors as f64].map(grouped);
        let latency = &row.latency;
        let latency = [latency.p50_ms, latency.p99_ms, latency.p999_ms, latency.max_ms].map(short);
        figures.iter().chain(&latency).for_each(|figure| cell(figure, false, html));
        cell(&grouped(row.retries as f64), false, html);
        let last = row.last_units.as_ref().map(|last| format!("{} of {}", grouped(last.promised as f64), last.stock));
        cell(&last.unwrap_or_default(), false, html);
        for n in [verdict.oversold, verdict.stranded, verdict.lost] {
            cell(&grouped(n as f64), n > 0, html);
        }
        cell(&grouped(verdict.in_doubt as f64), false, html);
        cell(&grouped(verdict.drift as f64), verdict.drift > 0, html);
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div></section>");
}

fn cell(text: &str, is_bad: bool, html: &mut String) {
    let class = if is_bad { "n bad" } else { "n" };
    let _ = write!(html, "<td class=\"{class}\">{text}</td>");
}

fn remarks(report: &Report, html: &mut String) {
    let remarks = report.remarks();
    if remarks.is_empty() {
        return;
    }
    html.push_str("<section><h2>Remarks</h2><ul>");
    for remark in remarks {
        let _ = write!(html, "<li>{}</li>", escaped(&remark));
    }
    html.push_str("</ul></section>");
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{report, row};
    use super::*;
    use holdfast_engine::Strategy;

    #[test]
    fn markup_in_texts_is_shown_and_not_believed() {
        assert_eq!(escaped("<a href=\"x\">'&'</a>"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
        let html = page(&report(vec![row(Strategy::Naive, 501)]));
        assert!(html.contains("postgres &lt;h&gt; naive") && html.contains("&lt;b&gt;bad&lt;/b&gt;"), "{html}");
        assert!(!html.contains("<h> naive") && !html.contains("<b>bad"));
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        let html = page(&report(vec![row(Strategy::Naive, 1703), row(Strategy::RowLock, 500)]));
        for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("prefers-color-scheme") && html.contains("1,703 of 500"), "{html}");
        assert!(html.contains("pgbench") && html.contains("verdict good"), "{html}");
        let html = page(&report(vec![row(Strategy::RowLock, 501)]));
        assert!(html.contains("verdict wrong"), "{html}");
    }
}
