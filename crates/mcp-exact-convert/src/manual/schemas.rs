//! Property schemas that are true or false, which JSON Schema allows and the protocol only since 2026-07-28.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Body, Node};

/// Writes property schemas that are true or false as objects that mean the same.
pub fn without_booleans<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    for name in ["inputSchema", "outputSchema"] {
        let Some(schema) = node.member(name).filter(|schema| may_have_booleans(schema)) else {
            continue;
        };
        cx.enter(name, schema.at);
        // Where a name is there twice, which untyped JSON allows, the last one counts.
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

/// Returns true if the schema contains a word that could be such a property schema: most contain none and are not walked
/// through.
fn may_have_booleans(schema: &Node<'_>) -> bool {
    let Body::Text(text) = &schema.body else {
        return true;
    };
    ["true", "false"]
        .iter()
        .any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some())
}

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
