//! What PostgreSQL's errors mean for whoever waits.

use crate::sql::Fault;
use deadpool_postgres::PoolError;
use std::error::Error;
use tokio_postgres::error::SqlState;

/// An error before the commit was sent: nothing was applied.
// By value, as `map_err` hands it over.
#[allow(clippy::needless_pass_by_value)]
pub(super) fn fault(error: tokio_postgres::Error) -> Fault {
    let Some(db) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        return Fault::Unavailable(format!("PostgreSQL: {error}{cause}"));
    };
    let why = format!("PostgreSQL {}: {}", db.code().code(), db.message());
    match *db.code() {
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::UNIQUE_VIOLATION => Fault::Again(why),
        SqlState::CHECK_VIOLATION | SqlState::FOREIGN_KEY_VIOLATION | SqlState::NOT_NULL_VIOLATION => {
            Fault::Corrupt(why)
        }
        _ => Fault::Unavailable(why),
    }
}

/// An error of the commit itself. Only the server's word that it did not commit is believed.
pub(super) fn commit(error: tokio_postgres::Error) -> Fault {
    let is_ended = |severity: &str| severity != "ERROR";
    match error.as_db_error() {
        Some(db) if !is_ended(db.severity()) => fault(error),
        _ => Fault::Unknown(format!("PostgreSQL, at the commit: {error}")),
    }
}

pub(super) fn pool(error: PoolError) -> Fault {
    match error {
        PoolError::Backend(error) => match fault(error) {
            Fault::Again(why) | Fault::Corrupt(why) => Fault::Unavailable(why),
            other => other,
        },
        PoolError::Timeout(kind) => Fault::Unavailable(format!("no connection to PostgreSQL in time ({kind:?})")),
        other => Fault::Unavailable(format!("no connection to PostgreSQL: {other}")),
    }
}
