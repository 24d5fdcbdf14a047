//! P5: what one hold costs in memory, without a store: `cargo bench -p holdfast_domain`.

#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

use criterion::{Criterion, criterion_group, criterion_main};
use holdfast_domain::{
    Command, HoldId, HoldRequest, Inventory, Lines, Money, OrderFile, OrderId, Policy, SetStock, Sku, Time, Total, Ttl,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

const BATCH: u128 = 256;
/// Holds that live at once; beyond that, a fresh inventory is taken, so that memory does not grow without end.
const LIVE: u128 = 200_000;

fn stocked() -> Inventory {
    let mut inventory = Inventory::whole(Policy::default(), 7);
    let sku = Sku::new("PALM-PRO-BLK").unwrap();
    let total = Total::new(1_000_000_000).unwrap();
    let set = Command::SetStock(SetStock { sku, total, limit_per_customer: None, if_version: None });
    inventory.apply(&set, Time::from_millis(0)).unwrap();
    inventory.settle_down();
    inventory
}

fn hold(n: u128) -> HoldRequest {
    HoldRequest {
        id: HoldId::from_u128(n),
        order_id: OrderId::new(&format!("ORDER-{n}")).unwrap(),
        lines: Lines::new(vec![(Sku::new("PALM-PRO-BLK").unwrap(), 1)]).unwrap(),
        ttl: Ttl::new(600, 3600).unwrap(),
        customer_id: None,
        money: Money::default(),
        payment_ref: None,
        metadata: None,
    }
}

/// Batches of 256 holds on one SKU, as an engine applies them; making the requests is not timed.
fn apply(c: &mut Criterion) {
    let mut inventory = stocked();
    let (mut n, mut live) = (0, 0);
    c.bench_function("inventory/apply one hold", |b| {
        b.iter_custom(|holds| {
            let mut spent = Duration::ZERO;
            let mut left = u128::from(holds);
            while left > 0 {
                let size = left.min(BATCH);
                left -= size;
                live += size;
                if live > LIVE {
                    (inventory, live) = (stocked(), size);
                }
                let asked: Vec<HoldRequest> = (n..n + size).map(hold).collect();
                n += size;
                for one in &asked {
                    inventory.put_order(one.order_id.clone(), OrderFile::default());
                }
                let commands: Vec<Command> = asked.into_iter().map(|h| Command::Hold(Box::new(h))).collect();
                let start = Instant::now();
                for command in &commands {
                    black_box(inventory.apply(command, Time::from_millis(n as i64))).unwrap();
                }
                inventory.settle_down();
                spent += start.elapsed();
            }
            spent
        });
    });
}

criterion_group!(benches, apply);
criterion_main!(benches);
