//! Conversions of typed values: each value is encoded, converted as text, and decoded as the target type.
//!
//! The functions are generic over the types of all crates, so that an application links only types that it names.

use mcp_exact_wire::spans::is_same;
use mcp_exact_wire::{Decode, DecodeFailed, Defined, Encode, Reader, Revision, to_string};

use crate::dynamic::{convert_type, counterpart};
use crate::loss::ConvertError;
use crate::rows::{RevisionRow, to_option};
use crate::{Context, KnownRevision};

/// Converts a value to its counterpart in another revision. JSON pointers of losses refer to the JSON of the value.
///
/// Types that are not counterparts of each other, such as a tool and a prompt, do not compile.
///
/// ```
/// use mcp_2025_06_18::{Tool, ToolInputSchema};
/// use mcp_exact_convert::{Context, convert_as};
///
/// let tool = Tool {
///     title: Some("Echo".into()),
///     ..Tool::new("echo", ToolInputSchema::new())
/// };
/// let older = convert_as::<mcp_2025_03_26::Tool>(&tool, &mut Context::new())?;
/// assert_eq!(older.annotations.and_then(|a| a.title).as_deref(), Some("Echo"));
/// # Ok::<(), mcp_exact_convert::ConvertError>(())
/// ```
///
/// ```compile_fail
/// use mcp_2025_06_18::{Tool, ToolInputSchema};
/// use mcp_exact_convert::{Context, convert_as};
///
/// let tool = Tool::new("echo", ToolInputSchema::new());
/// let prompt = convert_as::<mcp_2025_03_26::Prompt>(&tool, &mut Context::new());
/// ```
///
/// # Errors
/// [`ConvertError`] if the target revision cannot express the value.
pub fn convert_as<T: Defined + Decode>(
    value: &(impl Defined + Encode),
    cx: &mut Context,
) -> Result<T, ConvertError> {
    convert_between(value, cx)
}

/// Conversion of a type to its counterpart in another revision.
///
/// The standard `From` trait cannot be used: both types are foreign to this crate, and `From` cannot report losses.
pub trait ConvertTo<T>: Sized {
    /// Converts the value; see [`convert_as`].
    ///
    /// # Errors
    /// [`ConvertError`] if the target revision cannot express the value.
    fn convert_to(self, cx: &mut Context) -> Result<T, ConvertError>;
}

impl<S: Defined + Encode, T: Defined + Decode> ConvertTo<T> for S {
    fn convert_to(self, cx: &mut Context) -> Result<T, ConvertError> {
        convert_between(&self, cx)
    }
}

fn convert_between<S: Defined + Encode, T: Defined + Decode>(
    value: &S,
    cx: &mut Context,
) -> Result<T, ConvertError> {
    const {
        assert!(
            are_counterparts(S::REVISION, S::NAME, T::REVISION, T::NAME),
            "the types are no counterparts of each other; docs/conversions.md lists those that are"
        );
    }
    let from = const { KnownRevision::of(S::REVISION) };
    let to = const { KnownRevision::of(T::REVISION) };
    let text = to_string(value);
    let is_json = std::mem::replace(&mut cx.known.is_json, true);
    let converted = convert_type(S::NAME, &text, from, to, cx);
    cx.known.is_json = is_json;
    decode_text(Reader::of_checked(&converted?))
}

/// Decodes text of any revision as a type, for applications that read messages of several revisions.
///
/// `from` is the revision of the text. The text is decoded without a conversion if `from` is the revision of the type.
///
/// ```
/// use mcp_2025_11_25::CallToolResult;
/// use mcp_exact_convert::{Context, KnownRevision, read_as};
///
/// let line = r#"{"resultType":"complete","content":[]}"#;
/// let from = KnownRevision::V2026_07_28;
/// let result: CallToolResult = read_as(line, from, &mut Context::new())?;
/// assert!(result.content.is_empty());
/// # Ok::<(), mcp_exact_convert::ConvertError>(())
/// ```
///
/// # Errors
/// [`ConvertError`] if `from` has no counterpart, the text has another type, or the revision of `T` cannot express it.
pub fn read_as<T: Defined + Decode>(
    text: &str,
    from: KnownRevision,
    cx: &mut Context,
) -> Result<T, ConvertError> {
    let to = const { KnownRevision::of(T::REVISION) };
    let source = counterpart(T::NAME, to, from);
    let source = source.filter(|name| counterpart(name, from, to) == Some(T::NAME));
    let source = source.ok_or_else(|| {
        let reason = format!("`{}` of {to} has no counterpart in {from}", T::NAME);
        ConvertError::new("", reason)
    })?;
    decode_text(Reader::new(&convert_type(source, text, from, to, cx)?))
}

/// Decodes the text of a reader as the type `T`; an error names the definition.
fn decode_text<T: Defined + Decode>(mut r: Reader<'_>) -> Result<T, ConvertError> {
    let decoded = T::decode(&mut r).and_then(|value| r.end().map(|()| value));
    decoded.map_err(|DecodeFailed| {
        let error = r.into_error();
        let reason = format!("no `{}`: {}", T::NAME, error.detail());
        ConvertError::new(error.pointer(), reason)
    })
}

/// Returns true if two definitions of different revisions are counterparts of each other.
const fn are_counterparts(from: Revision, name: &str, to: Revision, target: &str) -> bool {
    let (from, to) = (KnownRevision::of(from), KnownRevision::of(to));
    let (mut at, end) = (from.place(), to.place());
    let up = at < end;
    let mut place = RevisionRow::at(at).const_find(name);
    while at != end {
        let Some(found) = place else {
            return false;
        };
        let row = RevisionRow::at(at).const_definition(found);
        place = to_option(row.neighbour(up));
        at = if up { at + 1 } else { at - 1 };
    }
    match place {
        Some(found) => {
            let row = RevisionRow::at(end).const_definition(found);
            is_same(row.name.constant(), target)
        }
        None => false,
    }
}
