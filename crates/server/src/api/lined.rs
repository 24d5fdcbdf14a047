//! Line numbers of a table as people count them. The csv crate's own do not see that `\r\n` has ended a line until the
//! next one is read, and know nothing of lines that are empty.

use std::collections::VecDeque;
use std::io::{self, Read};

/// A source that knows where its lines begin. What reads from it must read again only when it has used up what it has.
pub(super) struct Lined<R> {
    source: R,
    offset: u64,
    line: u64,
    is_start: bool,
    last: u8,
    /// Offset and number of lines that are not empty: of the record that is being read, and of what was read last.
    starts: VecDeque<(u64, u64)>,
}

impl<R: Read> Lined<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, offset: 0, line: 1, is_start: true, last: 0, starts: VecDeque::new() }
    }

    /// The next record is read from this offset on.
    pub(super) fn go_on_at(&mut self, offset: u64) {
        while self.starts.front().is_some_and(|(start, _)| *start < offset) {
            self.starts.pop_front();
        }
    }

    /// The number of the line in which the record began that was read last.
    pub(super) fn line(&self) -> u64 {
        self.starts.front().map_or(self.line, |(_, line)| *line)
    }
}

impl<R: Read> Read for Lined<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut taken = self.source.read(buffer)?;
        // A byte order mark is known as such only in one piece, and alone it would be taken for the whole table.
        while self.offset == 0 && (1..4).contains(&taken) && taken < buffer.len() {
            match self.source.read(&mut buffer[taken..])? {
                0 => break,
                more => taken += more,
            }
        }
        // What was read before belongs to the record that is being read: its first line is enough to remember.
        self.starts.truncate(1);
        for byte in &buffer[..taken] {
            match byte {
                b'\n' if self.last == b'\r' => {}
                b'\n' | b'\r' => {
                    self.line += 1;
                    self.is_start = true;
                }
                _ if self.is_start => {
                    self.starts.push_back((self.offset, self.line));
                    self.is_start = false;
                }
                _ => {}
            }
            self.last = *byte;
            self.offset += 1;
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::import::{Mode, Rows};

    /// Hands out a few bytes at a time.
    struct Dripping<'a>(&'a [u8], usize);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let taken = self.1.min(self.0.len()).min(buffer.len());
            buffer[..taken].copy_from_slice(&self.0[..taken]);
            self.0 = &self.0[taken..];
            Ok(taken)
        }
    }

    #[test]
    fn lines_are_counted_as_people_count() {
        let table = "\u{feff}sku,total\nA,1\n\n\nB,2\n\"C\nD\n\nE\",3\nF,4\n \n\nG,5";
        let expected = [2, 5, 6, 10, 11, 13];
        for end in ["\n", "\r\n", "\r"] {
            let table = table.replace('\n', end);
            for drip in [1, 2, 3, 7, 1000] {
                let rows = Rows::new(Dripping(table.as_bytes(), drip), Mode::Set).ok().unwrap();
                let lines: Vec<u64> = rows.map(|row| row.line).collect();
                assert_eq!(lines, expected, "{end:?}, {drip} bytes at a time");
            }
        }
    }
}
