//! JSON Schema documents inside messages, for which the target revision has more rules than the source revision.

use mcp_exact_wire::spans::{check_document, check_document_member};
use mcp_exact_wire::{DocumentRule, Path, Violations};

use crate::conversion::Conversion;
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
    if !is_concerned(old, new, &text) || is_valid(new, &text) {
        return Ok(());
    }
    drop_invalid(cx, node, new)?;
    // What was taken apart to find the members is text again.
    let text = node.settled_text().into_owned();
    node.body = Body::Text(text.into());
    Ok(())
}

/// Drops the members that break a rule. A document may have a member more than once: what comes before an invalid one of the
/// same name is dropped with it, so that it does not count in its place.
fn drop_invalid<'t>(
    cx: &mut Conversion<'_, 't>,
    node: &mut Node<'t>,
    rules: &'static [DocumentRule],
) -> Step<()> {
    let Some(members) = node.members() else {
        return Ok(());
    };
    let mut valid = vec![Vec::new(); rules.len()];
    for at in 0..members.len() {
        let name = &members[at].name;
        let Some(index) = rules.iter().position(|rule| rule.name == *name) else {
            continue;
        };
        let text = members[at].value.settled_text();
        valid[index].push(at);
        let Some(message) = check_document_member(&rules[index], &text) else {
            continue;
        };
        if rules[index].required {
            return Err(cx.mismatch(message));
        }
        for at in valid[index].drain(..) {
            let member = &mut members[at];
            cx.record_drop(&member.name, &member.value, message.clone());
            member.value.body = Body::Removed;
        }
    }
    members.retain(|member| !member.value.is_removed());
    node.changed = true;
    let mut missing = rules.iter().zip(valid);
    match missing.find(|(rule, valid)| rule.required && valid.is_empty()) {
        Some((rule, _)) => Err(cx.mismatch(format!("missing member `{}`", rule.name))),
        None => Ok(()),
    }
}

fn is_valid(rules: &[DocumentRule], text: &str) -> bool {
    let mut violations = Violations::default();
    check_document(rules, text, &Path::ROOT, &mut violations);
    violations.is_empty()
}

/// Returns true if a document of the source may break a rule that only the target has. Most do not even have the member, and
/// are not walked through.
fn is_concerned(old: &[DocumentRule], new: &[DocumentRule], text: &str) -> bool {
    let mut rules = new.iter().filter(|rule| !old.contains(rule));
    rules.any(|rule| rule.required || may_contain(std::iter::once(rule.name), text))
}

/// Returns true if a value may have a member of one of some names, at any depth.
pub fn may_contain<'n>(names: impl IntoIterator<Item = &'n str>, text: &str) -> bool {
    // RFC 8259, section 7: in a name, letters can be escaped as `\u0061` alone, and a slash as `\/` too.
    let is_escaped = |name: &str| has(text, "\\u") || name.contains('/') && has(text, "\\/");
    let mut names = names.into_iter();
    names.any(|name| has(text, name) || is_escaped(name))
}

/// Minimum length of a text that is worth a prepared search.
const LONG: usize = 512;

/// Returns true if a text contains a name. Names are short: in a short text, comparing at each occurrence of the first byte
/// costs less than preparing a search.
fn has(text: &str, name: &str) -> bool {
    let (text, name) = (text.as_bytes(), name.as_bytes());
    if text.len() >= LONG {
        return memchr::memmem::find(text, name).is_some();
    }
    let Some(&first) = name.first() else {
        return true;
    };
    memchr::memchr_iter(first, text).any(|at| text[at..].starts_with(name))
}
