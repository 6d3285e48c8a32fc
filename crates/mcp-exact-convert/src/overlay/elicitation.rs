//! Elicitation: enums with and without titles.

use mcp_2025_06_18 as older;
use mcp_2025_11_25 as newer;
use mcp_exact_wire::{Extra, Json};

use crate::context::push;
use crate::{Context, ConvertTo, LossKind, Refused};

/// An enum without titles: the same words, in the type that 2025-06-18 has.
pub fn untitled_enum(
    schema: newer::UntitledSingleSelectEnumSchema,
    cx: &mut Context,
) -> Result<older::PrimitiveSchemaDefinition, Refused> {
    let newer::UntitledSingleSelectEnumSchema {
        default,
        description,
        r#enum,
        title,
        extra,
    } = schema;
    let schema = newer::LegacyTitledEnumSchema {
        default,
        description,
        r#enum,
        enum_names: None,
        title,
        extra: extra.retype().0,
    };
    let schema: older::EnumSchema = schema.convert_to(cx)?;
    Ok(schema.into())
}

/// An enum with titles: values in `enum`, titles in `enumNames`.
pub fn titled_enum(
    schema: newer::TitledSingleSelectEnumSchema,
    cx: &mut Context,
) -> Result<older::PrimitiveSchemaDefinition, Refused> {
    let newer::TitledSingleSelectEnumSchema {
        default,
        description,
        one_of,
        title,
        extra,
    } = schema;
    if cx.keeps_newer() {
        return Ok(kept(description, title, default, &one_of, extra).into());
    }
    let reason = "values and titles stand in enum and enumNames";
    for member in ["oneOf", "enum", "enumNames"] {
        cx.lost(member, LossKind::Rewritten, reason);
    }
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for (index, option) in one_of.into_iter().enumerate() {
        for (name, _) in option.extra.iter() {
            let mut pointer = format!("{}/{index}", cx.pointer_of("oneOf"));
            push(&mut pointer, name);
            cx.report(
                pointer,
                LossKind::Dropped,
                "it has no place in enum and enumNames",
            );
        }
        values.push(option.r#const);
        names.push(option.title);
    }
    let (extra, known) = extra.retype();
    for (name, _) in known {
        cx.lost(
            &name,
            LossKind::Dropped,
            "values and titles stand there now",
        );
    }
    let schema = newer::LegacyTitledEnumSchema {
        default,
        description,
        r#enum: values,
        enum_names: Some(names),
        title,
        extra,
    };
    let schema: older::EnumSchema = schema.convert_to(cx)?;
    Ok(schema.into())
}

/// A string, of which the older revision does not know that it is one of some.
fn kept(
    description: Option<String>,
    title: Option<String>,
    default: Option<String>,
    one_of: &Vec<newer::SingleSelectOption>,
    extra: Extra<newer::TitledSingleSelectEnumSchema>,
) -> older::StringSchema {
    let mut schema = older::StringSchema {
        description,
        title,
        extra: extra.retype().0,
        ..older::StringSchema::new()
    };
    // The older type knows neither name.
    let _ = schema.extra.insert("oneOf", Json::from_encode(one_of));
    if let Some(default) = default {
        let _ = schema.extra.insert("default", Json::string(&default));
    }
    schema
}
