//! Emits the implementations of `Request` and `Notification` for each method, and the types of the revision by
//! direction.

use proc_macro2::TokenStream;
use quote::quote;

use super::context::Context;
use super::types::{ident, rust_type};
use super::{directions, request_meta};
use crate::ir::names::marker_name;
use crate::ir::{Ir, Method};

/// Emits the implementations of `Request` and `Notification` for all methods.
pub fn emit(cx: &Context<'_>) -> TokenStream {
    let methods = cx.ir.methods.iter().map(|found| emit_method(cx.ir, found));
    quote!(#(#methods)*)
}

/// Emits the implementation of `Request` or `Notification` for one method.
fn emit_method(ir: &Ir, method: &Method) -> TokenStream {
    let (definition, name) = (ident(&method.definition), &method.method);
    let params = match (&method.params, method.params_required) {
        (None, _) => quote!(()),
        (Some(params), true) => rust_type(params),
        (Some(params), false) => {
            let params = rust_type(params);
            quote!(Option<#params>)
        }
    };
    if !method.request {
        return quote! {
            impl mcp_exact_wire::Notification for #definition {
                const METHOD: &'static str = #name;
                type Params = #params;
            }
        };
    }
    let result = match &method.result {
        Some(result) => {
            let result = ident(result);
            quote!(#result)
        }
        None => quote!(JsonObject),
    };
    let bare = (!directions::has_jsonrpc_member(ir, method))
        .then(|| quote!(impl mcp_exact_wire::private::Bare for #definition {}));
    quote! {
        impl mcp_exact_wire::Request for #definition {
            const METHOD: &'static str = #name;
            type Params = #params;
            type Result = #result;
        }
        #bare
    }
}

/// Emits the marker type of the revision, with its types by direction.
pub fn emit_marker(cx: &Context<'_>) -> TokenStream {
    let revision = &cx.ir.revision;
    let marker = ident(&marker_name(revision));
    let docs = format!(" The types of revision {revision}, by direction.");
    let directions = ["Client", "Server"].into_iter().flat_map(|side| {
        ["Request", "Notification", "Result"].map(|kind| {
            let name = format!("{side}{kind}");
            let known = cx.ir.get(&name).is_some();
            let name = ident(&name);
            if known {
                quote!(type #name = super::#name;)
            } else {
                quote!(type #name = Never;)
            }
        })
    });
    let meta = request_meta::find(cx.ir).map_or(quote!(Never), |name| {
        let name = ident(name);
        quote!(super::#name)
    });
    quote! {
        #[doc = #docs]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct #marker;
        impl mcp_exact_wire::private::Generated for #marker {}
        impl RevisionTypes for #marker {
            const REVISION: Revision = Revision::new(#revision);
            type FromClient = FromClient;
            type FromServer = FromServer;
            type RequestMeta = #meta;
            #(#directions)*
        }
    }
}
