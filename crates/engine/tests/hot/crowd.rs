//! Shoppers on a shop that may forget: what they were told, and what may have become of it.

use super::rig::ask;
use crate::common::dice::Dice;
use crate::common::make::{cart, order_id};
use holdfast_engine::domain::{Hold, HoldStatus, Outcome, Refusal};
use holdfast_engine::{Answer, Engine, EngineError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// What one of them was told about one cart.
pub struct Told {
    pub hold: Hold,
    /// What came of the confirmation, if one was asked for and answered.
    pub confirmed: Option<bool>,
}

#[derive(Default)]
struct Shared {
    is_over: AtomicBool,
    answered: AtomicU64,
}

/// See the file's header.
pub struct Crowd {
    shoppers: JoinSet<(Vec<Told>, Vec<EngineError>)>,
    shared: Arc<Shared>,
}

impl Crowd {
    /// Everybody wants one unit of this, again and again.
    pub fn start(engines: &[Arc<dyn Engine>], name: &'static str, shoppers: u64) -> Self {
        let shared = Arc::new(Shared::default());
        let mut set = JoinSet::new();
        for number in 0..shoppers {
            let engine = engines[number as usize % engines.len()].clone();
            set.spawn(shop(engine, name, number, shared.clone()));
        }
        Self { shoppers: set, shared }
    }

    /// Waits until so many more carts were answered.
    pub async fn served(&self, more: u64, within: Duration) {
        let target = self.shared.answered.load(Ordering::Relaxed) + more;
        let served = async {
            while self.shared.answered.load(Ordering::Relaxed) < target {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(within, served).await.is_ok(), "{more} more answers within {within:?}");
    }

    /// Ends it: what they were told, and the errors on the way.
    pub async fn stop(mut self) -> (Vec<Told>, Vec<EngineError>) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let (mut told, mut errors) = (Vec::new(), Vec::new());
        while let Some(ended) = self.shoppers.join_next().await {
            let (some, more) = ended.unwrap();
            told.extend(some);
            errors.extend(more);
        }
        (told, errors)
    }
}

async fn shop(
    engine: Arc<dyn Engine>,
    name: &'static str,
    number: u64,
    shared: Arc<Shared>,
) -> (Vec<Told>, Vec<EngineError>) {
    let (mut told, mut errors, mut dice) = (Vec::new(), Vec::new(), Dice::new(number));
    for visit in 0_u64.. {
        let asked = cart(&format!("C{number}-{visit}"), &[(name, 1)]).ttl(3_600);
        let Some(answer) = until_answered(&*engine, &asked.into(), &shared, &mut errors).await else { break };
        shared.answered.fetch_add(1, Ordering::Relaxed);
        let hold = match answer {
            Ok(Outcome::Held { hold, .. }) => hold,
            Err(Refusal::SoldOut { .. }) => continue,
            other => panic!("neither held nor sold out: {other:?}"),
        };
        let mut confirmed = None;
        if dice.once_in(2)
            && let Some(answer) = until_answered(&*engine, &super::rig::confirm(hold.id), &shared, &mut errors).await
        {
            match answer {
                Ok(Outcome::Order(_)) => confirmed = Some(true),
                Err(Refusal::NotFound) => confirmed = Some(false),
                other => panic!("neither confirmed nor unknown: {other:?}"),
            }
        }
        told.push(Told { hold, confirmed });
    }
    (told, errors)
}

async fn until_answered(
    engine: &dyn Engine,
    command: &holdfast_engine::domain::Command,
    shared: &Shared,
    errors: &mut Vec<EngineError>,
) -> Option<Answer> {
    while !shared.is_over.load(Ordering::Relaxed) {
        match ask(engine, command.clone()).await {
            Ok(answer) => return Some(answer),
            Err(error) => errors.push(error),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    None
}

/// Whatever was confirmed is there; whoever was refused it as unknown had lost the hold. How many holds were lost.
pub async fn accounted(engine: &dyn Engine, told: &[Told]) -> usize {
    let mut lost = 0;
    for told in told {
        let found = engine.hold(told.hold.id).await.unwrap();
        match (told.confirmed, found) {
            (Some(true), Some(found)) => {
                assert_eq!(found.status, HoldStatus::Confirmed);
                let order = engine.order(&order_id(found.order_id.as_str())).await.unwrap().unwrap();
                assert_eq!(order.order.hold_id, found.id);
            }
            (Some(true), None) => panic!("a confirmed hold is gone: {:?}", told.hold),
            (Some(false), Some(found)) => panic!("it was there: {found:?}"),
            (_, None) => lost += 1,
            (None, Some(found)) => assert_eq!(found.lines, told.hold.lines),
        }
    }
    lost
}
