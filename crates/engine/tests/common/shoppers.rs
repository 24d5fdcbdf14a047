//! Shoppers who never stop, what they were answered, and finding it again.

use super::dice::Dice;
use super::make::{captured, cart, lines, order_id, reference};
use holdfast_engine::domain::{Command, HoldId, HoldStatus, Outcome, PaymentStatus, Settlement};
use holdfast_engine::{Answer, Engine, EngineError, Lanes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub const SKUS: [&str; 3] = ["HOT", "WARM", "COLD"];
/// What an answer of each kind begins with.
pub const KINDS: [&str; 5] = ["held ", "confirmed ", "released ", "paid ", "returned "];

/// What a shopper got: an answer as a line of text, or an error, after which the same was asked again.
pub enum Got {
    Answer(String),
    Error(EngineError),
}

/// One shopper. Ends when nobody listens any more.
pub struct Shopper {
    pub lanes: Lanes,
    pub seed: u64,
    pub number: u64,
    pub got: mpsc::UnboundedSender<Got>,
}

impl Shopper {
    pub async fn shop(self) {
        let mut dice = Dice::new(self.seed ^ (self.number << 32));
        for visit in 0_u64.. {
            let order = format!("{:x}-{}-{visit}", self.seed, self.number);
            if self.visit(&order, &mut dice).await.is_none() {
                return;
            }
        }
    }

    async fn visit(&self, order: &str, dice: &mut Dice) -> Option<()> {
        let asked = [(dice.one_of(&SKUS), 1 + dice.below(3)), (dice.one_of(&SKUS), 1)];
        let answer = self.ask(cart(order, &asked)).await?;
        let Ok(Outcome::Held { hold, .. }) = answer else { panic!("not held: {answer:?}") };
        self.tell("held", hold.id, order)?;
        match dice.below(5) {
            0 => {
                self.ask(Command::Release { hold: hold.id }).await?.unwrap();
                self.tell("released", hold.id, order)?;
            }
            1 | 2 => {
                self.ask(Command::Confirm { hold: hold.id, payment_ref: None }).await?.unwrap();
                self.tell("confirmed", hold.id, order)?;
                let line = hold.lines.iter().next().unwrap();
                let back = Command::Return {
                    order: order_id(order),
                    lines: lines(&[(line.sku.as_str(), line.quantity.get())]),
                    key: Some(reference(&format!("back-{order}"))),
                };
                if dice.once_in(2) {
                    self.ask(back).await?.unwrap();
                    self.tell("returned", hold.id, order)?;
                }
            }
            3 => {
                let settled = self.ask(captured(&format!("pi-{order}")).order(order)).await?;
                // One that is asked again may have been settled the first time.
                let is_paid = matches!(settled, Ok(Outcome::Settled(Settlement::Confirmed(_) | Settlement::Duplicate)));
                assert!(is_paid, "{settled:?}");
                self.tell("paid", hold.id, order)?;
            }
            _ => {}
        }
        Some(())
    }

    /// Asks until there is an answer, as a client would.
    async fn ask(&self, command: impl Into<Command>) -> Option<Answer> {
        let command = command.into();
        loop {
            match self.lanes.submit(command.clone()).await {
                Ok(answer) => return Some(answer),
                Err(error) => self.got.send(Got::Error(error)).ok()?,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn tell(&self, word: &str, hold: HoldId, order: &str) -> Option<()> {
        self.got.send(Got::Answer(format!("{word} {hold} {order}"))).ok()
    }
}

/// Panics unless the engine knows what this answer said.
pub async fn find(engine: &dyn Engine, line: &str) {
    let mut words = line.split(' ').skip(1);
    let id = HoldId::parse(words.next().unwrap()).unwrap();
    let order = order_id(words.next().unwrap());
    let hold = engine.hold(id).await.unwrap().unwrap_or_else(|| panic!("lost: {line}"));
    assert_eq!(hold.order_id, order);
    let order = engine.order(&order).await.unwrap();
    match line.split(' ').next().unwrap() {
        "held" => {}
        "released" => assert_eq!(hold.status, HoldStatus::Released, "{line}"),
        "confirmed" => assert_eq!((hold.status, order.unwrap().order.hold_id), (HoldStatus::Confirmed, id), "{line}"),
        "returned" => assert_eq!(order.unwrap().order.lines[0].kept(), 0, "{line}"),
        "paid" => assert_eq!(order.unwrap().payment.unwrap().status, PaymentStatus::Settled, "{line}"),
        other => panic!("{other}"),
    }
}

/// Shoppers at work on one or more nodes.
pub struct Load {
    shoppers: JoinSet<()>,
    listener: tokio::task::JoinHandle<(Vec<String>, Vec<EngineError>)>,
    is_over: Arc<AtomicBool>,
    answered: watch::Receiver<u64>,
}

impl Load {
    pub fn start(nodes: &[Lanes], shoppers: u64, seed: u64) -> Self {
        let (got, mut listened) = mpsc::unbounded_channel();
        let mut set = JoinSet::new();
        for number in 0..shoppers {
            let lanes = nodes[number as usize % nodes.len()].clone();
            set.spawn(Shopper { lanes, seed, number, got: got.clone() }.shop());
        }
        let (count, answered) = watch::channel(0);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let listener = tokio::spawn(async move {
            let (mut answers, mut errors) = (Vec::new(), Vec::new());
            while let Some(got) = listened.recv().await {
                match got {
                    Got::Answer(line) => {
                        answers.push(line);
                        count.send_modify(|n| *n += 1);
                    }
                    Got::Error(error) => errors.push(error),
                }
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            // Closed, not forgotten: what was told by now counts.
            listened.close();
            while let Some(got) = listened.recv().await {
                if let Got::Answer(line) = got {
                    answers.push(line);
                }
            }
            (answers, errors)
        });
        Self { shoppers: set, listener, is_over, answered }
    }

    /// Waits until so many more answers were given; panics when that takes longer than allowed.
    pub async fn served(&mut self, more: u64, within: Duration) {
        let target = *self.answered.borrow() + more;
        let is_served = tokio::time::timeout(within, self.answered.wait_for(|n| *n >= target)).await.is_ok();
        assert!(is_served, "{} of {target} answers after {within:?}", *self.answered.borrow());
    }

    /// Ends it: what was answered, and the errors on the way.
    pub async fn stop(mut self) -> (Vec<String>, Vec<EngineError>) {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.shoppers.join_next().await {
            ended.unwrap();
        }
        self.listener.await.unwrap()
    }
}
