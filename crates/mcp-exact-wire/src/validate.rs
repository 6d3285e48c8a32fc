//! Deviations from the schema that decoding tolerates: bounds, formats, values and tags that the revision does not
//! define.
//!
//! Validation returns a list with a JSON pointer for each deviation; it never changes the value and never fails.

use std::fmt;

use crate::format::Format;
use crate::pointer::{Pointer, quoted};
use crate::{Json, Map, Number, UnknownName, UnknownVariant};

/// Number of violations that are listed; the others are counted.
pub const MAX_LISTED: usize = 100;

/// Kind of the rule that a value violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// A string enum has a value that the revision does not define.
    Enum,
    /// A tagged union has a variant that the revision does not define.
    Tag,
    /// A number is smaller than the schema allows.
    Minimum,
    /// A number is larger than the schema allows.
    Maximum,
    /// An array has more items than the schema allows.
    MaxItems,
    /// An array has fewer items than the schema allows.
    MinItems,
    /// A string does not have its format.
    Format,
    /// A value inside a JSON Schema document does not have the type that the schema requires.
    Type,
    /// A constant inside a JSON Schema document has another value.
    Const,
    /// A member that is required inside a JSON Schema document is missing.
    Required,
    /// An object has an unknown member, although its schema allows none.
    AdditionalProperties,
    /// A member that the schema defines is there twice inside a JSON Schema document.
    Duplicate,
}

impl ViolationKind {
    /// Returns a short stable name: the JSON Schema keyword if one exists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enum => "enum",
            Self::Tag => "tag",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::MaxItems => "maxItems",
            Self::MinItems => "minItems",
            Self::Format => "format",
            Self::Type => "type",
            Self::Const => "const",
            Self::Required => "required",
            Self::AdditionalProperties => "additionalProperties",
            Self::Duplicate => "duplicate",
        }
    }
}

/// One deviation from the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) of the value, relative to the validated value; cut as
    /// [`DecodeError::pointer`](crate::DecodeError::pointer) is.
    pub pointer: String,
    /// Kind of the violated rule.
    pub kind: ViolationKind,
    /// Description of the violation, in which long values are cut.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.message, self.pointer)
    }
}

/// Deviations of one value: the first [`MAX_LISTED`], and the number of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations {
    /// The first violations.
    listed: Vec<Violation>,
    /// Number of all violations.
    count: usize,
}

impl Violations {
    /// Returns true if the value conforms to the schema.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of violations, listed or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the first violations.
    pub fn listed(&self) -> &[Violation] {
        &self.listed
    }

    /// Adds a violation; `message` is called only if the violation is listed.
    pub fn report(
        &mut self,
        path: &Path<'_>,
        kind: ViolationKind,
        message: impl FnOnce() -> String,
    ) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.list(path, kind, message());
        }
    }

    /// Appends a violation to the list.
    #[inline(never)]
    fn list(&mut self, path: &Path<'_>, kind: ViolationKind, message: String) {
        self.listed.push(Violation {
            pointer: path.pointer().into_text(),
            kind,
            message,
        });
    }
}

/// Position of a check in a value, as a linked list on the stack; formatted only for a violation.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// Position of the enclosing object or array; `None` for the validated value itself.
    parent: Option<&'a Path<'a>>,
    /// Last part of the position.
    segment: Segment<'a>,
}

/// Part of the position of a check.
#[derive(Debug, Clone, Copy)]
enum Segment<'a> {
    /// The validated value itself.
    Root,
    /// A member of an object, by its name.
    Member(&'a str),
    /// An item of an array, by its index.
    Index(usize),
}

