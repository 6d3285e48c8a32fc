//! Shared parts of the generated tables: equal rows, lists of rows and strings are stored once, and other rows refer to
//! them by index.

use std::collections::BTreeMap;

/// Rows of one table, without duplicates.
#[derive(Default)]
pub struct Rows {
    /// Index of each row.
    indexes: BTreeMap<String, usize>,
    /// Rows in the order of their indexes.
    rows: Vec<String>,
}

impl Rows {
    /// Returns the index of a row, and adds the row if it is missing.
    pub fn index_of(&mut self, row: String) -> usize {
        if let Some(place) = self.indexes.get(&row) {
            return *place;
        }
        self.rows.push(row.clone());
        self.indexes.insert(row, self.rows.len() - 1);
        self.rows.len() - 1
    }

    /// Returns all rows, in the order of their indexes.
    pub fn as_slice(&self) -> &[String] {
        &self.rows
    }
}

/// Distinct strings and bounds, and the tables whose rows other rows refer to as lists.
pub struct Pool {
    /// Distinct strings.
    strings: Rows,
    /// Distinct pairs of minimum and maximum.
    bounds: Rows,
    /// Rows of the other tables, by the names of the tables.
    tables: BTreeMap<&'static str, Vec<String>>,
}

impl Pool {
    /// Creates a pool without rows. The empty string and unlimited bounds have index 0.
    pub fn new() -> Self {
        let mut pool = Self {
            strings: Rows::default(),
            bounds: Rows::default(),
            tables: BTreeMap::new(),
        };
        pool.string_expression("");
        pool.bounds_expression(None, None);
        pool
    }

    /// Returns the Rust expression for a string in a row.
    pub fn string_expression(&mut self, text: &str) -> String {
        format!("Text({})", self.string_index(text))
    }

    /// Returns the index of a string.
    pub fn string_index(&mut self, text: &str) -> usize {
        self.strings.index_of(format!("{text:?}"))
    }

    /// Returns the Rust expression for bounds in a row.
    pub fn bounds_expression(&mut self, low: Option<i64>, high: Option<i64>) -> String {
        let row = format!("({low:?},{high:?})");
        format!("Bounds({})", self.bounds.index_of(row))
    }

    /// Returns the Rust expression for a list of rows of a table. The rows of the list may overlap with those of an
    /// existing list.
    pub fn list_expression(&mut self, table: &'static str, rows: &[String]) -> String {
        let all = self.tables.entry(table).or_default();
        let found = match rows.len() {
            0 => Some(0),
            length => all.windows(length).position(|window| window == rows),
        };
        let place = found.unwrap_or_else(|| {
            all.extend_from_slice(rows);
            all.len() - rows.len()
        });
        format!("list({place},{})", rows.len())
    }

    /// Returns the Rust expression for a list of strings.
    pub fn string_list<'s>(
        &mut self,
        table: &'static str,
        texts: impl IntoIterator<Item = &'s String>,
    ) -> String {
        let rows: Vec<String> = texts
            .into_iter()
            .map(|text| self.string_expression(text))
            .collect();
        self.list_expression(table, &rows)
    }

    /// Returns the Rust expression for a list of numbers.
    pub fn number_list(
        &mut self,
        table: &'static str,
        numbers: impl IntoIterator<Item = usize>,
    ) -> String {
        let rows: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
        self.list_expression(table, &rows)
    }

    /// Returns all strings, as Rust literals.
    pub fn strings(&self) -> &[String] {
        self.strings.as_slice()
    }

    /// Returns the rows of the table of bounds.
    pub fn bounds_rows(&self) -> &[String] {
        self.bounds.as_slice()
    }

    /// Returns all rows of a table.
    pub fn table_rows(&self, table: &str) -> &[String] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of rows that exist already refers to the existing rows.
    #[test]
    fn existing_rows_are_reused() {
        let mut pool = Pool::new();
        assert_eq!(pool.string_expression("a"), "Text(1)");
        assert_eq!(pool.string_expression("a"), "Text(1)");
        assert_eq!(
            pool.string_list("T", &["a".to_owned(), "b".to_owned()]),
            "list(0,2)"
        );
        assert_eq!(pool.string_list("T", &["b".to_owned()]), "list(1,1)");
        assert_eq!(pool.string_list("T", &[]), "list(0,0)");
        assert_eq!(pool.number_list("U", [3, 4]), "list(0,2)");
        assert_eq!(pool.table_rows("T"), ["Text(1)", "Text(2)"]);
        assert_eq!(pool.table_rows("nothing"), [""; 0]);
    }
}
