//! Import: a table of SKUs, read as it arrives, applied line by line with a report.

use super::lined::Lined;
use super::stock::{self, read_limit, read_total};
use crate::app::{Shared, json};
use crate::body::{JsonBytes, Path, StrictQuery};
use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response};
use holdfast_domain::{Command, MAX_TOTAL, Outcome, SetStock, Sku};
use holdfast_engine::{Answer, EngineError};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Read};
use std::time::Duration;
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

/// The most bytes of a table.
const LIMIT: usize = 64 << 20;
/// A client that sends nothing for this long is given up.
const PACE: Duration = Duration::from_secs(30);
/// Lines that are in the lane at once.
const WINDOW: usize = 512;
/// Errors told one by one; all are counted.
const ERRORS: usize = 1000;

/// What a line's number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// The total is to be this.
    #[default]
    Set,
    /// So many are to be added.
    Add,
}

/// How to read the table.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportQuery {
    #[serde(default)]
    mode: Mode,
}

/// One line that failed.
#[derive(Serialize, ToSchema)]
pub(crate) struct LineError {
    line: u64,
    sku: String,
    code: &'static str,
    detail: String,
}

/// What an import did.
#[derive(Default, Serialize, ToSchema)]
pub(crate) struct Report {
    created: u64,
    updated: u64,
    unchanged: u64,
    failed: u64,
    /// The first 1,000 that failed.
    errors: Vec<LineError>,
}

impl Report {
    fn fail(&mut self, line: u64, sku: String, problem: &Problem) {
        self.failed += 1;
        if self.errors.len() < ERRORS {
            self.errors.push(LineError { line, sku, code: problem.code(), detail: problem.detail().to_owned() });
        }
    }
}

/// One line as read: what to do, or what is wrong with it.
pub(crate) struct Row {
    pub(crate) line: u64,
    sku: String,
    command: Result<Command, Problem>,
}

/// The lines of a table, read as they are asked for.
pub(crate) struct Rows<R: Read> {
    records: csv::ByteRecordsIntoIter<Lined<R>>,
    mode: Mode,
    has_limit: bool,
}

impl<R: Read> Rows<R> {
    /// Reads the header: `sku,total` or `sku,total,limit_per_customer`.
    pub(crate) fn new(source: R, mode: Mode) -> Result<Self, Problem> {
        let table = "the first line must be sku,total or sku,total,limit_per_customer";
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(Lined::new(source));
        let header = reader.byte_headers().map_err(|e| Problem::new("invalid_request", format!("{table}: {e}")))?;
        let names: Vec<&[u8]> = header.iter().collect();
        let has_limit = match names.as_slice() {
            [b"sku", b"total"] => false,
            [b"sku", b"total", b"limit_per_customer"] => true,
            _ => return Err(Problem::new("invalid_request", table)),
        };
        if has_limit && mode == Mode::Add {
            return Err(Problem::new("invalid_request", "limit_per_customer goes with mode=set"));
        }
        Ok(Self { records: reader.into_byte_records(), mode, has_limit })
    }

    fn read(&self, record: &csv::ByteRecord) -> Result<Command, Problem> {
        let invalid = |what: String| Problem::new("invalid_request", what);
        let expected = if self.has_limit { 3 } else { 2 };
        if record.len() != expected {
            return Err(invalid(format!("has {} fields, not {expected}", record.len())));
        }
        let field = |index: usize| {
            std::str::from_utf8(record.get(index).unwrap_or_default()).map_err(|_| invalid("is not UTF-8".into()))
        };
        let sku = Sku::new(field(0)?).map_err(|e| invalid(format!("sku {e}")))?;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| is_number)
        };
        let total = field(1)?;
        if self.mode == Mode::Add {
            let (is_taken, digits) = total.strip_prefix('-').map_or((false, total), |digits| (true, digits));
            let units = number(digits).filter(|u| *u <= MAX_TOTAL);
            let units = units
                .ok_or_else(|| invalid(format!("total must be a whole number from -{MAX_TOTAL} to {MAX_TOTAL}")))?;
            let delta = if is_taken { -(units as i64) } else { units as i64 };
            return Ok(Command::AdjustStock { sku, delta, reason: Some("import".into()), key: None, create: true });
        }
        let total = number(total).ok_or_else(|| invalid("total must be a whole number".into()))?;
        let total = read_total(total).map_err(|e| invalid(format!("total {e}")))?;
        // An empty field leaves the limit as it is.
        let limit_per_customer = match self.has_limit.then(|| field(2)).transpose()?.filter(|t| !t.is_empty()) {
            None => None,
            Some(text) => {
                let limit = number(text).ok_or_else(|| invalid("limit_per_customer must be a whole number".into()))?;
                Some(Some(read_limit(limit).map_err(|e| invalid(format!("limit_per_customer {e}")))?))
            }
        };
        Ok(Command::SetStock(SetStock { sku, total, limit_per_customer, if_version: None }))
    }
}

impl<R: Read> Iterator for Rows<R> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let offset = self.records.reader().position().byte();
        self.records.reader_mut().get_mut().go_on_at(offset);
        let record = self.records.next()?;
        let line = self.records.reader_mut().get_mut().line();
        match record {
            Ok(record) => {
                let sku = String::from_utf8_lossy(record.get(0).unwrap_or_default()).into_owned();
                Some(Row { line, sku, command: self.read(&record) })
            }
            Err(error) => {
                let problem = Problem::new("invalid_request", format!("the table could not be read further: {error}"));
                Some(Row { line, sku: String::new(), command: Err(problem) })
            }
        }
    }
}

