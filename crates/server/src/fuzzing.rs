//! Doors for the fuzz targets: each takes any bytes, must not panic, and checks what it made of them.

use crate::api::{holds, import};

/// Reads a cart as `POST /v1/holds` does.
pub fn cart(bytes: &[u8]) {
    if let Ok(request) = holds::read_hold(bytes, 3600, 600) {
        let mut skus: Vec<_> = request.lines.iter().map(|l| l.sku.clone()).collect();
        let lines = skus.len();
        assert!((1..=holdfast_domain::MAX_LINES).contains(&lines), "a cart has 1..=100 lines");
        skus.dedup();
        assert_eq!(skus.len(), lines, "one line a SKU");
        assert!(skus.is_sorted(), "sorted by bytes");
        assert!(request.lines.iter().all(|l| l.quantity.get() >= 1), "no line asks for nothing");
    }
}

/// Reads a table as `POST /v1/stock/import` does.
pub fn csv(bytes: &[u8]) {
    for mode in [import::Mode::Set, import::Mode::Add] {
        if let Ok(rows) = import::Rows::new(bytes, mode) {
            for row in rows {
                assert!(row.line >= 1, "lines are counted from 1");
            }
        }
    }
}
