//! What the tables share: rows, lists of rows and strings, each there once, to which other rows refer by their places.

use std::collections::BTreeMap;

/// Rows of a table, each there once.
#[derive(Default)]
pub struct Rows {
    places: BTreeMap<String, usize>,
    rows: Vec<String>,
}

impl Rows {
    /// The place of a row, which is added when it is not there.
    pub fn place(&mut self, row: String) -> usize {
        if let Some(place) = self.places.get(&row) {
            return *place;
        }
        self.rows.push(row.clone());
        self.places.insert(row, self.rows.len() - 1);
        self.rows.len() - 1
    }

    /// All rows, in the order of their places.
    pub fn all(&self) -> &[String] {
        &self.rows
    }
}

/// Strings, and lists of rows of several tables.
pub struct Pool {
    strings: Rows,
    bounds: Rows,
    tables: BTreeMap<&'static str, Vec<String>>,
}

impl Pool {
    /// Without rows. The empty string, and bounds that bound nothing, are the first ones.
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

    /// A string as a row has it.
    pub fn text(&mut self, text: &str) -> String {
        format!("Text({})", self.string(text))
    }

    /// The place of a string.
    pub fn string(&mut self, text: &str) -> usize {
        self.strings.place(format!("{text:?}"))
    }

    /// Bounds as a row has them.
    pub fn bounds(&mut self, low: Option<i64>, high: Option<i64>) -> String {
        let row = format!("({low:?},{high:?})");
        format!("Bounds({})", self.bounds.place(row))
    }

    /// A list of rows of a table as another row has it. It may be a part of a list that is there already.
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

    /// A list of strings.
    pub fn texts<'s>(
        &mut self,
        table: &'static str,
        texts: impl IntoIterator<Item = &'s String>,
    ) -> String {
        let rows: Vec<String> = texts.into_iter().map(|text| self.text(text)).collect();
        self.list(table, &rows)
    }

    /// A list of numbers.
    pub fn numbers(
        &mut self,
        table: &'static str,
        numbers: impl IntoIterator<Item = usize>,
    ) -> String {
        let rows: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
        self.list(table, &rows)
    }

    /// All strings, as literals.
    pub fn strings(&self) -> &[String] {
        self.strings.all()
    }

    /// All bounds.
    pub fn all_bounds(&self) -> &[String] {
        self.bounds.all()
    }

    /// All rows of a table.
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