/// The body's bytes as a blocking reader.
struct Chunks {
    source: mpsc::Receiver<Result<axum::body::Bytes, Problem>>,
    current: axum::body::Bytes,
    failed: std::sync::Arc<std::sync::Mutex<Option<Problem>>>,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.source.blocking_recv() {
                None => return Ok(0),
                Some(Ok(chunk)) => self.current = chunk,
                Some(Err(problem)) => {
                    let error = io::Error::other(problem.detail().to_owned());
                    *self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(problem);
                    return Err(error);
                }
            }
        }
        let taken = self.current.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&self.current.split_to(taken));
        Ok(taken)
    }
}

/// Hands the body on, chunk by chunk, as long as it keeps its size and pace.
async fn pump(mut body: Body, to: mpsc::Sender<Result<axum::body::Bytes, Problem>>) {
    let mut left = LIMIT;
    loop {
        let chunk = match tokio::time::timeout(PACE, body.frame()).await {
            Err(_) => Err(Problem::new("request_timeout", "the table stopped arriving; the lines before are applied")),
            Ok(None) => return,
            Ok(Some(Err(_))) => Err(Problem::new("invalid_request", "the body could not be read to its end")),
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Err(_) => continue,
                Ok(data) if data.len() > left => {
                    Err(Problem::new("body_too_large", format!("at most {LIMIT} bytes; the lines before are applied")))
                }
                Ok(data) => {
                    left -= data.len();
                    Ok(data)
                }
            },
        };
        let is_end = chunk.is_err();
        if to.send(chunk).await.is_err() || is_end {
            return;
        }
    }
}

/// Create or change many SKUs from a CSV table; each line on its own.
#[utoipa::path(post, path = "/v1/stock/import", params(ImportQuery), request_body(content = String, content_type = "text/csv"), responses(
    (status = 200, body = Report), (status = 422, description = "invalid_request: no such table")))]
pub(super) async fn import_stock(
    State(app): State<Shared>,
    StrictQuery(query): StrictQuery<ImportQuery>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let kind = request.headers().get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/csv") {
        return Err(Problem::new("unsupported_media_type", "send Content-Type: text/csv"));
    }
    let (chunks, source) = mpsc::channel(8);
    let (rows, mut read) = mpsc::channel(WINDOW);
    let failed = std::sync::Arc::default();
    let chunked = Chunks { source, current: axum::body::Bytes::new(), failed: std::sync::Arc::clone(&failed) };
    tokio::spawn(pump(request.into_body(), chunks));
    let parser = tokio::task::spawn_blocking(move || {
        for row in Rows::new(chunked, query.mode)? {
            if rows.blocking_send(row).is_err() {
                break;
            }
        }
        Ok::<(), Problem>(())
    });
    let mut report = Report::default();
    let mut window = Vec::with_capacity(WINDOW);
    while read.recv_many(&mut window, WINDOW).await > 0 {
        apply(&app, &mut window, &mut report).await?;
    }
    parser.await.map_err(|e| Problem::new("engine_unavailable", e.to_string()))??;
    let broken: Option<Problem> = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    match broken {
        Some(problem) => Err(problem),
        None => Ok(json(200, &report)),
    }
}

/// Applies a window of lines: all in the lane at once, in order, then their answers in order. Where a lane has several
/// workers, a SKU that comes again waits for what came before.
async fn apply(app: &Shared, window: &mut Vec<Row>, report: &mut Report) -> Result<(), Problem> {
    let keeps_order = app.engine.is_blocking() || app.config.lanes.workers == 1;
    let mut waiting = Vec::with_capacity(window.len());
    let mut seen = HashSet::new();
    for Row { line, sku, command } in window.drain(..) {
        if !keeps_order && !seen.insert(sku.clone()) {
            settle(&mut waiting, report).await?;
            seen.clear();
            seen.insert(sku.clone());
        }
        let answer = match command {
            Err(problem) => Err(problem),
            Ok(command) => Ok(app.lanes.enqueue(command).await?),
        };
        waiting.push((line, sku, answer));
    }
    settle(&mut waiting, report).await
}

/// Waits for answers and counts them.
async fn settle<A>(waiting: &mut Vec<(u64, String, Result<A, Problem>)>, report: &mut Report) -> Result<(), Problem>
where
    A: Future<Output = Result<Answer, EngineError>>,
{
    for (line, sku, answer) in waiting.drain(..) {
        match answer {
            Err(problem) => report.fail(line, sku, &problem),
            Ok(answer) => match answer.await? {
                Ok(Outcome::Stock { created: true, .. }) => report.created += 1,
                Ok(Outcome::Stock { changed: true, .. }) => report.updated += 1,
                Ok(_) => report.unchanged += 1,
                Err(refusal) => report.fail(line, sku, &refusal.into()),
            },
        }
    }
    Ok(())
}

// A SKU may be called "import": the other methods of the path are those of any SKU.

fn named() -> Path<String> {
    Path("import".to_owned())
}

pub(super) async fn get_named(app: State<Shared>) -> Result<Response<Body>, Problem> {
    stock::get_stock(app, named()).await
}

pub(super) async fn put_named(
    app: State<Shared>,
    headers: HeaderMap,
    body: JsonBytes,
) -> Result<Response<Body>, Problem> {
    stock::put_stock(app, named(), headers, body).await
}

pub(super) async fn delete_named(app: State<Shared>, headers: HeaderMap) -> Result<Response<Body>, Problem> {
    stock::delete_stock(app, named(), headers).await
}
