//! Tables of the conversions between neighbouring revisions.
//!
//! The generator writes the rules (`generated/rules.rs`) from the differences of the schemas and from
//! `schema/conversions.toml`; `docs/conversions.md` lists them for readers. The interpreter is in `interpreter.rs`.

use crate::conversion::Conversion;
use crate::generated::{CALLS, TYPES};
use crate::loss::Step;
use crate::node::Node;
use crate::packed::{Bounds, List, Text, list};

/// A manual conversion: it rearranges a value in place.
pub type Manual = for<'t> fn(&mut Conversion<'_, 't>, &mut Node<'t>) -> Step<()>;

/// A manual conversion: its place in the list of them.
#[derive(Clone, Copy)]
pub struct Call(pub u8);

impl Call {
    /// The function.
    pub fn get(self) -> Manual {
        CALLS[usize::from(self.0)]
    }
}

/// Operation on a value. A later revision may need operations that none needs today.
#[allow(dead_code)]
#[derive(Clone, Copy)]
pub enum Op {
    /// Its text stays.
    Keep,
    /// The rule at this place.
    Pair(u16),
    /// The target revision decodes and validates it as the type at this place, or it does not convert.
    Reinterpret(u16),
    /// An open object as a type: members that do not fit are dropped and reported.
    Fit(u16),
    /// A number has to be inside these bounds.
    Bounded(Bounds),
    /// An array: what happens to its items, and how many there have to be.
    Array(u16, Bounds),
    /// An object of named values: what happens to each.
    Map(u16),
    /// A value or null: what happens to a value.
    Nullable(u16),
    /// Null is not allowed any more; what happens to a value.
    NotNull(u16),
}

/// Combined changes of all steps of a path from one revision to another.
pub struct PathRow {
    /// The types that hold something that some step may change: one bit a type.
    pub active: [u64; WORDS],
    /// The first definition of which the path has a watch.
    pub first: u16,
    /// For each definition from there on the place of its watch, plus one; 0 where there is none.
    pub watched: List<u16>,
}

/// How many words have a bit for each type.
pub const WORDS: usize = TYPES.len().div_ceil(64);

/// Condition under which no step of a path changes a value of a definition: it stays unchanged unless a watched member is
/// present.
pub struct Watch {
    /// Of an object, the members that are changed if they are present, whatever their values; of a union, the variants that
    /// stay if their value does. One bit each.
    pub known: u64,
    /// The names of other members that some step changes.
    pub names: List<Text>,
}

/// A row of the table of watches.
pub const fn watch(known: u64, names: List<Text>) -> Watch {
    Watch { known, names }
}

/// The rule of a pair of definitions.
pub struct Rule {
    /// The places of the definitions.
    pub source: u16,
    pub target: u16,
    /// The place of the type that the target is.
    pub target_type: u16,
    /// The manual conversion that comes first.
    pub prepare: Option<Call>,
    /// Members that the source does not define and that do not stay as unknown members, by name.
    pub strays: List<Unknown>,
    pub body: Body,
}

/// A rule without a manual conversion that comes first.
pub const fn rule(source: u16, target: u16, target_type: u16, body: Body) -> Rule {
    prepared(source, target, target_type, None, list(0, 0), body)
}

/// A rule with one, or with members that the source does not define.
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

/// A member that the source does not define, and what happens to it.
pub type Unknown = (Text, Gone);
/// A member that only the source has, by its place, and what happens to it.
pub type SourceMember = (u8, Gone);
/// A member of the target, by its place, and what happens to it.
pub type TargetMember = (u8, Action);
/// A value that the target revision does not have, and the reason.
pub type LostValue = (Text, Text);

/// Conversion of a value of a definition. A later revision may need operations that none needs today.
#[allow(dead_code)]
pub enum Body {
    /// Nothing.
    Keep,
    /// An object: members of the source, and members of the target, by their places.
    Object(List<SourceMember>, List<TargetMember>),
    /// A string enum: the values that the target revision does not have, with the reason.
    Enum(List<LostValue>),
    /// Another constant, with the reason.
    Constant(Text),
    /// A JSON Schema document with stricter rules.
    Document,
    /// A union, an arm for each variant of the source revision.
    Union(List<Arm>, Unrecognized),
    /// A definition that is this variant of a union in the target revision.
    Wrap(u8, u16),
    /// As [`Op::Reinterpret`].
    Reinterpret,
}

/// Conversion of a variant.
pub enum Arm {
    /// It is this variant of the target union.
    Variant(u8, u16),
    /// The target type is not a union: the value becomes the definition at this place of the table.
    Value(u16),
    /// A manual conversion.
    Call(Call),
    /// The message is refused.
    Refuse(Text),
    /// It is refused unless the target revision reads it as something else.
    Foreign(Text),
}

/// Policy for a variant that the source revision does not define.
pub enum Unrecognized {
    /// There is none.
    Never,
    /// The target revision may define it; if it does not, it stays when the union keeps such variants.
    Read(bool),
    /// As [`Arm::Foreign`].
    Foreign(Text),
}

/// Conversion of a member that only the source has.
pub enum Gone {
    /// The message is refused with this reason, unless the value means the same as its absence.
    Refuse(Text, Text),
    /// It is dropped with this reason, unless the value means the same as its absence.
    Drop(Text, Text),
    /// The id of the request, which belongs to the envelope.
    Id,
    /// A constant: whether it stays with the id, and whether it belongs to the envelope.
    Constant(bool, bool),
    /// A member of a later revision, with the reason.
    Newer(Text),
    /// The same, unless its value means the same as its absence: the reason (the later revision, if another value is
    /// refused), that value, the reason for it, whether another value is refused, and whether it is required.
    Default(Text, Text, Text, bool, bool),
}

/// Conversion of a member of the target. A later revision may need operations that none needs today.
#[allow(dead_code)]
pub enum Action {
    /// Required in both.
    Convert(u16),
    /// Optional in both: dropped and reported when it does not convert.
    Optional(u16),
    /// Required in the source, optional in the target; with `true`, an object without members is left out.
    Loosened(u16, bool),
    /// Optional in the source, required in the target.
    Required(u16, Fill),
    /// A constant of the source that is a value in the target.
    ConstantAsValue(Text),
    /// Member that is a constant in the target: any other value is refused. Holds the constant and the reason.
    SameConstant(Text, Text),
    /// Member whose constants differ between the two revisions, so that its conversion is refused; holds the reason.
    OtherConstant(Text),
    /// A constant that the source does not have; of the envelope with `true`.
    NewConstant(Text, bool),
    /// A member that the source does not have; the session may know it with `true`.
    NewOptional(bool),
    /// The same, required.
    NewRequired(Fill),
}

/// Source of a member that the message does not have.
pub enum Fill {
    /// A value, reported as `defaulted` or, with `true`, as `rewritten`; and the reason.
    Value(Text, bool, Text),
    /// Value that the session knows, or else a default; and the reason.
    Session(Text, Text),
    /// An object without members, of the type at this place.
    EmptyObject(u16),
    /// The id of the request.
    RequestId,
    /// Nothing: it is refused, with the reason.
    Missing(Text),
}
