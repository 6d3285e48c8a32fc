//! Top-level tables: revisions, their definitions and their methods.
//!
//! The generator writes `generated/roots.rs`. Indexes of definitions refer to the list of `types` of their revision.

use mcp_exact_revisions::Side;
use mcp_exact_wire::spans::is_same;

use crate::generated::{METHODS, METHODS_BY_LENGTH, REVISIONS, TYPE_ROWS};
use crate::packed::{List, Text};

/// Index that refers to no row.
pub const NONE: u16 = u16::MAX;

/// A revision; its index in the table is that in `KnownRevision::ALL`.
pub struct RevisionRow {
    /// Definitions of the revision, sorted by name.
    pub types: List<TypeRow>,
    /// Pairs with definitions of the next revision, sorted by both indexes.
    pub pairs: List<PairRow>,
}

/// A definition of a revision.
pub struct TypeRow {
    pub name: Text,
    /// True if the official schema has a definition with this name, false for a generated definition.
    pub official: bool,
    /// Index of the type.
    pub value: u16,
    /// Index of the counterpart in the next revision, or [`NONE`].
    newer: u16,
    /// Index of the counterpart in the previous revision, or [`NONE`].
    older: u16,
}

/// Creates the row of a definition; `name` is the index of its name, `newer` and `older` are those of counterparts.
pub const fn named(name: u16, official: bool, value: u16, newer: u16, older: u16) -> TypeRow {
    TypeRow {
        name: Text(name),
        official,
        value,
        newer,
        older,
    }
}

impl TypeRow {
    /// Returns the index of the counterpart in the next revision if `up` is true, otherwise in the previous revision.
    pub fn counterpart(&self, up: bool) -> Option<u16> {
        to_option(self.neighbour(up))
    }

    /// Returns the index of the counterpart in the next or, if `up` is false, the previous revision, or [`NONE`].
    pub const fn neighbour(&self, up: bool) -> u16 {
        if up { self.newer } else { self.older }
    }
}

/// A pair of definitions in neighbouring revisions.
pub struct PairRow {
    /// Index of the definition in the older revision.
    older: u16,
    /// Index of the definition in the newer revision.
    newer: u16,
    /// True if every text of one definition is also valid unchanged for the other.
    pub same: bool,
    /// Index of the operation in conversions to the newer revision.
    up: u16,
    /// Index of the operation in conversions to the older revision.
    down: u16,
}

/// Creates the row of a pair of definitions; `up` and `down` are the indexes of the operations.
pub const fn pair(older: u16, newer: u16, same: bool, up: u16, down: u16) -> PairRow {
    PairRow {
        older,
        newer,
        same,
        up,
        down,
    }
}

impl PairRow {
    /// Returns the pair of the definitions with these indexes.
    pub fn find(pairs: List<Self>, older: u16, newer: u16) -> Option<&'static Self> {
        let pairs = pairs.rows();
        let found = pairs.binary_search_by_key(&(older, newer), |pair| (pair.older, pair.newer));
        found.ok().map(|at| &pairs[at])
    }

    /// Returns the index of the operation for values of the pair, by the direction.
    pub fn op(&self, up: bool) -> u16 {
        if up { self.up } else { self.down }
    }
}

/// A method of any revision.
pub struct MethodRow {
    pub method: Text,
    /// True for a request, false for a notification.
    pub request: bool,
    /// Bit set of the revisions in which clients send the method.
    pub client: u16,
    /// Bit set of the revisions in which servers send the method.
    pub server: u16,
    /// Bit set of the revisions in which the request is embedded in results, as input requests are since 2026-07-28.
    pub embedded: u16,
    /// Bit set of the revisions whose params are the same in the next revision, including all parts.
    pub same_params: u16,
    /// Bit set of the revisions whose result is the same in the next revision, including all parts.
    pub same_results: u16,
    /// Rows of the method in each known revision, oldest first.
    pub revisions: List<Option<MethodTypes>>,
}

/// A method in one revision.
pub struct MethodTypes {
    /// Index of the type of the params, or [`NONE`].
    params: u16,
    pub params_required: bool,
    /// Index of the type of the result, or [`NONE`].
    result: u16,
}

/// Creates the row of a method in one revision.
pub const fn method(params: u16, params_required: bool, result: u16) -> Option<MethodTypes> {
    Some(MethodTypes {
        params,
        params_required,
        result,
    })
}

impl MethodTypes {
    /// Returns the index of the params or the result type; `None` if the revision leaves it untyped.
    pub fn part(&self, is_result: bool) -> Option<u16> {
        to_option(if is_result { self.result } else { self.params })
    }
}

impl MethodRow {
    /// Returns true if a side sends the method as a separate message in the revision at the index `place`.
    pub fn is_sent(&self, side: Side, place: usize) -> bool {
        self.sent(side) >> place & 1 == 1
    }

    /// Returns the bit set of the revisions in which a side sends the method.
    pub fn sent(&self, side: Side) -> u16 {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// Returns the row of a method.
    pub fn find(method: &str, request: bool) -> Option<&'static Self> {
        let places = METHODS_BY_LENGTH.get(method.len())?.rows().iter();
        let mut rows = places.map(|at| &METHODS[usize::from(*at)]);
        rows.find(|row| row.request == request && row.method.get() == method)
    }
}

impl RevisionRow {
    /// Returns the revision at an index of `KnownRevision::ALL`.
    pub const fn at(place: usize) -> &'static Self {
        &REVISIONS[place]
    }

    /// Returns the index of a definition by its name.
    pub fn find(&self, name: &str) -> Option<u16> {
        let types = self.types.rows();
        let at = types
            .binary_search_by(|row| row.name.get().cmp(name))
            .ok()?;
        u16::try_from(at).ok()
    }

    /// Returns the definition at an index.
    pub fn definition(&self, place: u16) -> &'static TypeRow {
        &self.types.rows()[usize::from(place)]
    }

    /// Returns the index of a definition by its name, in constant evaluation.
    pub const fn const_find(&self, name: &str) -> Option<u16> {
        let range = self.types.range();
        let mut at = range.start;
        while at < range.end {
            if is_same(TYPE_ROWS[at].name.constant(), name) {
                return Some((at - range.start) as u16);
            }
            at += 1;
        }
        None
    }

    /// Returns the definition at an index, in constant evaluation.
    pub const fn const_definition(&self, place: u16) -> &'static TypeRow {
        &TYPE_ROWS[self.types.range().start + place as usize]
    }
}

/// Returns the index, or `None` if it is [`NONE`].
pub const fn to_option(place: u16) -> Option<u16> {
    if place == NONE { None } else { Some(place) }
}
