//! Tables of the conversions between neighbouring revisions.
//!
//! The generator writes the rules to `generated/rules.rs`, and lists their effects in `docs/conversions.md`.

use crate::conversion::Conversion;
use crate::generated::{CALLS, CONDITIONS, TYPES};
use crate::loss::Step;
use crate::node::Node;
use crate::packed::{Bounds, List, Text, list};

/// A manual conversion, which modifies a value in place.
pub type Manual = for<'t> fn(&mut Conversion<'_, 't>, &mut Node<'t>) -> Step<()>;

/// Index of a manual conversion in the list of them.
#[derive(Clone, Copy)]
pub struct Call(pub u8);

impl Call {
    /// Returns the function with this index.
    pub fn get(self) -> Manual {
        CALLS[usize::from(self.0)]
    }
}

/// Operation on a value. The tables may not use every operation today.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub enum Op {
    /// The value is unchanged.
    Keep,
    /// The rule at this index converts the value.
    Pair(u16),
    /// The target revision decodes and validates the text as the type at this index, or the value is refused.
    Reinterpret(u16),
    /// An untyped object becomes a type; members that do not match are dropped and reported.
    Fit(u16),
    /// A number must be within these bounds.
    Bounded(Bounds),
    /// Array: the operation for each item, and bounds of the number of items.
    Array(u16, Bounds),
    /// Object with values by arbitrary names: the operation for each value.
    Map(u16),
    /// Value or null: the operation for a value.
    Nullable(u16),
    /// Null is not allowed in the target: the operation for a value.
    NotNull(u16),
}

/// Combined changes of all steps of a path from one revision to another.
pub struct PathRow {
    /// Bit set of the types with a part that a step may change.
    pub active: [u64; WORDS],
    /// Index of the first definition that has a condition on this path.
    pub first: u16,
    /// Indexes of the conditions of the definitions from `first` on, each plus one; 0 for no condition.
    pub conditions: List<u16>,
}

impl PathRow {
    /// Returns the condition under which the steps keep a value of a definition; `None` if they may change every value.
    pub fn condition(&self, definition: u16) -> Option<&'static UnchangedCondition> {
        let at = usize::from(definition.checked_sub(self.first)?);
        let row = usize::from(*self.conditions.rows().get(at)?);
        CONDITIONS.get(row.checked_sub(1)?)
    }
}

/// Number of 64-bit words of a bit set of all types.
pub const WORDS: usize = TYPES.len().div_ceil(64);

/// Condition under which no step of a path changes a value: the value has none of the members listed here.
pub struct UnchangedCondition {
    /// Bit set: members of an object that a step changes if present, or union variants that no step changes by itself.
    pub known: u64,
    /// Names of members that a step changes and that the source revision does not define.
    pub names: List<Text>,
    /// True if a step adds `_meta` with the metadata of the session although this condition is satisfied.
    pub adds_meta: bool,
}

/// Creates a condition for a definition to whose values no step adds `_meta`.
pub const fn condition(known: u64, names: List<Text>) -> UnchangedCondition {
    UnchangedCondition {
        known,
        names,
        adds_meta: false,
    }
}

/// Creates a condition for params to which a step adds `_meta` with the metadata of the session.
pub const fn adding(known: u64, names: List<Text>) -> UnchangedCondition {
    UnchangedCondition {
        known,
        names,
        adds_meta: true,
    }
}

/// Rule for a pair of definitions.
pub struct Rule {
    /// Index of the source definition.
    pub source: u16,
    /// Index of the target definition.
    pub target: u16,
    /// Index of the target's type.
    pub target_type: u16,
    /// Manual conversion that runs before the rule.
    pub prepare: Option<Call>,
    /// Members that the source does not define and that the target refuses or drops, sorted by name.
    pub strays: List<Unknown>,
    pub body: Body,
}

/// Creates a rule without a manual conversion.
pub const fn rule(source: u16, target: u16, target_type: u16, body: Body) -> Rule {
    prepared(source, target, target_type, None, list(0, 0), body)
}

/// Creates a rule with a manual conversion, or with members that the source does not define.
pub const fn prepared(
    source: u16,
    target: u16,
    target_type: u16,
    prepare: Option<Call>,
    strays: List<Unknown>,
    body: Body,
) -> Rule {
    Rule {
        source,
        target,
        target_type,
        prepare,
        strays,
        body,
    }
}

