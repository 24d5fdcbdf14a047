//! Notes that the service keeps.

use super::failure::Failure;
use super::load;
use crate::Note;
use rusqlite::{Connection, Row, params};

fn read(row: &Row<'_>) -> Result<(String, Note), Failure> {
    Ok((row.get(0)?, Note { version: row.get::<_, i64>(1)?.unsigned_abs(), text: row.get(2)? }))
}

pub(super) fn one(db: &Connection, name: &str) -> Result<Option<Note>, Failure> {
    let found = load::one(db, "SELECT name, version, text FROM notes WHERE name = ?1", [name], read)?;
    Ok(found.map(|(_, note)| note))
}

/// Notes named after one name and before another.
pub(super) fn between(
    db: &Connection,
    after: &str,
    before: &str,
    limit: usize,
) -> Result<Vec<(String, Note)>, Failure> {
    let sql = "SELECT name, version, text FROM notes WHERE name > ?1 AND name < ?2 ORDER BY name LIMIT ?3";
    load::all(db, sql, params![after, before, limit as i64], read)
}

/// Writes a note, if it has this version; false if it has another.
pub(super) fn put(db: &Connection, name: &str, version: u64, text: Option<&str>) -> Result<bool, Failure> {
    let told = match (version, text) {
        (0, Some(text)) => db
            .prepare_cached("INSERT INTO notes (name, version, text) VALUES (?1, 1, ?2) ON CONFLICT (name) DO NOTHING")?
            .execute([name, text])?,
        (_, Some(text)) => db
            .prepare_cached("UPDATE notes SET version = version + 1, text = ?3 WHERE name = ?1 AND version = ?2")?
            .execute(params![name, version as i64, text])?,
        (_, None) => db
            .prepare_cached("DELETE FROM notes WHERE name = ?1 AND version = ?2")?
            .execute(params![name, version as i64])?,
    };
    Ok(told == 1)
}
