//! JSON Schema documents inside messages, of which the target revision says more than the source revision.

use mcp_exact_wire::spans::check_document;
use mcp_exact_wire::{DocumentRule, Path, Violations};

use crate::interpreter::Conversion;
use crate::loss::Step;
use crate::node::{Body, Node};

/// Drops and reports the members that break a rule of the target, or refuses the document when one is required.
pub fn tighten<'t>(
    cx: &mut Conversion<'_, 't>,
    node: &mut Node<'t>,
    old: &'static [DocumentRule],
    new: &'static [DocumentRule],
) -> Step<()> {
    let text = node.settled_text();
    if !is_concerned(old, new, &text) {
        return Ok(());
    }
    while let Some((pointer, message)) = first_violation(new, &node.settled_text()) {
        let name = pointer.split('/').nth(1).unwrap_or_default().to_owned();
        let name = name.replace("~1", "/").replace("~0", "~");
        let required = new.iter().any(|rule| rule.required && rule.name == name);
        let found = node.members().and_then(|members| {
            let at = members.iter().position(|member| member.name == name)?;
            Some(members.remove(at))
        });
        let (Some(member), false) = (found, required) else {
            return Err(cx.mismatch(message));
        };
        node.changed = true;
        cx.record_drop(&member.name, &member.value, message);
    }
    // What was taken apart to find a member is text again.
    let at = node.at;
    if node.changed {
        let text = node.settled_text().into_owned();
        node.body = Body::Text(text.into());
        node.at = at;
    }
    Ok(())
}

/// Whether a document of the source may break a rule that only the target has. Most do not even have the member, and are
/// not walked through.
fn is_concerned(old: &[DocumentRule], new: &[DocumentRule], text: &str) -> bool {
    let mut rules = new.iter().filter(|rule| !old.contains(rule));
    // A name spelt with escape sequences has a backslash.
    rules.any(|rule| {
        rule.required || has(text, rule.name) || memchr::memchr(b'\\', text.as_bytes()).is_some()
    })
}

/// Whether a name stands in a text. Names are short, and preparing a real search costs more than looking at each place where
/// the first byte stands.
fn has(text: &str, name: &str) -> bool {
    let (text, name) = (text.as_bytes(), name.as_bytes());
    let Some(&first) = name.first() else {
        return true;
    };
    memchr::memchr_iter(first, text).any(|at| text[at..].starts_with(name))
}

fn first_violation(rules: &[DocumentRule], text: &str) -> Option<(String, String)> {
    let mut violations = Violations::default();
    check_document(rules, text, &Path::ROOT, &mut violations);
    let first = violations.listed().first()?;
    Some((first.pointer.clone(), first.message.clone()))
}
