//! Events as signed requests, one after the other. A redirect is never followed, and an answer is never trusted to end.

use super::config::SinkConfig;
use super::event::{Event, STRUCTURED_TYPE};
use super::guard::{PublicOnly, is_public};
use super::sink::{Failure, Sent, Sink, told};
use super::state::clipped;
use crate::config::ConfigError;
use crate::payments::{Keys, sign_standard};
use async_trait::async_trait;
use holdfast_engine::clock::wall;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url, redirect};
use std::net::IpAddr;
use std::time::Duration;

/// How long one request may take, its answer included.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The most that is read of an answer; what is longer costs its connection.
const ANSWER_LIMIT: usize = 16 << 10;
/// So much of an answer is told when it is a failure.
const ANSWER_SHOWN: usize = 200;

/// See the file's header.
pub(super) struct HttpSink {
    client: Client,
    url: Url,
    keys: Keys,
}

impl HttpSink {
    pub(super) fn new(config: &SinkConfig) -> Result<Self, ConfigError> {
        let url = Url::parse(&config.url).map_err(|e| config.bad(&format!("url is no URL: {e}")))?;
        match url.scheme() {
            "https" => {}
            "http" if config.allow_private => {}
            "http" => {
                return Err(
                    config.bad("url has no TLS; use https, or set allow_private = true on a network of your own")
                );
            }
            _ => return Err(config.bad("url must begin with https://")),
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if let Ok(address) = host.parse::<IpAddr>()
            && !config.allow_private
            && !is_public(address)
        {
            let what =
                format!("url leads to {address}, which is not public; set allow_private = true if that is meant");
            return Err(config.bad(&what));
        }
        if config.secrets.is_empty() {
            return Err(config.bad("secrets is empty, so a receiver could not tell our requests from a stranger's"));
        }
        let keys = Keys::for_standard(&config.secrets.join(",")).map_err(|what| config.bad(&what))?;
        let mut builder = Client::builder()
            .tls_backend_preconfigured(config.tls_client()?)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .timeout(TIMEOUT)
            .user_agent("holdfast");
        if !config.allow_private {
            builder = builder.dns_resolver(PublicOnly);
        }
        let client = builder.build().map_err(|e| config.bad(&format!("no HTTP client: {}", told(&e))))?;
        Ok(Self { client, url, keys })
    }

    async fn post(&self, event: &Event) -> Result<(), Failure> {
        let body = event.structured().map_err(|e| Failure::Refused(e.to_string()))?;
        // The moment of this attempt: receivers compare it with their clocks.
        let timestamp = wall().millis() / 1000;
        let signature = sign_standard(&self.keys, &event.id, timestamp, &body);
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, STRUCTURED_TYPE)
            .header("webhook-id", &event.id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
            .body(body);
        // An error would tell the whole URL, which may carry a password.
        let response = request.send().await.map_err(|e| Failure::transient(told(&e.without_url())))?;
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(read_retry_after);
        let answer = read(response).await;
        if status.is_success() {
            return Ok(());
        }
        let why = format!("answered {}: {}", status.as_u16(), clipped(&answer));
        Err(match status.as_u16() {
            410 => Failure::Disabled(why),
            429 | 502 | 503 | 504 => Failure::Transient { why, retry_after },
            300..=399 => {
                Failure::transient(format!("{why} (redirects are not followed; set the url that it leads to)"))
            }
            _ => Failure::transient(why),
        })
    }
}

#[async_trait]
impl Sink for HttpSink {
    async fn send(&mut self, events: &[Event]) -> Sent {
        for (accepted, event) in events.iter().enumerate() {
            if let Err(failure) = self.post(event).await {
                return Sent::up_to(accepted, failure);
            }
        }
        Sent::all(events)
    }

    fn batch(&self) -> usize {
        // Few, since a node that dies sends the whole batch again.
        16
    }
}

/// The beginning of an answer. Reading a short one to its end keeps its connection for the next request.
async fn read(mut response: Response) -> String {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_LIMIT {
            break;
        }
    }
    bytes.truncate(ANSWER_SHOWN);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Seconds, or a date.
fn read_retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(date.saturating_sub(Duration::from_millis(wall().millis().unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_asks_for_time_in_seconds_or_with_a_date() {
        let read = |text: &str| read_retry_after(&HeaderValue::from_str(text).unwrap());
        assert_eq!(read("120"), Some(Duration::from_mins(2)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert!(read("Thu, 31 Dec 2099 23:59:59 GMT") > Some(Duration::from_hours(24)));
        assert_eq!(read("soon"), None);
    }
}
