//! Values that cannot be bad: whatever is asked, what the constructors let through keeps its promises.

#![allow(missing_docs, clippy::unwrap_used)]

use holdfast_domain::{
    Entry, EntryKind, HoldId, Lines, LinesError, MAX_LINES, MAX_QUANTITY, Sku, TextError, Time, Ttl, fold,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_are_sums_by_sku_in_byte_order(asked in vec(("[a-cA-C]{1,2}", 0..=u64::from(MAX_QUANTITY)), 0..120)) {
        let lines = Lines::new(asked.iter().map(|(s, q)| (Sku::new(s).unwrap(), *q)).collect());
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (sku, units) in &asked {
            *sums.entry(sku).or_default() += units;
        }
        let is_fine = !asked.is_empty()
            && asked.len() <= MAX_LINES
            && asked.iter().all(|(_, units)| *units > 0)
            && sums.values().all(|sum| *sum <= u64::from(MAX_QUANTITY));
        match lines {
            Ok(lines) => {
                prop_assert!(is_fine);
                let told: Vec<_> = lines.iter().map(|l| (l.sku.as_str(), l.quantity.get())).collect();
                prop_assert_eq!(told, sums.into_iter().collect::<Vec<_>>());
            }
            Err(LinesError::Quantity(at)) => prop_assert!(!is_fine && at < asked.len()),
            Err(_) => prop_assert!(asked.is_empty() || asked.len() > MAX_LINES),
        }
    }

    #[test]
    fn a_sku_is_kept_byte_for_byte_or_refused(text in any::<String>()) {
        match Sku::new(&text) {
            Ok(sku) => {
                prop_assert_eq!(sku.as_str(), &text);
                prop_assert!(!text.is_empty() && text.len() <= Sku::MAX_BYTES);
                prop_assert!(!text.chars().any(char::is_control) && text.trim() == text);
            }
            Err(TextError::Empty) => prop_assert!(text.is_empty()),
            Err(TextError::TooLong(max)) => prop_assert!(text.len() > max),
            Err(TextError::Control) => prop_assert!(text.chars().any(char::is_control)),
            Err(TextError::Padded) => prop_assert!(text.trim() != text),
        }
    }

    #[test]
    fn a_hold_id_reads_back_what_it_writes(bits in any::<u128>(), junk in ".{0,40}") {
        let id = HoldId::from_u128(bits);
        prop_assert_eq!(HoldId::parse(&id.to_string()), Some(id));
        prop_assert_eq!(HoldId::parse(&id.to_string().to_uppercase()), Some(id));
        if let Some(read) = HoldId::parse(&junk) {
            prop_assert_eq!(read.to_string(), junk.to_lowercase());
        }
    }

    #[test]
    fn a_ttl_is_never_clamped(seconds in any::<u64>(), max in 1_u32..100_000) {
        match Ttl::new(seconds, max) {
            Some(ttl) => prop_assert_eq!(u64::from(ttl.seconds()), seconds),
            None => prop_assert!(seconds == 0 || seconds > u64::from(max)),
        }
    }

    #[test]
    fn a_fold_is_the_sum_in_any_order(moves in vec((0..3_usize, -9_i64..9, -9_i64..9, -9_i64..9), 0..40)) {
        let entry = |&(sku, available, held, sold): &(usize, i64, i64, i64)| Entry {
            at: Time::from_millis(0),
            kind: EntryKind::Adjusted,
            sku: Some(Sku::new(["a", "b", "c"][sku]).unwrap()),
            available,
            held,
            sold,
            hold: None,
            order: None,
            reason: None,
        };
        let mut entries: Vec<Entry> = moves.iter().map(entry).collect();
        let forward = fold(&entries);
        entries.reverse();
        prop_assert_eq!(&forward, &fold(&entries));
        let sum: i64 = forward.values().map(|c| c.available + c.held + c.sold).sum();
        prop_assert_eq!(sum, moves.iter().map(|m| m.1 + m.2 + m.3).sum::<i64>());
    }
}
