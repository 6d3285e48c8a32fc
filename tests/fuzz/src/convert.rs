//! Properties of conversions: the parse tables have the same outcome as the types, and no text causes a panic.

use mcp_exact_convert::{Context, KnownRevision, NewerMembers, check_type, convert_type};
use mcp_exact_tests_tables::check_agreement;
use mcp_exact_tests_types::definitions::Definition;
use mcp_exact_wire::{Json, MAX_POINTER, from_str};

/// Defines [`REVISIONS`] from the list of all revisions.
macro_rules! revisions {
    ($($id:literal $marker:ident $library:ident $spec:ident;)*) => {
        /// Definitions of each convertible revision, oldest first.
        const REVISIONS: &[&[Definition]] = &[$(mcp_exact_tests_types::definitions::$library::DEFINITIONS),*];
    };
}

mcp_exact_revisions::for_each_revision!(revisions);

/// Runs the conversion that the input describes.
///
/// The first line names a definition, the indices of two revisions, and a digit for the options; the rest is the text.
/// Values that the first line does not contain are derived from the bytes of the line.
pub fn conversion(bytes: &[u8]) {
    let Some((mut line, text)) = FirstLine::split(bytes) else {
        return;
    };
    let (from, to) = (line.number(REVISIONS.len()), line.number(REVISIONS.len()));
    let wanted = line.number(8);
    let definition = line.definition(from);
    check_agreement(definition, KnownRevision::ALL[from], text);
    check_bounded_conversion(definition.name, (from, to), wanted, text);
}

/// Returns the definition, the revision and the text that an input describes; see [`conversion`].
pub(crate) fn definition_of_input(bytes: &[u8]) -> Option<(&'static str, KnownRevision, &str)> {
    let (mut line, text) = FirstLine::split(bytes)?;
    let of = line.number(REVISIONS.len());
    Some((line.definition(of).name, KnownRevision::ALL[of], text))
}

/// First line of an input: the name of a definition, and numbers.
struct FirstLine<'i> {
    name: &'i str,
    words: std::str::Split<'i, char>,
}

impl<'i> FirstLine<'i> {
    /// Splits the first line off an input; `None` if the input is no text.
    fn split(bytes: &'i [u8]) -> Option<(Self, &'i str)> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (line, text) = text.split_once('\n').unwrap_or((text, "{}"));
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        Some((Self { name, words }, text))
    }

    /// Returns the next number of the line, below a limit.
    fn number(&mut self, limit: usize) -> usize {
        let word = self.words.next().unwrap_or_default();
        let sum = || word.bytes().map(usize::from).sum::<usize>();
        word.parse().unwrap_or_else(|_| sum()) % limit
    }

    /// Returns the definition of the name in a revision, or another one if it has none of that name.
    fn definition(&self, of: usize) -> &'static Definition {
        let definitions = REVISIONS[of];
        let named = definitions
            .iter()
            .find(|definition| definition.name == self.name);
        let sum: usize = self.name.bytes().map(usize::from).sum();
        named.unwrap_or(&definitions[sum % definitions.len()])
    }
}

/// Converts a text between two revisions, with the options in the bits of `wanted`. Checks that the output is a value
/// of the target type, and that the sizes of the output and of the losses are limited by the size of the text.
fn check_bounded_conversion(name: &str, (from, to): (usize, usize), wanted: usize, text: &str) {
    let (from, to) = (KnownRevision::ALL[from], KnownRevision::ALL[to]);
    let mut cx = Context::new();
    if wanted & 1 != 0 {
        cx = cx.newer_members(NewerMembers::KeepInExtra);
    }
    if wanted & 2 != 0 {
        cx = cx.request_id("an id");
    }
    if wanted & 4 != 0 {
        cx = cx.assume_input_read();
    }
    let way = format!("{from} to {to} {name}: {text}");
    match convert_type(name, text, from, to, &mut cx) {
        Ok(out) => {
            let is_json = from_str::<Json>(&out).is_ok();
            assert!(is_json || *out == *text, "{way}\n{out}");
            assert!(out.len() <= 16 * text.len() + 4_096, "{way}\n{out}");
            if is_json && check_type(name, text, from).is_ok() {
                let target = mcp_exact_convert::counterpart(name, from, to).expect("it converted");
                let checked = check_type(target, &out, to);
                assert!(checked.is_ok(), "{way}\n{out}\n{checked:?}");
            }
        }
        Err(refused) => {
            assert!(!refused.reason().is_empty(), "{way}");
            assert!(refused.pointer().len() <= MAX_POINTER + 3, "{way}");
        }
    }
    assert!(cx.losses().len() <= 4 * text.len() + 64, "{way}");
    for loss in cx.losses() {
        assert!(!loss.reason.is_empty(), "{way}");
        assert!(loss.pointer.len() <= MAX_POINTER + 3, "{way}");
    }
}