/// A member that the source does not define, and its removal.
pub type Unknown = (Text, Removal);
/// A member that only the source defines, by index, and its removal.
pub type SourceMember = (u8, Removal);
/// A member of the target, by index, and the operation for it.
pub type TargetMember = (u8, Action);
/// A value that the target revision does not allow, and the reason.
pub type LostValue = (Text, Text);

/// Conversion of a value of a definition. The tables may not use every variant today.
#[allow(dead_code)]
pub enum Body {
    /// The value is unchanged.
    Keep,
    /// Object: the members that only the source defines, and the members of the target.
    Object(List<SourceMember>, List<TargetMember>),
    /// String enum: the values that the target revision does not allow, with reasons.
    Enum(List<LostValue>),
    /// The target has another constant: the value is refused for this reason.
    Constant(Text),
    /// A JSON Schema document with stricter rules.
    Document,
    /// Union: one arm per variant of the source revision, and the policy for unknown variants.
    Union(List<Arm>, Unrecognized),
    /// The definition becomes this variant of a union in the target revision, by the operation at this index.
    Wrap(u8, u16),
    /// The target revision decodes and validates the text of the value, or the value is refused.
    Reinterpret,
}

/// Conversion of a union variant.
pub enum Arm {
    /// The value becomes this variant of the target union, by the operation at this index.
    Variant(u8, u16),
    /// The target is not a union: the operation at this index converts the value.
    Value(u16),
    /// A manual conversion converts the value.
    Call(Call),
    /// The message is refused for this reason.
    Refuse(Text),
    /// The message is refused for this reason, unless the target revision decodes the value as another variant.
    Foreign(Text),
}

/// Policy for a variant that the source revision does not define.
pub enum Unrecognized {
    /// No such variant occurs, because the types of the source revision do not keep unknown variants.
    Never,
    /// The target revision decodes the value; `true` if the target union keeps variants that it does not define.
    Read(bool),
    /// The message is refused for this reason, unless the target revision decodes the value as a variant.
    Foreign(Text),
}

/// Conversion of a member that only the source has; `absence` is the text of a value that means absence, or empty.
pub enum Removal {
    /// `(reason, absence)`: the message is refused for this reason, unless the value is `absence`, which is dropped.
    Refuse(Text, Text),
    /// `(reason, absence)`: the member is dropped and reported, as `rewritten` if its value is `absence`.
    Drop(Text, Text),
    /// The id of the request, which is part of the envelope in the target.
    Id,
    /// A constant: true if it is kept together with the id, and true if it is part of the envelope.
    Constant(bool, bool),
    /// A member that a later revision introduced: dropped for this reason, or kept if the caller keeps newer members.
    Newer(Text),
    /// A newer member with a default that absence expresses: the reason or the revision, the default, its reason, true
    /// if another value is refused, and true if the member is required.
    Default(Text, Text, Text, bool, bool),
}

/// Conversion of a member of the target. The tables may not use every action today.
#[allow(dead_code)]
pub enum Action {
    /// The member is required in both revisions: the operation.
    Convert(u16),
    /// The member is optional in both revisions; it is dropped and reported if it cannot be converted.
    Optional(u16),
    /// The member is required in the source and optional in the target; with `true`, an empty object is dropped.
    Loosened(u16, bool),
    /// The member is optional in the source and required in the target.
    Required(u16, DefaultValue),
    /// The member is a constant, given as JSON text, in the source and a value in the target.
    ConstantAsValue(Text),
    /// The member is a constant in the target: any other value is refused. Holds the constant and the reason.
    SameConstant(Text, Text),
    /// The constants of the member differ between the revisions, so that it is refused for this reason.
    OtherConstant(Text),
    /// The member is a constant that the source does not have: its JSON text, and true if it is part of the envelope.
    NewConstant(Text, bool),
    /// The member is optional, and the source does not have it; with `true`, the session may provide the value.
    NewOptional(bool),
    /// The member is required, and the source does not have it.
    NewRequired(DefaultValue),
}

/// Source of the value of a member that the message does not have.
pub enum DefaultValue {
    /// A fixed value, reported as `defaulted` or, with `true`, as `rewritten`; and the reason.
    Value(Text, bool, Text),
    /// The value that the session provides, or else a default; and the reason.
    Session(Text, Text),
    /// An object without members, of the type at this index.
    EmptyObject(u16),
    /// The id of the request.
    RequestId,
    /// There is no default: a message without the member is refused, for this reason.
    Missing(Text),
}
