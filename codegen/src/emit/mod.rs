//! Emitters: from the intermediate representation of one revision to the files of its crate.
//!
//! Functions without type parameters are `#[inline]`, so that an application compiles only the parts of a revision
//! that it uses.

mod alias;
mod constructors;
mod context;
mod definitions;
mod directions;
mod docs;
mod enums;
pub mod format;
mod manifest;
mod methods;
mod request_meta;
pub mod schemas;
mod structs;
mod topics;
mod types;
mod unions;
mod validate;
pub use unions::union_role;
pub use validate::{document_rule, known_format};

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::error::Result;
use crate::input::lists::Revision;
use crate::ir::names::library_name;
use crate::ir::{Definition, RustIr, Shape};
use context::{Context, Parts, header};
use format::format;

pub use context::{Base, Files};
pub use types::ident;

/// Emits the files of one revision's crate.
///
/// # Errors
/// Returns an error if an emitter writes invalid Rust.
pub fn emit(ir: &RustIr, revision: &Revision, base: Option<Base<'_>>) -> Result<Files> {
    let cx = Context {
        ir,
        is_draft: revision.is_draft(),
        checked_types: validate::checked_types(ir),
    };
    let root = format!("crates/mcp-{}", revision.id);
    let header = header(revision);
    let mut files = Files::new();
    files.insert(
        format!("{root}/Cargo.toml"),
        manifest::cargo_toml(revision, base),
    );
    files.insert(
        format!("{root}/README.md"),
        manifest::readme(revision, base),
    );
    files.insert(
        format!("{root}/src/lib.rs"),
        manifest::lib_rs(ir, revision, base)?,
    );
    let own = |definition: &&Definition| base.is_none_or(|b| !b.shared.contains(&definition.name));
    let topics = topics::assign_topics(ir);
    let mut modules: BTreeMap<&str, Parts> = BTreeMap::new();
    for definition in ir.definitions.iter().filter(own) {
        let parts = emit_definition(&cx, definition);
        let module = modules.entry(topics[definition.name.as_str()]).or_default();
        module.definition.extend(parts.definition);
        module.codec.extend(parts.codec);
    }
    let names: Vec<Ident> = modules.keys().map(|name| types::ident(name)).collect();
    let mut write = |name: &str, tokens: TokenStream| -> Result<()> {
        let text = format(&revision.id, &header, tokens)?;
        files.insert(format!("{root}/src/generated/{name}.rs"), text);
        Ok(())
    };
    write("mod", root_module(&names, base))?;
    write("codec/mod", quote!(#(mod #names;)*))?;
    for (name, parts) in modules {
        let Parts { definition, codec } = parts;
        let imports = quote! {
            use mcp_exact_wire::generated::*;
            use super::*;
        };
        write(name, quote!(#imports #definition))?;
        let imports = quote! {
            use mcp_exact_wire::generated::*;
            use super::super::*;
        };
        write(&format!("codec/{name}"), quote!(#imports #codec))?;
    }
    let methods = methods::emit(&cx);
    // Senders and receivers are defined by the revision, not by an extension.
    let (marker, directions) = match base {
        None => (methods::emit_marker(&cx), directions::emit(&cx)),
        Some(_) => Default::default(),
    };
    let imports = quote! {
        use mcp_exact_wire::generated::*;
        use super::*;
    };
    write("methods", quote!(#imports #marker #methods #directions))?;
    write(
        "definitions",
        definitions::emit(ir, ir.definitions.iter().filter(own)),
    )?;
    Ok(files)
}

/// Emits the root module, with its declarations and re-exports.
fn root_module(topics: &[Ident], base: Option<Base<'_>>) -> TokenStream {
    let shared = base.map(|base| {
        let library = types::ident(&library_name(base.id));
        let names = base.shared.iter().map(|name| types::ident(name));
        quote!(#[doc(no_inline)] pub use #library::{#(#names),*};)
    });
    let methods = base.is_none().then(|| {
        quote!(
            pub use methods::*;
        )
    });
    quote! {
        mod codec;
        mod definitions;
        mod methods;
        #(mod #topics;)*
        #[cfg(feature = "schemars1")]
        mod schemas;
        #methods
        #(pub use #topics::*;)*
        #[cfg(feature = "schemars1")]
        pub use schemas::JSON_SCHEMAS;
        #shared
    }
}

/// Emits a definition by its shape.
fn emit_definition(cx: &Context<'_>, definition: &Definition) -> Parts {
    match &definition.shape {
        Shape::Struct(members) => structs::emit(cx, definition, members),
        Shape::Document(members) => structs::emit_document(cx, definition, members),
        Shape::Enum(values) => enums::emit(cx, definition, values),
        Shape::Constant(value) => enums::emit_constant(cx, definition, value),
        Shape::Union(_) => unions::emit(cx, definition, cx.ir.union(&definition.name)),
        Shape::Alias(value) => alias::emit(cx, definition, value),
        Shape::StringOrInteger => alias::emit_runtime(cx, definition),
    }
}
