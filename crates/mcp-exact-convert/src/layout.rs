//! Layout of the definitions of all revisions, as tables: members with their types, unions, enums, bounds, formats.
//!
//! The generator writes the tables (`generated/definitions.rs`). Everything refers to everything by its place.

use mcp_exact_wire::{Case, Choice, DocumentRule, Format, Probe, Shape as Members, Tag, UnionRole};

use crate::generated::{DEFINITIONS, TYPES};

/// The place of nothing.
pub const NONE: u8 = u8::MAX;

/// A definition, which several revisions may share.
pub struct Definition {
    pub name: &'static str,
    pub shape: Shape,
}

/// Layout of a definition.
pub enum Shape {
    /// An object with known members.
    Object(Layout),
    /// A JSON Schema document with rules for some members.
    Document(&'static [DocumentRule]),
    /// A string with known values.
    Enum(&'static [&'static str]),
    /// A string with one value.
    Constant(&'static str),
    /// One of several types.
    Union(&'static Union),
}

/// The members of an object.
pub struct Layout {
    pub members: Members,
    /// The places of their types.
    pub types: &'static [u16],
    /// True if the object allows no other members.
    pub closed: bool,
}

/// A type of a value.
#[derive(Clone, Copy)]
pub enum Type {
    Json,
    JsonObject,
    String,
    Formatted(Format),
    Boolean,
    /// The smallest and the largest value.
    Integer(Option<i64>, Option<i64>),
    Number(Option<i64>, Option<i64>),
    RequestId,
    ProgressToken,
    Constant(&'static str),
    /// The value, and as text.
    ConstantInteger(i64, &'static str),
    Definition(u16),
    /// The type of the items, the fewest and the most.
    Array(u16, Option<u32>, Option<u32>),
    Map(u16),
    Nullable(u16),
}

/// The variants of a union and their dispatch.
pub struct Union {
    /// The places of their types.
    pub variants: &'static [u16],
    /// The variants of strings, numbers, booleans and null.
    pub scalars: [u8; 4],
    /// Sets of strings, each with its variant; other strings belong to the variant of `scalars`.
    pub values: &'static [&'static [&'static str]],
    pub valued: &'static [u8],
    /// The variants of arrays; an empty array is the first one.
    pub arrays: &'static [u8],
    /// Dispatch table that tells several arrays apart by their first item.
    pub items: Option<&'static Choice>,
    pub objects: Objects,
    /// The discriminant when unknown values of it are kept, else an empty string.
    pub open: &'static str,
    /// Role of the objects: in requests and notifications, the envelope is checked.
    pub role: UnionRole,
}

/// Dispatch among the objects of a union.
pub enum Objects {
    /// There are none.
    None,
    /// There is one variant.
    #[allow(dead_code)]
    Only(u8),
    Told(&'static Choice),
}

impl Definition {
    pub const fn of(name: &'static str, shape: Shape) -> Self {
        Self { name, shape }
    }

    /// The definition at a place.
    pub fn at(place: u16) -> &'static Self {
        &DEFINITIONS[usize::from(place)]
    }

    /// The members, when it is an object.
    pub fn layout(&self) -> Option<&Layout> {
        match &self.shape {
            Shape::Object(layout) => Some(layout),
            _ => None,
        }
    }

    /// The union that it is.
    pub fn union(&self) -> Option<&'static Union> {
        match self.shape {
            Shape::Union(union) => Some(union),
            _ => None,
        }
    }
}

impl Layout {
    /// The place of a member.
    pub fn find(&self, name: &str) -> Option<usize> {
        let members = self.members.members;
        members.iter().position(|member| *member == name)
    }
}

impl Type {
    /// The type at a place.
    pub fn at(place: u16) -> Self {
        TYPES[usize::from(place)]
    }

    /// The name of the definition that it is.
    pub fn name(self) -> &'static str {
        match self {
            Self::Definition(place) => Definition::at(place).name,
            _ => "",
        }
    }
}

/// A member whose presence decides.
pub const fn probe(name: &'static str, inner: &'static str) -> Probe {
    Probe { name, inner }
}

/// One way to be a variant.
pub const fn case(tag: Tag, has: u32, variant: u8) -> Case {
    Case { tag, has, variant }
}

/// An object: its name, a bit for each required member, and each member with the place of its type. One that allows no other
/// members is `closed`.
macro_rules! object {
    ($name:literal, $($rest:tt)*) => {
        object!(@false $name, $($rest)*)
    };
    (closed $name:literal, $($rest:tt)*) => {
        object!(@true $name, $($rest)*)
    };
    (@$closed:literal $name:literal, $required:literal, $($member:literal $type:literal)*) => {
        Definition::of($name, Shape::Object(Layout {
            members: Members {
                members: &[$($member),*],
                keys: &{
                    const NAMES: &[&str] = &[$($member),*];
                    keys::<{ NAMES.len() }>(NAMES)
                },
                required: $required,
            },
            types: &[$($type),*],
            closed: $closed,
        }))
    };
}
pub(crate) use object;

/// A JSON Schema document: its name and its rules.
macro_rules! document {
    ($name:literal, $($rule:expr),*) => {
        Definition::of($name, Shape::Document(&[$($rule),*]))
    };
}
pub(crate) use document;
