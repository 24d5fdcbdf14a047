//! Which server has which slot. Must never do I/O.

use super::config::Address;
use redis::Value;

const SLOTS: u16 = 16_384;
const NOBODY: u16 = u16::MAX;

/// A view of the cluster; of a single server, everything is its own.
#[derive(Debug)]
pub(super) struct Map {
    /// Grows with every change.
    pub(super) version: u64,
    owners: Vec<u16>,
    primaries: Vec<Address>,
    replicas: Vec<Address>,
}

/// The slot of the hash tag `{p<part>}`.
pub(super) fn slot_of_part(part: u32) -> u16 {
    crc16(format!("p{part}").as_bytes()) % SLOTS
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u16::from(*byte) << 8,
            |crc: u16, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
            },
        )
    })
}

impl Map {
    /// Nobody has anything yet.
    pub(super) fn empty() -> Self {
        Self { version: 0, owners: vec![NOBODY; usize::from(SLOTS)], primaries: Vec::new(), replicas: Vec::new() }
    }

    /// One server has everything.
    pub(super) fn whole(at: Address) -> Self {
        Self { version: 0, owners: vec![0; usize::from(SLOTS)], primaries: vec![at], replicas: Vec::new() }
    }

    /// Reads the answer to `CLUSTER SLOTS`.
    pub(super) fn read(value: &Value, asked: &Address) -> Result<Self, String> {
        let Value::Array(ranges) = value else { return Err(format!("{asked} answers CLUSTER SLOTS with {value:?}")) };
        let mut map = Self::empty();
        for range in ranges {
            let odd = || format!("{asked} answers CLUSTER SLOTS with an odd range: {range:?}");
            let Value::Array(range) = range else { return Err(odd()) };
            let [Value::Int(from), Value::Int(to), primary, replicas @ ..] = range.as_slice() else {
                return Err(odd());
            };
            let slots = u16::try_from(*from).ok().zip(u16::try_from(*to).ok());
            let (from, to) = slots.filter(|(from, to)| from <= to && *to < SLOTS).ok_or_else(odd)?;
            let owner = index(&mut map.primaries, node(primary, asked).ok_or_else(odd)?);
            map.owners[usize::from(from)..=usize::from(to)].fill(owner);
            for replica in replicas.iter().filter_map(|value| node(value, asked)) {
                index(&mut map.replicas, replica);
            }
        }
        if map.primaries.is_empty() {
            return Err(format!(
                "{asked} knows of nobody who has slots; make the cluster with redis-cli --cluster create"
            ));
        }
        Ok(map)
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&Address> {
        self.primaries.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// What a server says of one slot.
    pub(super) fn moved(&mut self, slot: u16, to: Address) {
        if self.owner(slot) != Some(&to) {
            let owner = index(&mut self.primaries, to);
            self.owners[usize::from(slot % SLOTS)] = owner;
            self.version += 1;
        }
    }

    pub(super) fn primaries(&self) -> &[Address] {
        &self.primaries
    }

    pub(super) fn replicas(&self) -> &[Address] {
        &self.replicas
    }
}

/// Where it stands in the list, at the end if it is new.
fn index(list: &mut Vec<Address>, at: Address) -> u16 {
    let place = list.iter().position(|known| *known == at).unwrap_or_else(|| {
        list.push(at);
        list.len() - 1
    });
    // A cluster of more servers than slots does not exist.
    u16::try_from(place).unwrap_or(NOBODY)
}

fn node(value: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(parts) = value else { return None };
    let [host, Value::Int(port), ..] = parts.as_slice() else { return None };
    let host = match host {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    };
    let host = if matches!(host.as_str(), "" | "?") { asked.host.clone() } else { host };
    Some(Address { host, port: u16::try_from(*port).ok().filter(|port| *port > 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address { host: "10.0.0.1".into(), port }
    }

    fn range(from: i64, to: i64, host: Value, port: i64) -> Value {
        let node = Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
        Value::Array(vec![Value::Int(from), Value::Int(to), node])
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b"foo") % SLOTS, 12_182);
        assert_eq!(slot_of_part(17), crc16(b"p17") % SLOTS);
    }

    #[test]
    fn a_cluster_is_read_and_corrected() {
        let host = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let told = Value::Array(vec![range(0, 99, Value::Nil, 1), range(100, 16_383, host("10.0.0.1"), 2)]);
        let mut map = Map::read(&told, &at(9)).unwrap();
        assert_eq!((map.owner(99), map.owner(100), map.owner(20_000)), (Some(&at(1)), Some(&at(2)), None));
        map.moved(99, at(2));
        map.moved(99, at(2));
        assert_eq!((map.owner(98), map.owner(99), map.version), (Some(&at(1)), Some(&at(2)), 1));
        for odd in [range(5, 4, host("a"), 1), range(0, 16_384, host("a"), 1), range(0, 1, host("a"), 0), Value::Nil] {
            assert!(Map::read(&Value::Array(vec![odd]), &at(9)).is_err());
        }
        assert!(Map::read(&Value::Array(vec![]), &at(9)).is_err(), "nobody has a slot");
    }
}
