//! The end of a list that is read page by page (`server/utilities/pagination`): at a page without a cursor, with a cursor
//! that was given before, or after too many pages.
//!
//! Every reader of lists asks here, so that no server is asked without end.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use mcp_exact_convert::{Repair, RepairRule};
use mcp_exact_wire::{Json, JsonObject};

/// Cursors that a server has given for one list.
#[derive(Debug, Clone)]
pub struct ListCursors {
    /// Hashes of the cursors.
    given: HashSet<u64>,
    /// Keys of the hash function.
    hasher: RandomState,
    /// Maximum number of pages.
    max_pages: usize,
}

impl ListCursors {
    /// Maximum number of pages of one list, unless an application sets another one.
    pub const MAX_PAGES: usize = 100;

    /// Creates the cursors of a list of which no page was read; `max_pages` is the maximum number of pages.
    pub fn new(max_pages: usize) -> Self {
        Self {
            given: HashSet::new(),
            hasher: RandomState::new(),
            max_pages,
        }
    }

    /// Returns the `nextCursor` of a page; `None` if it is the last page. The empty string is a cursor.
    ///
    /// # Errors
    /// The [`Repair`] by which the list ends with what was read: the cursor was given before, or the list has more pages
    /// than allowed.
    pub fn next_cursor(&mut self, page: &JsonObject) -> Result<Option<Json>, Repair> {
        let cursor = page.get("nextCursor");
        let Some(cursor) = cursor.filter(|cursor| cursor.text() != "null") else {
            return Ok(None);
        };
        let is_new = self.given.insert(self.hasher.hash_one(cursor.text()));
        let rule = if !is_new {
            RepairRule::RepeatedCursor
        } else if self.given.len() >= self.max_pages {
            RepairRule::TooManyPages
        } else {
            return Ok(Some(cursor));
        };
        let mut repair = Repair::of_envelope(rule, "/nextCursor");
        if rule == RepairRule::TooManyPages {
            let pages = self.given.len();
            repair.detail = format!("the list goes on after {pages} pages").into();
        }
        Err(repair)
    }
}

impl Default for ListCursors {
    fn default() -> Self {
        Self::new(Self::MAX_PAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads pages with these values of `nextCursor`; returns the number of requests, and the rule by which the list ends.
    fn read(max_pages: usize, cursor: impl Fn(usize) -> String) -> (usize, Option<RepairRule>) {
        let mut cursors = ListCursors::new(max_pages);
        let mut requests = 0;
        loop {
            let page = format!("{{{}}}", cursor(requests));
            let page: JsonObject = page.parse().expect("an object");
            requests += 1;
            match cursors.next_cursor(&page) {
                Ok(Some(_)) => {}
                Ok(None) => return (requests, None),
                Err(repair) => return (requests, Some(repair.rule)),
            }
        }
    }

    #[test]
    fn lists_end() {
        let repeated = Some(RepairRule::RepeatedCursor);
        assert_eq!(read(9, |_| String::new()), (1, None));
        assert_eq!(read(9, |_| r#""nextCursor":null"#.into()), (1, None));
        assert_eq!(read(9, |_| r#""nextCursor":"""#.into()), (2, repeated));
        let turns = |page: usize| format!(r#""nextCursor":"{}""#, page % 3);
        assert_eq!(read(9, turns), (4, repeated));
        let endless = |page: usize| format!(r#""nextCursor":"{page}""#);
        assert_eq!(read(9, endless), (9, Some(RepairRule::TooManyPages)));
        assert_eq!(read(1, endless), (1, Some(RepairRule::TooManyPages)));
    }
}
