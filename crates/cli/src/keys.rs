//! `holdfast keys new`: makes an API key, and the two ways to tell it to the service.

use crate::Failure;
use clap::{Parser, Subcommand, ValueEnum};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::Read;

#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make a key of 256 random bits. It is shown once and kept nowhere.
    #[command(after_help = "Example:\n  holdfast keys new --name storefront --role checkout")]
    New {
        /// A name for it.
        #[arg(long, default_value = "shop")]
        name: String,
        /// What it may do; each role includes the ones before it.
        #[arg(long, value_enum, default_value = "checkout")]
        role: Role,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    Read,
    Checkout,
    Admin,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Verb::New { name, role } = &args.verb;
    if name.is_empty() || name.contains([':', ',', '"']) || name.chars().any(char::is_control) {
        return Err(Failure::Told("--name must not be empty or contain : , or \"".into()));
    }
    let role = match role {
        Role::Read => "read",
        Role::Checkout => "checkout",
        Role::Admin => "admin",
    };
    let mut bits = [0_u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bits)?;
    let key = format!("hf_{}", hex(&bits));
    let digest = hex(&Sha256::digest(key.as_bytes()));
    println!("{key}");
    eprintln!(
        "\nTell it to the service in one of two ways:\n\n  HOLDFAST_API_KEYS=\"{name}:{role}:{key}\"\n\nor, without the key itself, in the file given with --config:\n\n  [[api_keys]]\n  name = \"{name}\"\n  role = \"{role}\"\n  sha256 = \"{digest}\""
    );
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
