//! What a room remembers, as bytes to append to a file.
//!
//! A record is its length, the version of the format, its kind, its fields, and a CRC-32 over all of that. Lengths are
//! fixed for each kind, so that a length which was damaged is not mistaken for a record that was cut off.

use super::slots::{Phase, Ticket};
use super::types::TicketId;

/// The version of the format.
const VERSION: u8 = 1;
/// Length, version and kind before the fields; the checksum after them.
const HEAD: usize = 3;
const TAIL: usize = 4;
/// No record is longer.
pub(super) const LONGEST: usize = HEAD + 65 + TAIL;

/// Something that happened to a ticket, or to the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Joined {
        id: TicketId,
        key: u128,
        identity: Option<u64>,
        restored: bool,
        at: i64,
    },
    Turned {
        id: TicketId,
        claim_by: i64,
    },
    Claimed {
        id: TicketId,
        session_until: i64,
    },
    Holds {
        id: TicketId,
    },
    Unholds {
        id: TicketId,
    },
    Ended {
        id: TicketId,
        how: Phase,
        at: i64,
    },
    Lost {
        from: i64,
        to: i64,
    },
    /// The totals ever counted, at the end of a snapshot.
    Totals([u64; 5]),
}

/// What stands at the head of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    Record(Record, usize),
    /// Nothing, or less than a record.
    Torn,
    /// Something else than a record.
    Damaged,
}

impl Record {
    pub(super) fn joined(ticket: &Ticket) -> Self {
        Self::Joined {
            id: ticket.id,
            key: ticket.key,
            identity: ticket.has_identity.then_some(ticket.identity),
            restored: ticket.restored,
            at: ticket.seen,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Joined { .. } => 1,
            Self::Turned { .. } => 2,
            Self::Claimed { .. } => 3,
            Self::Holds { .. } => 4,
            Self::Unholds { .. } => 5,
            Self::Ended { how: Phase::Done, .. } => 6,
            Self::Ended { how: Phase::Expired, .. } => 7,
            Self::Ended { .. } => 8,
            Self::Lost { .. } => 9,
            Self::Totals(_) => 10,
        }
    }

    /// Appends the record.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend([0, VERSION, self.kind()]);
        match *self {
            Self::Joined { id, key, identity, restored, at } => {
                to.extend(id.0);
                to.extend(key.to_le_bytes());
                to.extend(identity.unwrap_or_default().to_le_bytes());
                to.extend(at.to_le_bytes());
                to.push(u8::from(identity.is_some()) | u8::from(restored) << 1);
            }
            Self::Turned { id, claim_by: at }
            | Self::Claimed { id, session_until: at }
            | Self::Ended { id, at, .. } => {
                to.extend(id.0);
                to.extend(at.to_le_bytes());
            }
            Self::Holds { id } | Self::Unholds { id } => to.extend(id.0),
            Self::Lost { from, to: until } => {
                to.extend(from.to_le_bytes());
                to.extend(until.to_le_bytes());
            }
            Self::Totals(totals) => totals.iter().for_each(|n| to.extend(n.to_le_bytes())),
        }
        to[start] = (to.len() - start + TAIL) as u8;
        let sum = crc32(&to[start..]);
        to.extend(sum.to_le_bytes());
    }

    /// Reads the first record.
    pub(super) fn read(bytes: &[u8]) -> Read {
        // A file that grew before its bytes arrived ends in zeros.
        if bytes.iter().take(LONGEST).all(|b| *b == 0) && bytes.iter().all(|b| *b == 0) {
            return Read::Torn;
        }
        let (Some(len), Some(version), Some(kind)) = (bytes.first(), bytes.get(1), bytes.get(2)) else {
            return Read::Torn;
        };
        let len = usize::from(*len);
        if *version != VERSION || fields(*kind).is_none_or(|fields| HEAD + fields + TAIL != len) {
            return Read::Damaged;
        }
        let Some(record) = bytes.get(..len) else { return Read::Torn };
        let (body, sum) = record.split_at(len - TAIL);
        if crc32(body).to_le_bytes() != *sum {
            // What was written last may lack its last bytes, even if the file has grown; what has records behind it may not.
            return if bytes[len..].iter().all(|b| *b == 0) { Read::Torn } else { Read::Damaged };
        }
        match parse(*kind, &body[HEAD..]) {
            Some(record) => Read::Record(record, len),
            None => Read::Damaged,
        }
    }
}

