//! Statements for as many values as there are. They are kept in a few sizes, so that few have to be prepared.

use mysql_async::Value;

/// Keys asked for by one statement at the most: a statement has 65,535 places.
pub(super) const KEYS: usize = 8_192;
/// Rows written by one statement, in these steps.
const ROWS: [usize; 5] = [256, 64, 16, 4, 1];

/// A statement whose lists `(?)` are spread, and its values: for each `?` in order, one value or a list.
pub(super) fn lists(sql: &str, values: Vec<Bind>) -> (String, Vec<Value>) {
    let (mut spread, mut all) = (String::with_capacity(sql.len() + 64), Vec::new());
    let mut parts = sql.split('?');
    spread.push_str(parts.next().unwrap_or_default());
    for (bind, part) in values.into_iter().zip(parts) {
        match bind {
            Bind::One(value) => {
                spread.push('?');
                all.push(value);
            }
            Bind::List(mut list) => {
                // The last value once more costs less than another statement to prepare. An empty list finds nothing.
                let size = list.len().max(1).next_power_of_two();
                let last = list.last().cloned().unwrap_or(Value::Bytes(Vec::new()));
                list.resize(size, last);
                spread.push_str(&vec!["?"; size].join(", "));
                all.extend(list);
            }
        }
        spread.push_str(part);
    }
    (spread, all)
}

/// What takes the place of a `?`.
#[derive(Debug, Clone)]
pub(super) enum Bind {
    One(Value),
    List(Vec<Value>),
}

/// A statement whose row between `/*row*/` and `/*end*/` is repeated, once for each group of rows.
pub(super) fn rows(sql: &str, rows: Vec<Vec<Value>>) -> Vec<(String, Vec<Value>)> {
    let Some((head, rest)) = sql.split_once("/*row*/") else { return Vec::new() };
    let Some((row, tail)) = rest.split_once("/*end*/") else { return Vec::new() };
    let mut rows = rows.into_iter();
    let mut statements = Vec::new();
    for size in ROWS {
        while rows.len() >= size {
            let values: Vec<Value> = rows.by_ref().take(size).flatten().collect();
            statements.push((format!("{head}{}{tail}", vec![row; size].join(", ")), values));
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_padded_to_few_sizes() {
        let list = Bind::List(vec![Value::Int(1), Value::Int(2), Value::Int(3)]);
        let (sql, values) = lists("a IN (?) AND b = ? LIMIT 1", vec![list, Bind::One(Value::Int(9))]);
        assert_eq!(sql, "a IN (?, ?, ?, ?) AND b = ? LIMIT 1");
        assert_eq!(values, [1, 2, 3, 3, 9].map(Value::Int));
        assert_eq!(lists("a IN (?)", vec![Bind::List(vec![])]).0, "a IN (?)", "an empty list is no broken statement");
    }

    #[test]
    fn rows_come_in_steps() {
        let told = rows("INSERT VALUES /*row*/(?, 0)/*end*/ ON", (0..21).map(|n| vec![Value::Int(n)]).collect());
        let sizes: Vec<usize> = told.iter().map(|(_, values)| values.len()).collect();
        assert_eq!(sizes, [16, 4, 1]);
        assert!(told[1].0 == "INSERT VALUES (?, 0), (?, 0), (?, 0), (?, 0) ON", "{}", told[1].0);
    }
}
