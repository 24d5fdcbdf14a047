//! An ordered set that knows everybody's place.
//!
//! Members lie in sorted chunks, and a Fenwick tree over the chunks' sizes counts what lies before one. Inserting,
//! removing and ranking cost a search and a move within one chunk. The tree is built anew when the chunks change, which
//! takes hundreds of inserts or removals each time.

/// What a chunk holds at most.
const CHUNK: usize = 512;

/// A member: its key, and its slot, which decides between equal keys.
type Member = (u128, u32);

/// Keys and slots lie apart because a pair of them would be padded from 20 to 32 bytes.
struct Chunk {
    /// No member of this chunk is smaller, and none of the chunks before is this large. Kept when members go.
    low: Member,
    keys: Vec<u128>,
    slots: Vec<u32>,
}

impl Chunk {
    fn new(low: Member) -> Self {
        Self { low, keys: Vec::new(), slots: Vec::new() }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    /// Where this member is, or would be.
    fn search(&self, (key, slot): Member) -> Result<usize, usize> {
        let mut at = self.keys.partition_point(|k| *k < key);
        while at < self.len() && self.keys[at] == key {
            match self.slots[at].cmp(&slot) {
                std::cmp::Ordering::Less => at += 1,
                std::cmp::Ordering::Equal => return Ok(at),
                std::cmp::Ordering::Greater => break,
            }
        }
        Err(at)
    }
}

/// The set.
#[derive(Default)]
pub(super) struct Order {
    chunks: Vec<Chunk>,
    /// A Fenwick tree: entry `i` counts the members of the chunks that end at `i` and that its lowest bit spans.
    tree: Vec<u32>,
    len: usize,
}

impl Order {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many members are smaller, whether or not this one is in the set.
    pub(super) fn rank(&self, key: u128, slot: u32) -> usize {
        if self.chunks.is_empty() {
            return 0;
        }
        let chunk = self.chunk_of((key, slot));
        let within = self.chunks[chunk].search((key, slot)).unwrap_or_else(|at| at);
        self.before(chunk) + within
    }

