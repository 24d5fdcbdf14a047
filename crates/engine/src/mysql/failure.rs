//! What the errors of MySQL and MariaDB mean for whoever waits.

use crate::sql::Fault;
use mysql_async::Error;

/// A key refuses a row that somebody else made.
pub(super) const DUPLICATE: u16 = 1062;

/// An error before the commit was sent: nothing was applied.
// By value, as `map_err` hands it over.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn fault(error: Error) -> Fault {
    let Error::Server(server) = &error else {
        return Fault::Unavailable(format!("MySQL: {error}"));
    };
    let why = format!("MySQL {}: {}", server.code, server.message);
    match server.code {
        // A deadlock, a row that somebody else made, a row that changed since it was read.
        1213 | DUPLICATE | 1020 => Fault::Again(why),
        // CHECK in MySQL and in MariaDB, a foreign key, a value out of range, null where none may be.
        3819 | 4025 | 1451 | 1452 | 1264 | 1048 => Fault::Corrupt(why),
        _ => Fault::Unavailable(why),
    }
}

/// An error of the commit itself. Only the server's word that it did not commit is believed.
pub(super) fn commit(error: Error) -> Fault {
    match &error {
        // Shutdown, killed, interrupted: the commit may have been on its way.
        Error::Server(server) if !matches!(server.code, 1053 | 1317 | 1927 | 3024) => fault(error),
        _ => Fault::Unknown(format!("MySQL, at the commit: {error}")),
    }
}

/// An error before there was a connection.
pub(super) fn connection(error: Error) -> Fault {
    match fault(error) {
        Fault::Again(why) | Fault::Corrupt(why) => Fault::Unavailable(why),
        other => other,
    }
}