impl<'a> Path<'a> {
    /// Position of the validated value.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        segment: Segment::Root,
    };

    /// Returns the position of a member of the object at this position.
    pub fn member(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Member(name),
        }
    }

    /// Returns the position of an item of the array at this position.
    pub fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }

    /// Returns true for the position of the validated value itself.
    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// Returns the JSON pointer (RFC 6901) of this position, cut as
    /// [`DecodeError::pointer`](crate::DecodeError::pointer) is.
    pub fn to_pointer(&self) -> String {
        self.pointer().into_text()
    }

    /// Returns the JSON pointer of this position.
    fn pointer(&self) -> Pointer {
        let mut pointer = self.parent.map(Path::pointer).unwrap_or_default();
        match self.segment {
            Segment::Root => {}
            Segment::Member(name) => pointer.push(name),
            Segment::Index(index) => pointer.push(&index.to_string()),
        }
        pointer
    }
}

/// A type that reports how a value deviates from the schema of its revision.
pub trait Validate {
    /// Reports the deviations of a value at `path`.
    fn check(&self, path: &Path<'_>, to: &mut Violations);

    /// Returns all deviations from the schema that decoding tolerates.
    fn validate(&self) -> Violations {
        let mut violations = Violations::default();
        self.check(&Path::ROOT, &mut violations);
        violations
    }
}

impl<T: Validate> Validate for Vec<T> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        for (index, item) in self.iter().enumerate() {
            item.check(&path.index(index), to);
        }
    }
}

impl<V: Validate> Validate for Map<V> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        for (name, value) in self.iter() {
            value.check(&path.member(name), to);
        }
    }
}

impl<T: Validate> Validate for Box<T> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        (**self).check(path, to);
    }
}

impl<T: Validate> Validate for Option<T> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        if let Some(value) = self {
            value.check(path, to);
        }
    }
}

/// Implements [`Validate`] for types without rules to check.
macro_rules! always_valid {
    ($($type:ty),*) => {
        $(impl Validate for $type {
            fn check(&self, _: &Path<'_>, _: &mut Violations) {}
        })*
    };
}

always_valid!(
    bool,
    String,
    Json,
    crate::JsonObject,
    Number,
    crate::Integer,
    crate::RequestId,
    crate::ProgressToken
);

impl<E> Validate for UnknownName<E> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        to.report(path, ViolationKind::Enum, || {
            format!(
                "{:?} is not a value of this revision",
                quoted(self.as_str())
            )
        });
    }
}

impl<U> Validate for UnknownVariant<U> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        to.report(path, ViolationKind::Tag, || {
            format!("{:?} is not known to this revision", quoted(self.tag()))
        });
    }
}

/// Checks the format of a string.
pub fn check_format(text: &str, format: Format, path: &Path<'_>, to: &mut Violations) {
    if !format.accepts(text) {
        to.report(path, ViolationKind::Format, || {
            format!("the string is not of the format `{}`", format.name())
        });
    }
}

/// Checks that a number is not below `minimum`.
pub fn check_minimum(value: &Number, minimum: i64, path: &Path<'_>, to: &mut Violations) {
    if value.compare(minimum).is_lt() {
        to.report(path, ViolationKind::Minimum, || {
            format!("{} is less than {minimum}", quoted(&format!("{value}")))
        });
    }
}

/// Checks that a number is not above `maximum`.
pub fn check_maximum(value: &Number, maximum: i64, path: &Path<'_>, to: &mut Violations) {
    if value.compare(maximum).is_gt() {
        to.report(path, ViolationKind::Maximum, || {
            format!("{} is greater than {maximum}", quoted(&format!("{value}")))
        });
    }
}

/// Checks that an array does not have more than `maximum` items.
pub fn check_max_items<T>(items: &[T], maximum: usize, path: &Path<'_>, to: &mut Violations) {
    if items.len() > maximum {
        to.report(path, ViolationKind::MaxItems, || {
            format!("{} items are more than {maximum}", items.len())
        });
    }
}

/// Checks that an array has at least `minimum` items.
pub fn check_min_items<T>(items: &[T], minimum: usize, path: &Path<'_>, to: &mut Violations) {
    if items.len() < minimum {
        to.report(path, ViolationKind::MinItems, || {
            format!("{} items are fewer than {minimum}", items.len())
        });
    }
}
