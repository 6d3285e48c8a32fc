//! Pieces of Rust that several emitters of steps write: closures, results, variables, paths.
//!
//! Takes tokens and names, gives tokens; knows nothing of revisions.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote;

use crate::emit::ident;
use crate::ir::{Member, Type};

/// Whether some tokens name a variable.
pub fn mentions(tokens: &TokenStream, variable: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == variable,
        TokenTree::Group(group) => mentions(&group.stream(), variable),
        _ => false,
    })
}

/// An expression as a result: without its `?`, or as it is in `Ok`.
pub fn as_result(tokens: &TokenStream) -> TokenStream {
    let mut all: Vec<TokenTree> = tokens.clone().into_iter().collect();
    match all.last() {
        Some(TokenTree::Punct(last)) if last.as_char() == '?' => {
            all.pop();
            all.into_iter().collect()
        }
        _ => quote!(Ok(#tokens)),
    }
}

/// The name of the context where some tokens stand in its scope: none when they do not use it.
pub fn context_for(tokens: &TokenStream) -> TokenStream {
    if mentions(tokens, "cx") {
        quote!(cx)
    } else {
        quote!(_)
    }
}

/// A closure over one variable and the context that gives an expression as a result.
pub fn closure(variable: &TokenStream, tokens: &TokenStream) -> TokenStream {
    let (cx, result) = (context_for(tokens), as_result(tokens));
    quote!(|#variable, #cx| #result)
}

/// The variable of a member: named as the field, but for names that steps need themselves.
pub fn local(member: &Member) -> Ident {
    match member.field.as_str() {
        taken @ ("cx" | "extra" | "known" | "this" | "value" | "item" | "items") => {
            ident(&format!("{taken}_"))
        }
        free => ident(free),
    }
}

/// A field and its variable, in a pattern or a literal.
pub fn bound(member: &Member) -> TokenStream {
    let (field, local) = (ident(&member.field), local(member));
    if field == local {
        quote!(#field)
    } else {
        quote!(#field: #local)
    }
}

/// The type that a definition is.
pub fn reference(name: &str) -> Type {
    Type::Ref {
        name: name.to_owned(),
        boxed: false,
    }
}

/// The path of a function of the overlay.
pub fn overlay(function: &str) -> TokenStream {
    let segments = function.split("::").map(ident);
    quote!(crate::overlay #(::#segments)*)
}

/// A string as JSON writes it.
pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
