//! The logs of several partitions as one list of records.
//!
//! A hold whose lines lie in several partitions is logged in each of them, when its part there is in place. It is written
//! down once, whole, when all of them are at hand; until then, none of the logs is taken beyond it. What lapses is logged
//! part by part too, and the first of them ends the hold. So within one log everything keeps its order, and between logs
//! what depends on one another does.

use super::hot::{Drained, Fact, LogEntry};
use crate::partition::Partitions;
use crate::records::Corrupt;
use hashbrown::{HashMap, HashSet};
use holdfast_domain::{HoldId, Record, Recorded};
use std::collections::BTreeSet;

/// A record, with where it was logged and how.
pub(super) struct Logged<'a> {
    pub(super) part: u32,
    pub(super) at: (i64, i64),
    pub(super) text: &'a str,
    pub(super) record: Result<&'a Record, &'a Corrupt>,
}

/// One log, from where the ledger has come to.
pub(super) struct Log<'a> {
    pub(super) part: u32,
    pub(super) entries: Vec<&'a LogEntry>,
    /// So many of the entries may be written down now.
    pub(super) ripe: usize,
}

impl<'a> Log<'a> {
    pub(super) fn new(drained: &'a Drained, known: (i64, i64)) -> Self {
        let entries: Vec<_> = drained.entries.iter().filter(|entry| (entry.epoch, entry.seq) > known).collect();
        Self { part: drained.part, ripe: entries.len(), entries }
    }

    /// How far the log is written down with what is ripe.
    pub(super) fn reaches(&self) -> Option<(i64, i64)> {
        let last = self.entries.get(self.ripe.checked_sub(1)?)?;
        Some((last.epoch, last.seq))
    }
}

/// What is ripe, in an order in which it can be written down. When nothing more will come (`is_all`), holds that are not
/// whole are left out.
pub(super) fn merge<'a>(logs: &mut [Log<'a>], partitions: Partitions, is_all: bool) -> Vec<Logged<'a>> {
    // What was written down before is ended as any other hold is, whatever was found out about it since.
    let facts = || logs.iter().flat_map(|log| &log.entries).flat_map(|entry| &entry.facts).map(|(_, fact)| fact);
    let here: HashSet<HoldId> = facts().filter_map(held).map(|hold| hold.id).collect();
    let void = facts().filter_map(|fact| fact.as_ref().ok()).filter_map(|fact| match fact {
        Fact::Void(id) if here.contains(id) => Some(*id),
        _ => None,
    });
    let mut void: HashSet<HoldId> = void.collect();
    loop {
        let missing = incomplete(logs, partitions, &void);
        if missing.is_empty() {
            break;
        }
        if is_all {
            void.extend(missing);
        } else {
            logs.iter_mut().for_each(|log| cut(log, &missing));
        }
    }
    in_order(logs, partitions, &void)
}

fn held(fact: &Result<Fact, Corrupt>) -> Option<&holdfast_domain::Hold> {
    match fact {
        Ok(Fact::Record(Record { what: Recorded::Held(hold), .. })) => Some(hold),
        _ => None,
    }
}

/// Holds that are logged in some of their partitions within what is ripe, but not in all.
fn incomplete(logs: &[Log<'_>], partitions: Partitions, void: &HashSet<HoldId>) -> HashSet<HoldId> {
    let mut seen: HashMap<HoldId, (BTreeSet<u32>, BTreeSet<u32>)> = HashMap::new();
    for log in logs {
        for (_, fact) in log.entries[..log.ripe].iter().flat_map(|entry| &entry.facts) {
            if let Some(hold) = held(fact).filter(|hold| !void.contains(&hold.id)) {
                let wanted = || (partitions.of_lines(&hold.lines), BTreeSet::new());
                seen.entry(hold.id).or_insert_with(wanted).1.insert(log.part);
            }
        }
    }
    seen.into_iter().filter(|(_, (wanted, found))| wanted != found).map(|(id, _)| id).collect()
}

/// Ends what is ripe of a log before the first of these holds.
fn cut(log: &mut Log<'_>, before: &HashSet<HoldId>) {
    let has =
        |entry: &&LogEntry| entry.facts.iter().any(|(_, fact)| held(fact).is_some_and(|h| before.contains(&h.id)));
    if let Some(at) = log.entries[..log.ripe].iter().position(has) {
        log.ripe = at;
    }
}

/// A log on its way: which fact of which entry comes next.
struct Place {
    entry: usize,
    fact: usize,
}

fn in_order<'a>(logs: &[Log<'a>], partitions: Partitions, void: &HashSet<HoldId>) -> Vec<Logged<'a>> {
    let mut places: Vec<Place> = logs.iter().map(|_| Place { entry: 0, fact: 0 }).collect();
    let (mut out, mut order) = (Vec::new(), Order::new(partitions, void));
    loop {
        let (mut moved, mut is_done) = (false, true);
        for (log, place) in logs.iter().zip(&mut places) {
            while place.entry < log.ripe {
                let entry = log.entries[place.entry];
                let Some((text, fact)) = entry.facts.get(place.fact) else {
                    (place.entry, place.fact) = (place.entry + 1, 0);
                    continue;
                };
                match order.next(log.part, fact) {
                    Next::Wait => break,
                    Next::Skip => {}
                    Next::Write => {
                        let at = (entry.epoch, entry.seq);
                        let record = match fact {
                            Ok(Fact::Record(record)) => Ok(record),
                            Err(corrupt) => Err(corrupt),
                            Ok(Fact::Void(_)) => unreachable!("it is skipped"),
                        };
                        out.push(Logged { part: log.part, at, text, record });
                    }
                }
                place.fact += 1;
                moved = true;
            }
            is_done &= place.entry >= log.ripe;
        }
        if is_done {
            return out;
        }
        // Logs that wait for one another in a circle: only clocks that are far apart make one. Nobody waits any longer.
        order.is_forced = !moved;
    }
}

