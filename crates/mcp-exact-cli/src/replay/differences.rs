//! Differences of two messages, by JSON pointer.

use std::collections::BTreeSet;

use mcp_exact_wire::Kind;

use crate::value::Value;

/// Adds the differences of two values that are not `ignored`: JSON pointer, value before, value after. Objects, and arrays of
/// equal length, are compared member by member; numbers and strings as they were sent, but for escapes.
pub fn add_differences(
    pointer: &str,
    before: Value<'_>,
    after: Value<'_>,
    ignored: &[String],
    found: &mut Vec<(String, String, String)>,
) {
    if ignored.iter().any(|ignored| ignored == pointer) {
        return;
    }
    if before.is_object() && after.is_object() {
        let names = before.members().chain(after.members());
        let names: BTreeSet<_> = names.map(|(name, _)| name).collect();
        for name in names {
            let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            let (before, after) = (before.get(&name), after.get(&name));
            add_differences(&below, before, after, ignored, found);
        }
        return;
    }
    let (a, b) = (before.items(), after.items());
    if before.kind() == Kind::Array && after.kind() == Kind::Array && a.len() == b.len() {
        for (index, (a, b)) in a.iter().zip(&b).enumerate() {
            let below = format!("{pointer}/{index}");
            add_differences(&below, Value::of(a), Value::of(b), ignored, found);
        }
        return;
    }
    let is_same_text = before.as_str().is_some() && before.as_str() == after.as_str();
    let is_same = before.exists() == after.exists() && before.text() == after.text();
    if !is_same && !is_same_text {
        let shown = |value: Value<'_>| {
            let text = if value.exists() {
                value.text()
            } else {
                "nothing"
            };
            text.to_owned()
        };
        found.push((pointer.to_owned(), shown(before), shown(after)));
    }
}
