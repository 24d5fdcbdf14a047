//! One provider's HTTP: a client with limits, and answers without secrets.
//!
//! The key never leaves through an error or a log line, and redirects are never followed: they would carry it along.

use super::Trouble;
use reqwest::{Method, StatusCode, Url, redirect};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(10);
/// Providers talk to banks; an answer that comes later than this is asked for again.
pub(super) const ANSWER: Duration = Duration::from_secs(40);
const MAX_BODY: usize = 1 << 20;
const MAX_WORDS: usize = 300;
/// No provider makes us wait longer, whatever it says.
const MAX_WAIT_SECONDS: u64 = 86_400;

/// Calls to one provider.
pub(super) struct Http {
    name: &'static str,
    client: reqwest::Client,
    base: String,
    key: Box<str>,
}

/// Without the key.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("name", &self.name).field("base", &self.base).finish_non_exhaustive()
    }
}

/// What a provider answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Null if it is no JSON.
    pub(super) body: Value,
    pub(super) retry_after: Option<u64>,
    headers: reqwest::header::HeaderMap,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status) && self.body.is_object()
    }

    /// What a header says that is `true` or `false`.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.headers.get(name)?.to_str().ok()?.trim().parse().ok()
    }

    pub(super) fn text(&self, pointer: &str) -> Option<&str> {
        self.body.pointer(pointer)?.as_str()
    }
}

impl Http {
    /// `base` is where the calls go; over plain HTTP only to this machine, since the key goes along.
    pub(super) fn new(name: &'static str, base: &str, key: &str, timeout: Duration) -> Result<Self, String> {
        let base = base.trim_end_matches('/');
        let url = Url::parse(base).map_err(|e| format!("the {name} API base is no URL: {e}"))?;
        let is_local = url.host_str().is_some_and(|h| matches!(h, "127.0.0.1" | "localhost" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
            return Err(format!("the {name} API base must start with https:// (http:// is for this machine only)"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(format!("the {name} API base must be a plain address, without user, password or query"));
        }
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("the {name} API key is empty, or has characters in it that no key has"));
        }
        let tls = holdfast_engine::tls::client(None).map_err(|e| e.to_string())?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(timeout)
            .pool_idle_timeout(Duration::from_secs(20))
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| format!("cannot make a client for {name}: {e}"))?;
        Ok(Self { name, client, base: base.to_owned(), key: key.into() })
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    /// Any answer is an answer; trouble is only what came instead of one.
    pub(super) async fn send(&self, request: reqwest::RequestBuilder) -> Result<Answer, Trouble> {
        let lost = |e: reqwest::Error| {
            let what = if e.is_timeout() {
                "did not answer in time"
            } else if e.is_connect() {
                "cannot be reached"
            } else {
                "broke the connection off"
            };
            let cause = std::error::Error::source(&e).map(|c| format!(": {c}")).unwrap_or_default();
            let error = self.clean(&format!("{} {what}{cause}", self.name));
            Trouble::Later { error, retry_after: None }
        };
        let mut response = request.send().await.map_err(lost)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if bytes.len() + chunk.len() > MAX_BODY {
                let error = format!("{} answered {status} with more than {MAX_BODY} bytes", self.name);
                return Err(Trouble::Later { error, retry_after: None });
            }
            bytes.extend_from_slice(&chunk);
        }
        let retry_after = headers.get("retry-after").and_then(|h| h.to_str().ok()).and_then(seconds_to_wait);
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Ok(Answer { status: status.as_u16(), body, retry_after, headers })
    }

    /// What an answer that is no success means, from its status alone.
    pub(super) fn trouble(&self, answer: &Answer, words: &str) -> Trouble {
        let status = StatusCode::from_u16(answer.status).unwrap_or_default();
        let mut error = format!("{} answered {status}", self.name);
        if !words.trim().is_empty() {
            error = format!("{error}: {words}");
        }
        let error = self.clean(&error);
        match answer.status {
            401 | 403 => Trouble::Halt { error: format!("{error} (check the API key and what it may do)") },
            300..=399 => Trouble::Halt { error: format!("{error} (a redirect: check the API base)") },
            408 | 409 | 425 | 429 | 500..=599 => Trouble::Later { error, retry_after: answer.retry_after },
            // It may have been done: only an answer that can be read proves it.
            200..=299 => {
                Trouble::Later { error: format!("{error} without a body that can be read"), retry_after: None }
            }
            _ => Trouble::Failed { error },
        }
    }

    /// Short, on one line, and without the key, whoever repeated it.
    pub(super) fn clean(&self, text: &str) -> String {
        let text = text.replace(&*self.key, "[key]");
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORDS).collect()
    }
}

/// `Retry-After`: seconds, or a date.
fn seconds_to_wait(text: &str) -> Option<u64> {
    let seconds = text.trim().parse().ok().or_else(|| {
        let until = httpdate::parse_http_date(text.trim()).ok()?;
        let until = until.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
        let now = holdfast_engine::clock::wall().millis().unsigned_abs() / 1000;
        Some(until.saturating_sub(now))
    })?;
    Some(seconds.min(MAX_WAIT_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_nowhere_in_the_clear() {
        let new = |base: &str| Http::new("stripe", base, "sk_test_0123456789", ANSWER);
        for good in ["https://api.stripe.com", "http://127.0.0.1:12111/", "http://[::1]:1", "http://localhost:1"] {
            assert!(new(good).is_ok(), "{good}");
        }
        for bad in ["http://api.stripe.com", "http://127.0.0.1.example.org", "ftp://x", "stripe", "https://u:p@x", ""] {
            assert!(new(bad).is_err(), "{bad}");
        }
        assert!(Http::new("stripe", "https://x", "sk_test\n", ANSWER).is_err());
        let http = new("https://api.stripe.com").unwrap();
        assert!(!format!("{http:?}").contains("0123456789"));
        assert_eq!(http.clean("Invalid key\nsk_test_0123456789"), "Invalid key [key]");
    }

    #[test]
    fn waiting_is_told_in_seconds_or_by_a_date() {
        assert_eq!(seconds_to_wait(" 7 "), Some(7));
        assert_eq!(seconds_to_wait("99999999"), Some(86_400));
        assert_eq!(seconds_to_wait("soon"), None);
        assert_eq!(seconds_to_wait("Fri, 01 Jan 2021 00:00:00 GMT"), Some(0));
        assert_eq!(seconds_to_wait("Wed, 01 Jan 2121 00:00:00 GMT"), Some(86_400));
    }
}
