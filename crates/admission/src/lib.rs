//! Who gets to ask, and how fast: token buckets, tickets, passes, the waiting room.
//!
//! Pure, as the domain is: no I/O, no clock, no randomness of its own; time and random bytes are handed in. Nothing here
//! keeps stock right: that is the engine's work, whatever is decided here.

pub mod bucket;
pub mod draw;
pub mod enqueue;
pub mod keys;
pub mod pass;
pub mod room;
pub mod ticket;
