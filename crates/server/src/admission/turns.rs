//! The loops: following other nodes' changes, and moving the rooms on.

use super::binding;
use super::keeper::Kept;
use crate::app::{App, Shared};
use holdfast_admission::ticket::Ticket;
use holdfast_engine::EngineError;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often changes of other nodes are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// How often turns are given.
const STEP: Duration = Duration::from_millis(200);
/// How often a node says that it keeps the rooms.
const RENEW: Duration = Duration::from_secs(1);
/// Steps between two looks at which passes were used on other nodes.
const RECALL: u32 = 5;
/// Steps between two searches for passes that have expired.
const SWEEP: u32 = 3000;

/// Looks for changes of other nodes until stopped.
pub(crate) async fn watcher(app: Shared, mut stop: watch::Receiver<bool>) {
    let mut is_told = false;
    while !*stop.borrow() {
        let read = app.admission.refresh().await;
        if let Err(error) = &read
            && !is_told
        {
            tracing::warn!(%error, "the sales cannot be read");
        }
        is_told = read.is_err();
        tokio::select! { () = sleep(LOOK) => {}, _ = stop.changed() => {} }
    }
}

/// Moves the rooms on until stopped.
pub(crate) async fn turner(app: Shared, mut stop: watch::Receiver<bool>) {
    let (mut is_recalled, mut is_told, mut steps) = (false, false, 0_u32);
    while !*stop.borrow() {
        // On a store that nodes share, holds are taken on all of them, and their passes tell of it.
        let is_alone = app.admission.keeper.is_alone();
        if steps.is_multiple_of(RECALL) && !is_alone {
            is_recalled = false;
        }
        let is_ours = matches!(app.admission.keeper.kept(), Kept::Here);
        if !is_recalled && is_ours {
            is_recalled = recall(&app).await.unwrap_or(false);
        }
        let moved = if is_ours { step(&app).await } else { Ok(()) };
        if let Err(error) = &moved
            && !is_told
        {
            tracing::warn!(%error, "the waiting rooms stand still: the stock cannot be read");
        }
        is_told = moved.is_err();
        steps += 1;
        if steps.is_multiple_of(SWEEP) {
            sweep(&app).await;
        }
        tokio::select! { () = sleep(STEP) => {}, _ = stop.changed() => {} }
    }
    app.admission.keeper.stop().await;
}

/// Says every second that this node keeps the rooms, if it does, however long a step of them takes.
pub(crate) async fn keeper(app: Shared, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() && !app.admission.keeper.is_alone() {
        keep(&app).await;
        tokio::select! { () = sleep(RENEW) => {}, _ = stop.changed() => {} }
    }
}

/// Keeps the rooms if nobody else does.
async fn keep(app: &App) {
    match app.admission.keeper.renew().await {
        Ok(true) => {
            if let Ok(sales) = app.admission.sales() {
                tracing::info!("this node keeps the waiting rooms from now on");
                app.admission.rooms.begin(&sales, app.engine.time());
            }
        }
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "who keeps the waiting rooms is not known at the moment"),
    }
}

async fn step(app: &App) -> Result<(), EngineError> {
    let Ok(sales) = app.admission.sales() else { return Ok(()) };
    let pace = app.admission.pace.factor(app.lanes.waiting(), app.config.lanes.depth);
    for live in app.admission.rooms.all() {
        if let Some(sale) = sales.get(&live.sale) {
            app.admission.rooms.step(app, &live, sale, pace).await?;
        }
    }
    Ok(())
}

/// After a start: who has a hold. False while it cannot be known.
async fn recall(app: &App) -> Result<bool, EngineError> {
    let (Ok(keys), Ok(_)) = (app.admission.keys(), app.admission.sales()) else { return Ok(false) };
    let ticket = |sale: &str, text: &str| Ticket::read(text, &keys, sale).ok().map(|ticket| ticket.id());
    app.admission.rooms.recall(ticket).await.map(|()| true)
}

/// Forgets passes that have expired.
async fn sweep(app: &App) {
    let Ok(sales) = app.admission.sales() else { return };
    for sale in sales.all().filter(|sale| sale.room.is_some()) {
        if let Err(error) = binding::sweep(&*app.engine, &sale.name, app.engine.time()).await {
            tracing::warn!(%error, sale = sale.name, "passes that have expired are not forgotten yet");
        }
    }
}
