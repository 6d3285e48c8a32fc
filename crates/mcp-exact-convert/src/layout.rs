//! Layouts of the definitions of all revisions as static tables: members, types, unions, enums, bounds, formats.
//!
//! The generator writes the tables (`generated/definitions.rs`). Rows refer to each other by index.

use mcp_exact_wire::spans::{DispatchTable, KnownMembers};
use mcp_exact_wire::{DispatchCase, DocumentRule, Format, Probe, Tag, UnionRole};

use crate::generated::{DEFINITIONS, DISPATCHES, DOCUMENTS, TYPES, UNIONS};
use crate::packed::{Bounds, KEYS, List, Text};

/// Index that refers to no row.
pub const NONE: u8 = u8::MAX;

/// A definition; several revisions may share one.
pub struct Definition {
    pub name: Text,
    pub shape: Shape,
}

/// Shape of a definition.
pub enum Shape {
    /// Object with known members.
    Object(Layout),
    /// JSON Schema document with rules for some members.
    Document(Document),
    /// String with known values.
    Enum(List<Text>),
    /// String with exactly one value.
    Constant(Text),
    /// One of several types; holds the index of the union.
    Union(u16),
}

/// JSON Schema document; holds the index of its rules.
#[derive(Clone, Copy)]
pub struct Document(pub u16);

/// The members of an object.
pub struct Layout {
    pub members: List<MemberName>,
    /// Indexes of the members' types.
    pub types: List<u16>,
    /// Bit set of the required members, which have to be among the first 32.
    pub required: u32,
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
    /// Integer constant: its value and its JSON text.
    ConstantInteger(i32, Text),
    /// Definition at an index.
    Definition(u16),
    /// Array: the index of the item type, and bounds of the number of items.
    Array(u16, Bounds),
    /// Object with values by arbitrary names: the index of the type of the values.
    Map(u16),
    /// Value or null: the index of the type of the value.
    Nullable(u16),
}

/// The variants of a union and their dispatch.
pub struct Union {
    /// Indexes of the variants' types, in the order of the schema.
    pub variants: List<u16>,
    /// Indexes of the variants for strings, numbers, booleans and null, or [`NONE`].
    pub scalars: [u8; 4],
    /// Sets of strings, each with its variant; all other strings are values of the string variant in `scalars`.
    pub values: List<ValueSet>,
    /// Indexes of the variants for arrays; an empty array is a value of the first of them.
    pub arrays: List<u8>,
    /// Index of the dispatch table that distinguishes several array variants by their first item.
    pub items: Option<u16>,
    pub objects: Objects,
    /// Name of the discriminant if variants with unknown values of it are kept; otherwise empty.
    pub open: Text,
    /// Role of the objects; for requests and notifications, the JSON-RPC envelope is validated.
    pub role: UnionRole,
}

/// Strings that select a variant of a union.
pub struct ValueSet {
    pub values: List<Text>,
    /// Index of the variant.
    pub variant: u8,
}

/// Dispatch among the objects of a union.
pub enum Objects {
    /// No variant is an object.
    None,
    /// Exactly one variant is an object.
    #[allow(dead_code)]
    Only(u8),
    /// Several variants are objects; the dispatch table at this index selects one of them.
    Dispatched(u16),
}

/// Dispatch table of a union's object variants, as static data for [`mcp_exact_wire::UnionDispatch`].
pub struct PackedDispatch {
    pub name: Text,
    pub tag: Text,
    pub members: List<PackedProbe>,
    pub cases: List<PackedCase>,
    pub exclusive: List<(u32, u32)>,
}

/// A member whose presence selects a variant; static form of [`Probe`].
pub struct PackedProbe {
    pub name: Text,
    /// Name of a member that the value must contain too, or an empty string.
    pub inner: Text,
}

/// A condition that selects a variant; static form of [`DispatchCase`].
pub struct PackedCase {
    pub tag: PackedTag,
    /// Members that must be present, as bits of the table's `members`.
    pub has: u32,
    /// Index of the selected variant.
    pub variant: u8,
}

/// Required value of a discriminant; static form of [`Tag`].
#[derive(Clone, Copy)]
pub enum PackedTag {
    Is(Text),
    Absent,
    Any,
}

impl PackedDispatch {
    /// Returns the dispatch table at an index.
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
    /// Returns the definition at an index.
    pub fn at(place: u16) -> &'static Self {
        &DEFINITIONS[usize::from(place)]
    }

    /// Returns the members if the definition is an object.
    pub fn layout(&self) -> Option<&Layout> {
        match &self.shape {
            Shape::Object(layout) => Some(layout),
            _ => None,
        }
    }

    /// Returns the union if the definition is one.
    pub fn union(&self) -> Option<&'static Union> {
        match self.shape {
            Shape::Union(place) => Some(Union::at(place)),
            _ => None,
        }
    }
}

impl Layout {
    /// Returns the index of a member by its name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let members = self.members.rows();
        members.iter().position(|member| member.0.get() == name)
    }

    /// Returns the name of the member at an index.
    #[inline]
    pub fn name(&self, index: usize) -> &'static str {
        self.members.row(index).0.get()
    }

    /// Returns the index of the type of a member.
    pub fn type_of(&self, index: usize) -> u16 {
        *self.types.row(index)
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
        u64::from(self.required)
    }
}

impl Document {
    /// Returns the rules for the members of the document.
    pub fn rules(self) -> &'static [DocumentRule] {
        DOCUMENTS[usize::from(self.0)]
    }
}

impl Union {
    /// Returns the union at an index.
    pub fn at(place: u16) -> &'static Self {
        &UNIONS[usize::from(place)]
    }

    /// Returns the index of the type of a variant; `None` if the union has no variant with this index.
    pub fn variant(&self, variant: u8) -> Option<u16> {
        self.variants.rows().get(usize::from(variant)).copied()
    }
}

impl Type {
    /// Returns the type at an index.
    pub fn at(place: u16) -> Self {
        TYPES[usize::from(place)]
    }

    /// Returns the name of the type's definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Definition(place) => Definition::at(place).name.get(),
            _ => "",
        }
    }
}

/// Creates an object definition that allows other members; `required` is a bit set of the required members.
pub const fn object(
    name: Text,
    members: List<MemberName>,
    types: List<u16>,
    required: u32,
) -> Definition {
    with_members(name, members, types, required, false)
}

/// Creates an object definition that allows no other members.
#[allow(dead_code, reason = "some revisions have no closed objects")]
pub const fn closed_object(
    name: Text,
    members: List<MemberName>,
    types: List<u16>,
    required: u32,
) -> Definition {
    with_members(name, members, types, required, true)
}

const fn with_members(
    name: Text,
    members: List<MemberName>,
    types: List<u16>,
    required: u32,
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

/// Creates a definition that is not an object.
pub const fn shaped(name: Text, shape: Shape) -> Definition {
    Definition { name, shape }
}

/// Creates a probe for a member whose presence selects a variant.
pub const fn probe(name: Text, inner: Text) -> PackedProbe {
    PackedProbe { name, inner }
}

/// Creates a condition that selects a variant.
pub const fn case(tag: PackedTag, has: u32, variant: u8) -> PackedCase {
    PackedCase { tag, has, variant }
}