/// The length of each kind's fields.
fn fields(kind: u8) -> Option<usize> {
    match kind {
        1 => Some(65),
        2 | 3 | 6..=8 | 10 => Some(40),
        4 | 5 => Some(32),
        9 => Some(16),
        _ => None,
    }
}

fn parse(kind: u8, fields: &[u8]) -> Option<Record> {
    let number = |at: usize| fields.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    let moment = |at: usize| number(at).map(u64::cast_signed);
    let id = || fields.get(..32).and_then(|b| b.try_into().ok()).map(TicketId);
    Some(match kind {
        1 => {
            let flags = *fields.get(64)?;
            let identity = if flags & 1 == 1 { Some(number(48)?) } else { None };
            let key = u128::from_le_bytes(fields.get(32..48)?.try_into().ok()?);
            Record::Joined { id: id()?, key, identity, restored: flags & 2 == 2, at: moment(56)? }
        }
        2 => Record::Turned { id: id()?, claim_by: moment(32)? },
        3 => Record::Claimed { id: id()?, session_until: moment(32)? },
        4 => Record::Holds { id: id()? },
        5 => Record::Unholds { id: id()? },
        6 => Record::Ended { id: id()?, how: Phase::Done, at: moment(32)? },
        7 => Record::Ended { id: id()?, how: Phase::Expired, at: moment(32)? },
        8 => Record::Ended { id: id()?, how: Phase::Left, at: moment(32)? },
        9 => Record::Lost { from: moment(0)?, to: moment(8)? },
        10 => Record::Totals([number(0)?, number(8)?, number(16)?, number(24)?, number(32)?]),
        _ => return None,
    })
}

/// The usual CRC-32 (reflected, 0xEDB88320), eight bytes at a time: a snapshot of a million tickets waits for it.
fn crc32(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(!0, |sum: u32, word| {
        let word = u64::from_le_bytes(*word) ^ u64::from(sum);
        (0..8).fold(0, |sum, i| sum ^ CRC[7 - i][(word >> (8 * i) & 0xff) as usize])
    });
    !rest.iter().fold(sum, |sum, byte| CRC[0][((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8))
}

/// What a byte does to the checksum, with none to seven bytes behind it.
static CRC: [[u32; 256]; 8] = {
    let mut table = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let (mut sum, mut bit) = (i as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xEDB8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[0][i] = sum;
        i += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut i = 0;
        while i < 256 {
            let sum = table[behind - 1][i];
            table[behind][i] = table[0][(sum & 0xff) as usize] ^ (sum >> 8);
            i += 1;
        }
        behind += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn every_record_reads_as_it_was_written() {
        let id = TicketId([7; 32]);
        let all = [
            Record::Joined { id, key: u128::MAX - 5, identity: Some(0), restored: true, at: -1 },
            Record::Joined { id, key: 0, identity: None, restored: false, at: i64::MAX },
            Record::Turned { id, claim_by: 1 },
            Record::Claimed { id, session_until: 2 },
            Record::Holds { id },
            Record::Unholds { id },
            Record::Ended { id, how: Phase::Done, at: 3 },
            Record::Ended { id, how: Phase::Expired, at: 4 },
            Record::Ended { id, how: Phase::Left, at: 5 },
            Record::Lost { from: i64::MIN, to: 6 },
            Record::Totals([1, 2, 3, 4, u64::MAX]),
        ];
        for record in all {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Record::read(&bytes), Read::Record(record, bytes.len()));
            for cut in 0..bytes.len() {
                assert_eq!(Record::read(&bytes[..cut]), Read::Torn, "{record:?} cut at {cut}");
            }
            bytes.extend([1; 64]);
            for at in 0..bytes.len() - 64 {
                let mut bad = bytes.clone();
                bad[at] ^= 0x10;
                assert_eq!(Record::read(&bad), Read::Damaged, "{record:?} damaged at {at}");
            }
        }
    }
}
