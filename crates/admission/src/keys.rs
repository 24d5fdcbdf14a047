//! The secrets that tickets and passes are signed with, and their rotation.
//!
//! A generation is made from 32 random bytes that are handed in; the key of tickets and the key of passes are derived
//! from them. The newest generation signs; the newest two verify, so that what was signed before a rotation stays good
//! until the next one. Secrets must never get into a log: nothing here that has one can be printed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// How many generations verify.
const LIVE: usize = 2;
/// The block of SHA-256, up to which HMAC takes a key as it is.
const BLOCK: usize = 64;

const OF_TICKETS: &[u8] = b"holdfast ticket 1";
const OF_PASSES: &[u8] = b"holdfast pass ed25519 1";

/// HMAC-SHA256 of these pieces, one after the other.
pub(crate) fn mac(key: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    match block.get_mut(..key.len()) {
        Some(start) => start.copy_from_slice(key),
        None => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    block.zeroize();
    pieces.iter().for_each(|piece| mac.update(piece));
    mac.finalize().into_bytes().into()
}

/// Base64url without padding.
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The only text of some bytes in base64url without padding; nothing where it is not that.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// What was made from one secret.
pub(crate) struct Generation {
    number: u8,
    secret: Zeroizing<[u8; 32]>,
    tickets: Zeroizing<[u8; 32]>,
    passes: SigningKey,
    kid: String,
}

impl Generation {
    fn new(number: u8, secret: [u8; 32]) -> Self {
        let secret = Zeroizing::new(secret);
        let tickets = Zeroizing::new(mac(&*secret, &[OF_TICKETS]));
        let passes = SigningKey::from_bytes(&Zeroizing::new(mac(&*secret, &[OF_PASSES])));
        let kid = thumbprint(&passes.verifying_key());
        Self { number, secret, tickets, passes, kid }
    }

    /// What tickets carry to tell which key they are signed with.
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// The key that tickets are signed with.
    pub(crate) fn tickets(&self) -> &[u8; 32] {
        &self.tickets
    }

    /// The key that passes are signed with.
    pub(crate) fn passes(&self) -> &SigningKey {
        &self.passes
    }

    /// What passes carry to tell which key they are signed with.
    pub(crate) fn kid(&self) -> &str {
        &self.kid
    }
}

/// The generations that are alive.
pub struct KeyRing {
    newest: Generation,
    before: Option<Generation>,
}

impl KeyRing {
    /// The first generation, from random bytes.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { newest: Generation::new(1, secret), before: None }
    }

    /// Signs with a new generation from now on. What the one before the last has signed is good no more.
    pub fn rotate(&mut self, secret: [u8; 32]) {
        let next = Generation::new(self.newest.number.wrapping_add(1), secret);
        self.before = Some(std::mem::replace(&mut self.newest, next));
    }

    pub(crate) fn newest(&self) -> &Generation {
        &self.newest
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &Generation> {
        std::iter::once(&self.newest).chain(&self.before)
    }

    /// The keys that verify passes, as a JSON Web Key Set (RFC 7517, RFC 8037).
    pub fn jwks(&self) -> serde_json::Value {
        let keys: Vec<_> = self
            .live()
            .map(|one| {
                let x = encode(one.passes.verifying_key());
                serde_json::json!({
                    "kty": "OKP", "crv": "Ed25519", "x": x, "kid": one.kid, "alg": "EdDSA", "use": "sig",
                })
            })
            .collect();
        serde_json::json!({ "keys": keys })
    }

    /// All of it as a JSON text, **secrets included**: for a store that only the servers read.
    pub fn to_json(&self) -> Zeroizing<String> {
        let entry = |one: &Generation| Entry { number: one.number, secret: encode(one.secret.as_slice()) };
        let note = Note { version: 1, keys: self.live().map(entry).collect() };
        Zeroizing::new(serde_json::json!(note).to_string())
    }

    /// Reads what [`KeyRing::to_json`] has written.
    ///
    /// # Errors
    /// When it has not written that. The text is not repeated.
    pub fn from_json(text: &str) -> Result<Self, KeyError> {
        let note: Note = serde_json::from_str(text).map_err(|_| KeyError)?;
        let generation = |entry: &Entry| {
            let secret = Zeroizing::new(decode(&entry.secret).ok_or(KeyError)?);
            Ok(Generation::new(entry.number, secret.as_slice().try_into().map_err(|_| KeyError)?))
        };
        let mut live = note.keys.iter().map(generation).collect::<Result<Vec<_>, _>>()?.into_iter();
        match (live.next(), live.next()) {
            (Some(newest), before)
                if note.version == 1
                    && note.keys.len() <= LIVE
                    && before.as_ref().is_none_or(|before| before.number != newest.number) =>
            {
                Ok(Self { newest, before })
            }
            _ => Err(KeyError),
        }
    }
}

/// The names of the keys, which are public.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.live().map(Generation::kid)).finish()
    }
}

/// A text is no key ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stored keys of tickets and passes cannot be read")
    }
}

impl std::error::Error for KeyError {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    version: u32,
    /// The newest comes first.
    keys: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    number: u8,
    secret: String,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

/// RFC 7638: the hash of the key's required members, in their order.
fn thumbprint(key: &VerifyingKey) -> String {
    let x = encode(key);
    encode(Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_that_others_give_them() {
        // RFC 8037, appendix A.
        let x = decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let key = VerifyingKey::from_bytes(&x.try_into().unwrap()).unwrap();
        assert_eq!(thumbprint(&key), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    }

    #[test]
    fn macs_are_those_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        let hex = |bytes: [u8; 32]| crate::draw::hex(&bytes);
        let short = mac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(hex(short), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = mac(&[0xaa; 131], &[b"Test Using Larger Than Block-Size Key - Hash Key First"]);
        assert_eq!(hex(long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn a_ring_comes_back_from_its_store_and_tells_no_secret() {
        let mut ring = KeyRing::new([7; 32]);
        let first = ring.newest().kid().to_owned();
        let once = KeyRing::from_json(&ring.to_json()).unwrap();
        assert_eq!(once.jwks(), ring.jwks());
        ring.rotate([8; 32]);
        ring.rotate([9; 32]);
        let again = KeyRing::from_json(&ring.to_json()).unwrap();
        assert_eq!((again.jwks(), again.to_json()), (ring.jwks(), ring.to_json()));
        assert_eq!(ring.live().map(Generation::number).collect::<Vec<_>>(), [3, 2]);
        assert!(ring.live().all(|one| one.kid() != first));
        let told = format!("{ring:?} {}", ring.jwks());
        for secret in [[8; 32], [9; 32]] {
            assert!(ring.to_json().contains(&encode(secret)) && !told.contains(&encode(secret)));
        }
    }

    #[test]
    fn what_is_no_ring_is_refused() {
        let secret = encode([1; 32]);
        let of = |keys: &str| format!(r#"{{"version":1,"keys":[{keys}]}}"#);
        let key = |n: u32| format!(r#"{{"number":{n},"secret":"{secret}"}}"#);
        assert!(KeyRing::from_json(&of(&key(1))).is_ok());
        let twice = [key(1), key(1)].join(",");
        let three = [key(3), key(2), key(1)].join(",");
        let short = key(1).replace(&secret, "AAAA");
        for bad in [
            String::new(),
            of(""),
            of(&twice),
            of(&three),
            of(&short),
            of(&key(256)),
            of(&key(1)).replace("n\":1", "n\":2"),
        ] {
            assert_eq!(KeyRing::from_json(&bad).unwrap_err(), KeyError, "{bad}");
        }
    }
}
