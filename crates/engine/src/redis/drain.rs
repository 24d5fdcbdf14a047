//! Write-behind: what the partitions logged is written to the ledger, in order, exactly once.
//!
//! How far the ledger has come stands in the ledger itself and moves in the same transaction, so a node that dies half-way
//! has written all of a step or nothing, and two nodes that drain the same entries write them once.

use super::core::{Core, ledger_error, told};
use super::holds::read_text;
use super::recover::text;
use super::script::Call;
use crate::EngineError;
use crate::records::{self, Corrupt};
use crate::sql::{Drained, Fact, Fault, Fields, Frozen, Kind, LogEntry, Step, Stepped};
use holdfast_domain::{HoldId, Record, Recorded, Time};
use redis::Value;

/// Log entries that are read at once, and facts that one step writes down of a partition, about.
const ENTRIES: usize = 200;
const FACTS: usize = 1500;
/// How often entries are tried again before the database is believed never to take them.
const TRIES: u32 = 5;

/// Reads a fact.
fn read_fact(kind: &str, text: &str, is_loose: bool) -> Result<Fact, Corrupt> {
    let mut fields = Fields(text);
    match kind {
        "H" => {
            let hold = read_text(text)?;
            Ok(Fact::Record(Record { at: hold.created_at, what: Recorded::Held(Box::new(hold)), is_loose }))
        }
        "E" => {
            let at = Time::from_millis(fields.number()?);
            let what = Recorded::Expired(records::hold_id(fields.text()?)?);
            Ok(Fact::Record(Record { at, what, is_loose }))
        }
        "V" => Ok(Fact::Void(records::hold_id(fields.text()?)?)),
        other => Err(Corrupt(format!("unknown fact {other:?}"))),
    }
}

impl Core {
    /// The log of a partition after an entry, as far as one step takes it.
    pub(super) async fn read_log(
        &self,
        part: u32,
        epoch: i64,
        server: &str,
        after: i64,
    ) -> Result<Vec<LogEntry>, EngineError> {
        let mut cmd = redis::cmd("XRANGE");
        cmd.arg(self.key(part, epoch, "log")).arg(format!("{}-0", after + 1)).arg("+").arg("COUNT").arg(ENTRIES);
        let value = self.net.run(part, Some(server), &cmd).await.map_err(told)?;
        let Value::Array(entries) = value else { return Err(EngineError::Corrupt("the log cannot be read".into())) };
        let (mut read, mut facts) = (Vec::new(), 0);
        for entry in entries {
            let entry = read_entry(&entry, epoch, self.partitions.count() > 1)
                .ok_or_else(|| EngineError::Corrupt("a log entry cannot be read".into()))?;
            facts += entry.facts.len();
            read.push(entry);
            if facts >= FACTS {
                break;
            }
        }
        Ok(read)
    }

    /// Writes down some of what was logged; how many log entries. A hold of several partitions is written down whole, so
    /// all logs are taken together.
    pub(super) async fn drain_some(&self) -> Result<i64, EngineError> {
        let _one = self.draining.lock().await;
        let mut steps = 1;
        loop {
            let (done, is_all) = self.drain_window(steps).await?;
            // A hold of several partitions may be farther from the beginning of one log than of another, when one of its
            // parts was put in place long before the other: then nothing is whole before more is read.
            if done > 0 || is_all {
                return Ok(done);
            }
            steps *= 4;
        }
    }