    /// False if it was there.
    pub(super) fn insert(&mut self, key: u128, slot: u32) -> bool {
        let member = (key, slot);
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::new((0, 0)));
            self.rebuild();
        }
        let mut chunk = self.chunk_of(member);
        let Err(mut at) = self.chunks[chunk].search(member) else { return false };
        if self.chunks[chunk].len() == CHUNK {
            chunk = self.make_room(chunk, at, member);
            at = self.chunks[chunk].search(member).unwrap_or_else(|at| at);
        }
        let into = &mut self.chunks[chunk];
        into.keys.insert(at, key);
        into.slots.insert(at, slot);
        self.add(chunk, 1);
        self.len += 1;
        true
    }

    /// False if it was not there.
    pub(super) fn remove(&mut self, key: u128, slot: u32) -> bool {
        if self.chunks.is_empty() {
            return false;
        }
        let chunk = self.chunk_of((key, slot));
        let Ok(at) = self.chunks[chunk].search((key, slot)) else { return false };
        let from = &mut self.chunks[chunk];
        from.keys.remove(at);
        from.slots.remove(at);
        self.add(chunk, -1);
        self.len -= 1;
        self.tidy(chunk);
        true
    }

    /// Removes the smallest so many.
    pub(super) fn drop_first(&mut self, count: usize) {
        let mut left = count.min(self.len);
        self.len -= left;
        let whole = self.chunks.iter().take_while(|chunk| {
            let goes = chunk.len() <= left;
            left -= if goes { chunk.len() } else { 0 };
            goes
        });
        let whole = whole.count();
        self.chunks.drain(..whole);
        if let Some(first) = self.chunks.first_mut() {
            first.keys.drain(..left);
            first.slots.drain(..left);
        }
        if whole > 0 {
            self.rebuild();
        } else if left > 0 {
            self.add(0, -(left as i32));
        }
    }

    /// Slots from the smallest on.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.slots.iter().copied())
    }

    /// The only chunk in which this member can be.
    fn chunk_of(&self, member: Member) -> usize {
        self.chunks.partition_point(|chunk| chunk.low <= member).saturating_sub(1)
    }

    /// Splits a full chunk; answers which one the member belongs to now.
    fn make_room(&mut self, chunk: usize, at: usize, member: Member) -> usize {
        let is_last = chunk + 1 == self.chunks.len();
        // Those who join one after the other come at the end. Halving there would leave every chunk half empty.
        let next = if is_last && at == CHUNK {
            Chunk::new(member)
        } else {
            let full = &mut self.chunks[chunk];
            let (keys, slots) = (full.keys.split_off(CHUNK / 2), full.slots.split_off(CHUNK / 2));
            Chunk { low: (keys[0], slots[0]), keys, slots }
        };
        let into = if member >= next.low { chunk + 1 } else { chunk };
        self.chunks.insert(chunk + 1, next);
        self.rebuild();
        into
    }

    /// Joins a chunk that has become small with a neighbour, so that many small ones never stay.
    fn tidy(&mut self, chunk: usize) {
        if self.chunks[chunk].len() > CHUNK / 8 {
            return;
        }
        let fits =
            |a: usize, b: usize| b < self.chunks.len() && self.chunks[a].len() + self.chunks[b].len() <= CHUNK / 2;
        let first = match chunk {
            _ if fits(chunk, chunk + 1) => chunk,
            1.. if fits(chunk - 1, chunk) => chunk - 1,
            _ => return,
        };
        let mut gone = self.chunks.remove(first + 1);
        self.chunks[first].keys.append(&mut gone.keys);
        self.chunks[first].slots.append(&mut gone.slots);
        self.rebuild();
    }

    fn rebuild(&mut self) {
        self.tree.clear();
        self.tree.extend(self.chunks.iter().map(|chunk| chunk.len() as u32));
        for i in 0..self.tree.len() {
            let parent = i | (i + 1);
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[i];
            }
        }
    }

    fn add(&mut self, chunk: usize, by: i32) {
        let mut i = chunk;
        while i < self.tree.len() {
            self.tree[i] = self.tree[i].saturating_add_signed(by);
            i |= i + 1;
        }
    }

    /// How many members lie in the chunks before this one.
    fn before(&self, chunk: usize) -> usize {
        let (mut sum, mut i) = (0, chunk);
        while i > 0 {
            sum += self.tree[i - 1] as usize;
            i &= i - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn expect_same(order: &Order, model: &BTreeSet<Member>) {
        assert_eq!(order.len(), model.len());
        assert!(order.iter().eq(model.iter().map(|m| m.1)));
        for (place, member) in model.iter().enumerate() {
            assert_eq!(order.rank(member.0, member.1), place);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Keys come from few values, so that equal keys are common, and in long runs, so that chunks split and merge.
        #[test]
        fn it_is_a_sorted_set(runs in prop::collection::vec((0u8..5, 0u32..6000, 1u32..3000, 1u32..7), 1..14)) {
            let mut order = Order::default();
            let mut model = BTreeSet::new();
            for (what, from, count, stride) in runs {
                for n in 0..count {
                    let x = from.wrapping_add(n.wrapping_mul(stride)) % 8000;
                    let member = (u128::from(x / 3) << 90, x);
                    match what {
                        0 | 1 => assert_eq!(order.insert(member.0, member.1), model.insert(member)),
                        2 | 3 => assert_eq!(order.remove(member.0, member.1), model.remove(&member)),
                        _ => {
                            let rank = model.range(..member).count();
                            assert_eq!(order.rank(member.0, member.1), rank);
                            if n % 64 == 0 {
                                order.drop_first(n as usize / 8);
                                (0..n / 8).for_each(|_| { model.pop_first(); });
                            }
                        }
                    }
                    if n == 200 && what == 4 { break; }
                }
                expect_same(&order, &model);
            }
        }
    }

    #[test]
    fn those_who_come_in_order_fill_their_chunks() {
        let mut order = Order::default();
        (0..100 * CHUNK as u32).for_each(|n| assert!(order.insert(u128::from(n), n)));
        assert_eq!(order.chunks.len(), 100);
        (0..100 * CHUNK as u32).filter(|n| n % 64 != 0).for_each(|n| assert!(order.remove(u128::from(n), n)));
        assert!(order.chunks.len() <= 8, "{} chunks for {} members", order.chunks.len(), order.len());
    }
}
