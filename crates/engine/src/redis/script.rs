//! A batch of verbs as the arguments of the one script that runs them, and its answer.

use super::net::Script;
use holdfast_domain::Time;
use redis::Value;
use std::sync::LazyLock;

/// One verb a file; the frame first, what runs them last.
const SOURCE: &str = concat!(
    include_str!("lua/frame.lua"),
    include_str!("lua/hold.lua"),
    include_str!("lua/open.lua"),
    include_str!("lua/take.lua"),
    include_str!("lua/sweep.lua"),
    include_str!("lua/freeze.lua"),
    include_str!("lua/apply.lua"),
    include_str!("lua/stock.lua"),
    include_str!("lua/counters.lua"),
    include_str!("lua/look.lua"),
    include_str!("lua/put.lua"),
    include_str!("lua/run.lua"),
);

pub(super) static VERBS: LazyLock<Script> = LazyLock::new(|| Script::new("verbs", SOURCE));
pub(super) static GATE: LazyLock<Script> = LazyLock::new(|| Script::new("gate", include_str!("lua/gate.lua")));
pub(super) static SERVE: LazyLock<Script> = LazyLock::new(|| Script::new("serve", include_str!("lua/serve.lua")));

/// Verbs for one partition, run together.
#[derive(Debug, Default, Clone)]
pub(super) struct Call {
    args: Vec<Vec<u8>>,
    verbs: usize,
}

impl Call {
    /// Adds a verb.
    pub(super) fn verb<T: AsRef<[u8]>>(&mut self, name: &str, args: impl IntoIterator<Item = T>) {
        self.args.push(name.into());
        let at = self.args.len();
        self.args.push(Vec::new());
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_vec()));
        self.args[at] = (self.args.len() - at - 1).to_string().into_bytes();
        self.verbs += 1;
    }

    pub(super) fn one<T: AsRef<[u8]>>(name: &str, args: impl IntoIterator<Item = T>) -> Self {
        let mut call = Self::default();
        call.verb(name, args);
        call
    }

    pub(super) fn verbs(&self) -> usize {
        self.verbs
    }

    /// With what the frame wants to know first.
    pub(super) fn args(&self, gate: &str, now: Option<Time>, seen: i64, server: &str) -> Vec<Vec<u8>> {
        let now = now.map_or_else(String::new, |now| now.millis().to_string());
        let replication = server.rsplit(':').next().unwrap_or_default();
        let first = [gate.into(), now.into_bytes(), seen.to_string().into_bytes(), replication.into()];
        first.into_iter().chain(self.args.iter().cloned()).collect()
    }
}

/// What a script answered.
#[derive(Debug)]
pub(super) enum Told {
    Done {
        now: Time,
        /// The number of the last log entry.
        seq: i64,
        answers: Vec<Reply>,
    },
    /// The partition is in this epoch, or in none.
    Epoch(String),
    /// The server has fewer log entries than were seen.
    Behind(i64),
    /// The process has another replication id: it was a replica in between.
    Server(String),
}

/// What a verb answered: a word, and particulars.
#[derive(Debug, Clone)]
pub(super) struct Reply(pub(super) Vec<Value>);

impl Told {
    pub(super) fn read(value: Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let reply = Reply(parts);
        match reply.text(0)? {
            "ok" => {
                let (now, seq) = (Time::from_millis(reply.number(1)?), reply.number(2)?);
                let Value::Array(answers) = reply.0.into_iter().nth(3)? else { return None };
                let answers = answers.into_iter().map(|answer| match answer {
                    Value::Array(parts) => Some(Reply(parts)),
                    _ => None,
                });
                Some(Self::Done { now, seq, answers: answers.collect::<Option<_>>()? })
            }
            "epoch" => Some(Self::Epoch(reply.text(1)?.to_owned())),
            "behind" => Some(Self::Behind(reply.number(1)?)),
            "server" => Some(Self::Server(reply.text(1)?.to_owned())),
            _ => None,
        }
    }
}

impl Reply {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn text(&self, at: usize) -> Option<&str> {
        match self.0.get(at)? {
            Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
            Value::SimpleString(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self, at: usize) -> Option<i64> {
        match self.0.get(at)? {
            Value::Int(number) => Some(*number),
            _ => self.text(at)?.parse().ok(),
        }
    }
}
