//! Steps between two neighbours as data: one rule for each pair of definitions and direction.
//!
//! The emitters of steps build these values, `program.rs` writes them as static tables. Names are those of the definitions
//! and members, so that nothing depends on the places in a table.

use crate::ir::Type;

/// Operation on a value whose type differs between two neighbours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Its text stays.
    Keep,
    /// The rule of a pair of definitions, by the names in the source and the target revision.
    Pair(String, String),
    /// The target revision decodes and validates it as this type, or it does not convert.
    Reinterpret(TypeText),
    /// An open object as a type: members that do not fit are dropped and reported.
    Fit(TypeText),
    /// A number has to be inside these bounds.
    Bounded(Option<i64>, Option<i64>),
    /// An array: what happens to its items, and how many there have to be.
    Array(Box<Op>, Option<u64>, Option<u64>),
    /// An object of named values: what happens to each.
    Map(Box<Op>),
    /// A value or null: what happens to a value.
    Nullable(Box<Op>),
    /// Null is not allowed any more; what happens to a value.
    NotNull(Box<Op>),
}

/// A type of the target revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeText(pub Type);

impl PartialOrd for TypeText {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TypeText {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        format!("{:?}", self.0).cmp(&format!("{:?}", other.0))
    }
}

/// The rule of a pair of definitions.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The manual conversion that rearranges the value first.
    pub prepare: Option<String>,
    /// The member without which that conversion does nothing.
    pub when: Option<String>,
    /// Members that the source does not define and that do not stay as unknown members, by name.
    pub strays: Vec<(String, GoneKind)>,
    /// Operation of the rule.
    pub body: Body,
}

/// Conversion of a value of a definition.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing.
    Keep,
    /// An object.
    Object(Vec<Gone>, Vec<MemberStep>),
    /// A string enum: the values that the target revision does not have, each with the reason.
    Enum(Vec<(String, String)>),
    /// Another constant, with the reason.
    Constant(String),
    /// A JSON Schema document with stricter rules.
    Document,
    /// A union, an arm for each variant of the source revision.
    Union(Vec<Arm>, Unrecognized),
    /// A definition that is the variant of a union in the target revision.
    Wrap(usize, Op),
    /// The target revision decodes and validates it, or it does not convert.
    Reinterpret,
}

/// Conversion of a variant of a union.
#[derive(Debug, Clone)]
pub enum Arm {
    /// It is this variant of the target union.
    Variant(usize, Op),
    /// The target is no union but this definition.
    Value(Op),
    /// A manual conversion.
    Call(String),
    /// The message is refused.
    Refuse(String),
    /// It is refused unless the target revision reads it as something else.
    Foreign(String),
}

/// Policy for a variant that the source revision does not define.
#[derive(Debug, Clone)]
pub enum Unrecognized {
    /// There is none.
    Never,
    /// The target revision may define it; if it does not, it stays when the union keeps such variants.
    Read(bool),
    /// As [`Arm::Foreign`].
    Foreign(String),
}

/// A member that only the source has, and that does not simply stay as an unknown member.
#[derive(Debug, Clone)]
pub struct Gone {
    /// Its place in the source.
    pub source: usize,
    pub kind: GoneKind,
}

/// Kind of removal.
#[derive(Debug, Clone)]
pub enum GoneKind {
    /// The message is refused, unless the value means the same as its absence.
    Refuse {
        reason: String,
        absence: Option<String>,
    },
    /// It is dropped and reported, whatever the caller wants kept.
    Drop {
        reason: String,
        absence: Option<String>,
    },
    /// The id of the request, which belongs to the envelope.
    Id,
    /// A constant is left out; of the envelope, it stays when the id does.
    Constant { with_id: bool, envelope: bool },
    /// It is dropped, or kept when the caller wants newer members.
    Newer { reason: String },
    /// The same, unless its value means the same as its absence.
    Default {
        since: String,
        /// Reason for dropping any other value.
        later: String,
        text: String,
        reason: String,
        /// True if another value is refused.
        decides: bool,
        required: bool,
    },
}

/// A member of the target that does not simply keep its text.
#[derive(Debug, Clone)]
pub struct MemberStep {
    /// Its place in the target.
    pub target: usize,
    pub action: Action,
}

/// Conversion of the member.
#[derive(Debug, Clone)]
pub enum Action {
    /// Required in both.
    Convert(Op),
    /// Optional in both: dropped and reported when it does not convert.
    Optional(Op),
    /// Required in the source, optional in the target; with `true`, an object without members is left out.
    Loosened(Op, bool),
    /// Optional in the source, required in the target.
    Required(Op, Fill),
    /// A constant of the source that is a value in the target.
    ConstantAsValue(String),
    /// Member that is a constant in the target: any other value is refused. Holds the constant and the reason.
    SameConstant(String, String),
    /// Member whose constants differ between the two revisions, so that its conversion is refused; holds the reason.
    OtherConstant(String),
    /// A constant that the source does not have; of the envelope with `true`.
    NewConstant(String, bool),
    /// A member that the source does not have; the session may know it with `true`.
    NewOptional(bool),
    /// The same, required.
    NewRequired(Fill),
}

/// Source of a member that the message does not have.
#[derive(Debug, Clone)]
pub enum Fill {
    /// A value, reported as `defaulted` or, with `true`, as `rewritten`.
    Value(String, bool, String),
    /// Value that the session knows, or else a default.
    Session(String, String),
    /// An object without members of the source type.
    EmptyObject(TypeText),
    /// The id of the request.
    RequestId,
    /// Nothing: it is refused.
    Missing(String),
}
