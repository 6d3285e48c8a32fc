//! The rows of the generated tables, by which raw text finds its types and steps.
//!
//! Values between decoding and encoding are boxed, so that a chain decodes once and encodes once whatever its length.

use mcp_exact_wire::{Decode, DecodeError, Encode, from_str, to_string};

use crate::generated::{KnownRevision, METHODS};
use crate::step::{Erased, Step, unboxed};
use crate::{Context, ConvertTo, Refused};

/// What is compiled in of one revision.
pub struct RevisionRow {
    pub revision: KnownRevision,
    pub types: &'static [TypeRow],
    /// The steps between this revision and the next one.
    pub to_newer: &'static [EdgeRow],
}

/// A definition. Indices are places in the tables of the neighbours.
pub struct TypeRow {
    pub name: &'static str,
    /// Whether the schema has it under that name.
    pub official: bool,
    pub decode: fn(&str) -> Result<Erased, DecodeError>,
    pub encode: fn(&Erased) -> Option<String>,
    pub newer: Option<usize>,
    pub older: Option<usize>,
}

/// A method of any revision.
pub struct MethodRow {
    pub method: &'static str,
    pub request: bool,
    /// What it is in each known revision, oldest first.
    pub revisions: &'static [Option<MethodIn>],
}

/// A method in one revision. Indices are places in the table of its types.
pub struct MethodIn {
    pub params: Option<usize>,
    pub params_required: bool,
    /// Whether the next revision has the same params, all the way down.
    pub params_same: bool,
    pub result: Option<usize>,
    /// Whether the next revision has the same result, all the way down.
    pub result_same: bool,
}

impl MethodRow {
    /// The row of a method. There are a few dozen, most of another length: fewer texts are compared than by bisection.
    pub fn find(method: &str, request: bool) -> Option<&'static Self> {
        let mut rows = METHODS
            .iter()
            .filter(|row| row.method.len() == method.len());
        rows.find(|row| row.request == request && row.method == method)
    }
}

/// A pair of definitions of neighbours, and the steps between them.
pub struct EdgeRow {
    pub older: usize,
    pub newer: usize,
    /// Whether the text of one is the text of the other.
    pub same: bool,
    pub up: StepFn,
    pub down: StepFn,
}

/// One step on a value whose type only the step knows.
pub type StepFn = fn(Erased, &mut Context) -> Step<Erased>;

impl TypeRow {
    /// The row of `T`.
    pub const fn of<T: Decode + Encode + 'static>(
        name: &'static str,
        official: bool,
        newer: Option<usize>,
        older: Option<usize>,
    ) -> Self {
        Self {
            name,
            official,
            decode: decode::<T>,
            encode: encode::<T>,
            newer,
            older,
        }
    }
}

impl EdgeRow {
    /// The row of two types with steps of their own.
    pub const fn typed<A, B>(older: usize, newer: usize, same: bool) -> Self
    where
        A: ConvertTo<B> + 'static,
        B: ConvertTo<A> + 'static,
    {
        Self {
            older,
            newer,
            same,
            up: |value, cx| step(value, cx, A::convert_to),
            down: |value, cx| step(value, cx, B::convert_to),
        }
    }
}

/// A chain of two: the second may be a chain itself.
macro_rules! chain {
    ($from:ty, $next:ty, $to:ty) => {
        impl $crate::ConvertTo<$to> for $from {
            #[inline]
            fn convert_to(self, cx: &mut $crate::Context) -> Result<$to, $crate::Refused> {
                let next: $next = self.convert_to(cx)?;
                next.convert_to(cx)
            }
        }
    };
}
pub(crate) use chain;

/// Decodes a value and forgets its type.
pub fn decode<T: Decode + 'static>(text: &str) -> Result<Erased, DecodeError> {
    from_str::<T>(text).map(|value| Box::new(value) as Erased)
}

/// Encodes a value of type `T`; nothing when it is of another type.
pub fn encode<T: Encode + 'static>(value: &Erased) -> Option<String> {
    value.downcast_ref::<T>().map(to_string)
}

/// Runs a typed step on a value whose type was forgotten.
pub fn step<A: 'static, B: 'static>(
    value: Erased,
    cx: &mut Context,
    f: fn(A, &mut Context) -> Result<B, Refused>,
) -> Step<Erased> {
    let value = unboxed::<A>(value, cx)?;
    f(value, cx).map(|value| Box::new(value) as Erased)
}
