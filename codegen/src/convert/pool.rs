//! Shared columns of the tables: rows, lists of rows and strings are stored once, and other rows refer to them by
//! index.

use std::collections::BTreeMap;

/// Distinct rows of a table.
#[derive(Default)]
pub struct Rows {
    places: BTreeMap<String, usize>,
    rows: Vec<String>,
}

impl Rows {
    /// Returns the index of a row, and adds the row if it is missing.
    pub fn place(&mut self, row: String) -> usize {
        if let Some(place) = self.places.get(&row) {
            return *place;
        }
        self.rows.push(row.clone());
        self.places.insert(row, self.rows.len() - 1);
        self.rows.len() - 1
    }

    /// Returns all rows, in the order of their indexes.
    pub fn all(&self) -> &[String] {
        &self.rows
    }
}

/// Distinct strings, and lists of rows of several tables.
pub struct Pool {
    strings: Rows,
    bounds: Rows,
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
        pool.text("");
        pool.bounds(None, None);
        pool
    }

    /// Returns the Rust expression for a string in a row.
    pub fn text(&mut self, text: &str) -> String {
        format!("Text({})", self.string(text))
    }

    /// Returns the index of a string.
    pub fn string(&mut self, text: &str) -> usize {
        self.strings.place(format!("{text:?}"))
    }

    /// Returns the Rust expression for bounds in a row.
    pub fn bounds(&mut self, low: Option<i64>, high: Option<i64>) -> String {
        let row = format!("({low:?},{high:?})");
        format!("Bounds({})", self.bounds.place(row))
    }

    /// Returns the Rust expression for a list of rows of a table. The list may overlap with an existing list.
    pub fn list(&mut self, table: &'static str, rows: &[String]) -> String {
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
    pub fn texts<'s>(
        &mut self,
        table: &'static str,
        texts: impl IntoIterator<Item = &'s String>,
    ) -> String {
        let rows: Vec<String> = texts.into_iter().map(|text| self.text(text)).collect();
        self.list(table, &rows)
    }

    /// Returns the Rust expression for a list of numbers.
    pub fn numbers(
        &mut self,
        table: &'static str,
        numbers: impl IntoIterator<Item = usize>,
    ) -> String {
        let rows: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
        self.list(table, &rows)
    }

    /// Returns all strings, as Rust literals.
    pub fn strings(&self) -> &[String] {
        self.strings.all()
    }

    /// Returns the rows of the table of bounds.
    pub fn all_bounds(&self) -> &[String] {
        self.bounds.all()
    }

    /// Returns all rows of a table.
    pub fn table(&self, table: &str) -> &[String] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_added_again() {
        let mut pool = Pool::new();
        assert_eq!(pool.text("a"), "Text(1)");
        assert_eq!(pool.text("a"), "Text(1)");
        assert_eq!(
            pool.texts("T", &["a".to_owned(), "b".to_owned()]),
            "list(0,2)"
        );
        assert_eq!(pool.texts("T", &["b".to_owned()]), "list(1,1)");
        assert_eq!(pool.texts("T", &[]), "list(0,0)");
        assert_eq!(pool.numbers("U", [3, 4]), "list(0,2)");
        assert_eq!(pool.table("T"), ["Text(1)", "Text(2)"]);
        assert_eq!(pool.table("nothing"), [""; 0]);
    }
}