    /// Takes as much of every log as so many steps would; how many log entries were written down, and whether there were
    /// no more.
    async fn drain_window(&self, steps: usize) -> Result<(i64, bool), EngineError> {
        let (mut drained, mut before, mut is_all) = (Vec::new(), 0, true);
        for part in self.partitions.all() {
            let (epoch, server) = self.open_gate(part)?;
            let after = self.drained_to(part);
            before += after;
            let mut entries: Vec<LogEntry> = Vec::new();
            let mut is_end = false;
            for _ in 0..steps {
                let last = entries.last().map_or(after, |entry| entry.seq);
                let more = self.read_log(part, epoch, &server, last).await?;
                is_end = is_short(&more);
                entries.extend(more);
                if is_end {
                    break;
                }
            }
            is_all &= is_end;
            drained.push(Drained { part, epoch, entries, upto: 0 });
        }
        if drained.iter().all(|drained| drained.entries.is_empty()) {
            return Ok((0, true));
        }
        let ended = self.ended(&drained);
        self.write_down(drained, Kind::Serve).await?;
        self.lapse_others(ended).await?;
        let now = self.partitions.all().map(|part| self.drained_to(part)).sum::<i64>();
        Ok((now - before, is_all))
    }

    /// Holds that the log says have lapsed in one of several partitions.
    pub(super) fn ended(&self, drained: &[Drained]) -> Vec<HoldId> {
        if self.partitions.count() == 1 {
            return Vec::new();
        }
        let facts = drained.iter().flat_map(|d| &d.entries).flat_map(|entry| &entry.facts);
        let id = |fact: &Result<Fact, Corrupt>| match fact {
            Ok(Fact::Record(Record { what: Recorded::Expired(id), .. })) => Some(*id),
            _ => None,
        };
        facts.filter_map(|(_, fact)| id(fact)).collect()
    }

    /// The first part that lapses ends a hold; what other partitions have of it goes too.
    pub(super) async fn lapse_others(&self, ended: Vec<HoldId>) -> Result<(), EngineError> {
        if ended.is_empty() {
            return Ok(());
        }
        let mut call = Call::default();
        ended.iter().for_each(|id| call.verb("lapse", [id.to_string(), "1".to_owned()]));
        for part in self.partitions.all() {
            self.call(part, &call, None).await?;
        }
        Ok(())
    }

    /// Writes down everything that the partitions have logged by now.
    pub(super) async fn drain_all(&self) -> Result<(), EngineError> {
        while self.drain_some().await? > 0 {}
        Ok(())
    }

    /// One step with nothing to decide. Of what the database will not take, less and less is tried, until the one fact that
    /// is to blame can be parked: the rest goes on.
    pub(super) async fn write_down(&self, mut drained: Vec<Drained>, kind: Kind) -> Result<(), EngineError> {
        let mut tries = 0;
        loop {
            match self.ledger.step(&self.step(drained.clone(), kind)).await {
                Ok(stepped) => return self.note_step(&stepped),
                Err(fault @ (Fault::Corrupt(_) | Fault::Again(_))) => {
                    let (is_again, why) = (matches!(fault, Fault::Again(_)), fault.to_string());
                    let most = drained.iter().map(|drained| drained.entries.len()).max().unwrap_or(0);
                    if most > 1 {
                        drained.iter_mut().for_each(|drained| drained.entries.truncate(most.div_ceil(2)));
                    } else if is_again && tries < TRIES {
                        // Others who want the same rows are no reason to park anything, unless they never end.
                        tries += 1;
                    } else if !self.blame(&mut drained, &why).await? {
                        return Err(EngineError::Unavailable(why));
                    }
                }
                Err(fault) => return Err(ledger_error(fault)),
            }
        }
    }

    /// Marks the fact that the database will not take as unreadable; false when there is none.
    async fn blame(&self, drained: &mut [Drained], why: &str) -> Result<bool, EngineError> {
        let all: usize = drained.iter().flat_map(|d| &d.entries).map(|entry| entry.facts.len()).sum();
        // The first so many of them are taken, and so many are not.
        let (mut good, mut bad) = (0, all + 1);
        while bad - good > 1 {
            let middle = usize::midpoint(good, bad);
            match self.ledger.step(&self.step(first(drained, middle), Kind::Try)).await {
                Ok(_) => good = middle,
                Err(Fault::Corrupt(_) | Fault::Again(_)) => bad = middle,
                Err(fault) => return Err(ledger_error(fault)),
            }
        }
        let facts = drained.iter_mut().flat_map(|d| &mut d.entries).flat_map(|entry| &mut entry.facts);
        match facts.skip(good).find(|(_, fact)| fact.is_ok()) {
            Some((_, fact)) => *fact = Err(Corrupt(why.to_owned())),
            None => return Ok(false),
        }
        Ok(true)
    }

