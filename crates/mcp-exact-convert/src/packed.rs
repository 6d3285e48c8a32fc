//! Compact table columns: strings and lists are stored as indexes instead of pointers.
//!
//! A slice occupies 16 bytes in a table and 24 bytes for its relocation; an index occupies two and needs no relocation.

use std::marker::PhantomData;

use mcp_exact_wire::keys;

use crate::generated::{self, BOUNDS, MEMBERS, STRINGS};

/// Index of a string of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text(pub u16);

/// Total length of all strings, in bytes.
const LENGTH: usize = {
    let (mut length, mut at) = (0, 0);
    while at < STRINGS.len() {
        length += STRINGS[at].len();
        at += 1;
    }
    length
};

/// The bytes of all strings, concatenated.
const ALL_BYTES: [u8; LENGTH] = {
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

/// All strings, concatenated.
static ALL: &str = match std::str::from_utf8(&ALL_BYTES) {
    Ok(all) => all,
    Err(_) => panic!("strings one after the other are a string"),
};

/// Start offset of each string in [`ALL`], followed by the total length.
static STARTS: [u32; STRINGS.len() + 1] = {
    let (mut starts, mut at) = ([0; STRINGS.len() + 1], 0);
    while at < STRINGS.len() {
        starts[at + 1] = starts[at] + STRINGS[at].len() as u32;
        at += 1;
    }
    starts
};

impl Text {
    /// Returns the string.
    #[inline]
    pub fn get(self) -> &'static str {
        let at = usize::from(self.0);
        &ALL[STARTS[at] as usize..STARTS[at + 1] as usize]
    }

    /// Returns the string in constant evaluation only, so that the list of strings is not part of the executable.
    pub const fn constant(self) -> &'static str {
        STRINGS[self.0 as usize]
    }

    /// Returns true if the string is empty.
    pub fn is_empty(self) -> bool {
        self.get().is_empty()
    }
}

/// Lookup key of the name of each row of `MEMBERS`.
pub static KEYS: [u64; MEMBERS.len()] = {
    let (mut names, mut at) = ([""; MEMBERS.len()], 0);
    while at < names.len() {
        names[at] = MEMBERS[at].0.constant();
        at += 1;
    }
    keys(&names)
};

/// A range of consecutive rows of a table.
pub struct List<T> {
    /// Index of the first row.
    at: u16,
    length: u16,
    of: PhantomData<fn() -> T>,
}

/// Creates a list of `length` rows from index `at`.
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
    /// Returns the indexes of the rows in their table.
    pub const fn range(self) -> std::ops::Range<usize> {
        let at = self.at as usize;
        at..at + self.length as usize
    }

    pub const fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl<T: Row> List<T> {
    /// Returns the rows.
    #[inline]
    pub fn rows(self) -> &'static [T] {
        &T::table()[self.range()]
    }

    /// Returns the row at an index of the list.
    #[inline]
    pub fn row(self, index: usize) -> &'static T {
        &T::table()[usize::from(self.at) + index]
    }
}

/// A row type, with the table that contains its rows.
pub trait Row: Sized + 'static {
    /// Returns the complete table.
    fn table() -> &'static [Self];
}

/// Implements [`Row`] for row types, each with the generated table that contains its rows.
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
    crate::rows::PairRow: PAIR_ROWS,
    Option<crate::rows::MethodTypes>: METHOD_PARTS,
}

/// Index of a pair of minimum and maximum in the table of bounds.
#[derive(Clone, Copy)]
pub struct Bounds(pub u8);

impl Bounds {
    /// Returns the minimum and the maximum value.
    pub fn get(self) -> (Option<i64>, Option<i64>) {
        BOUNDS[usize::from(self.0)]
    }

    /// Returns the minimum and the maximum number of items.
    pub fn sizes(self) -> (Option<usize>, Option<usize>) {
        let (low, high) = self.get();
        let size = |bound: Option<i64>| bound.and_then(|bound| usize::try_from(bound).ok());
        (size(low), size(high))
    }
}
