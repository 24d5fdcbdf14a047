//! The developer's verbs: `cargo xtask test`, `services`, `lint`, `fuzz`. Plain standard library, so that it builds in a moment.
//!
//! It calls the same tools as a person would, shows each call, and ends with the first failure's exit code. It must
//! never change the source tree, nor install anything but what a build cannot do without.

mod browser;
mod foreign;
mod fuzz;
mod lint;
mod services;
mod steps;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
The developer's verbs.

Usage: cargo xtask <VERB>

  test [-- ARGS]       build the binary and run every test, doc tests too; ARGS go to `cargo test`
  services             start the databases, Redis and the brokers for the tests, and keep them until Enter is pressed
  lint                 rustfmt, clippy, and cargo-deny where it is installed
  fuzz [--seconds N]   run every fuzz target for N seconds each (60 unless told); needs cargo-fuzz
  help                 this text

Examples:
  cargo xtask test
  cargo xtask test -- -p holdfast_domain late
  cargo xtask fuzz --seconds 300
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if args.iter().take_while(|a| **a != "--").any(|a| matches!(*a, "-h" | "--help")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let done = match *args.as_slice() {
        ["help"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test"] => test::run(&[]),
        ["test", "--", ref rest @ ..] => test::run(rest),
        ["services"] => services::run(),
        ["lint"] => lint::run(),
        ["fuzz"] => fuzz::run("60"),
        ["fuzz", "--seconds", seconds] => fuzz::run(seconds),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("\nxtask: {}", failed.why);
            ExitCode::from(failed.code)
        }
    }
}
