//! A server and its payment provider, each a process of its own.

use crate::rig::{PATIENCE, Provider};
use crate::support::{Server, cart, eventually, holdfast, with};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::{TempDir, tempdir};

pub const SECRET: &str = "whsec_of_the_fake_provider";

/// Makes idempotency keys that no two calls share.
static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Shop {
    pub server: Option<Server>,
    pub provider: Provider,
    pub folder: Arc<TempDir>,
    pub variables: Vec<(String, String)>,
}

impl Shop {
    pub fn open() -> Self {
        Self::with(&[])
    }

    /// A shop whose servers have these variables besides.
    pub fn with(variables: &[(&str, &str)]) -> Self {
        let provider = Provider::with(&["--webhook-secret", SECRET]);
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut shop = Self { server: None, provider, folder: Arc::new(tempdir().unwrap()), variables };
        shop.start();
        shop
    }

    pub fn command(&self) -> Command {
        let mut command = holdfast();
        command.env("HOLDFAST_STRIPE_API_BASE", self.provider.url());
        command.env("HOLDFAST_STRIPE_API_KEY", "sk_test_of_the_shop").env("HOLDFAST_STRIPE_WEBHOOK_SECRETS", SECRET);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the server; webhooks go to it from now on.
    pub fn start(&mut self) {
        let server = Server::with_command(self.command(), &self.folder, &[]);
        self.provider.control("webhooks", &json!({"url": webhooks(&server)}));
        self.server = Some(server);
    }

    /// Ends the server of a shop in which something was worth an error in the log.
    pub fn close(mut self, told: &str) {
        let server = self.server.take().unwrap();
        server.is_clean();
        eventually("a person is told", PATIENCE, || {
            server.get("/metrics").text().contains("holdfast_attention_total{").then_some(())
        });
        let (_, log) = server.stop();
        assert!(log.contains(told) && !log.contains("panicked"), "{log}");
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// A hold for 15.00 USD.
    pub fn hold(&self, order: &str) -> String {
        let path = self.server().hold(&priced(order));
        path.strip_prefix("/v1/holds/").unwrap().to_owned()
    }

    /// The shopper pays for an order.
    pub fn pay(&self, order: &str) -> String {
        self.pay_with(order, "")
    }

    pub fn authorize(&self, order: &str) -> String {
        self.pay_with(order, "&capture_method=manual")
    }

    fn pay_with(&self, order: &str, more: &str) -> String {
        let form = format!(
            "amount=1500&currency=usd&payment_method=pm_card_visa&confirm=true&receipt_email=jo@example.org&metadata[order_id]={order}{more}"
        );
        self.provider.post("/v1/payment_intents", &form).is(200)["id"].as_str().unwrap().to_owned()
    }

    /// A hold that was given back, whose unit another shopper holds by now: a payment for it comes too late.
    pub fn lose(&self, order: &str) {
        let hold = self.hold(order);
        self.server().touch(&format!("/v1/holds/{hold}/release")).is(200);
        self.hold(&format!("{order}-other"));
    }

    /// Orders of these numbers held a unit and gave it back, and others have them all by now.
    pub fn lose_all(&self, from: usize, to: usize) {
        let stock = self.server().counters("A");
        let total = stock.0 + stock.1 + stock.2;
        self.server().put("/v1/stock/A", &json!({"total": total + 1})).is(200);
        for n in from..to {
            let hold = self.hold(&format!("O{n}"));
            self.server().touch(&format!("/v1/holds/{hold}/release")).is(200);
        }
        let free = self.server().counters("A").0;
        self.server().post("/v1/stock/A/adjust", &json!({"delta": -(free as i64)})).is(200);
    }

    /// As a shop that asks the provider again until it answers, under one key.
    pub fn try_pay(&self, order: &str, is_manual: bool) -> Option<String> {
        let capture = if is_manual { "manual" } else { "automatic" };
        let form = format!(
            "amount=1500&currency=usd&payment_method=pm_card_visa&confirm=true&capture_method={capture}&metadata[order_id]={order}"
        );
        let key = format!("{order}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let intent = eventually("the provider answers", PATIENCE, || {
            let answer = self.provider.try_keyed(&key, "/v1/payment_intents", &form)?;
            (answer.status == 200).then(|| answer.json())
        });
        intent["id"].as_str().map(str::to_owned)
    }

    pub fn order(&self, id: &str) -> Option<Value> {
        let answer = self.server().get(&format!("/v1/orders/{id}"));
        (answer.status != 404).then(|| answer.is(200))
    }

    pub fn refunds(&self) -> Vec<Value> {
        self.server().get("/v1/refunds").is(200)["items"].as_array().unwrap().clone()
    }

    /// The refund or void of a payment, once it has this status.
    pub fn refund(&self, payment: &str, status: &str) -> Value {
        eventually(&format!("the reversal of {payment} is {status}"), PATIENCE, || {
            self.refunds().into_iter().find(|r| r["payment_id"] == payment && r["status"] == status)
        })
    }

    /// Waits until the order has this status.
    pub fn becomes(&self, order: &str, status: &str) -> Value {
        eventually(&format!("{order} is {status}"), PATIENCE, || self.order(order).filter(|o| o["status"] == status))
    }

    /// Waits until nothing is owed any more; says what is, if that does not come.
    pub fn settles(&self) {
        let mut open = Vec::new();
        for _ in 0..1200 {
            open.clone_from(self.server().get("/v1/payments?limit=1000").is(200)["items"].as_array().unwrap());
            open.retain(is_open);
            if open.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let ids: Vec<&str> = open.iter().map(|p| p["payment_id"].as_str().unwrap()).collect();
        let books = ids.iter().map(|id| (self.booked("payment_intents", id), self.booked("refunds", id)));
        let books: Vec<_> = books.collect();
        panic!("open: {open:#?}\njobs: {:#?}\nthe provider's books: {books:#?}", self.refunds());
    }

    /// What the provider's books have of one kind, of a payment.
    pub fn booked(&self, kind: &str, payment: &str) -> Vec<Value> {
        let books = self.provider.books();
        let is_its = |item: &&Value| item["payment_intent"] == payment || item["id"] == payment;
        books[kind].as_array().unwrap().iter().filter(is_its).cloned().collect()
    }

    /// Each capture has one order or one refund, and each refund is of one capture, in full.
    pub fn balances(&self) {
        let books = self.provider.settled();
        let payments = self.server().get("/v1/payments?limit=1000").is(200);
        for intent in books["payment_intents"].as_array().unwrap() {
            let id = intent["id"].as_str().unwrap();
            let back: Vec<&Value> = books["refunds"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|r| r["payment_intent"] == id && r["status"] != "failed" && r["status"] != "canceled")
                .collect();
            let order = intent["metadata"]["order_id"].as_str().and_then(|order| self.order(order));
            let pays = order.is_some_and(|o| o["payment"]["payment_id"] == id && o["status"] == "confirmed");
            let is_captured = intent["status"] == "succeeded";
            assert_eq!(usize::from(pays) + back.len(), usize::from(is_captured), "{intent} {back:?} {payments}");
            assert!(back.iter().all(|r| r["amount"] == intent["amount_received"]), "{back:?}");
        }
    }
}

fn is_open(payment: &Value) -> bool {
    let status = payment["status"].as_str().unwrap();
    status == "reversing" || status == "unmatched" || (status == "settled" && payment["captured"] == false)
}

pub fn webhooks(server: &Server) -> String {
    format!("http://127.0.0.1:{}/v1/webhooks/stripe", server.port)
}

pub fn priced(order: &str) -> Value {
    with(with(cart(order, "A", 1), "amount", 1500), "currency", "USD")
}
