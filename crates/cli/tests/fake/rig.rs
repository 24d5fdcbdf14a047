//! A provider of one's own, stopped by its guard, and the calls a merchant makes.

use crate::support::{Answer, Call, Connection, Server, eventually, holdfast};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// How long anything may take to come true.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub struct Provider {
    server: Server,
}

impl Provider {
    pub fn start() -> Self {
        Self::with(&[])
    }

    pub fn with(flags: &[&str]) -> Self {
        let mut command = holdfast();
        command.args(["fake-payments", "--listen", "127.0.0.1:0", "--seed", "7"]).args(flags);
        Self { server: Server::spawn(command).unwrap_or_else(|(_, log)| panic!("{log}")) }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    pub fn call(&self, call: &Call) -> Answer {
        call.to(&self.server)
    }

    /// A GET with a good key.
    pub fn get(&self, path: &str) -> Answer {
        self.call(&Call::new("GET", path).key("sk_test_1"))
    }

    /// A POST of a form with a good key and no idempotency key.
    pub fn post(&self, path: &str, form: &str) -> Answer {
        self.call(&post(path, form))
    }

    /// A POST under an idempotency key.
    pub fn keyed(&self, key: &str, path: &str, form: &str) -> Answer {
        self.call(&post(path, form).header("idempotency-key", key))
    }

    /// As [`Provider::keyed`], when the connection may close instead of an answer.
    pub fn try_keyed(&self, key: &str, path: &str, form: &str) -> Option<Answer> {
        let mut connection = Connection::open(self.server.port);
        connection.send(&post(path, form).header("idempotency-key", key).bytes());
        connection.try_answer("POST")
    }

    pub fn control(&self, path: &str, body: &Value) -> Value {
        self.call(&Call::new("POST", &format!("/_control/{path}")).json(body)).is(200)
    }

    pub fn script(&self, rules: &Value) {
        self.control("script", rules);
    }

    pub fn books(&self) -> Value {
        self.get("/_control/books").is(200)
    }

    pub fn events(&self) -> Vec<Value> {
        self.get("/_control/events").is(200).as_array().unwrap().clone()
    }

    /// The types of all events, in the order in which they happened.
    pub fn told(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until no event is on its way.
    pub fn settled(&self) -> Value {
        eventually("every event is delivered", PATIENCE, || {
            Some(self.books()).filter(|books| books["undelivered_events"] == 0)
        })
    }

    /// A PaymentIntent that took 1,000 cents, and its charge.
    pub fn paid(&self) -> (String, String) {
        self.confirmed("amount=1000&currency=eur")
    }

    /// A PaymentIntent with an authorisation of 1,000 cents, and its charge.
    pub fn authorized(&self) -> (String, String) {
        self.confirmed("amount=1000&currency=eur&capture_method=manual")
    }

    fn confirmed(&self, form: &str) -> (String, String) {
        let form = format!("{form}&payment_method=pm_card_visa&confirm=true&metadata[order_id]=A-1");
        let intent = self.post("/v1/payment_intents", &form).is(200);
        (intent["id"].as_str().unwrap().into(), intent["latest_charge"].as_str().unwrap().into())
    }

    pub fn intent(&self, id: &str) -> Value {
        self.get(&format!("/v1/payment_intents/{id}")).is(200)
    }

    pub fn charge(&self, id: &str) -> Value {
        let books = self.books();
        books["charges"].as_array().unwrap().iter().find(|charge| charge["id"] == id).unwrap().clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.signal(Signal::TERM);
        let (status, log) = self.server.wait(PATIENCE);
        if !std::thread::panicking() {
            assert_eq!((status.code(), log.as_str()), (Some(0), ""));
        }
    }
}

fn post(path: &str, form: &str) -> Call {
    Call::new("POST", path).key("sk_test_1").raw("application/x-www-form-urlencoded", form)
}

/// An error of the provider: status, code (null where there is none) and message.
#[track_caller]
pub fn refused(answer: &Answer, status: u16, code: impl Into<Value>) -> Value {
    let body = answer.is(status);
    let error = body["error"].clone();
    assert_eq!(error["code"], code.into(), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
    let kinds = ["api_error", "card_error", "idempotency_error", "invalid_request_error"];
    assert!(kinds.contains(&error["type"].as_str().unwrap()), "{error}");
    assert!(answer.header("request-id").is_some_and(|id| id.starts_with("req_")));
    error
}

/// A rule of a script.
pub fn rule(on: &str, fault: impl Into<Value>) -> Value {
    json!([{"on": on, "do": fault.into()}])
}
