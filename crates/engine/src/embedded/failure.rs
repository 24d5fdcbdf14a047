//! What can go wrong with the files, in words that name the way out.

use crate::EngineError;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why the store could not be opened, read or written.
#[derive(Debug)]
pub enum Failure {
    /// Another process holds the folder.
    InUse(PathBuf),
    /// A move into a database has begun and is not done.
    Moving(PathBuf),
    /// The store was moved into a database.
    Moved(PathBuf),
    /// The files were written by another version of the schema.
    Version {
        /// The version found.
        found: i64,
        /// The version that this program knows.
        known: i64,
    },
    /// The file system said no.
    Io(String),
    /// SQLite said no.
    Sqlite(rusqlite::Error),
    /// What is stored contradicts the rules.
    Corrupt(String),
}

impl Failure {
    pub(super) fn io(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::Io(format!("{what} {}: {error}", path.display()))
    }
}

pub(super) fn corrupt(what: impl fmt::Display) -> Failure {
    Failure::Corrupt(what.to_string())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "the data folder {} is in use by another holdfast process; stop that one, or choose another folder with --data-dir",
                path.display()
            ),
            Self::Moving(path) => write!(
                f,
                "the store in {0} is being moved into a database; finish that with `holdfast migrate`. To give the move up: empty that database, then sqlite3 {0}/holdfast.db \"DELETE FROM meta WHERE name = 'moving'\"",
                path.display()
            ),
            Self::Moved(path) => write!(
                f,
                "the store in {0} was moved into a database; serve that one, with --engine. If the folder really is to be served again: empty that database first, or both sell the same units; then sqlite3 {0}/holdfast.db \"DELETE FROM meta WHERE name IN ('moving', 'moved')\"",
                path.display()
            ),
            Self::Version { found, known } => write!(
                f,
                "the store has schema version {found}, but this program knows version {known}; run the holdfast that wrote it, or a newer one"
            ),
            Self::Io(why) | Self::Corrupt(why) => f.write_str(why),
            Self::Sqlite(error) => write!(f, "SQLite: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Corrupt(why) => Self::Corrupt(why),
            other => Self::Unavailable(other.to_string()),
        }
    }
}
