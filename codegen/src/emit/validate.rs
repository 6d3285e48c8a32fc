//! Emits the checks of `validate()` for deviations that decoding tolerates, only for types whose values can deviate.

use std::collections::BTreeSet;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::context::Context;
use super::types::ident;
use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, RustIr, Shape, Type, Union, field};

/// JSON Schema formats that `mcp-exact-wire` can validate, with the variant of its `Format`; other formats are
/// annotations.
const VALIDATED_FORMATS: &[(&str, &str)] = &[
    ("byte", "Byte"),
    ("date", "Date"),
    ("date-time", "DateTime"),
    ("uri", "Uri"),
    ("uri-template", "UriTemplate"),
];

/// Returns the names of the definitions with values that decode but deviate from the schema.
pub fn checked_types(ir: &RustIr) -> BTreeSet<&str> {
    let mut checked = BTreeSet::new();
    loop {
        let before = checked.len();
        for definition in &ir.definitions {
            if definition.closed || is_checked(ir, definition, &checked) {
                checked.insert(definition.name.as_str());
            }
        }
        if checked.len() == before {
            return checked;
        }
    }
}

/// Returns true if values of a definition can deviate from the schema; `checked` contains the definitions found so far.
fn is_checked(ir: &RustIr, definition: &Definition, checked: &BTreeSet<&str>) -> bool {
    match &definition.shape {
        Shape::Struct(members) => members.iter().any(|member| match &member.value {
            MemberValue::Type(value) => is_checked_type(value, checked),
            _ => false,
        }),
        Shape::Document(_) | Shape::Enum(_) => true,
        Shape::Constant(_) | Shape::StringOrInteger => false,
        Shape::Union(types) => {
            ir.union(&definition.name).open_tag().is_some()
                || types.iter().any(|value| is_checked_type(value, checked))
        }
        Shape::Alias(value) => is_checked_type(value, checked),
    }
}

/// Returns true if values of a type can deviate from the schema.
fn is_checked_type(value: &Type, checked: &BTreeSet<&str>) -> bool {
    match value {
        Type::Json | Type::JsonObject | Type::Boolean => false,
        Type::String(text) => known_format(text.format.as_deref()).is_some(),
        Type::Integer(bounds) | Type::Number(bounds) => *bounds != Bounds::default(),
        Type::Ref { name, .. } => checked.contains(name.as_str()),
        Type::Array {
            items,
            min_items,
            max_items,
        } => min_items.is_some() || max_items.is_some() || is_checked_type(items, checked),
        Type::Map(inner) | Type::Nullable(inner) => is_checked_type(inner, checked),
    }
}

/// Returns the variant of `mcp_exact_wire::Format` for a format that `mcp-exact-wire` can validate; `None` for another
/// format.
pub fn known_format(format: Option<&str>) -> Option<&'static str> {
    let known = VALIDATED_FORMATS
        .iter()
        .find(|(name, _)| Some(*name) == format);
    known.map(|(_, variant)| *variant)
}

