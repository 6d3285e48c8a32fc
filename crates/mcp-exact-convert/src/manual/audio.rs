//! Converts audio content to an embedded resource and back, because 2024-11-05 has no audio content.
//!
//! The resource has a reserved URI, so that the conversion back is exact. Other resources are unchanged.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Member, NOWHERE, Node};

/// URI of resources that contain audio. URNs need no authority, and no client can request this one.
const URI: &str = "urn:mcp-exact:audio";

/// Converts audio content to an embedded resource.
pub fn as_resource<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    cx.convert_member_as(node, "annotations", "Annotations", "AnnotatedAnnotations")?;
    let (data, mime_type) = (node.take("data"), node.take("mimeType"));
    // A member named `resource` would conflict with the new member; other members of audio content do not.
    if let Some(own) = node.take("resource") {
        cx.record_drop("resource", &own, "an embedded resource has its own");
    }
    let reason = "an embedded resource stands for audio, which 2024-11-05 does not have";
    cx.report(cx.place(), LossKind::Replaced, reason);
    let uri = Some(Node::new_string(URI));
    let members = [("blob", data), ("mimeType", mime_type), ("uri", uri)];
    let members = members.into_iter();
    let members = members.filter_map(|(name, value)| Some(Member::new(name, value?)));
    node.set("type", Node::new_string("resource"));
    node.set("resource", Node::new_object(members.collect(), NOWHERE));
    cx.set_variant(node, "EmbeddedResource");
    Ok(())
}

/// Converts a resource that contains audio back to audio content; converts other resources normally.
pub fn from_resource<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let is_free = node.member("data").is_none() && node.member("mimeType").is_none();
    if !is_free || !node.member("resource").is_some_and(contains_only_audio) {
        cx.convert_as(node, "EmbeddedResource", "EmbeddedResource")?;
        cx.set_variant(node, "EmbeddedResource");
        return Ok(());
    }
    let reason = "an embedded resource stood for audio";
    cx.report(cx.place(), LossKind::Rewritten, reason);
    cx.convert_member_as(node, "annotations", "AnnotatedAnnotations", "Annotations")?;
    if let Some(mut resource) = node.take("resource") {
        for (name, member) in [("data", "blob"), ("mimeType", "mimeType")] {
            if let Some(value) = resource.take(member) {
                node.set(name, value);
            }
        }
    }
    node.set("type", Node::new_string("audio"));
    cx.set_variant(node, "AudioContent");
    Ok(())
}

/// Returns true if a resource contains nothing but audio.
fn contains_only_audio(resource: &mut Node<'_>) -> bool {
    let uri = resource.member("uri");
    let is_ours = uri.is_some_and(|uri| uri.string().as_deref() == Some(URI));
    let names = ["blob", "mimeType", "uri"];
    let has_only = |members: &mut Vec<Member<'_>>| members.len() == names.len();
    is_ours
        && names.iter().all(|name| resource.member(name).is_some())
        && resource.members().is_some_and(has_only)
}
