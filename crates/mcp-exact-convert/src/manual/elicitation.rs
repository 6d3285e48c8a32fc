//! Elicitation: its capability, and enums with and without titles.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{NOWHERE, Node};

/// Removes the elicitation capability of a client without form support: up to 2025-06-18 the capability means forms.
pub fn capability_of_forms<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let is_without_forms = node.member("elicitation").is_some_and(|elicitation| {
        elicitation.member("url").is_some() && elicitation.member("form").is_none()
    });
    if !is_without_forms {
        return Ok(());
    }
    if let Some(elicitation) = node.take("elicitation") {
        let reason = "this client takes elicitation by URL only, which 2025-06-18 does not have";
        cx.record_drop("elicitation", &elicitation, reason);
    }
    Ok(())
}

/// Drops `elicitation.url` and `sampling.tools`, which 2025-06-18 does not define, so that a client does not gain them.
pub fn without_gained_parts<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    for (capability, name) in [("elicitation", "url"), ("sampling", "tools")] {
        let parts = node.member(capability);
        if let Some((at, Some(part))) = parts.map(|parts| (parts.at, parts.take(name))) {
            cx.enter(capability, at);
            cx.record_drop(name, &part, "2025-06-18 does not define this part");
            cx.leave();
        }
    }
    Ok(())
}

/// Moves the values of an enum with titles into `enum`, and the titles into `enumNames`.
pub fn titled_enum<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let options = node.take("oneOf");
    let at = options.as_ref().map_or(NOWHERE, |options| options.at);
    for (member, at) in [("oneOf", at), ("enum", NOWHERE), ("enumNames", NOWHERE)] {
        let reason = "values and titles become enum and enumNames";
        cx.record_loss(member, at, LossKind::Rewritten, reason);
    }
    for name in ["enum", "enumNames"] {
        if let Some(own) = node.take(name) {
            cx.record_drop(name, &own, "values and titles stand there now");
        }
    }
    let (mut values, mut names) = (Vec::new(), Vec::new());
    cx.enter("oneOf", at);
    let options = options.and_then(|mut options| Some(std::mem::take(options.items()?)));
    for (index, mut option) in options.unwrap_or_default().into_iter().enumerate() {
        cx.enter_index(index, option.at);
        values.extend(option.take("const"));
        names.extend(option.take("title"));
        for member in option.members().into_iter().flatten() {
            let reason = "it has no place in enum and enumNames";
            cx.record_drop(&member.name, &member.value, reason);
        }
        cx.leave();
    }
    cx.leave();
    node.set("enum", Node::new_array(values, NOWHERE));
    node.set("enumNames", Node::new_array(names, NOWHERE));
    untitled_enum(cx, node)
}

/// Converts an enum by the rule of the legacy enum type, and marks it as `EnumSchema` in the target union. The values
/// of an enum without titles are unchanged.
pub fn untitled_enum<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    cx.convert_as(node, "LegacyTitledEnumSchema", "EnumSchema")?;
    cx.set_variant(node, "EnumSchema");
    Ok(())
}
