//! Adyen: refunds, cancellations and captures, each accepted at once and ended by a notification.
//!
//! The answer 201 says that the request was received, never that money moved.

use super::http::{ANSWER, Answer, Http};
use super::{Closed, Provider, Reply, Trouble, fitting_key, is_plain_id};
use async_trait::async_trait;
use holdfast_domain::{Job, JobKind, PaymentFact, Ref};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const MAX_KEY_BYTES: usize = 64;
const MAX_REFERENCE_BYTES: usize = 80;
/// "Request already processed or in progress": the first one with this key is not through yet.
const IN_PROGRESS: &str = "704";

/// A client.
#[derive(Debug)]
pub(crate) struct Adyen {
    http: Http,
    merchant_account: String,
}

/// How to reach Adyen.
#[derive(Clone)]
pub(crate) struct Settings<'a> {
    /// The key of a credential that may refund, cancel and capture.
    pub(crate) api_key: &'a str,
    /// With the version: `https://checkout-test.adyen.com/v72`, or the live one with its prefix.
    pub(crate) api_base: &'a str,
    /// Whose payments these are.
    pub(crate) merchant_account: &'a str,
}

impl Adyen {
    /// Refuses settings that cannot work, in words that never repeat the key.
    pub(crate) fn new(settings: &Settings<'_>) -> Result<Self, String> {
        Self::with_timeout(settings, ANSWER)
    }

    fn with_timeout(settings: &Settings<'_>, timeout: Duration) -> Result<Self, String> {
        if settings.merchant_account.is_empty() {
            return Err("Adyen's calls need the merchant account (HOLDFAST_ADYEN_MERCHANT_ACCOUNT)".into());
        }
        let version = settings.api_base.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        if !version.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())) {
            return Err("the adyen API base must end with the version: https://checkout-test.adyen.com/v72".into());
        }
        let http = Http::new("adyen", settings.api_base, settings.api_key, timeout)?;
        Ok(Self { http, merchant_account: settings.merchant_account.to_owned() })
    }

    async fn modify(&self, job: &Job, order: Option<&str>) -> Result<Reply, Trouble> {
        let payment = job.payment.payment_id.as_str();
        if !is_plain_id(payment) {
            return Err(Trouble::Failed { error: format!("{payment:?} is no reference that adyen gives") });
        }
        let what = match job.kind {
            JobKind::Refund => "refunds",
            JobKind::Void => "cancels",
            JobKind::Capture => "captures",
        };
        let mut body = json!({"merchantAccount": self.merchant_account});
        if let Some(order) = order {
            body["reference"] = json!(order[..order.floor_char_boundary(MAX_REFERENCE_BYTES)]);
        }
        if job.kind != JobKind::Void {
            let (Some(amount), Some(currency)) = (job.money.amount, job.money.currency) else {
                let error = "the payment's amount or currency is not known, and adyen asks for both".into();
                return Err(Trouble::Failed { error });
            };
            if amount == 0 {
                return Ok(Reply::Done { reference: None });
            }
            body["amount"] = json!({"value": amount, "currency": currency.as_str()});
        }
        let request = self.http.request(Method::POST, &format!("/payments/{payment}/{what}"));
        let request = request
            .header("X-API-Key", self.http.key())
            .header("Idempotency-Key", &*fitting_key(&job.idempotency_key, MAX_KEY_BYTES))
            .header("Content-Type", "application/json")
            .body(body.to_string());
        let answer = self.http.send(request).await?;
        let reference = answer.text("/pspReference").and_then(|id| Ref::new(id).ok());
        if answer.is_success() && reference.is_some() {
            return Ok(Reply::Accepted { reference });
        }
        Err(self.trouble(&answer))
    }

    fn trouble(&self, answer: &Answer) -> Trouble {
        let code = match answer.body.get("errorCode") {
            Some(Value::String(code)) => code.clone(),
            Some(Value::Number(code)) => code.to_string(),
            _ => String::new(),
        };
        let words = format!("{code} {}", answer.text("/message").unwrap_or_default());
        match self.http.trouble(answer, words.trim()) {
            // Something on the way answered, not Adyen.
            Trouble::Failed { error } if code.is_empty() => Trouble::Later { error, retry_after: answer.retry_after },
            Trouble::Failed { error } if code == IN_PROGRESS || answer.flag("transient-error") == Some(true) => {
                Trouble::Later { error, retry_after: answer.retry_after }
            }
            trouble => trouble,
        }
    }
}

