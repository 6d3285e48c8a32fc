//! Emits the table of definitions by name, for tools and tests.

use proc_macro2::TokenStream;
use quote::quote;

use super::types::ident;
use crate::ir::Ir;

/// Emits the static table of all definitions of the schema, sorted by name.
pub fn emit(ir: &Ir) -> TokenStream {
    let entries = ir
        .definitions
        .iter()
        .filter(|definition| definition.official)
        .map(|definition| {
            let (name, text) = (ident(&definition.name), &definition.name);
            quote!(Definition::of::<super::#name>(#text))
        });
    quote! {
        use mcp_exact_wire::Definition;
        /// Every definition of the schema, sorted by name.
        pub static DEFINITIONS: &[Definition] = &[#(#entries),*];
    }
}
