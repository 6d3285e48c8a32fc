//! Property schemas that are true or false, which JSON Schema allows and the protocol only since 2026-07-28.

use std::borrow::Cow;

use mcp_2026_07_28::Tool;
use mcp_exact_wire::{Document, DocumentView, Json, JsonObject, from_str};

use crate::context::push;
use crate::{Context, LossKind, Refused};

/// Writes property schemas that are true or false as objects that mean the same.
pub fn without_booleans(mut tool: Tool, cx: &mut Context) -> Result<Tool, Refused> {
    if let Some(schema) = rewritten(&tool.input_schema, "/inputSchema", cx) {
        tool.input_schema = schema;
    }
    if let Some(schema) = &tool.output_schema
        && let Some(schema) = rewritten(schema, "/outputSchema", cx)
    {
        tool.output_schema = Some(schema);
    }
    Ok(tool)
}

fn rewritten<V: DocumentView>(
    schema: &Document<V>,
    place: &str,
    cx: &mut Context,
) -> Option<Document<V>> {
    let properties: JsonObject = schema.as_object().get("properties")?.try_into().ok()?;
    let is_boolean = |(_, value): &(Cow<'_, str>, &str)| matches!(*value, "true" | "false");
    if !properties.iter().any(|property| is_boolean(&property)) {
        return None;
    }
    let mut objects = JsonObject::new();
    for (name, value) in properties.iter() {
        let value = match value {
            "true" => "{}",
            "false" => "{\"not\":{}}",
            other => other,
        };
        objects.insert(&name, from_str::<Json>(value).ok()?);
    }
    for (name, _) in properties.iter().filter(is_boolean) {
        let mut pointer = format!("{}{place}/properties", cx.pointer());
        push(&mut pointer, &name);
        let reason = "a property schema is an object up to 2025-11-25; this one means the same";
        cx.report(pointer, LossKind::Rewritten, reason);
    }
    let mut schema = schema.as_object().clone();
    schema.insert("properties", objects);
    Some(schema.into())
}
