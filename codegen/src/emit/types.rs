//! Rust types and identifiers for the representation.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::ir::{Ir, Shape, Type};

/// An identifier; keywords become raw ones. syn does not count `gen`, which edition 2024 made one.
pub fn ident(name: &str) -> Ident {
    let plain = (name != "gen").then(|| syn::parse_str(name).ok());
    plain
        .flatten()
        .unwrap_or_else(|| Ident::new_raw(name, Span::call_site()))
}

/// The type of a value.
pub fn rust_type(value: &Type) -> TokenStream {
    match value {
        Type::Json => quote!(Json),
        Type::JsonObject => quote!(JsonObject),
        Type::String { .. } => quote!(String),
        Type::Boolean => quote!(bool),
        Type::Integer(_) => quote!(Integer),
        Type::Number(_) => quote!(Number),
        Type::Ref { name, boxed } => {
            let name = ident(name);
            if *boxed {
                quote!(Box<#name>)
            } else {
                quote!(#name)
            }
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

/// How `new` takes a value of a type: with a conversion where callers have something that converts.
pub fn parameter(ir: &Ir, value: &Type) -> (TokenStream, bool) {
    let plain = rust_type(value);
    let converts = match value {
        Type::String { .. }
        | Type::Json
        | Type::Integer(_)
        | Type::Number(_)
        | Type::Nullable(_) => true,
        Type::Ref { name, .. } => match ir.get(name).map(|definition| &definition.shape) {
            Some(Shape::Union(_) | Shape::Enum(_) | Shape::Runtime(_) | Shape::Document(_)) => true,
            Some(Shape::Alias(value)) => parameter(ir, value).1,
            _ => false,
        },
        _ => false,
    };
    if converts {
        (quote!(impl Into<#plain>), true)
    } else {
        (plain, false)
    }
}
