//! Unions as Rust enums: the names of their variants, and how a decoder tells them apart.

use mcp_exact_model::Type;
use serde::Serialize;

/// One of several types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Union {
    /// The members in the order of the schema.
    pub variants: Vec<Variant>,
    /// Dispatch among the variants.
    pub dispatch: Dispatch,
}

impl Union {
    /// The name of the discriminant, when an unknown value of it is kept.
    pub fn open_tag(&self) -> Option<&str> {
        let tag = self.dispatch.objects.as_ref()?.tag.as_deref();
        tag.filter(|_| self.dispatch.open)
    }
}

/// A variant of a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The name of the variant.
    pub name: String,
    /// Its type.
    pub value: Type,
}

/// Dispatch among the variants of a union: by the kind of JSON value first, then by the members of objects or the items of
/// arrays. Numbers are indices of variants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dispatch {
    /// The variants of strings with known values, which are tried before `string`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(Vec<String>, usize)>,
    /// The variant of strings.
    pub string: Option<usize>,
    /// The variant of numbers.
    pub number: Option<usize>,
    /// The variant of booleans.
    pub boolean: Option<usize>,
    /// The variant of null.
    pub null: Option<usize>,
    /// The variants of arrays; an empty array is the first one.
    pub arrays: Vec<usize>,
    /// Dispatch among several arrays by their first item, which is an object.
    pub items: Option<ObjectDispatch>,
    /// The variants of objects.
    pub objects: Option<ObjectDispatch>,
    /// True if an unknown value of the discriminant is kept.
    pub open: bool,
}

impl Dispatch {
    /// Returns true if some value is decoded as the variant.
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

/// Dispatch among objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ObjectDispatch {
    /// The discriminant.
    pub tag: Option<String>,
    /// Members whose presence decides, with a member of their value that must be present too.
    pub probes: Vec<(String, Option<String>)>,
    /// Cases that tell the variants apart, in the order in which decoding tries them; the first that fits wins.
    pub cases: Vec<DispatchCase>,
    /// Pairs of members that exclude each other, as indices of `probes`.
    pub exclusive: Vec<(usize, usize)>,
}

/// One way to be a certain variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DispatchCase {
    /// Value that the discriminant must have.
    pub tag: Tag,
    /// Indices of probes that must be present.
    pub has: Vec<usize>,
    /// The variant.
    pub variant: usize,
}

/// Value that a discriminant must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Tag {
    /// This value.
    Is(String),
    /// Not there.
    Absent,
    /// It does not decide.
    Any,
}
