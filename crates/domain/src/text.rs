//! The merchant's identifiers: byte-exact text that cannot hold a bad value.
//!
//! Nothing here folds case, trims or normalises: two identifiers are the same when their bytes are the same.

use std::fmt;
use std::sync::Arc;

/// Why a text is not a valid identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextError {
    /// No bytes at all.
    Empty,
    /// More bytes than allowed; carries the limit.
    TooLong(usize),
    /// It contains a control character (Unicode category Cc).
    Control,
    /// It starts or ends with white space.
    Padded,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("must not be empty"),
            Self::TooLong(max) => write!(f, "must be at most {max} bytes of UTF-8"),
            Self::Control => f.write_str("must not contain control characters"),
            Self::Padded => f.write_str("must not start or end with white space"),
        }
    }
}

impl std::error::Error for TextError {}

fn check(text: &str, max: usize) -> Result<(), TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.len() > max {
        return Err(TextError::TooLong(max));
    }
    if text.chars().any(char::is_control) {
        return Err(TextError::Control);
    }
    if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
        return Err(TextError::Padded);
    }
    Ok(())
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $max:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The greatest length in bytes.
            pub const MAX_BYTES: usize = $max;

            /// Checks and keeps the text as it is.
            pub fn new(text: &str) -> Result<Self, TextError> {
                check(text, $max)?;
                Ok(Self(Arc::from(text)))
            }

            /// The text, byte for byte as it came.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

text_id!(
    /// The merchant's identifier of a sellable item: 1..=128 bytes, byte-exact.
    Sku, 128
);
text_id!(
    /// The merchant's identifier of an order: 1..=255 bytes, byte-exact.
    OrderId, 255
);
text_id!(
    /// The merchant's identifier of a customer: 1..=255 bytes, byte-exact.
    CustomerId, 255
);
text_id!(
    /// Somebody else's name for a thing: a provider, a provider's payment or event, an idempotency key. 1..=255 bytes.
    Ref, 255
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_skus_are_legal() {
        for odd in
            ["a/b", "a+b", "100%", "a b", "{x}", "\"'", "🦊", "__proto__", "null", "0017", ".", "..", "É", "e\u{301}"]
        {
            assert_eq!(Sku::new(odd).map(|s| s.as_str().to_owned()), Ok(odd.to_owned()));
        }
        assert_ne!(Sku::new("É"), Sku::new("E\u{301}"), "Unicode forms are never folded");
    }

    #[test]
    fn bad_texts_are_refused_with_the_reason() {
        assert_eq!(Sku::new(""), Err(TextError::Empty));
        assert_eq!(Sku::new(&"x".repeat(129)), Err(TextError::TooLong(128)));
        assert_eq!(Sku::new("a\nb"), Err(TextError::Control));
        assert_eq!(Sku::new("\u{85}"), Err(TextError::Control));
        assert_eq!(Sku::new(" a"), Err(TextError::Padded));
        assert_eq!(Sku::new("a\u{3000}"), Err(TextError::Padded));
        assert!(Sku::new(&"é".repeat(64)).is_ok());
        assert!(Sku::new(&"é".repeat(65)).is_err(), "the limit counts bytes");
        assert!(OrderId::new(&"x".repeat(255)).is_ok());
        assert!(OrderId::new(&"x".repeat(256)).is_err());
    }
}
