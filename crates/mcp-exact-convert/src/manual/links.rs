//! Resource links as text blocks: 2025-03-26 has no resource links.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Member, Node};

/// Replaces a resource link by a text block with the link's title or name, URI, MIME type and description.
pub fn as_text<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let reason = "a text block stands for the resource link, which 2025-03-26 does not have";
    cx.report(cx.place(), LossKind::Replaced, reason);
    let mut string = |name: &str| {
        let value = node.member(name)?;
        value.string().map(|text| text.into_owned())
    };
    let name = string("title").or_else(|| string("name"));
    let (name, uri) = (name.unwrap_or_default(), string("uri").unwrap_or_default());
    let mut text = format!("{name}: {uri}");
    if let Some(mime_type) = string("mimeType") {
        text += &format!(" ({mime_type})");
    }
    if let Some(description) = string("description") {
        text += &format!("\n{description}");
    }
    cx.convert_member_as(node, "annotations", "Annotations", "Annotations")?;
    let mut members = vec![
        Member::new("type", Node::new_string("text")),
        Member::new("text", Node::new_string(&text)),
    ];
    if let Some(annotations) = node.member("annotations") {
        members.push(Member::new("annotations", annotations.clone()));
    }
    *node = Node::new_object(members, node.at);
    cx.set_variant(node, "TextContent");
    Ok(())
}
