//! What the engine's proofs share: builders of commands, the bare inventory as an engine, and the invariants.

#![allow(dead_code, unreachable_pub)]

pub mod bare;
pub mod databases;
pub mod dice;
pub mod gate;
pub mod invariants;
pub mod killed;
pub mod lab;
pub mod make;
pub mod proxy;
pub mod random;
pub mod redis;
pub mod shoppers;
pub mod store;
