//! Waits until nothing is under way any more, and reads the books then.

use super::evidence::{Evidence, Reversal, list};
use super::place::Place;
use super::verdict::Verdict;
use crate::api::Api;
use holdfast_engine::clock::monotonic;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often to look.
const LOOK: Duration = Duration::from_millis(250);
/// How long to look away before the last look: a second refund would come late.
const SECOND_LOOK: Duration = Duration::from_secs(2);

/// What is still under way, in words; empty when nothing is.
async fn under_way(place: &Place, api: &mut Api, sku: &str) -> Result<Vec<String>, String> {
    let books = place.books()?;
    let stock = api.stock(sku).await?;
    let mine: BTreeSet<&str> = books.payment_intents.iter().map(|intent| intent.id.as_str()).collect();
    let mut open = 0;
    for status in ["due", "requested"] {
        let found: Vec<Reversal> = list(api, &format!("/v1/refunds?status={status}")).await?;
        open += found.iter().filter(|reversal| mine.contains(reversal.payment_id.as_str())).count();
    }
    let authorised = books.payment_intents.iter().filter(|intent| intent.status == "requires_capture").count();
    let pending = books.refunds.iter().filter(|refund| refund.status == "pending").count();
    let all = [
        (books.undelivered_events, "events that the server did not take"),
        (stock.held as usize, "units held"),
        (open, "reversals that are due"),
        (authorised, "authorisations neither captured nor let go"),
        (pending, "refunds that are pending at the provider"),
    ];
    Ok(all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect())
}

/// Waits and judges. What is still under way when the patience ends is told as a breach of its own.
pub(super) async fn judge(
    place: &Place,
    sku: &str,
    units: u64,
    patience: Duration,
    mut say: impl FnMut(&str),
) -> Result<Verdict, String> {
    let mut api = Api::new(&place.target);
    let began = monotonic();
    loop {
        let open = under_way(place, &mut api, sku).await?;
        let is_over = began.elapsed() > patience;
        if open.is_empty() || is_over {
            let evidence = Evidence::read(&mut api, sku, units, place.books()?).await?;
            // An event that was taken may not be settled yet, so what is broken now may be whole in a moment.
            if is_over || Verdict::of(&evidence).is_good() {
                return last_look(place, &mut api, sku, units, open).await;
            }
            say("the books do not match yet");
        } else {
            say(&open.join(", "));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn last_look(place: &Place, api: &mut Api, sku: &str, units: u64, open: Vec<String>) -> Result<Verdict, String> {
    tokio::time::sleep(SECOND_LOOK).await;
    let mut evidence = Evidence::read(api, sku, units, place.books()?).await?;
    evidence.audit(api).await?;
    let mut verdict = Verdict::of(&evidence);
    if !open.is_empty() {
        verdict.breach("quiet", "not everything was settled when the patience ended (--patience)", open);
    }
    Ok(verdict)
}
