//! What one shopper does, from the first click to the end.

use super::plan::{Behaviour, Shopper};
use super::shop::Shop;
use holdfast_engine::clock::monotonic;
use std::time::Duration;

const GOOD: &str = "pm_card_visa";
const BAD: &str = "pm_card_chargeDeclined";

/// Lives through a shopper's day.
pub(super) async fn live(shop: &Shop, shopper: &Shopper) {
    let mut came = monotonic();
    let mut pass = None;
    if shop.sale.is_some() {
        pass = shop.wait(shopper, came).await;
        if pass.is_none() {
            return;
        }
        // What a hold takes is counted from the door.
        came = monotonic();
    }
    let pass = pass.as_deref();
    let hold = if shopper.behaviour == Behaviour::DoubleClicks {
        let (one, other) = tokio::join!(shop.hold(shopper, came, pass), shop.hold(shopper, came, pass));
        one.or(other)
    } else {
        shop.hold(shopper, came, pass).await
    };
    let Some(hold) = hold else { return };
    let ttl = Duration::from_secs(shop.ttl.into());
    // From an eighth to five eighths of the time there is.
    let thinks = ttl.mul_f64(0.125 + shopper.pace / 2.0);
    match shopper.behaviour {
        Behaviour::Abandons => {}
        Behaviour::GivesBack => {
            tokio::time::sleep(thinks).await;
            shop.release(&hold).await;
        }
        Behaviour::Pays | Behaviour::DoubleClicks => {
            let intent = shop.intent(shopper, &hold, 1).await;
            tokio::time::sleep(thinks).await;
            if let Some(intent) = intent {
                shop.pay(&intent, GOOD).await;
            }
        }
        Behaviour::IsDeclined => {
            let intent = shop.intent(shopper, &hold, 1).await;
            tokio::time::sleep(thinks / 2).await;
            if let Some(intent) = intent {
                shop.pay(&intent, BAD).await;
                tokio::time::sleep(thinks / 2).await;
                shop.pay(&intent, GOOD).await;
            }
        }
        Behaviour::PaysTwice => {
            let first = shop.intent(shopper, &hold, 1).await;
            let second = shop.intent(shopper, &hold, 2).await;
            tokio::time::sleep(thinks).await;
            if let (Some(first), Some(second)) = (first, second) {
                tokio::join!(shop.pay(&first, GOOD), shop.pay(&second, GOOD));
            }
        }
        Behaviour::PaysLate => {
            let intent = shop.intent(shopper, &hold, 1).await;
            tokio::time::sleep(ttl.mul_f64(1.05 + shopper.pace / 4.0)).await;
            if let Some(intent) = intent {
                shop.pay(&intent, GOOD).await;
            }
        }
    }
}
