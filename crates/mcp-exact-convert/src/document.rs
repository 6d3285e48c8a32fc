//! JSON Schema documents inside messages, where the target revision has more rules than the source revision.

use mcp_exact_wire::order::contains;
use mcp_exact_wire::spans::{check_document, check_document_member};
use mcp_exact_wire::{DocumentRule, Path, Violations};

use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Body, Node};

/// Drops and reports members that violate a rule of the target; refuses the document if such a member is required.
pub fn apply_stricter_rules<'t>(
    cx: &mut Conversion<'_, 't>,
    node: &mut Node<'t>,
    old: &'static [DocumentRule],
    new: &'static [DocumentRule],
) -> Step<()> {
    let text = node.current_text();
    if !is_concerned(old, new, &text) || is_valid(new, &text) {
        return Ok(());
    }
    drop_invalid(cx, node, new)?;
    // The trees that were built to find the members are turned into text again.
    let text = node.current_text().into_owned();
    node.body = Body::Text(text.into());
    Ok(())
}

/// Drops the members that violate a rule, with earlier members of the same name, which would take effect instead.
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
        let text = members[at].value.current_text();
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

/// Returns true if a document may violate a rule that only the target has; most documents lack such members.
fn is_concerned(old: &[DocumentRule], new: &[DocumentRule], text: &str) -> bool {
    let mut rules = new.iter().filter(|rule| !old.contains(rule));
    rules.any(|rule| rule.required || may_contain(std::iter::once(rule.name), text))
}

/// Returns true if a JSON text may have a member with one of the names, at any depth.
pub fn may_contain<'n>(names: impl IntoIterator<Item = &'n str>, text: &str) -> bool {
    // RFC 8259, section 7: a name can be escaped with `\u0061` for letters, and with `\/` for a slash.
    let is_escaped =
        |name: &str| contains(text, "\\u") || name.contains('/') && contains(text, "\\/");
    let mut names = names.into_iter();
    names.any(|name| contains(text, name) || is_escaped(name))
}
