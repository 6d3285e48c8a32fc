//! Dispatch among the variants of a union: how a reader selects the one variant that a JSON value belongs to.
//!
//! The generator plans these tables, writes them as code into the decoders of the types, and as data into the files that
//! the program `mcp-exact` embeds.

use serde::{Deserialize, Serialize};

/// Dispatch among the variants of a union: first by the kind of JSON value, then by the members of objects or the items
/// of arrays. Numbers are indexes of variants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Sets of strings that select a variant, each with the index of the variant; a decoder tries the sets before
    /// `string`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(Vec<String>, usize)>,
    /// Variant for strings.
    pub string: Option<usize>,
    /// Variant for numbers.
    pub number: Option<usize>,
    /// Variant for booleans.
    pub boolean: Option<usize>,
    /// Variant for null.
    pub null: Option<usize>,
    /// Variants for arrays; an empty array is a value of the first of these variants.
    pub arrays: Vec<usize>,
    /// Dispatch among several array variants by their first item, which is an object.
    pub items: Option<ObjectDispatch>,
    /// Dispatch among the object variants.
    pub objects: Option<ObjectDispatch>,
    /// True if unknown values of the discriminant are kept.
    pub open: bool,
}

/// Dispatch among the object variants of a union.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectDispatch {
    /// Name of the discriminant.
    pub tag: Option<String>,
    /// Members whose presence selects a variant, optionally with a member of their value that must be present too.
    pub probes: Vec<(String, Option<String>)>,
    /// Cases in the order in which decoding tries them; the first matching case selects the variant.
    pub cases: Vec<DispatchCase>,
    /// Pairs of members that exclude each other, as indexes of `probes`.
    pub exclusive: Vec<(usize, usize)>,
}

/// A condition that selects a variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchCase {
    /// Required value of the discriminant.
    pub tag: Tag,
    /// Indexes of probes that must be present.
    pub has: Vec<usize>,
    /// Index of the selected variant.
    pub variant: usize,
}

/// Required value of a discriminant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tag {
    /// The discriminant has this value.
    Is(String),
    /// The discriminant is absent.
    Absent,
    /// The discriminant may have any value that no earlier case requires, or be absent.
    Any,
}

impl Dispatch {
    /// Returns true if the dispatch selects the variant for some value.
    pub fn uses(&self, variant: usize) -> bool {
        let scalars = [self.string, self.number, self.boolean, self.null];
        let cases = |plan: &ObjectDispatch| plan.cases.iter().any(|case| case.variant == variant);
        scalars.contains(&Some(variant))
            || self.values.iter().any(|(_, index)| *index == variant)
            || self.objects.as_ref().is_some_and(cases)
            || match &self.items {
                Some(items) => cases(items),
                None => self.arrays.contains(&variant),
            }
    }
}

impl ObjectDispatch {
    /// Returns the variant if all cases select the same one.
    pub fn only_variant(&self) -> Option<usize> {
        let first = self.cases.first()?.variant;
        let is_first = |case: &DispatchCase| case.variant == first;
        self.cases.iter().all(is_first).then_some(first)
    }
}
