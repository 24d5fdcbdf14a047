//! A room's memory on disk: what has happened is appended, and now and then written anew. Losing its end loses no place:
//! tickets carry theirs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// So much of the draw's seal is in the name of the file: a sale that was removed and made again has another journal.
const SEAL: usize = 16;
/// Above so many bytes the journal is written anew once it has doubled.
const LONG: u64 = 64 << 20;

/// One room's file.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    /// How long it was when it was written anew.
    base: u64,
}

impl Journal {
    /// Opens the journal, and what it says.
    pub(super) fn open(folder: &Path, sale: &str, commitment: &str) -> io::Result<(Self, Vec<u8>)> {
        fs::create_dir_all(folder)?;
        // A name of dots only is no name of a sale, and no other characters mean anything to a file system.
        let path = folder.join(format!("{sale}.{}.room", &commitment[..SEAL.min(commitment.len())]));
        remove_older(folder, sale, &path)?;
        let known = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let length = known.len() as u64;
        Ok((Self { path, file, length, base: length }, known))
    }

    /// Appends what has happened.
    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Whether it is time to write it anew: much has been added since that was done last.
    pub(super) fn is_long(&self) -> bool {
        self.length > LONG && self.length > 2 * self.base
    }

    /// Begins anew with these records.
    pub(super) fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let fresh = self.path.with_extension("room.new");
        let mut file = File::create(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        if let Some(folder) = self.path.parent() {
            File::open(folder)?.sync_all()?;
        }
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        self.length = bytes.len() as u64;
        self.base = self.length;
        Ok(())
    }

    /// Removes the file of a room that is gone.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Journals of earlier sales of this name, which a crash has left behind.
fn remove_older(folder: &Path, sale: &str, own: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let seal =
            name.strip_prefix(sale).and_then(|rest| rest.strip_prefix('.')).and_then(|r| r.strip_suffix(".room"));
        let is_its = seal.is_some_and(|seal| seal.len() == SEAL && seal.bytes().all(|b| b.is_ascii_hexdigit()));
        if is_its && path != own {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