enum Next {
    Write,
    Skip,
    /// Another log has to go first.
    Wait,
}

struct Order<'v> {
    partitions: Partitions,
    void: &'v HashSet<HoldId>,
    /// Holds of which some logs were met, and how many are still to come.
    waiting: HashMap<HoldId, BTreeSet<u32>>,
    made: HashSet<HoldId>,
    is_forced: bool,
}

impl<'v> Order<'v> {
    fn new(partitions: Partitions, void: &'v HashSet<HoldId>) -> Self {
        Self { partitions, void, waiting: HashMap::new(), made: HashSet::new(), is_forced: false }
    }

    fn next(&mut self, part: u32, fact: &Result<Fact, Corrupt>) -> Next {
        if let Some(hold) = held(fact) {
            if self.void.contains(&hold.id) {
                return Next::Skip;
            }
            let waits = self.waiting.entry(hold.id).or_insert_with(|| self.partitions.of_lines(&hold.lines));
            waits.remove(&part);
            if !waits.is_empty() {
                return Next::Skip;
            }
            self.waiting.remove(&hold.id);
            return if self.made.insert(hold.id) { Next::Write } else { Next::Skip };
        }
        match fact {
            Ok(Fact::Record(Record { what: Recorded::Expired(id), .. })) if self.void.contains(id) => Next::Skip,
            Ok(Fact::Record(Record { what: Recorded::Expired(id), .. }))
                if self.waiting.contains_key(id) && !self.is_forced =>
            {
                Next::Wait
            }
            Ok(Fact::Void(_)) => Next::Skip,
            _ => Next::Write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_domain::{Hold, HoldStatus, Lines, Money, OrderId, Sku, Time};

    const EIGHT: u32 = 8;

    /// Of units in the partitions 5 and 2.
    fn hold() -> Hold {
        let line = |name: &str| (Sku::new(name).unwrap(), 1);
        Hold {
            id: HoldId::from_u128(7),
            order_id: OrderId::new("O").unwrap(),
            lines: Lines::new(vec![line("HOT"), line("WARM")]).unwrap(),
            customer_id: None,
            money: Money::default(),
            payment_ref: None,
            metadata: None,
            created_at: Time::default(),
            expires_at: Time::default(),
            status: HoldStatus::Held,
            late: false,
        }
    }

    fn made() -> Fact {
        Fact::Record(Record { at: Time::default(), what: Recorded::Held(Box::new(hold())), is_loose: true })
    }

    fn ended() -> Fact {
        Fact::Record(Record { at: Time::default(), what: Recorded::Expired(hold().id), is_loose: true })
    }

    fn log(part: u32, facts: Vec<Fact>) -> Drained {
        let facts = facts.into_iter().map(|fact| (String::new(), Ok(fact))).collect();
        Drained { part, epoch: 1, entries: vec![LogEntry { epoch: 1, seq: 1, facts }], upto: 0 }
    }

    /// What is written down of these logs, and how many of their entries are done with.
    fn merged(drained: &[Drained]) -> (Vec<Recorded>, usize) {
        let mut logs: Vec<Log<'_>> = drained.iter().map(|drained| Log::new(drained, (0, 0))).collect();
        let records = merge(&mut logs, Partitions::new(EIGHT), false);
        let what = records.iter().map(|logged| logged.record.unwrap().what.clone()).collect();
        (what, logs.iter().map(|log| log.ripe).sum())
    }

    #[test]
    fn a_hold_waits_for_all_of_its_parts() {
        assert_eq!(merged(&[log(5, vec![made()])]), (Vec::new(), 0));
        let whole = merged(&[log(5, vec![made()]), log(2, vec![made()])]);
        assert_eq!(whole, (vec![Recorded::Held(Box::new(hold()))], 2));
    }

    #[test]
    fn a_part_that_is_void_keeps_its_log_waiting_no_longer() {
        let void = || Fact::Void(hold().id);
        assert_eq!(merged(&[log(5, vec![made(), ended(), void()])]), (Vec::new(), 1));
        assert_eq!(merged(&[log(5, vec![void()]), log(2, Vec::new())]), (Vec::new(), 2));
    }

    #[test]
    fn a_hold_that_was_written_down_ends_although_it_is_void() {
        let late = merged(&[log(5, vec![ended(), Fact::Void(hold().id)])]);
        assert_eq!(late, (vec![Recorded::Expired(hold().id)], 1));
    }
}
