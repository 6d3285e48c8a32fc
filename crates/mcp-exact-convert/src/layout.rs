//! Layout of the definitions of all revisions, as tables: members with their types, unions, enums, bounds, formats.
//!
//! The generator writes the tables (`generated/definitions.rs`). Everything refers to everything by its place.

use mcp_exact_wire::spans::{DispatchTable, KnownMembers};
use mcp_exact_wire::{DispatchCase, DocumentRule, Format, Probe, Tag, UnionRole};

use crate::generated::{DEFINITIONS, DISPATCHES, DOCUMENTS, TYPES, UNIONS};
use crate::packed::{Bounds, KEYS, List, Text};

/// The place of nothing.
pub const NONE: u8 = u8::MAX;

/// A definition, which several revisions may share.
pub struct Definition {
    pub name: Text,
    pub shape: Shape,
}

/// Layout of a definition.
pub enum Shape {
    /// An object with known members.
    Object(Layout),
    /// A JSON Schema document with rules for some members.
    Document(Document),
    /// A string with known values.
    Enum(List<Text>),
    /// A string with one value.
    Constant(Text),
    /// One of several types: the place of the union.
    Union(u16),
}

/// A JSON Schema document: the place of its rules.
#[derive(Clone, Copy)]
pub struct Document(pub u16);

/// The members of an object.
pub struct Layout {
    pub members: List<MemberName>,
    /// The places of their types.
    pub types: List<u16>,
    /// One bit for each required member.
    pub required: u64,
    /// True if the object allows no other members.
    pub closed: bool,
}

/// The name of a member of an object.
#[derive(Clone, Copy)]
pub struct MemberName(pub Text);

/// A type of a value.
#[derive(Clone, Copy)]
pub enum Type {
    Json,
    JsonObject,
    String,
    Formatted(Format),
    Boolean,
    Integer(Bounds),
    Number(Bounds),
    RequestId,
    ProgressToken,
    Constant(Text),
    /// The value, and as text.
    ConstantInteger(i32, Text),
    Definition(u16),
    /// The type of the items, and how many there are.
    Array(u16, Bounds),
    Map(u16),
    Nullable(u16),
}

/// The variants of a union and their dispatch.
pub struct Union {
    /// The places of their types.
    pub variants: List<u16>,
    /// The variants of strings, numbers, booleans and null.
    pub scalars: [u8; 4],
    /// Sets of strings, each with its variant; other strings belong to the variant of `scalars`.
    pub values: List<ValueSet>,
    /// The variants of arrays; an empty array is the first one.
    pub arrays: List<u8>,
    /// Place of the dispatch table that tells several arrays apart by their first item.
    pub items: Option<u16>,
    pub objects: Objects,
    /// The discriminant when unknown values of it are kept, else an empty string.
    pub open: Text,
    /// Role of the objects: in requests and notifications, the envelope is checked.
    pub role: UnionRole,
}

/// Strings that are one variant of a union.
pub struct ValueSet {
    pub values: List<Text>,
    pub variant: u8,
}

/// Dispatch among the objects of a union.
pub enum Objects {
    /// There are none.
    None,
    /// There is one variant.
    #[allow(dead_code)]
    Only(u8),
    /// There are several; the dispatch table at this place tells them apart.
    Dispatched(u16),
}

/// How the objects of a union are told apart, as [`mcp_exact_wire::UnionDispatch`].
pub struct PackedDispatch {
    pub name: Text,
    pub tag: Text,
    pub members: List<PackedProbe>,
    pub cases: List<PackedCase>,
    pub exclusive: List<(u32, u32)>,
}

/// A member whose presence decides, as [`Probe`].
pub struct PackedProbe {
    pub name: Text,
    pub inner: Text,
}

/// One way to be a variant, as [`DispatchCase`].
pub struct PackedCase {
    pub tag: PackedTag,
    pub has: u32,
    pub variant: u8,
}

/// What a discriminant has to be, as [`Tag`].
#[derive(Clone, Copy)]
pub enum PackedTag {
    Is(Text),
    Absent,
    Any,
}

