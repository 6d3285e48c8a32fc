//! Intermediate representation: revisions as plain, serialisable data, independent of JSON Schema.
//!
//! The representation does not contain how a programming language expresses a type: the generator stores field and
//! variant names, pointers and union dispatch separately. All lists are sorted by name, so that equal schemas yield
//! equal bytes.

use serde::{Deserialize, Serialize};

/// One revision of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ir {
    /// Identifier of the revision, such as `2025-06-18`.
    pub revision: String,
    /// All definitions, sorted by name.
    pub definitions: Vec<Definition>,
    /// Requests and notifications, sorted by method.
    pub methods: Vec<Method>,
}

/// Named or anonymous type of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Name of the type, from the specification if it has one.
    pub name: String,
    /// True if the schema defines the type by this name; false for an anonymous type, which occurs at `pointers`.
    pub official: bool,
    /// JSON pointers of the definition in the schema.
    pub pointers: Vec<String>,
    /// Description in the schema, unchanged.
    pub description: Option<String>,
    /// True if the type is an object that allows only its defined members.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
    /// Shape of the type.
    pub shape: Shape,
}

/// Returns true for false; members with this value are not serialised.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Kind of a type, with its members, values or variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// Object with known members; unknown members are kept.
    Struct(Vec<Member>),
    /// JSON Schema document, which is kept as text, with these members as its typed view.
    Document(Vec<Member>),
    /// String with known values; unknown values are kept.
    Enum(Vec<String>),
    /// String with exactly one value.
    Constant(String),
    /// One of several types, in the order of the schema.
    Union(Vec<Type>),
    /// Another name for a type.
    Alias(Type),
    /// A string or an integer, as used for request ids and progress tokens.
    StringOrInteger,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// JSON name of the member.
    pub name: String,
    /// True if the member is required.
    pub required: bool,
    /// Description in the schema.
    pub description: Option<String>,
    /// Value of the member.
    pub value: MemberValue,
}

/// Value of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberValue {
    /// A constant string, which is part of the type and not a field.
    ConstString(String),
    /// A constant integer, which is part of the type and not a field.
    ConstInteger(i64),
    /// A value of this type.
    Type(Type),
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// Any JSON value.
    Json,
    /// Any JSON object.
    JsonObject,
    /// A string.
    String(Text),
    /// `true` or `false`.
    Boolean,
    /// An integer.
    Integer(Bounds),
    /// A number.
    Number(Bounds),
    /// A reference to a definition.
    Ref {
        /// Name of the definition.
        name: String,
    },
    /// An array.
    Array {
        /// Type of the items.
        items: Box<Type>,
        /// Minimum number of items.
        min_items: Option<u64>,
        /// Maximum number of items.
        max_items: Option<u64>,
    },
    /// An object whose members all have one type.
    Map(Box<Type>),
    /// A value or null.
    Nullable(Box<Type>),
}

impl Shape {
    /// Returns the types of members or variants, or the target of an alias.
    pub fn types(&self) -> Vec<&Type> {
        match self {
            Self::Struct(members) | Self::Document(members) => members
                .iter()
                .filter_map(|member| match &member.value {
                    MemberValue::Type(value) => Some(value),
                    _ => None,
                })
                .collect(),
            Self::Union(variants) => variants.iter().collect(),
            Self::Alias(value) => vec![value],
            Self::Enum(_) | Self::Constant(_) | Self::StringOrInteger => Vec::new(),
        }
    }

    /// Returns the names of the definitions that the shape refers to.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.types().into_iter().filter_map(Type::reference)
    }
}

impl Type {
    /// Any string, without a format.
    pub const TEXT: Self = Self::String(Text { format: None });

    /// Returns the name of the referenced definition; for an array, map or nullable type, the name that the inner type
    /// refers to.
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Ref { name } => Some(name),
            Self::Array { items: inner, .. } | Self::Map(inner) | Self::Nullable(inner) => {
                inner.reference()
            }
            _ => None,
        }
    }

    /// Returns the name of the definition, or of the JSON type.
    pub fn label(&self) -> &str {
        match self {
            Self::Ref { name } => name,
            Self::Json => "Json",
            Self::JsonObject | Self::Map(_) => "Object",
            Self::String(_) => "String",
            Self::Boolean => "Boolean",
            Self::Integer(_) => "Integer",
            Self::Number(_) => "Number",
            Self::Array { .. } => "Array",
            Self::Nullable(_) => "Nullable",
        }
    }
}

/// Constraints of a string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Format of the string, such as `uri`, `uri-template` or `byte`.
    pub format: Option<String>,
}

impl Text {
    /// Creates the constraint for strings of a format.
    pub fn of_format(format: &str) -> Self {
        Self {
            format: Some(format.to_owned()),
        }
    }

    /// Returns true if every string is valid.
    pub fn is_unrestricted(&self) -> bool {
        *self == Self::default()
    }
}

/// Inclusive bounds of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Minimum value.
    pub minimum: Option<i64>,
    /// Maximum value.
    pub maximum: Option<i64>,
}

impl Bounds {
    /// Returns true if every number within `other` is within these bounds.
    pub fn includes(self, other: Self) -> bool {
        let low = self
            .minimum
            .is_none_or(|low| other.minimum.is_some_and(|other| low <= other));
        let high = self
            .maximum
            .is_none_or(|high| other.maximum.is_some_and(|other| high >= other));
        low && high
    }
}

/// A request or a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// Name of the method.
    pub method: String,
    /// Name of the definition of the message.
    pub definition: String,
    /// True for a request, false for a notification.
    pub request: bool,
    /// Type of the params; `None` if the schema has none.
    pub params: Option<Type>,
    /// True if `params` is required.
    pub params_required: bool,
    /// Definition of a request's result: a union if several results are possible.
    pub result: Option<String>,
    /// Possible results, in the order of the union, if there are several.
    #[serde(default)]
    pub outcomes: Vec<String>,
    /// True if clients send the method.
    pub from_client: bool,
    /// True if servers send the method.
    pub from_server: bool,
}

impl Ir {
    /// Returns the definition `name`.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        let found = self
            .definitions
            .binary_search_by(|definition| definition.name.as_str().cmp(name));
        found.ok().map(|at| &self.definitions[at])
    }
}