#[async_trait]
impl Provider for Adyen {
    fn name(&self) -> &'static str {
        "adyen"
    }

    async fn carry_out(&self, job: &Job, order: Option<&str>, _again: bool) -> Reply {
        if job.reference.is_some() {
            // It was received under this reference, and only a notification tells how it ended.
            return Reply::Accepted { reference: job.reference.clone() };
        }
        self.modify(job, order).await.unwrap_or_else(Reply::from)
    }

    /// A payment at Adyen is authorised or refused at once: there is no window to close.
    async fn close(&self, _payment_ref: &str) -> Closed {
        Closed::Unknown
    }

    /// Adyen tells of payments by notifications only.
    async fn look(&self, _payment: &Ref) -> Result<Vec<PaymentFact>, Trouble> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Act, Scripted};
    use super::*;
    use holdfast_domain::{Currency, JobReason, JobState, Money, PaymentKey, Time};

    const KEY: &str = "AQE-secret-key-0123456789";

    fn job(kind: JobKind) -> Job {
        let id = |text: &str| Ref::new(text).unwrap();
        Job {
            payment: PaymentKey { provider: id("adyen"), payment_id: id("PSP1") },
            kind,
            reason: JobReason::StockGone,
            state: JobState::Requested,
            idempotency_key: "holdfast-refund-adyen:PSP1".into(),
            money: Money { amount: Some(1130), currency: Currency::new("eur") },
            created_at: Time::from_millis(0),
            attempts: 1,
            next_at: Time::from_millis(0),
            reference: None,
            error: None,
        }
    }

    fn client(server: &Scripted) -> Adyen {
        client_that_waits(server, ANSWER)
    }

    fn client_that_waits(server: &Scripted, timeout: Duration) -> Adyen {
        let base = format!("{}/v72", server.url);
        Adyen::with_timeout(&Settings { api_key: KEY, api_base: &base, merchant_account: "Shop" }, timeout).unwrap()
    }

    fn received(status: u16, body: Value) -> Act {
        Act::Answer(status, Vec::new(), body)
    }

    #[tokio::test]
    async fn each_job_is_a_modification_that_is_received() {
        let accepted = || received(201, json!({"status": "received", "pspReference": "MOD1"}));
        let server = Scripted::start([accepted(), accepted(), accepted()]).await;
        let client = client(&server);
        for kind in [JobKind::Refund, JobKind::Void, JobKind::Capture] {
            let reply = client.carry_out(&job(kind), Some("ORDER-1"), false).await;
            assert_eq!(reply, Reply::Accepted { reference: Ref::new("MOD1").ok() });
        }
        let asked = server.asked();
        assert_eq!(
            server.lines(),
            ["POST /v72/payments/PSP1/refunds", "POST /v72/payments/PSP1/cancels", "POST /v72/payments/PSP1/captures"]
        );
        assert_eq!(
            (asked[0].headers["x-api-key"].as_str(), asked[0].headers["content-type"].as_str()),
            (KEY, "application/json")
        );
        assert_eq!(asked[0].headers["idempotency-key"], "holdfast-refund-adyen:PSP1");
        let body = |at: usize| serde_json::from_str::<Value>(&asked[at].body).unwrap();
        let with_amount =
            json!({"merchantAccount": "Shop", "reference": "ORDER-1", "amount": {"value": 1130, "currency": "EUR"}});
        assert_eq!((body(0), body(2)), (with_amount.clone(), with_amount));
        assert_eq!(body(1), json!({"merchantAccount": "Shop", "reference": "ORDER-1"}));
    }

    #[tokio::test]
    async fn what_is_too_long_is_cut_or_digested() {
        let server = Scripted::start([received(201, json!({"pspReference": "MOD1"}))]).await;
        let long = Job { idempotency_key: "k".repeat(65).into(), ..job(JobKind::Refund) };
        client(&server).carry_out(&long, Some(&"ü".repeat(60)), false).await;
        let asked = &server.asked()[0];
        assert_eq!(asked.headers["idempotency-key"].len(), 64);
        assert_ne!(asked.headers["idempotency-key"], "k".repeat(64));
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        assert_eq!(body["reference"], json!("ü".repeat(40)));
    }

    #[tokio::test]
    async fn answers_are_told_apart() {
        #[derive(Debug, PartialEq)]
        enum Kind {
            Later(Option<u64>),
            Halt,
            Failed,
        }
        use Kind::{Failed, Halt, Later};
        for (act, expected) in [
            (received(401, json!({"errorCode": "000", "message": KEY})), Halt),
            (received(403, json!({"errorCode": "010", "message": "Not allowed"})), Halt),
            (received(422, json!({"errorCode": "167", "message": "Original pspReference required"})), Failed),
            (received(422, json!({"errorCode": 204, "message": "x"})), Failed),
            (received(422, json!({"errorCode": "704", "message": "in progress"})), Later(None)),
            (Act::Answer(422, vec![("transient-error", "true")], json!({"errorCode": "1"})), Later(None)),
            (Act::Answer(429, vec![("retry-after", "9")], json!({})), Later(Some(9))),
            (received(500, json!(null)), Later(None)),
            (received(503, json!("<html>")), Later(None)),
            (received(404, json!({"errorCode": "000"})), Failed),
            (received(404, json!({})), Later(None)),
            (received(201, json!("cut off")), Later(None)),
            (Act::Answer(302, vec![("location", "https://elsewhere.example")], json!({})), Halt),
            (Act::Drop, Later(None)),
            (Act::Hang, Later(None)),
        ] {
            let is_hanging = matches!(act, Act::Hang);
            let server = Scripted::start([act]).await;
            let client =
                if is_hanging { client_that_waits(&server, Duration::from_millis(200)) } else { client(&server) };
            let reply = client.carry_out(&job(JobKind::Refund), None, true).await;
            let (told, error) = match reply {
                Reply::Later { error, retry_after } => (Later(retry_after), error),
                Reply::Halt { error } => (Halt, error),
                Reply::Failed { error } => (Failed, error),
                other => panic!("{other:?}"),
            };
            assert_eq!(told, expected, "{error}");
            assert!(error.contains("adyen") && !error.contains(KEY), "{error}");
            server.asked();
        }
    }

    #[tokio::test]
    async fn nothing_is_asked_that_cannot_be() {
        let server = Scripted::start([]).await;
        let client = client(&server);
        let odd = PaymentKey { provider: Ref::new("adyen").unwrap(), payment_id: Ref::new("../x").unwrap() };
        let unknown = Money { amount: None, currency: None };
        for job in [Job { payment: odd, ..job(JobKind::Refund) }, Job { money: unknown, ..job(JobKind::Refund) }] {
            assert!(matches!(client.carry_out(&job, None, false).await, Reply::Failed { .. }));
        }
        assert_eq!(client.close("adyen:PSP1").await, Closed::Unknown);
        assert_eq!(client.look(&Ref::new("PSP1").unwrap()).await, Ok(Vec::new()));
        assert!(server.asked().is_empty());
        let settings = |base, account| Settings { api_key: KEY, api_base: base, merchant_account: account };
        assert!(Adyen::new(&settings("https://checkout-test.adyen.com", "Shop")).unwrap_err().contains("version"));
        assert!(Adyen::new(&settings("https://checkout-test.adyen.com/v72/", "Shop")).is_ok());
        assert!(Adyen::new(&settings("https://checkout-test.adyen.com/v72", "")).is_err());
        assert!(!format!("{client:?}").contains(KEY));
    }
}
