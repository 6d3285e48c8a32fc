//! Formats differences as text for a terminal, Markdown for a changelog, JSON for tools, or one HTML page.
//!
//! The renderers combine equal changes of many types into one entry, and several new variants of one union into one
//! line.

#[cfg(feature = "html")]
mod html;
mod markdown;
mod text;
mod words;

use crate::diff::{Diff, Status};
use crate::ir::{Definition, Ir, MemberValue, Type};

#[cfg(feature = "html")]
pub use html::{PageOptions, SchemaSource, html};
pub use markdown::markdown;
pub use text::text;
use words::{combine_lines, method_words, status_word};

/// Returns differences as JSON, in the format of [`Diff`].
///
/// # Errors
/// No difference causes an error; the signature is that of `serde_json`.
pub fn json(diff: &Diff) -> serde_json::Result<String> {
    serde_json::to_string_pretty(diff)
}

/// Returns a short description of a type.
pub fn type_words(ir: &Ir, value: &Type) -> String {
    crate::wording::type_text(ir, value)
}

/// Returns a short description of a member's value.
pub fn member_words(ir: &Ir, value: &MemberValue) -> String {
    crate::wording::member_text(ir, value)
}

/// Returns a short description of a definition.
pub fn outline_words(ir: &Ir, definition: &Definition) -> String {
    crate::wording::outline(ir, definition)
}

/// Returns the changes of a type or a method, one line per change. The changes of a method include the changes of its
/// types.
pub fn changes_of(diff: &Diff, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut wanted = vec![name];
    if let Some(method) = diff.methods.iter().find(|method| method.method == name) {
        if method.status != Status::Changed {
            let status = status_word(method.status);
            found.push(format!("{status} [{}]", method.compatibility.words()));
        }
        let changes = method.changes.iter();
        found.extend(changes.map(|c| format!("{} [{}]", method_words(c), c.compatibility.words())));
        wanted.extend(method.through.iter().map(String::as_str));
    }
    for definition in &diff.definitions {
        let is_wanted = wanted.contains(&definition.name.as_str());
        let before = definition.before.as_deref();
        if !is_wanted && before != Some(name) {
            continue;
        }
        let prefix = if definition.name == name {
            String::new()
        } else {
            format!("{}: ", definition.name)
        };
        if definition.status != Status::Changed {
            let status = status_word(definition.status);
            let from = before
                .map(|before| format!(" from {before}"))
                .unwrap_or_default();
            found.push(format!(
                "{prefix}{status}{from} [{}]",
                definition.compatibility.words()
            ));
        }
        found.extend(combine_lines(&definition.changes).iter().map(|line| {
            let (sign, words) = (line.sign.letter(), line.words());
            format!("{prefix}{sign} {words} [{}]", line.compatibility.words())
        }));
    }
    found
}
