//! The roots of the tables: revisions, their definitions and their methods.
//!
//! The generator writes them (`generated/roots.rs`). Places of definitions are those in the list of their revision.

use crate::generated::{METHODS, REVISIONS};
use crate::revision::is_same;

/// The place of nothing.
pub const NONE: u16 = u16::MAX;

/// A revision, at its place in `KnownRevision::ALL`.
pub struct RevisionRow {
    /// Its definitions, sorted by name.
    pub types: &'static [TypeRow],
    /// The pairs with definitions of the next revision, sorted by both places.
    pub edges: &'static [EdgeRow],
}

/// A definition of a revision.
pub struct TypeRow {
    pub name: &'static str,
    /// Whether the schema has it under that name.
    pub official: bool,
    /// The place of its type.
    pub value: u16,
    newer: u16,
    older: u16,
}

/// A row of the list of definitions.
pub const fn named(
    name: &'static str,
    official: bool,
    value: u16,
    newer: u16,
    older: u16,
) -> TypeRow {
    TypeRow {
        name,
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
    /// Whether the text of one is the text of the other.
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
    pub fn find(edges: &'static [Self], older: u16, newer: u16) -> Option<&'static Self> {
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
    pub method: &'static str,
    pub request: bool,
    /// What it is in each known revision, oldest first.
    pub revisions: &'static [Option<MethodIn>],
}

/// A method in one revision.
pub struct MethodIn {
    params: u16,
    pub params_required: bool,
    /// Whether the next revision has the same params, all the way down.
    pub params_same: bool,
    result: u16,
    /// Whether the next revision has the same result, all the way down.
    pub result_same: bool,
}

/// What a method carries in one revision.
pub const fn carries(
    params: u16,
    params_required: bool,
    params_same: bool,
    result: u16,
    result_same: bool,
) -> Option<MethodIn> {
    Some(MethodIn {
        params,
        params_required,
        params_same,
        result,
        result_same,
    })
}

impl MethodIn {
    /// The place of the params or the result; `None` where the revision leaves them open.
    pub fn part(&self, is_result: bool) -> Option<u16> {
        some(if is_result { self.result } else { self.params })
    }
}

impl MethodRow {
    /// The row of a method. There are a few dozen, most of another length: fewer texts are compared than by bisection.
    pub fn find(method: &str, request: bool) -> Option<&'static Self> {
        let mut rows = METHODS
            .iter()
            .filter(|row| row.method.len() == method.len());
        rows.find(|row| row.request == request && row.method == method)
    }
}

impl RevisionRow {
    /// The revision at a place in `KnownRevision::ALL`.
    pub const fn at(place: usize) -> &'static Self {
        &REVISIONS[place]
    }

    /// The place of a definition.
    pub fn find(&self, name: &str) -> Option<u16> {
        let at = self.types.binary_search_by(|row| row.name.cmp(name)).ok()?;
        u16::try_from(at).ok()
    }

    /// The same, for constants.
    pub const fn find_constant(&self, name: &str) -> Option<u16> {
        let mut at = 0;
        while at < self.types.len() {
            if is_same(self.types[at].name, name) {
                return Some(at as u16);
            }
            at += 1;
        }
        None
    }

    /// The definition at a place.
    pub const fn definition(&self, place: u16) -> &'static TypeRow {
        &self.types[place as usize]
    }
}

/// The place, unless it is [`NONE`].
pub const fn some(place: u16) -> Option<u16> {
    if place == NONE { None } else { Some(place) }
}
