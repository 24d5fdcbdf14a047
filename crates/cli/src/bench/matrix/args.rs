//! The flags of the comparison matrix, and the cells that they ask for.

use super::super::args::{Scenario, count};
use super::super::database::shown;
use clap::ValueEnum;
use holdfast_engine::{Database, RedisConfig, Strategy};
use std::path::PathBuf;
use std::sync::Arc;

/// The comparison matrix.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Comparison of engines and strategies")]
pub(crate) struct MatrixArgs {
    /// Engines to compare, in process: embedded, postgres://user:password@host/database, mysql://…, redis://…
    #[arg(long, value_name = "ENGINES", value_delimiter = ',')]
    #[arg(conflicts_with_all = ["url", "engine", "library", "rate", "threads"])]
    #[arg(conflicts_with_all = ["concurrency", "rounds", "random_order_ids"])]
    pub(crate) engines: Vec<String>,
    /// Strategies of engines on a database: all, or some of row_lock,optimistic,skip_locked,redlock,naive
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all", requires = "engines")]
    #[arg(value_parser = strategies)]
    pub(crate) strategies: Vec<Strategies>,
    /// Redis servers that give leases, for strategy redlock; without them, all leaves it out
    #[arg(long, env = "HOLDFAST_LOCK_NODES", value_name = "URL,…", value_delimiter = ',', hide_env_values = true)]
    pub(crate) lock_nodes: Vec<String>,
    /// Holds in a transaction: one, or as many as have gathered
    #[arg(long, value_name = "HOW", value_enum, value_delimiter = ',', requires = "engines")]
    #[arg(default_values = ["one", "batched"])]
    pub(crate) batches: Vec<Batches>,
    /// Nodes that share a database
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", requires = "engines")]
    #[arg(value_parser = count)]
    pub(crate) nodes: Vec<usize>,
    /// Write the comparison to this file, a line a row
    #[arg(long, value_name = "FILE", requires = "engines")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the comparison to this file, as a page with charts
    #[arg(long, value_name = "FILE", requires = "engines")]
    pub(crate) html: Option<PathBuf>,
}

/// A word of `--strategies`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategies {
    All,
    One(Strategy),
}

fn strategies(text: &str) -> Result<Strategies, String> {
    let known = || Strategy::ALL.map(Strategy::as_str).join(", ");
    match text {
        "all" => Ok(Strategies::All),
        text => Strategy::parse(text).map(Strategies::One).ok_or_else(|| format!("use all, {}", known())),
    }
}

/// How many holds go into a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Batches {
    /// Every hold its own, many at once
    One,
    /// All that have gathered while the last one was made durable
    Batched,
}

impl Batches {
    /// The word for it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Batched => "batched",
        }
    }
}

/// Where stock lives.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// In a folder.
    Embedded,
    /// In the database behind this URL.
    Database(Database, String),
    /// In Redis behind this URL, with the ledger that the flags name.
    Redis(String),
}

/// An engine to compare.
#[derive(Clone)]
pub(super) struct Candidate {
    /// What it is called in the report.
    pub(super) name: String,
    /// Where its stock lives.
    pub(super) kind: Kind,
}

/// A row to measure.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) scenario: Scenario,
    pub(super) engine: Candidate,
    /// `None` where there is nothing to choose.
    pub(super) strategy: Option<Strategy>,
    /// Who gives leases, for strategy redlock.
    pub(super) lock_nodes: Arc<[String]>,
    pub(super) batches: Batches,
    pub(super) nodes: usize,
}

impl Case {
    /// Whether it is known to oversell.
    pub(super) fn is_unsafe(&self) -> bool {
        self.strategy == Some(Strategy::Naive)
    }

    /// For the progress bar.
    pub(super) fn title(&self) -> String {
        let strategy = self.strategy.map(|s| format!(" {s}")).unwrap_or_default();
        let nodes = if self.nodes > 1 { format!(" x{}", self.nodes) } else { String::new() };
        format!("{} {}{strategy} {}{nodes}", name(self.scenario), self.engine.name, self.batches.as_str())
    }
}

/// The scenario's name.
pub(super) fn name(scenario: Scenario) -> &'static str {
    match scenario {
        Scenario::Hot => "hot",
        Scenario::Spread => "spread",
        Scenario::Cart => "cart",
        Scenario::Soldout => "soldout",
        _ => "other",
    }
}

/// Every row that was asked for, those of a scenario together.
pub(super) fn cases(args: &MatrixArgs, asked: &[Scenario]) -> Result<Vec<Case>, String> {
    let engines = candidates(&args.engines)?;
    let all = args.strategies.contains(&Strategies::All);
    let lock_nodes: Arc<[String]> = args.lock_nodes.clone().into();
    let is_asked = |s: Strategy| args.strategies.contains(&Strategies::One(s));
    if is_asked(Strategy::Redlock) && lock_nodes.is_empty() {
        return Err("the strategy redlock needs --lock-nodes redis://host:6379,…".into());
    }
    let can_be = |s: Strategy| s != Strategy::Redlock || !lock_nodes.is_empty();
    let strategies = Strategy::ALL.into_iter().filter(|s| is_asked(*s) || all && can_be(*s));
    let strategies: Vec<Option<Strategy>> = strategies.map(Some).collect();
    let mut cases = Vec::new();
    for scenario in scenarios(asked)? {
        for engine in &engines {
            let is_shared = engine.kind != Kind::Embedded;
            let strategies =
                if matches!(engine.kind, Kind::Database(..)) { strategies.as_slice() } else { &[None][..] };
            let nodes = if is_shared { args.nodes.as_slice() } else { &[1][..] };
            for (strategy, nodes) in strategies.iter().flat_map(|s| nodes.iter().map(move |n| (*s, *n))) {
                for batches in [Batches::One, Batches::Batched].into_iter().filter(|b| args.batches.contains(b)) {
                    let (engine, lock_nodes) = (engine.clone(), lock_nodes.clone());
                    cases.push(Case { scenario, engine, strategy, lock_nodes, batches, nodes });
                }
            }
        }
    }
    Ok(cases)
}

