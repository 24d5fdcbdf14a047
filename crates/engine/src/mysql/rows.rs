//! Columns of MySQL, and values for its statements.

pub(super) use crate::sql::rows::*;

use crate::sql::Fault;
use holdfast_domain::{HoldId, Stock};
use mysql_async::{Row, Value};

fn odd(column: usize, value: Option<&Value>) -> Fault {
    // Values may be a customer's: the kind is enough.
    let kind = match value {
        None => "nothing",
        Some(Value::NULL) => "null",
        Some(Value::Bytes(_)) => "bytes",
        Some(_) => "a number",
    };
    Fault::Corrupt(format!("column {column} holds {kind}"))
}

/// Nothing where there is null, else what is read.
fn unless_null<'a, T>(
    row: &'a Row,
    column: usize,
    read: impl FnOnce(&'a Row, usize) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    if matches!(row.as_ref(column), Some(Value::NULL)) { Ok(None) } else { read(row, column).map(Some) }
}

impl Columns for Row {
    fn number(&self, column: usize) -> Result<i64, Fault> {
        match self.as_ref(column) {
            Some(Value::Int(number)) => Ok(*number),
            Some(Value::UInt(number)) => i64::try_from(*number).map_err(|_| odd(column, None)),
            other => Err(odd(column, other)),
        }
    }

    fn optional_number(&self, column: usize) -> Result<Option<i64>, Fault> {
        unless_null(self, column, Self::number)
    }

    fn flag(&self, column: usize) -> Result<bool, Fault> {
        Ok(self.number(column)? != 0)
    }

    fn text(&self, column: usize) -> Result<&str, Fault> {
        match self.as_ref(column) {
            Some(value @ Value::Bytes(bytes)) => std::str::from_utf8(bytes).map_err(|_| odd(column, Some(value))),
            other => Err(odd(column, other)),
        }
    }

    fn optional(&self, column: usize) -> Result<Option<&str>, Fault> {
        unless_null(self, column, Self::text)
    }

    fn id(&self, column: usize) -> Result<HoldId, Fault> {
        match self.as_ref(column) {
            Some(value @ Value::Bytes(bytes)) => {
                let bits: [u8; 16] = bytes.as_slice().try_into().map_err(|_| odd(column, Some(value)))?;
                Ok(HoldId::from_u128(u128::from_be_bytes(bits)))
            }
            other => Err(odd(column, other)),
        }
    }

    fn optional_id(&self, column: usize) -> Result<Option<HoldId>, Fault> {
        unless_null(self, column, Self::id)
    }
}

/// A hold's id as MySQL has it.
pub(super) fn id_value(id: HoldId) -> Value {
    Value::Bytes(id.as_u128().to_be_bytes().to_vec())
}

/// As of a moment: units claimed by way of `units`, and those of lapsed holds, are told beside the counters.
pub(super) fn stock_as_of(row: &Row) -> Result<Stock, Fault> {
    stock_with(row, row.number(6)? - row.number(7)?)
}
