//! Conversion rules between two neighbours as data: one rule per pair of definitions and direction.
//!
//! The module `steps` creates the rules, and `program.rs` writes them as static tables. Rules contain names of
//! definitions and members, and no table indexes.

use crate::ir::Type;

/// Operation on a value whose type differs between two neighbouring revisions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// The text of the value is unchanged.
    Keep,
    /// The rule of a pair of definitions converts the value; the names in the source and the target revision.
    Pair(String, String),
    /// The target revision decodes and validates the text as this type, or the value is refused.
    Reinterpret(TypeText),
    /// An untyped object becomes a type; members that do not match are dropped and reported.
    FromUntyped(TypeText),
    /// A number must be within these bounds.
    CheckBounds(Option<i64>, Option<i64>),
    /// Array: the operation for each item, and bounds of the number of items.
    Array(Box<Op>, Option<u64>, Option<u64>),
    /// Object with values by arbitrary names: the operation for each value.
    Map(Box<Op>),
    /// Value or null: the operation for a value.
    Nullable(Box<Op>),
    /// Null is not allowed in the target: the operation for a value.
    NotNull(Box<Op>),
}

/// A type of the target revision, ordered by its debug text.
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

/// Conversion rule for a pair of definitions.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Manual conversion that runs before the rule.
    pub preparation: Option<String>,
    /// Member that the value must have for the manual conversion to run.
    pub required_member: Option<String>,
    /// Members that the source does not define and that are not kept as unknown members, sorted by name.
    pub undefined_members: Vec<(String, RemovalKind)>,
    /// Operation of the rule.
    pub body: Body,
}

/// Conversion of a value of a definition.
#[derive(Debug, Clone)]
pub enum Body {
    /// The value is unchanged.
    Keep,
    /// Object: the members that only the source defines, and the members of the target.
    Object(Vec<Removal>, Vec<MemberStep>),
    /// String enum: the values that the target revision does not allow, with reasons.
    Enum(Vec<(String, String)>),
    /// The target has another constant: the value is refused for this reason.
    Constant(String),
    /// A JSON Schema document with stricter rules.
    Document,
    /// Union: one arm per variant of the source revision, and the policy for unknown variants.
    Union(Vec<Arm>, Unrecognized),
    /// The definition becomes this variant of a union in the target revision, by this operation.
    Wrap(usize, Op),
    /// The target revision decodes and validates the text of the value, or the value is refused.
    Reinterpret,
}

/// Conversion of a variant of a union.
#[derive(Debug, Clone)]
pub enum Arm {
    /// The value becomes this variant of the target union, by this operation.
    Variant(usize, Op),
    /// The target is not a union: this operation converts the value to the target definition.
    Value(Op),
    /// A manual conversion converts the value.
    Call(String),
    /// The message is refused for this reason.
    Refuse(String),
    /// The message is refused for this reason, unless the target revision decodes the value as another variant.
    DecodeOrRefuse(String),
}

/// Policy for a variant that the source revision does not define.
#[derive(Debug, Clone)]
pub enum Unrecognized {
    /// No such variant occurs, because the types of the source revision do not keep unknown variants.
    Never,
    /// The target revision decodes the value; if that fails, the value is kept if the target union keeps unknown
    /// variants, which `true` states.
    Read(bool),
    /// The message is refused for this reason, unless the target revision decodes the value as a variant.
    DecodeOrRefuse(String),
}

/// Removal of a member that only the source has; a member without a removal is kept as an unknown member.
#[derive(Debug, Clone)]
pub struct Removal {
    /// Index of the member in the source definition.
    pub source: usize,
    /// Kind of the removal of this member, with its reasons.
    pub kind: RemovalKind,
}

/// Conversion of a member that only the source has.
#[derive(Debug, Clone)]
pub enum RemovalKind {
    /// The message is refused, unless the value has the same meaning as its absence.
    Refuse {
        /// Reason for the refusal.
        reason: String,
        /// JSON text of the value with the same meaning as absence.
        absence: Option<String>,
    },
    /// The member is dropped and reported, even if the caller keeps newer members.
    Drop {
        /// Reason for dropping the member.
        reason: String,
        /// JSON text of the value with the same meaning as absence.
        absence: Option<String>,
    },
    /// The id of the request is dropped, because the target revision leaves it to the envelope.
    Id,
    /// A constant is dropped, or kept together with the id if `with_id` is true; `envelope` is true for a member of the
    /// JSON-RPC envelope.
    Constant { with_id: bool, envelope: bool },
    /// The member is dropped for this reason, or kept if the caller keeps newer members.
    Newer { reason: String },
    /// The member is dropped or kept like a newer member, unless its value has the same meaning as its absence.
    Default {
        /// Identifier of the revision that introduced the member.
        since: String,
        /// Reason for dropping any other value.
        other_value_reason: String,
        /// JSON text of the default value.
        text: String,
        /// Reason why the default value has the same meaning as absence.
        reason: String,
        /// True if another value is refused.
        refuses_other_values: bool,
        /// True if the member is required in the source.
        required: bool,
    },
}

/// Conversion of a member of the target whose text may change.
#[derive(Debug, Clone)]
pub struct MemberStep {
    /// Index of the member in the target definition.
    pub target: usize,
    /// Source and conversion of the member's value.
    pub action: Action,
}

/// Conversion of a member of the target.
#[derive(Debug, Clone)]
pub enum Action {
    /// The member is required in both revisions.
    Convert(Op),
    /// The member is optional in both; it is dropped and reported if it cannot be converted.
    Optional(Op),
    /// The member is required in the source and optional in the target; with `true`, an object without members is
    /// dropped.
    MadeOptional(Op, bool),
    /// The member is optional in the source and required in the target.
    Required(Op, DefaultValue),
    /// The member is a constant, given as JSON text, in the source and a value in the target.
    ConstantAsValue(String),
    /// The member is a constant in the target: any other value is refused. Holds the constant and the reason.
    RequireConstant(String, String),
    /// The constants of the member differ between the two revisions, so that its conversion is refused for this reason.
    RefuseConstant(String),
    /// The member is a constant that the source does not have: its JSON text, and true if it is part of the envelope.
    NewConstant(String, bool),
    /// The member is optional, and the source does not have it; with `true`, the session may provide the value.
    NewOptional(bool),
    /// The member is required, and the source does not have it.
    NewRequired(DefaultValue),
}

/// Source of the value of a member that the message does not have.
#[derive(Debug, Clone)]
pub enum DefaultValue {
    /// A fixed value, reported as `defaulted` or, with `true`, as `rewritten`; and the reason.
    Value(String, bool, String),
    /// The value that the session provides, or else the given default; and the reason.
    Session(String, String),
    /// An object without members of the source type.
    EmptyObject(TypeText),
    /// The id of the request, which the caller or the envelope provides.
    RequestId,
    /// There is no default: a message without the member is refused, for this reason.
    Missing(String),
}