fn scenarios(asked: &[Scenario]) -> Result<Vec<Scenario>, String> {
    let known = [Scenario::Hot, Scenario::Spread, Scenario::Cart, Scenario::Soldout];
    if asked.iter().any(|s| *s != Scenario::All && !known.contains(s)) {
        return Err("with --engines, the scenarios are hot, spread, cart and soldout".into());
    }
    Ok(known.into_iter().filter(|s| asked.contains(s) || asked.contains(&Scenario::All)).collect())
}

/// Reads `--engines`. What is not understood is not repeated: it may be part of a password.
fn candidates(words: &[String]) -> Result<Vec<Candidate>, String> {
    let mut found: Vec<Candidate> = Vec::new();
    for (n, word) in words.iter().enumerate() {
        let (name, kind) = match word.as_str() {
            "embedded" => ("embedded", Kind::Embedded),
            url if RedisConfig::is_for(url) => ("redis", Kind::Redis(word.clone())),
            _ => match Database::of(word) {
                Some(database) => (database.as_str(), Kind::Database(database, word.clone())),
                None => {
                    let n = n + 1;
                    return Err(format!(
                        "engine {n} of --engines is not understood; use embedded, postgres://user:password@host/database, mysql://… or redis://…"
                    ));
                }
            },
        };
        if found.iter().any(|other| other.kind == kind) {
            return Err(format!("engine {} of --engines was named before", n + 1));
        }
        found.push(Candidate { name: name.to_owned(), kind });
    }
    // Several of a kind are told apart by where they are.
    let names: Vec<String> = found.iter().map(|candidate| candidate.name.clone()).collect();
    for candidate in &mut found {
        if let Kind::Database(_, url) | Kind::Redis(url) = &candidate.kind
            && names.iter().filter(|name| **name == candidate.name).count() > 1
        {
            let place = shown(url);
            candidate.name = format!("{} {}", candidate.name, place.split_once("://").map_or("", |(_, place)| place));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: super::super::super::Args,
    }

    fn titles(words: &[&str]) -> Result<Vec<String>, String> {
        let cli = Cli::try_parse_from([&["bench"], words].concat()).map_err(|e| e.to_string())?;
        let cases = cases(&cli.args.matrix, &cli.args.scenario)?;
        Ok(cases.iter().map(Case::title).collect())
    }

    #[test]
    fn the_matrix_is_what_was_asked_for() {
        let words = ["--engines", "embedded,postgres://u:p@h/d", "--scenario", "soldout,hot"];
        let told = titles(&[&words[..], &["--strategies", "naive,row_lock", "--nodes", "1,2"]].concat()).unwrap();
        assert_eq!(told.len(), 2 * (2 + 2 * 2 * 2));
        assert_eq!(told[0], "hot embedded one");
        assert_eq!(told[1], "hot embedded batched");
        assert_eq!(told[2], "hot postgres row_lock one");
        assert_eq!(told[5], "hot postgres row_lock batched x2");
        assert_eq!(told.last().unwrap(), "soldout postgres naive batched x2");
        assert_eq!(titles(&["--engines", "postgres://h/d"]).unwrap().len(), 4 * 4 * 2, "everything by default");
        assert_eq!(titles(&["--engines", "embedded", "--batches", "one"]).unwrap().len(), 4);
        let redis = titles(&["--engines", "redis://h", "--scenario", "hot", "--nodes", "1,2"]).unwrap();
        assert_eq!(redis, ["hot redis one", "hot redis batched", "hot redis one x2", "hot redis batched x2"]);
        let two = titles(&["--engines", "postgres://u:p@h/d,postgres://u:p@i/d", "--scenario", "hot"]).unwrap();
        let kinds = titles(&["--engines", "postgres://u:p@h/d,mysql://u:p@h/d", "--scenario", "hot"]).unwrap();
        assert!(kinds[0].contains("postgres row_lock") && kinds[15].contains("mysql naive"), "{kinds:?}");
        assert!(two[0].contains("postgres h/d ") && two[15].contains("postgres i/d "), "{two:?}");
    }

    #[test]
    fn all_has_redlock_where_somebody_gives_leases() {
        let words = ["--engines", "postgres://h/d", "--scenario", "hot", "--batches", "one"];
        let without = titles(&words).unwrap();
        assert_eq!(without.len(), 4);
        let with = titles(&[&words[..], &["--lock-nodes", "redis://h:1,redis://h:2"]].concat()).unwrap();
        assert_eq!(with.len(), 5);
        assert!(with.contains(&"hot postgres redlock one".to_owned()) && !without.join(" ").contains("redlock"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_telling_secrets() {
        for words in [
            &["--engines", "oracle://u:secret@h/d"][..],
            &["--engines", "postgres://u:p,secret@h/d"],
            &["--engines", "secret"],
            &["--engines", "embedded,embedded"],
            &["--engines", "embedded", "--scenario", "noop"],
            &["--engines", "embedded", "--strategies", "hopeful"],
            &["--engines", "postgres://h/d", "--strategies", "redlock"],
            &["--engines", "embedded", "--nodes", "0"],
            &["--engines", "embedded", "--url", "http://h"],
            &["--engines", "embedded", "--rounds", "3"],
            &["--strategies", "all"],
            &["--html", "x.html"],
        ] {
            let error = titles(words).expect_err(&words.join(" "));
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
