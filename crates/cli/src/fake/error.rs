//! What the provider refuses, with the status, type, code and text by which clients tell the cases apart. Must never
//! answer a refusal that the real one would keep under an idempotency key as one that it would not, or the reverse.

use serde_json::{Value, json};

/// One refusal.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    decline_code: Option<&'static str>,
    message: String,
    param: Option<Box<str>>,
    /// The PaymentIntent as it is, where the refusal is about its state.
    intent: Option<Box<Value>>,
    /// Whether the same key gets it again. Faulty parameters and conflicts are not kept.
    pub(super) is_kept: bool,
    /// Seconds to wait, where the answer says so.
    pub(super) retry_after: Option<u32>,
}

const INVALID: &str = "invalid_request_error";

/// Refusals of good parameters that a script can ask for: code, status, text.
const BY_CODE: &[(&str, u16, &str)] = &[
    ("charge_disputed", 400, "This charge has been charged back and cannot be refunded."),
    ("refund_disputed_payment", 400, "A disputed payment cannot be refunded."),
    ("charge_already_refunded", 400, "This charge has already been refunded."),
    ("balance_insufficient", 400, "The balance of the account does not cover this refund."),
    ("insufficient_funds", 400, "The account has insufficient funds to carry this out."),
    ("capture_charge_authorization_expired", 400, "The authorization of this charge has expired."),
    ("charge_expired_for_capture", 400, "The charge cannot be captured as its authorization has expired."),
    ("payment_intent_unexpected_state", 400, "The PaymentIntent's state does not allow this."),
    ("account_invalid", 403, "This key does not have access to the account."),
    ("lock_timeout", 409, "The object cannot be accessed right now because another request works on it."),
];

impl Refused {
    fn new(status: u16, kind: &'static str, code: Option<&'static str>, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code,
            decline_code: None,
            message: message.into(),
            param: None,
            intent: None,
            is_kept: true,
            retry_after: None,
        }
    }

    fn unkept(mut self) -> Self {
        self.is_kept = false;
        self
    }

    fn at(mut self, param: &str) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Of good parameters, without a code.
    pub(super) fn plain(message: impl Into<String>) -> Self {
        Self::new(400, INVALID, None, message)
    }

    /// Of good parameters, with a code.
    pub(super) fn coded(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(400, INVALID, Some(code), message)
    }

    /// Because of the state in which a PaymentIntent is.
    pub(super) fn state(message: impl Into<String>, intent: Value) -> Self {
        let mut refused = Self::coded("payment_intent_unexpected_state", message);
        refused.intent = Some(Box::new(intent));
        refused
    }

    /// The bank said no.
    pub(super) fn declined(code: &'static str, intent: Value) -> Self {
        let mut refused = Self::new(402, "card_error", Some("card_declined"), "Your card was declined.");
        refused.decline_code = Some(code);
        refused.intent = Some(Box::new(intent));
        refused
    }

    /// One of the refusals that a script may name.
    pub(super) fn by_code(code: &str) -> Option<Self> {
        let (code, status, message) = *BY_CODE.iter().find(|(known, ..)| *known == code)?;
        let refused = Self::new(status, INVALID, Some(code), message);
        Some(if status == 400 { refused } else { refused.unkept() })
    }

    /// The codes that [`Refused::by_code`] knows.
    pub(super) fn codes() -> String {
        BY_CODE.iter().map(|(code, ..)| *code).collect::<Vec<_>>().join(", ")
    }

    /// A parameter that nobody knows.
    pub(super) fn unknown_parameter(name: &str) -> Self {
        Self::coded("parameter_unknown", format!("Received unknown parameter: {name}")).at(name).unkept()
    }

    /// A parameter that has to be there.
    pub(super) fn missing_parameter(name: &str) -> Self {
        Self::coded("parameter_missing", format!("Missing required param: {name}.")).at(name).unkept()
    }

    /// A parameter with a value that cannot be.
    pub(super) fn parameter(code: Option<&'static str>, name: &str, message: impl Into<String>) -> Self {
        Self::new(400, INVALID, code, message).at(name).unkept()
    }

    /// An id that names nothing.
    pub(super) fn no_such(what: &str, id: &str, param: &str) -> Self {
        Self::new(404, INVALID, Some("resource_missing"), format!("No such {what}: '{id}'")).at(param).unkept()
    }

    /// A path that names nothing.
    pub(super) fn no_such_url(method: &str, path: &str) -> Self {
        Self::new(404, INVALID, None, format!("Unrecognized request URL ({method}: {path}).")).unkept()
    }

    /// No key, or none of ours.
    pub(super) fn unauthorized() -> Self {
        let how = "Send a secret key, which starts with sk_ or rk_, as Authorization: Bearer.";
        Self::new(401, INVALID, None, format!("You did not provide a valid API key. {how}")).unkept()
    }

    /// A body that is no form.
    pub(super) fn no_form(why: &str) -> Self {
        Self::new(400, INVALID, None, format!("The body must be application/x-www-form-urlencoded: {why}.")).unkept()
    }

    /// Too many calls.
    pub(super) fn rate_limited(seconds: u32) -> Self {
        let mut refused = Self::new(429, INVALID, Some("rate_limit"), "Too many requests hit the API too quickly.");
        refused.retry_after = Some(seconds);
        refused.unkept()
    }

    /// The first call with this key is under way.
    pub(super) fn key_in_use(key: &str) -> Self {
        let message = format!(
            "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): {key}. Please try again later."
        );
        Self::new(409, "idempotency_error", Some("idempotency_key_in_use"), message).unkept()
    }

    /// The key belongs to another request.
    pub(super) fn key_reused(key: &str) -> Self {
        let message = format!(
            "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '{key}' if you meant to execute a different request."
        );
        Self::new(400, "idempotency_error", None, message).unkept()
    }

    /// The provider's own failure, which it keeps under the key.
    pub(super) fn failure() -> Self {
        Self::new(500, "api_error", None, "An unknown error occurred.")
    }

    /// The body of the answer.
    pub(super) fn body(&self, request: &str) -> Value {
        let mut error = json!({"type": self.kind, "message": self.message});
        if let Some(code) = self.code {
            error["code"] = code.into();
            error["doc_url"] = format!("https://stripe.com/docs/error-codes/{}", code.replace('_', "-")).into();
        }
        if let Some(code) = self.decline_code {
            error["decline_code"] = code.into();
        }
        if let Some(param) = &self.param {
            error["param"] = (**param).into();
        }
        if let Some(intent) = &self.intent {
            error["payment_intent"] = (**intent).clone();
        }
        error["request_log_url"] = format!("https://dashboard.stripe.com/test/logs/{request}").into();
        json!({"error": error})
    }

    /// What a PaymentIntent keeps of its last failed attempt.
    pub(super) fn as_payment_error(&self) -> Value {
        json!({"type": self.kind, "code": self.code, "decline_code": self.decline_code, "message": self.message})
    }
}