impl PackedDispatch {
    /// Returns the dispatch table at a place.
    pub fn at(place: u16) -> &'static Self {
        &DISPATCHES[usize::from(place)]
    }
}

impl DispatchTable for PackedDispatch {
    fn name(&self) -> &'static str {
        self.name.get()
    }

    fn tag(&self) -> &'static str {
        self.tag.get()
    }

    fn probe_count(&self) -> usize {
        self.members.rows().len()
    }

    fn probe(&self, bit: usize) -> Probe {
        let probe = &self.members.rows()[bit];
        Probe {
            name: probe.name.get(),
            inner: probe.inner.get(),
        }
    }

    fn cases(&self) -> impl Iterator<Item = DispatchCase> {
        let cases = self.cases.rows().iter();
        cases.map(|case| DispatchCase {
            tag: match case.tag {
                PackedTag::Is(value) => Tag::Is(value.get()),
                PackedTag::Absent => Tag::Absent,
                PackedTag::Any => Tag::Any,
            },
            has: case.has,
            variant: case.variant,
        })
    }

    fn exclusive(&self) -> &'static [(u32, u32)] {
        self.exclusive.rows()
    }
}

impl Definition {
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
            Shape::Union(place) => Some(Union::at(place)),
            _ => None,
        }
    }
}

impl Layout {
    /// The place of a member.
    pub fn find(&self, name: &str) -> Option<usize> {
        let members = self.members.rows();
        members.iter().position(|member| member.0.get() == name)
    }

    /// The name of the member at a place.
    pub fn name(&self, index: usize) -> &'static str {
        self.members.rows()[index].0.get()
    }

    /// The place of the type of the member at a place.
    pub fn type_of(&self, index: usize) -> u16 {
        self.types.rows()[index]
    }
}

impl KnownMembers for &'static Layout {
    #[inline]
    fn keys(self) -> &'static [u64] {
        &KEYS[self.members.range()]
    }

    #[inline]
    fn name(self, index: usize) -> &'static str {
        Layout::name(self, index)
    }

    #[inline]
    fn required(self) -> u64 {
        self.required
    }
}

impl Document {
    /// What has to hold for its members.
    pub fn rules(self) -> &'static [DocumentRule] {
        DOCUMENTS[usize::from(self.0)]
    }
}

impl Union {
    /// The union at a place.
    pub fn at(place: u16) -> &'static Self {
        &UNIONS[usize::from(place)]
    }

    /// The place of the type of a variant.
    pub fn variant(&self, variant: u8) -> Option<u16> {
        self.variants.rows().get(usize::from(variant)).copied()
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
            Self::Definition(place) => Definition::at(place).name.get(),
            _ => "",
        }
    }
}

/// An object that allows other members: its name, its members, the places of their types, and a bit for each required one.
pub const fn object(
    name: Text,
    members: List<MemberName>,
    types: List<u16>,
    required: u64,
) -> Definition {
    with_members(name, members, types, required, false)
}

/// An object that allows no other members.
#[allow(dead_code, reason = "some revisions have no closed objects")]
pub const fn closed_object(
    name: Text,
    members: List<MemberName>,
    types: List<u16>,
    required: u64,
) -> Definition {
    with_members(name, members, types, required, true)
}

const fn with_members(
    name: Text,
    members: List<MemberName>,
    types: List<u16>,
    required: u64,
    closed: bool,
) -> Definition {
    let layout = Layout {
        members,
        types,
        required,
        closed,
    };
    shaped(name, Shape::Object(layout))
}

/// A definition that is no object.
pub const fn shaped(name: Text, shape: Shape) -> Definition {
    Definition { name, shape }
}

/// A member whose presence decides.
pub const fn probe(name: Text, inner: Text) -> PackedProbe {
    PackedProbe { name, inner }
}

/// One way to be a variant.
pub const fn case(tag: PackedTag, has: u32, variant: u8) -> PackedCase {
    PackedCase { tag, has, variant }
}
