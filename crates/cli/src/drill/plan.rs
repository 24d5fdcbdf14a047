//! Who comes when, and what they will do: decided before the first one comes, by the seed alone.

use crate::random::Random;
use std::time::Duration;

/// What a shopper does with a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Pays while it is valid.
    Pays,
    /// Clicks twice, so that the same hold is asked for twice at once; then pays.
    DoubleClicks,
    /// Pays with a card that is declined, then with another.
    IsDeclined,
    /// Pays twice, by two payments for one order.
    PaysTwice,
    /// Pays after it has lapsed.
    PaysLate,
    /// Gives it back.
    GivesBack,
    /// Walks away.
    Abandons,
}

/// What of a hundred shoppers do.
const WEIGHTS: [(Behaviour, usize); 7] = [
    (Behaviour::Pays, 40),
    (Behaviour::DoubleClicks, 10),
    (Behaviour::IsDeclined, 10),
    (Behaviour::PaysTwice, 5),
    (Behaviour::PaysLate, 10),
    (Behaviour::GivesBack, 5),
    (Behaviour::Abandons, 20),
];

/// One shopper.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shopper {
    pub(super) number: u32,
    /// When they come.
    pub(super) at: Duration,
    pub(super) behaviour: Behaviour,
    /// The shop authorises first and captures later.
    pub(super) is_manual: bool,
    /// The payment names the hold and not the order.
    pub(super) by_hold: bool,
    /// The shop tells the payment to the hold, so that it can be closed when the hold lapses.
    pub(super) tells_payment: bool,
    /// How slow they are, from 0 to 1.
    pub(super) pace: f64,
}

/// Everybody, in the order in which they come.
pub(super) fn draw(seed: u64, shoppers: u32, over: Duration) -> Vec<Shopper> {
    let mut random = Random::seeded(seed);
    let mut all: Vec<Shopper> = (0..shoppers)
        .map(|number| {
            let u = share(&mut random);
            Shopper {
                number,
                // A sale opens with a rush: a quarter of all come in the first sixteenth of the time.
                at: over.mul_f64(u * u),
                behaviour: behaviour(&mut random),
                is_manual: random.happens(0.4),
                by_hold: random.happens(0.3),
                tells_payment: random.happens(0.5),
                pace: share(&mut random),
            }
        })
        .collect();
    all.sort_by_key(|shopper| shopper.at);
    all
}

fn behaviour(random: &mut Random) -> Behaviour {
    let mut left = random.below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
    for (behaviour, weight) in WEIGHTS {
        if left < weight {
            return behaviour;
        }
        left -= weight;
    }
    Behaviour::Pays
}

/// From 0 up to 1.
fn share(random: &mut Random) -> f64 {
    random.below(1 << 20) as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_alone_decides() {
        let over = Duration::from_secs(80);
        assert_eq!(draw(7, 1000, over), draw(7, 1000, over));
        assert_ne!(draw(7, 1000, over), draw(8, 1000, over));
    }

    #[test]
    fn they_come_in_a_rush_and_do_what_the_weights_say() {
        let over = Duration::from_secs(80);
        let all = draw(1, 20_000, over);
        assert!(all.is_sorted_by_key(|shopper| shopper.at) && all.iter().all(|shopper| shopper.at < over));
        let early = all.iter().filter(|shopper| shopper.at < over / 16).count();
        assert!((4_700..5_300).contains(&early), "{early} in the first 5 s");
        for (behaviour, weight) in WEIGHTS {
            let found = all.iter().filter(|shopper| shopper.behaviour == behaviour).count();
            assert!(found.abs_diff(weight * 200) < 300, "{behaviour:?}: {found}");
        }
    }
}
