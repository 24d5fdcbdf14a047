//! The waiting room in a real browser: the page in every scene, what its script does with what it is told, and the
//! example shop. `browser.rs` drives the browser, `proxy.rs` is the web server in front of Holdfast.
//!
//! Pictures are left in `target/tmp/waiting_room` for people to look at.

#![allow(missing_docs, unreachable_pub)]
// clippy.toml allows these in functions marked as tests; the helpers here are test code as well.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code, reason = "shared with the server, which uses all of it")]
#[path = "../../../server/src/admission/page/mod.rs"]
mod page;
#[allow(dead_code, unused_imports, reason = "shared with the HTTP tests, which use all of it")]
#[path = "../http/support/mod.rs"]
mod support;

mod browser;
mod front;
mod gallery;
mod live;
mod looks;
mod plain;
mod proxy;
mod storefront;
mod whole;
