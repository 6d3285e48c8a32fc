//! The roots of the tables: revisions, their definitions and their methods.
//!
//! The generator writes them (`generated/roots.rs`). Places of definitions are those in the list of their revision.

use mcp_exact_revisions::Side;

use crate::generated::{METHODS, METHODS_BY_LENGTH, REVISIONS, TYPE_ROWS};
use crate::packed::{List, Text};

/// The place of nothing.
pub const NONE: u16 = u16::MAX;

/// A revision, at its place in `KnownRevision::ALL`.
pub struct RevisionRow {
    /// Its definitions, sorted by name.
    pub types: List<TypeRow>,
    /// The pairs with definitions of the next revision, sorted by both places.
    pub edges: List<EdgeRow>,
}

/// A definition of a revision.
pub struct TypeRow {
    pub name: Text,
    /// True if the schema has it under that name.
    pub official: bool,
    /// The place of its type.
    pub value: u16,
    newer: u16,
    older: u16,
}

/// A row of the list of definitions, with the place of its name among the strings.
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
    /// The place of its counterpart in a neighbour.
    pub fn counterpart(&self, up: bool) -> Option<u16> {
        some(self.neighbour(up))
    }

    /// The same, or [`NONE`].
    pub const fn neighbour(&self, up: bool) -> u16 {
        if up { self.newer } else { self.older }
    }
}

/// A pair of definitions of neighbours.
pub struct EdgeRow {
    older: u16,
    newer: u16,
    /// True if the text of one is the text of the other.
    pub same: bool,
    up: u16,
    down: u16,
}

/// A row of the list of pairs.
pub const fn edge(older: u16, newer: u16, same: bool, up: u16, down: u16) -> EdgeRow {
    EdgeRow {
        older,
        newer,
        same,
        up,
        down,
    }
}

impl EdgeRow {
    /// The pair of two places.
    pub fn find(edges: List<Self>, older: u16, newer: u16) -> Option<&'static Self> {
        let edges = edges.rows();
        let found = edges.binary_search_by_key(&(older, newer), |edge| (edge.older, edge.newer));
        found.ok().map(|at| &edges[at])
    }

    /// The place of what happens to values.
    pub fn op(&self, up: bool) -> u16 {
        if up { self.up } else { self.down }
    }
}

/// A method of any revision.
pub struct MethodRow {
    pub method: Text,
    pub request: bool,
    /// The revisions in which clients send it, one bit each.
    pub client: u16,
    /// Those in which servers send it.
    pub server: u16,
    /// Revisions in which it is no message of its own: it is embedded in results, as input requests are since 2026-07-28.
    pub embedded: u16,
    /// Those whose next revision has the same params, all the way down.
    pub same_params: u16,
    /// Those whose next revision has the same result, all the way down.
    pub same_results: u16,
    /// Rows of the method in each known revision, oldest first.
    pub revisions: List<Option<MethodIn>>,
}

/// A method in one revision.
pub struct MethodIn {
    params: u16,
    pub params_required: bool,
    result: u16,
}

/// Returns the row of a method in one revision.
pub const fn carries(params: u16, params_required: bool, result: u16) -> Option<MethodIn> {
    Some(MethodIn {
        params,
        params_required,
        result,
    })
}

impl MethodIn {
    /// The place of the params or the result; `None` where the revision leaves them open.
    pub fn part(&self, is_result: bool) -> Option<u16> {
        some(if is_result { self.result } else { self.params })
    }
}

impl MethodRow {
    /// Returns true if a side sends it as a message of its own in the revision at a place.
    pub fn is_sent(&self, side: Side, place: usize) -> bool {
        self.sent(side) >> place & 1 == 1
    }

    /// The revisions in which a side sends it, one bit each.
    pub fn sent(&self, side: Side) -> u16 {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// The row of a method.
    pub fn find(method: &str, request: bool) -> Option<&'static Self> {
        let places = METHODS_BY_LENGTH.get(method.len())?.rows().iter();
        let mut rows = places.map(|at| &METHODS[usize::from(*at)]);
        rows.find(|row| row.request == request && row.method.get() == method)
    }
}

impl RevisionRow {
    /// The revision at a place in `KnownRevision::ALL`.
    pub const fn at(place: usize) -> &'static Self {
        &REVISIONS[place]
    }

    /// The place of a definition.
    pub fn find(&self, name: &str) -> Option<u16> {
        let types = self.types.rows();
        let at = types
            .binary_search_by(|row| row.name.get().cmp(name))
            .ok()?;
        u16::try_from(at).ok()
    }

    /// The definition at a place.
    pub fn definition(&self, place: u16) -> &'static TypeRow {
        &self.types.rows()[usize::from(place)]
    }

    /// [`find`](Self::find) for constants.
    pub const fn find_constant(&self, name: &str) -> Option<u16> {
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

    /// [`definition`](Self::definition) for constants.
    pub const fn definition_constant(&self, place: u16) -> &'static TypeRow {
        &TYPE_ROWS[self.types.range().start + place as usize]
    }
}

/// The place, unless it is [`NONE`].
pub const fn some(place: u16) -> Option<u16> {
    if place == NONE { None } else { Some(place) }
}

/// Returns true if two names are the same, for constants.
pub const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
