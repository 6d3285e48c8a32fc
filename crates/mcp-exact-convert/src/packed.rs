//! What rows of the tables are made of: strings and lists by their places instead of pointers.
//!
//! A pointer in a table costs sixteen bytes, and another twenty-four of the program's file for the loader, which has to
//! correct it. A place costs two, so that the tables are loaded as they are.

use std::marker::PhantomData;

use mcp_exact_wire::keys;

use crate::generated::{self, BOUNDS, MEMBERS, STRINGS};

/// A string: its place among the strings of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text(pub u16);

/// How many bytes all strings have.
const LENGTH: usize = {
    let (mut length, mut at) = (0, 0);
    while at < STRINGS.len() {
        length += STRINGS[at].len();
        at += 1;
    }
    length
};

/// The bytes of all strings, one after the other.
const BYTES: [u8; LENGTH] = {
    let (mut bytes, mut end, mut at) = ([0; LENGTH], 0, 0);
    while at < STRINGS.len() {
        let string = STRINGS[at].as_bytes();
        let mut byte = 0;
        while byte < string.len() {
            bytes[end] = string[byte];
            byte += 1;
            end += 1;
        }
        at += 1;
    }
    bytes
};

/// The text that all strings are parts of.
static ALL: &str = match std::str::from_utf8(&BYTES) {
    Ok(all) => all,
    Err(_) => panic!("strings one after the other are a string"),
};

/// Where each string begins in [`ALL`], and the end.
static STARTS: [u32; STRINGS.len() + 1] = {
    let (mut starts, mut at) = ([0; STRINGS.len() + 1], 0);
    while at < STRINGS.len() {
        starts[at + 1] = starts[at] + STRINGS[at].len() as u32;
        at += 1;
    }
    starts
};

impl Text {
    /// The string.
    #[inline]
    pub fn get(self) -> &'static str {
        let at = usize::from(self.0);
        &ALL[STARTS[at] as usize..STARTS[at + 1] as usize]
    }

    /// The same, for constants only: the list of strings does not become part of the program.
    pub const fn constant(self) -> &'static str {
        STRINGS[self.0 as usize]
    }

    /// Returns true if it is the empty string.
    pub fn is_empty(self) -> bool {
        self.get().is_empty()
    }
}

/// For each row of `MEMBERS` what its name is looked up by.
pub static KEYS: [u64; MEMBERS.len()] = {
    let (mut names, mut at) = ([""; MEMBERS.len()], 0);
    while at < names.len() {
        names[at] = MEMBERS[at].0.constant();
        at += 1;
    }
    keys(&names)
};

/// Some rows of a table, one after the other.
pub struct List<T> {
    at: u16,
    length: u16,
    of: PhantomData<fn() -> T>,
}

/// Rows of a table that begin at a place.
pub const fn list<T>(at: u16, length: u16) -> List<T> {
    List {
        at,
        length,
        of: PhantomData,
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T> List<T> {
    /// The places of the rows in their table.
    pub const fn range(self) -> std::ops::Range<usize> {
        let at = self.at as usize;
        at..at + self.length as usize
    }

    pub const fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl<T: Row> List<T> {
    /// The rows.
    #[inline]
    pub fn rows(self) -> &'static [T] {
        &T::table()[self.range()]
    }
}

/// What the rows of a table are.
pub trait Row: Sized + 'static {
    /// The whole table.
    fn table() -> &'static [Self];
}

macro_rules! tables {
    ($($row:ty: $table:ident,)*) => {
        $(impl Row for $row {
            #[inline]
            fn table() -> &'static [Self] {
                generated::$table
            }
        })*
    };
}

tables! {
    Text: TEXTS,
    u8: SMALL,
    u16: PLACES,
    (u32, u32): EXCLUSIVE,
    crate::layout::MemberName: MEMBERS,
    crate::layout::ValueSet: VALUE_SETS,
    crate::layout::PackedProbe: PROBES,
    crate::layout::PackedCase: CASES,
    crate::rules::Unknown: UNKNOWN_MEMBERS,
    crate::rules::SourceMember: SOURCE_MEMBERS,
    crate::rules::TargetMember: TARGET_MEMBERS,
    crate::rules::LostValue: LOST_VALUES,
    crate::rules::Arm: ARMS,
    crate::rows::TypeRow: TYPE_ROWS,
    crate::rows::EdgeRow: EDGE_ROWS,
    Option<crate::rows::MethodIn>: METHOD_PARTS,
}

/// The smallest and the largest value, or number of items: a place in the table of bounds.
#[derive(Clone, Copy)]
pub struct Bounds(pub u8);

impl Bounds {
    /// The smallest and the largest value.
    pub fn get(self) -> (Option<i64>, Option<i64>) {
        BOUNDS[usize::from(self.0)]
    }

    /// The fewest and the most items.
    pub fn sizes(self) -> (Option<usize>, Option<usize>) {
        let (low, high) = self.get();
        let size = |bound: Option<i64>| bound.and_then(|bound| usize::try_from(bound).ok());
        (size(low), size(high))
    }
}
