//! The waiting room as those who use it see it: by its public calls only.

#![allow(clippy::unwrap_used)]

#[path = "room/kit.rs"]
mod kit;
#[path = "room/ops.rs"]
mod ops;

#[path = "room/joining.rs"]
mod joining;
#[path = "room/journal.rs"]
mod journal;
#[path = "room/properties.rs"]
mod properties;
#[path = "room/time.rs"]
mod time;
#[path = "room/turns.rs"]
mod turns;
