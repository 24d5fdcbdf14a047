//! The draw: in which order those who came before the start are let in, such that anyone can verify it.
//!
//! The sale tells the SHA-256 of a secret seed before anybody has joined, and the seed when all have. Nobody can choose
//! an order after the tickets are known, nor know it before. With the seed, everyone computes any ticket's place.

use crate::keys::mac;
use sha2::{Digest, Sha256};

/// What is told before: the SHA-256 of the seed, in hex.
pub fn commitment(seed: &[u8; 32]) -> String {
    hex(&Sha256::digest(seed))
}

/// The place of a ticket: the lowest comes first. HMAC-SHA256 of the ticket's text, the seed's bytes being the key.
pub fn place(seed: &[u8; 32], ticket: &str) -> [u8; 32] {
    mac(seed, &[ticket.as_bytes()])
}

/// Bytes as people compare them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_compute_the_same_order() {
        // By Python's hashlib and hmac.
        let seed = std::array::from_fn(|n| n as u8);
        assert_eq!(commitment(&seed), "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd");
        let ticket = "AQAGPn0sT8AAAAECAwQFBgcICQoAAAAAAAAAKqvN7wEAAAAAAAAAAAAAAAAAAAAA";
        let place = place(&seed, ticket);
        assert_eq!(hex(&place), "37b79a299c7c0feefcc80cb94be1d6aa5eb4720ecec4f1e78e20ecf2bad9afb6");
    }
}
