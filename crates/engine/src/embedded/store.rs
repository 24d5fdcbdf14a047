//! Opening the files: the folder's lock, the connections and their settings, the schema and its version.

use super::failure::Failure;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Every version's statements, in order.
const VERSIONS: [&str; 2] = [include_str!("sql/schema.sql"), include_str!("sql/2.sql")];
const SCHEMA_VERSION: i64 = VERSIONS.len() as i64;
const STORE: &str = "holdfast.db";
const INDEX: &str = "holdfast-index.db";

/// How often a lock that somebody has is tried. A process that starts another leaves that one a copy of the lock until it
/// runs its own program, so a lock that was let go may be there for a moment more.
const LOCK_TRIES: u32 = 30;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The data folder, locked for this process as long as it lives.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is missing and takes its lock.
    pub(super) fn lock(path: &Path) -> Result<Self, Failure> {
        std::fs::create_dir_all(path).map_err(|e| Failure::io("cannot make the data folder", path, &e))?;
        let file = path.join("holdfast.lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&file)
            .map_err(|e| Failure::io("cannot open the lock file", &file, &e))?;
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), _lock: lock }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(e)) => return Err(Failure::io("cannot lock", &file, &e)),
            }
        }
        Err(Failure::InUse(path.to_owned()))
    }

    pub(super) fn writer(&self) -> Result<Connection, Failure> {
        let mut connection = Connection::open(self.path.join(STORE))?;
        settings(&connection)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;
             PRAGMA cache_size = -65536; PRAGMA foreign_keys = OFF;",
        )?;
        connection.set_prepared_statement_cache_capacity(64);
        migrate(&mut connection)?;
        Ok(connection)
    }

    /// A connection for copying the write-ahead log into the store.
    pub(super) fn checkpointer(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(self.path.join(STORE))?;
        settings(&connection)?;
        connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
        Ok(connection)
    }

    pub(super) fn reader(&self) -> Result<Connection, Failure> {
        reader(&self.path)
    }

    /// The derived index; a broken one is thrown away and built anew.
    pub(super) fn index(&self) -> Result<Connection, Failure> {
        match self.open_index() {
            Ok(connection) => Ok(connection),
            Err(Failure::Sqlite(error)) if is_broken(&error) => {
                self.discard_index(&error);
                self.open_index()
            }
            Err(other) => Err(other),
        }
    }

    /// Throws the derived index away, to be built anew.
    pub(super) fn discard_index(&self, why: &dyn std::fmt::Display) {
        tracing::warn!(%why, "the ledger index is thrown away and built anew");
        for ending in ["", "-wal", "-shm"] {
            // A file that is not there needs no removing; one that cannot be removed is met again when it is opened.
            let _ = std::fs::remove_file(self.path.join(format!("{INDEX}{ending}")));
        }
    }

    fn open_index(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(self.path.join(INDEX))?;
        settings(&connection)?;
        // Losing the tail of a derived file costs nothing but building it again.
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;")?;
        connection.execute_batch(include_str!("sql/index.sql"))?;
        Ok(connection)
    }

    /// The write-ahead log, for syncing. The writer's connection must be open, so that it exists and stays.
    pub(super) fn log(&self) -> Result<File, Failure> {
        let path = self.path.join(format!("{STORE}-wal"));
        File::open(&path).map_err(|e| Failure::io("cannot open the log", &path, &e))
    }
}

/// A read-only connection, also for a process that does not hold the lock.
pub(super) fn reader(folder: &Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(STORE), flags)?;
    settings(&connection)?;
    let index = folder.join(INDEX);
    if index.exists() {
        connection.execute("ATTACH DATABASE ?1 AS derived", [index.to_string_lossy()])?;
    }
    check_version(&connection)?;
    Ok(connection)
}

/// Whether the file itself is at fault.
pub(super) fn is_broken(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn settings(connection: &Connection) -> Result<(), Failure> {
    connection.busy_timeout(Duration::from_secs(5))?;
    // Without this, SQLite plans a statement anew whenever a bound value might change the plan: most of the CPU.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

fn version(connection: &Connection) -> Result<i64, Failure> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn check_version(connection: &Connection) -> Result<(), Failure> {
    match version(connection)? {
        SCHEMA_VERSION => Ok(()),
        other => Err(Failure::Version { found: other, known: SCHEMA_VERSION }),
    }
}

fn migrate(connection: &mut Connection) -> Result<(), Failure> {
    let found = version(connection)?;
    for (known, statements) in (1..).zip(VERSIONS).skip_while(|(known, _)| *known <= found) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(statements)?;
        transaction.pragma_update(None, "user_version", known)?;
        transaction.commit()?;
    }
    check_version(connection)
}
