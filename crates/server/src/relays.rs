//! Who reads along in the ledger: the shop's sinks, and those of the service's own (mail, payment windows, what needs
//! attention). Each has a cursor and a loop of its own, so that none of them slows another, or a request.

use crate::app::Shared;
use crate::attention::{self, Attention};
use crate::config::ConfigError;
use crate::outbox::{EngineDesk, Relay, Sink, run};
use crate::payments::{WINDOW_KINDS, Windows};
use crate::post::{self, Post};
use holdfast_domain::EntryKind;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The service's own sinks, as `/v1/sinks` has them. No other sink has an underscore in its name.
pub(crate) const OWN: [&str; 3] = [ATTENTION, WINDOWS, MAIL];
const ATTENTION: &str = "_attention";
const WINDOWS: &str = "_windows";
const MAIL: &str = "_mail";

/// Starts them all.
pub(crate) fn start(app: &Shared, stop: &watch::Receiver<bool>) -> Result<Vec<JoinHandle<()>>, ConfigError> {
    let desk = Arc::new(EngineDesk(app.engine.clone()));
    let metrics = &app.metrics.outbox;
    let mut relays = Vec::new();
    for sink in &app.config.sinks {
        relays.push((Relay::new(desk.clone(), sink, metrics)?, app.recorded.clone()));
    }
    // What these are for is rare, so they look once a second instead of after every request.
    let mut own = |name: &str, kinds: &[EntryKind], sink: Box<dyn Sink>| {
        relays.push((Relay::of(desk.clone(), name, sink, metrics).only(kinds), Arc::default()));
    };
    own(ATTENTION, &attention::KINDS, Box::new(Attention { metrics: app.metrics.attention.clone() }));
    if app.payments.closes_windows {
        let windows = Windows::new(app.engine.clone(), app.payments.providers.clone());
        own(WINDOWS, &WINDOW_KINDS, Box::new(windows));
    }
    if let Some(mailer) = app.config.mail.mailer()? {
        own(MAIL, &post::KINDS, Box::new(Post::new(app.engine.clone(), mailer)));
    }
    let start = |(relay, wake)| tokio::spawn(run(relay, wake, stop.clone()));
    Ok(relays.into_iter().map(start).collect())
}
