//! Emits the `Definition` of each type, by revision and name.

use proc_macro2::TokenStream;
use quote::quote;

use super::types::ident;
use crate::ir::{Definition, Ir, Shape};

/// Emits the list of types that are definitions of this revision.
pub fn emit<'i>(ir: &Ir, own: impl Iterator<Item = &'i Definition>) -> TokenStream {
    let revision = &ir.revision;
    let types = own.filter(|definition| {
        !matches!(
            definition.shape,
            Shape::Alias(_) | Shape::StringOrInteger | Shape::Document(_)
        )
    });
    let names = types.map(|definition| ident(&definition.name));
    quote! {
        use super::*;
        mcp_exact_wire::define! { #revision: #(#names),* }
    }
}
