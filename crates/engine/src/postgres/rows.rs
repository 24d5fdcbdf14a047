//! Columns of PostgreSQL, and values for its statements.

pub(super) use crate::sql::rows::*;

use super::failure;
use crate::sql::Fault;
use holdfast_domain::HoldId;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Fault> {
    row.try_get(column).map_err(failure::fault)
}

impl Columns for Row {
    fn number(&self, column: usize) -> Result<i64, Fault> {
        get(self, column)
    }

    fn optional_number(&self, column: usize) -> Result<Option<i64>, Fault> {
        get(self, column)
    }

    fn flag(&self, column: usize) -> Result<bool, Fault> {
        get(self, column)
    }

    fn text(&self, column: usize) -> Result<&str, Fault> {
        get(self, column)
    }

    fn optional(&self, column: usize) -> Result<Option<&str>, Fault> {
        get(self, column)
    }

    fn id(&self, column: usize) -> Result<HoldId, Fault> {
        Ok(HoldId::from_u128(get::<Uuid>(self, column)?.as_u128()))
    }

    fn optional_id(&self, column: usize) -> Result<Option<HoldId>, Fault> {
        Ok(get::<Option<Uuid>>(self, column)?.map(|id| HoldId::from_u128(id.as_u128())))
    }
}

/// A hold's id as PostgreSQL has it.
pub(super) fn uuid(id: HoldId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}
