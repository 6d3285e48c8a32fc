//! The intermediate representation: revisions as plain data, in the project's own terms.
//!
//! Plain data, serialisable. It does not know how a programming language expresses a type: the generator keeps names of
//! fields and variants, pointers and the dispatch of unions beside it. Everything is sorted by name, so that equal schemas
//! give equal bytes.

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
    /// True if the schema defines it by that name; otherwise it is anonymous, at `pointers`.
    pub official: bool,
    /// JSON pointers of the definition in the schema.
    pub pointers: Vec<String>,
    /// The schema's description, as written there.
    pub description: Option<String>,
    /// True if it is an object that allows no other members than its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
    /// Shape of the type.
    pub shape: Shape,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Shape of a type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// An object with known members; unknown ones are kept.
    Struct(Vec<Member>),
    /// A JSON Schema document: kept as text, with these members as its typed view.
    Document(Vec<Member>),
    /// A string with known values; unknown ones are kept.
    Enum(Vec<String>),
    /// A string with exactly one value.
    Constant(String),
    /// One of several types, in the order of the schema.
    Union(Vec<Type>),
    /// Another name for a type.
    Alias(Type),
    /// A string or an integer: the id of a request, a progress token.
    StringOrInteger,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The name in JSON.
    pub name: String,
    /// True if the member is required.
    pub required: bool,
    /// The schema's description.
    pub description: Option<String>,
    /// Value of the member.
    pub value: MemberValue,
}

/// Value of a member.
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
    /// A string.
    String(Text),
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
    },
    /// An array.
    Array {
        /// Its items.
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

    /// Returns the names of the definitions that it refers to.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.types().into_iter().filter_map(Type::reference)
    }
}

impl Type {
    /// Any string.
    pub const TEXT: Self = Self::String(Text { format: None });

    /// Returns the name of the definition that it is, or that its items, members or values other than null are.
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Ref { name } => Some(name),
            Self::Array { items: inner, .. } | Self::Map(inner) | Self::Nullable(inner) => {
                inner.reference()
            }
            _ => None,
        }
    }

    /// Returns the name of the definition, or of the kind of JSON value.
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
    /// Its format: `uri`, `uri-template`, `byte` and so on.
    pub format: Option<String>,
}

impl Text {
    /// Strings of a format.
    pub fn of_format(format: &str) -> Self {
        Self {
            format: Some(format.to_owned()),
        }
    }

    /// Returns true if every string is one.
    pub fn takes_all(&self) -> bool {
        *self == Self::default()
    }
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

/// A request or a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// The method.
    pub method: String,
    /// The definition that carries it.
    pub definition: String,
    /// True if it is a request.
    pub request: bool,
    /// The type of the parameters; `None` where the schema has none.
    pub params: Option<Type>,
    /// True if `params` is required.
    pub params_required: bool,
    /// The result of a request: a union where it can be one of several.
    pub result: Option<String>,
    /// Possible results, in the order of the union, if there are several.
    #[serde(default)]
    pub outcomes: Vec<String>,
    /// True if clients send it.
    pub from_client: bool,
    /// True if servers send it.
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
