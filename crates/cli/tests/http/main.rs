//! HTTP tests: the real binary on a real port, one file per part of the URL space.
//!
//! Tests that look only at SKUs and orders of their own share one server; the others start one. Every server is
//! stopped by its guard, which checks that it ends well and that its last audit is clean.

#![allow(missing_docs, unreachable_pub)]
// clippy.toml allows these in functions marked as tests; the helpers here are test code as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// Tables of cases are long, and small tables of text need no buffer.
#![allow(clippy::too_many_lines, clippy::format_collect)]

mod support;

mod audit;
mod auth;
mod bench;
mod bodies;
mod cli;
mod clients;
mod clock;
mod config;
mod confirm;
mod doctor;
mod engines;
mod hold_verbs;
mod holds;
mod import;
mod import_stream;
mod ledger;
mod migrate;
mod numbers;
mod odd_skus;
mod orders;
mod queue;
mod races;
mod redis;
mod sales;
mod service;
mod sockets;
mod stock;
mod stock_limits;
mod stopping;
mod strain;
mod texts;
mod webhooks;