/// Emits the function `check` of a struct; `closed` is true if the schema allows no unknown members.
pub fn emit_member_checks(cx: &Context<'_>, members: &[Member], closed: bool) -> TokenStream {
    let mut checks = Vec::new();
    if closed {
        checks.push(quote!(self.extra.check_closed(path, to);));
    }
    for member in members {
        let MemberValue::Type(value) = &member.value else {
            continue;
        };
        if !is_checked_type(value, &cx.checked_types) {
            continue;
        }
        let (field, name) = (ident(&field(member)), &member.name);
        let check = emit_value_check(cx, value, quote!(value), quote!(path));
        let check = quote! {
            let path = &path.member(#name);
            #check
        };
        checks.push(if member.required {
            quote!({ let value = &self.#field; #check })
        } else {
            quote!(if let Some(value) = &self.#field { #check })
        });
    }
    emit_check_function(checks)
}

/// Emits the function `check` of a union.
pub fn emit_union_check(cx: &Context<'_>, union: &Union) -> TokenStream {
    let mut arms: Vec<TokenStream> = Vec::new();
    for variant in union
        .variants
        .iter()
        .filter(|v| is_checked_type(&v.value, &cx.checked_types))
    {
        let name = ident(&variant.name);
        let check = emit_value_check(cx, &variant.value, quote!(value), quote!(path));
        arms.push(quote!(Self::#name(value) => { #check }));
    }
    let covered = arms.len() == union.variants.len();
    if union.open_tag().is_some() {
        arms.push(quote!(Self::Unrecognized(value) => { value.check(path, to); }));
    }
    if arms.is_empty() {
        return emit_check_function(Vec::new());
    }
    if !covered {
        arms.push(quote!(_ => {}));
    }
    emit_check_function(vec![quote!(match self { #(#arms)* })])
}

/// Emits the function `check` with these checks.
fn emit_check_function(checks: Vec<TokenStream>) -> TokenStream {
    if checks.is_empty() {
        quote!(
            #[inline]
            fn check(&self, _: &Path<'_>, _: &mut Violations) {}
        )
    } else {
        quote!(#[inline] fn check(&self, path: &Path<'_>, to: &mut Violations) { #(#checks)* })
    }
}

/// Emits the check of the value in the expression `place`; `path` is the expression for the position that a violation
/// reports.
fn emit_value_check(
    cx: &Context<'_>,
    value: &Type,
    place: TokenStream,
    path: TokenStream,
) -> TokenStream {
    match value {
        Type::String(text) => match known_format(text.format.as_deref()) {
            Some(format) => {
                let format = ident(format);
                quote!(check_format(#place, Format::#format, #path, to);)
            }
            None => TokenStream::new(),
        },
        Type::Integer(bounds) => emit_bounds_check(*bounds, quote!(#place.as_number()), path),
        Type::Number(bounds) => emit_bounds_check(*bounds, place, path),
        Type::Array {
            items,
            min_items,
            max_items,
        } => {
            let bound = |bound: &Option<u64>, function: &str| {
                let (bound, function) = (Literal::u64_unsuffixed((*bound)?), ident(function));
                Some(quote!(#function(#place, #bound, #path, to);))
            };
            let (low, high) = (
                bound(min_items, "check_min_items"),
                bound(max_items, "check_max_items"),
            );
            let each = emit_element_checks(
                cx,
                items,
                quote!(#place.iter().enumerate()),
                quote!(index),
                quote!(&#path.index(index)),
            );
            quote!(#low #high #each)
        }
        Type::Map(values) => emit_element_checks(
            cx,
            values,
            quote!(#place.iter()),
            quote!(name),
            quote!(&#path.member(name)),
        ),
        Type::Nullable(inner) => {
            let check = emit_value_check(cx, inner, quote!(value), path);
            quote!(if let Some(value) = #place.as_value() { #check })
        }
        _ => quote!(#place.check(#path, to);),
    }
}

/// Emits the checks of the items of an array or the values of a map.
fn emit_element_checks(
    cx: &Context<'_>,
    inner: &Type,
    iter: TokenStream,
    key: TokenStream,
    path: TokenStream,
) -> TokenStream {
    if !is_checked_type(inner, &cx.checked_types) {
        return TokenStream::new();
    }
    let check = emit_value_check(cx, inner, quote!(value), path);
    quote!(for (#key, value) in #iter { #check })
}

/// Emits the check of the bounds of a number.
fn emit_bounds_check(bounds: Bounds, place: TokenStream, path: TokenStream) -> TokenStream {
    let minimum = bounds.minimum.map(|bound| {
        let bound = Literal::i64_unsuffixed(bound);
        quote!(check_minimum(#place, #bound, #path, to);)
    });
    let maximum = bounds.maximum.map(|bound| {
        let bound = Literal::i64_unsuffixed(bound);
        quote!(check_maximum(#place, #bound, #path, to);)
    });
    quote!(#minimum #maximum)
}

/// Returns the `DocumentRule` of a JSON Schema document type for one member.
pub fn document_rule(ir: &Ir, member: &Member) -> TokenStream {
    let (name, required) = (&member.name, member.required);
    let value = match &member.value {
        MemberValue::ConstString(value) => quote!(DocumentValue::Const(#value)),
        MemberValue::ConstInteger(_) => quote!(DocumentValue::Integer),
        MemberValue::Type(value) => document_rule_value(ir, value),
    };
    quote!(DocumentRule { name: #name, required: #required, value: #value })
}

/// Returns the `DocumentValue` for member values of this type.
fn document_rule_value(ir: &Ir, value: &Type) -> TokenStream {
    match value {
        Type::Json | Type::Nullable(_) => quote!(DocumentValue::Any),
        Type::JsonObject => quote!(DocumentValue::Object(&DocumentValue::Any)),
        Type::String(_) => quote!(DocumentValue::String),
        Type::Boolean => quote!(DocumentValue::Boolean),
        Type::Integer(_) => quote!(DocumentValue::Integer),
        Type::Number(_) => quote!(DocumentValue::Number),
        Type::Array { items, .. } => {
            let items = document_rule_value(ir, items);
            quote!(DocumentValue::Array(&#items))
        }
        Type::Map(values) => {
            let values = document_rule_value(ir, values);
            quote!(DocumentValue::Object(&#values))
        }
        Type::Ref { name, .. } => match ir.get(name).map(|definition| &definition.shape) {
            Some(Shape::Alias(value)) => document_rule_value(ir, value),
            _ => quote!(DocumentValue::Any),
        },
    }
}
