//! Emits definitions that are other names for types.

use proc_macro2::TokenStream;
use quote::quote;

use super::context::{Context, Parts};
use super::docs;
use super::types::{ident, rust_type};
use crate::ir::{Definition, Type};

/// Emits a type alias.
pub fn emit(cx: &Context<'_>, definition: &Definition, value: &Type) -> Parts {
    let (name, docs) = (
        ident(&definition.name),
        docs::definition_docs(cx.ir, definition),
    );
    let value = rust_type(value);
    Parts {
        definition: quote!(#docs pub type #name = #value;),
        codec: TokenStream::new(),
    }
}

/// Emits an alias of a string-or-integer type, which the crate `mcp-exact-wire` defines with the same name.
pub fn emit_runtime(cx: &Context<'_>, definition: &Definition) -> Parts {
    let (name, docs) = (
        ident(&definition.name),
        docs::definition_docs(cx.ir, definition),
    );
    Parts {
        definition: quote!(#docs pub type #name = mcp_exact_wire::#name;),
        codec: TokenStream::new(),
    }
}
