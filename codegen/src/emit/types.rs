//! Rust types and identifiers for the types and names of the intermediate representation.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::ir::{Definition, Member, RustIr, Shape, Type};

/// Creates an identifier; keywords become raw identifiers. `gen` is handled here, because syn does not treat this
/// keyword of edition 2024 as one.
pub fn ident(name: &str) -> Ident {
    let plain = (name != "gen").then(|| syn::parse_str(name).ok());
    plain
        .flatten()
        .unwrap_or_else(|| Ident::new_raw(name, Span::call_site()))
}

/// Returns the Rust type of a value.
pub fn rust_type(value: &Type) -> TokenStream {
    match value {
        Type::Json => quote!(Json),
        Type::JsonObject => quote!(JsonObject),
        Type::String(_) => quote!(String),
        Type::Boolean => quote!(bool),
        Type::Integer(_) => quote!(Integer),
        Type::Number(_) => quote!(Number),
        Type::Ref { name } => {
            let name = ident(name);
            quote!(#name)
        }
        Type::Array { items, .. } => {
            let items = rust_type(items);
            quote!(Vec<#items>)
        }
        Type::Map(values) => {
            let values = rust_type(values);
            quote!(Map<#values>)
        }
        Type::Nullable(inner) => {
            let inner = rust_type(inner);
            quote!(Nullable<#inner>)
        }
    }
}

/// Returns the type of a member's field: a `Box` if the type contains itself.
pub fn field_type(
    ir: &RustIr,
    definition: &Definition,
    member: &Member,
    value: &Type,
) -> TokenStream {
    match value {
        Type::Nullable(inner) => {
            let inner = field_type(ir, definition, member, inner);
            quote!(Nullable<#inner>)
        }
        _ if ir.is_boxed(&definition.name, member) => {
            let value = rust_type(value);
            quote!(Box<#value>)
        }
        _ => rust_type(value),
    }
}

/// Returns the parameter of `new` for a member: generic with `Into` if callers may have a convertible value.
pub fn parameter(
    ir: &RustIr,
    definition: &Definition,
    member: &Member,
    value: &Type,
) -> (TokenStream, bool) {
    let plain = field_type(ir, definition, member, value);
    if has_into_conversion(ir, value) {
        (quote!(impl Into<#plain>), true)
    } else {
        (plain, false)
    }
}

/// Returns true if values of other types convert into a type by `Into`.
fn has_into_conversion(ir: &RustIr, value: &Type) -> bool {
    match value {
        Type::String(_) | Type::Json | Type::Integer(_) | Type::Number(_) | Type::Nullable(_) => {
            true
        }
        Type::Ref { name, .. } => match ir.get(name).map(|definition| &definition.shape) {
            Some(
                Shape::Union(_) | Shape::Enum(_) | Shape::StringOrInteger | Shape::Document(_),
            ) => true,
            Some(Shape::Alias(value)) => has_into_conversion(ir, value),
            _ => false,
        },
        _ => false,
    }
}
