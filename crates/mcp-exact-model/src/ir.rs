//! The intermediate representation: what the revisions say, in the project's own terms.
//!
//! Plain data, serialisable and free of Rust syntax: emitters, differences and conversions read it. Everything is sorted
//! by name, so that equal schemas give equal bytes.

use serde::{Deserialize, Serialize};

/// One revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ir {
    /// The identifier, such as `2025-06-18`.
    pub revision: String,
    /// All definitions, sorted by name.
    pub definitions: Vec<Definition>,
    /// Requests and notifications, sorted by method.
    pub methods: Vec<Method>,
}

/// One type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The name of the type, which is the specification's where it has one.
    pub name: String,
    /// Whether the schema defines it by that name; otherwise it stands anonymously at `pointers`.
    pub official: bool,
    /// Where it stands in the schema.
    pub pointers: Vec<String>,
    /// The schema's description, as written there.
    pub description: Option<String>,
    /// Whether it is an object that allows no other members than its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
    /// What it is.
    pub shape: Shape,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// What a type is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few hundred of them, matched upon everywhere: a box saves nothing"
)]
pub enum Shape {
    /// An object with known members; unknown ones are kept.
    Struct(Vec<Member>),
    /// A JSON Schema document: kept as text, with these members as its typed view.
    Document(Vec<Member>),
    /// A string with known values; unknown ones are kept.
    Enum(Vec<String>),
    /// A string with exactly one value.
    Constant(String),
    /// One of several types.
    Union(Union),
    /// Another name for a type.
    Alias(Type),
    /// A type of the runtime crate, by name.
    Runtime(String),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The name in JSON.
    pub name: String,
    /// The name of the Rust field.
    pub field: String,
    /// Whether it has to be there.
    pub required: bool,
    /// The schema's description.
    pub description: Option<String>,
    /// What it holds.
    pub value: MemberValue,
}

/// What a member holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberValue {
    /// Always the same string: a part of the type, not a field.
    ConstString(String),
    /// Always the same integer: a part of the type, not a field.
    ConstInteger(i64),
    /// A value.
    Type(Type),
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// Any JSON value.
    Json,
    /// Any JSON object.
    JsonObject,
    /// A string, perhaps of a format.
    String {
        /// `uri`, `uri-template`, `byte` and so on.
        format: Option<String>,
    },
    /// `true` or `false`.
    Boolean,
    /// A number whose value is whole.
    Integer(Bounds),
    /// A number.
    Number(Bounds),
    /// A definition.
    Ref {
        /// Its name.
        name: String,
        /// Whether it is behind a pointer, because it contains itself.
        boxed: bool,
    },
    /// An array.
    Array {
        /// Its items.
        items: Box<Type>,
        /// How many there must be.
        min_items: Option<u64>,
        /// How many there may be.
        max_items: Option<u64>,
    },
    /// An object whose members all have one type.
    Map(Box<Type>),
    /// A value or null.
    Nullable(Box<Type>),
}

/// Inclusive bounds of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The smallest value.
    pub minimum: Option<i64>,
    /// The largest value.
    pub maximum: Option<i64>,
}

impl Bounds {
    /// Returns true if every number within `other` is within these bounds.
    pub fn takes(self, other: Self) -> bool {
        let low = self
            .minimum
            .is_none_or(|low| other.minimum.is_some_and(|other| low <= other));
        let high = self
            .maximum
            .is_none_or(|high| other.maximum.is_some_and(|other| high >= other));
        low && high
    }
}

/// One of several types.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Union {
    /// The members in the order of the schema.
    pub variants: Vec<Variant>,
    /// How they are told apart.
    pub dispatch: Dispatch,
}

impl Union {
    /// The name of the discriminant, when an unknown value of it is kept.
    pub fn open_tag(&self) -> Option<&str> {
        let tag = self.dispatch.objects.as_ref()?.tag.as_deref();
        tag.filter(|_| self.dispatch.open)
    }
}

/// A member of a union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The name of the variant.
    pub name: String,
    /// Its type.
    pub value: Type,
}

/// How the members of a union are told apart: by the kind of JSON value first, then by what objects or arrays hold.
/// Numbers are indices of variants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The variants of strings with known values, which are tried before `string`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    /// How several arrays are told apart by their first item, which is an object.
    pub items: Option<ObjectDispatch>,
    /// The variants of objects.
    pub objects: Option<ObjectDispatch>,
    /// Whether an unknown value of the discriminant is kept.
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

/// How objects are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectDispatch {
    /// The discriminant.
    pub tag: Option<String>,
    /// Members whose presence decides, with a member of their value that has to be there too.
    pub probes: Vec<(String, Option<String>)>,
    /// The cases in the order in which they are tried; the first that fits wins.
    pub cases: Vec<Case>,
    /// Pairs of members that exclude each other, as indices of `probes`.
    pub exclusive: Vec<(usize, usize)>,
}

/// One way to be a certain variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What the discriminant has to be.
    pub tag: Tag,
    /// Indices of probes that have to be there.
    pub has: Vec<usize>,
    /// The variant.
    pub variant: usize,
}

/// What a discriminant has to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Tag {
    /// This value.
    Is(String),
    /// Not there.
    Absent,
    /// It does not decide.
    Any,
}

/// A request or a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// The method.
    pub method: String,
    /// The definition that carries it.
    pub definition: String,
    /// Whether it is a request.
    pub request: bool,
    /// The type of the parameters; `None` where the schema has none.
    pub params: Option<Type>,
    /// Whether the parameters have to be there.
    pub params_required: bool,
    /// The result of a request: a union where it can be one of several.
    pub result: Option<String>,
    /// What the result can be, in the order of the union, when it is one of several.
    #[serde(default)]
    pub outcomes: Vec<String>,
    /// Whether clients send it.
    pub from_client: bool,
    /// Whether servers send it.
    pub from_server: bool,
}

impl Ir {
    /// The definition `name`.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        let found = self
            .definitions
            .binary_search_by(|definition| definition.name.as_str().cmp(name));
        found.ok().map(|at| &self.definitions[at])
    }
}