    fn step(&self, drained: Vec<Drained>, kind: Kind) -> Step {
        let facts = drained.iter().flat_map(|d| &d.entries).flat_map(|entry| &entry.facts);
        let at = facts.filter_map(|(_, fact)| match fact {
            Ok(Fact::Record(record)) => Some(record.at),
            _ => None,
        });
        Step {
            now: at.max().unwrap_or_default(),
            drained,
            commands: Vec::new(),
            token: None,
            frozen: Frozen::default(),
            partitions: self.partitions,
            stale: Vec::new(),
            kind,
        }
    }

    /// Takes in how far the ledger has come, or what made it refuse.
    pub(super) fn note_step(&self, stepped: &Stepped) -> Result<(), EngineError> {
        match stepped {
            Stepped::Done { rows, .. } => {
                for row in rows {
                    self.note_drained(row.part, row.drained_epoch, row.drained_seq);
                }
                self.drained.notify_waiters();
                Ok(())
            }
            Stepped::Stale(part) | Stepped::Gap(part) => {
                let why = match stepped {
                    Stepped::Gap(_) => "some of its log is missing",
                    _ => "the ledger knows it in another epoch",
                };
                if let Ok((epoch, _)) = self.open_gate(*part) {
                    self.shut(*part, epoch, why.into());
                }
                Err(EngineError::Auditing(why.into()))
            }
            Stepped::Beyond(_) | Stepped::GivenUp | Stepped::Tried | Stepped::Unripe => {
                Err(EngineError::Unavailable("a step was given up".into()))
            }
        }
    }

    /// Forgets the log entries that the ledger has.
    pub(super) async fn trim(&self, part: u32) -> Result<(), EngineError> {
        let (epoch, server) = self.open_gate(part)?;
        let mut cmd = redis::cmd("XTRIM");
        cmd.arg(self.key(part, epoch, "log")).arg("MINID").arg("~").arg(format!("{}-0", self.drained_to(part) + 1));
        self.net.run(part, Some(&server), &cmd).await.map_err(told).map(|_| ())
    }
}

/// Whether a log had no more than this when it was read.
fn is_short(entries: &[LogEntry]) -> bool {
    entries.len() < ENTRIES && entries.iter().map(|entry| entry.facts.len()).sum::<usize>() < FACTS
}

/// The same with only the first so many facts, in place of the others nothing.
fn first(drained: &[Drained], count: usize) -> Vec<Drained> {
    let mut some = drained.to_vec();
    let facts = some.iter_mut().flat_map(|d| &mut d.entries).flat_map(|entry| &mut entry.facts);
    for (_, fact) in facts.skip(count) {
        *fact = Ok(Fact::Void(HoldId::from_u128(0)));
    }
    some
}

fn read_entry(value: &Value, epoch: i64, is_loose: bool) -> Option<LogEntry> {
    let Value::Array(entry) = value else { return None };
    let [id, Value::Array(fields)] = entry.as_slice() else { return None };
    let seq = text(id)?.split_once('-')?.0.parse().ok()?;
    let fact = |pair: &[Value]| {
        let (kind, body) = (text(&pair[0])?, text(pair.get(1)?)?);
        let fact = read_fact(&kind, &body, is_loose);
        Some((format!("{kind} {body}"), fact))
    };
    Some(LogEntry { epoch, seq, facts: fields.chunks(2).map(fact).collect::<Option<_>>()? })
}
