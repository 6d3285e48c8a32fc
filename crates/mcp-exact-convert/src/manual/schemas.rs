//! Boolean property schemas, which JSON Schema allows and the protocol allows from 2026-07-28 on.

use mcp_exact_wire::order::contains;

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Body, Node};

/// Replaces boolean property schemas by objects with the same meaning.
pub fn without_booleans<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    for name in ["inputSchema", "outputSchema"] {
        let Some(schema) = node.member(name).filter(|schema| may_have_booleans(schema)) else {
            continue;
        };
        cx.enter(name, schema.at);
        // If a name occurs twice, which untyped JSON allows, the last occurrence counts.
        let members = schema.members().into_iter().flatten();
        if let Some(properties) = members.filter(|member| member.name == "properties").last() {
            cx.enter("properties", properties.value.at);
            rewrite(cx, &mut properties.value);
            cx.leave();
        }
        cx.leave();
    }
    Ok(())
}

/// Returns true if the schema may contain a boolean property schema; most schemas do not, and are not traversed.
fn may_have_booleans(schema: &Node<'_>) -> bool {
    let Body::Text(text) = &schema.body else {
        return true;
    };
    ["true", "false"].iter().any(|word| contains(text, word))
}

/// Replaces boolean schemas among the values of `properties`, and reports each change.
fn rewrite<'t>(cx: &mut Conversion<'_, 't>, properties: &mut Node<'t>) {
    for member in properties.members().into_iter().flatten() {
        let text = match &member.value.body {
            Body::Text(text) if text == "true" => "{}",
            Body::Text(text) if text == "false" => "{\"not\":{}}",
            _ => continue,
        };
        let at = member.value.at;
        let reason = "a property schema is an object up to 2025-11-25; this one means the same";
        cx.record_loss(&member.name, at, LossKind::Rewritten, reason);
        member.value = Node {
            at,
            ..Node::made(text)
        };
    }
}
