//! Emits constructors: `new` of objects, and a function per variant of a union of objects.
//!
//! The parameters of `new` are the required members in the order of two tables, which are the same for every revision:
//! a member that becomes required later does not move the other parameters. JSON schemas have no member order; the
//! tables follow the TypeScript sources and the examples of the specification.

use heck::ToSnakeCase;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::context::{Context, field_members, is_message};
use super::types::{ident, parameter};
use crate::ir::{Definition, Member, Shape, Type, Union, field};

/// JSON names of the members that are the first parameters, in this order: identifying members, then describing
/// members.
const LEADING_MEMBERS: &[&str] = &[
    "id",
    "method",
    "taskId",
    "toolUseId",
    "protocolVersion",
    "supportedVersions",
    "progressToken",
    "level",
    "role",
    "code",
    "ref",
    "uri",
    "uriTemplate",
    "name",
    "message",
    "url",
    "messages",
    "status",
    "createdAt",
    "lastUpdatedAt",
];

/// JSON names of the members that are the last parameters, in this order: validity, cache scope, metadata.
const TRAILING_MEMBERS: &[&str] = &["ttl", "ttlMs", "cacheScope", "_meta"];

/// Strings that `new` sets as defaults.
const DEFAULT_STRINGS: &[(&str, &str)] = &[("resultType", "complete")];

/// Returns the sort key of a member among the parameters of `new`. Members in neither of the two tables come between
/// the members of the two tables, sorted by name.
fn sort_key(json: &str) -> (usize, &str) {
    let first = LEADING_MEMBERS.iter().position(|name| *name == json);
    let last = TRAILING_MEMBERS.iter().position(|name| *name == json);
    match (first, last) {
        (Some(at), _) => (at, json),
        (None, Some(at)) => (LEADING_MEMBERS.len() + 1 + at, json),
        (None, None) => (LEADING_MEMBERS.len(), json),
    }
}

/// Returns the string that `new` sets for a required member instead of a parameter; `None` for other members.
fn default_string(member: &Member, value: &Type) -> Option<&'static str> {
    let mut known = DEFAULT_STRINGS
        .iter()
        .filter(|(name, _)| *name == member.name);
    let is_string = matches!(value, Type::String(_));
    known.next().map(|(_, text)| *text).filter(|_| is_string)
}

/// Returns the members that are parameters of `new`, in their order.
fn parameters(members: &[Member]) -> Vec<(&Member, &Type)> {
    let required = field_members(members).filter(|(member, _)| member.required);
    let mut taken: Vec<_> = required
        .filter(|(member, value)| default_string(member, value).is_none())
        .collect();
    taken.sort_by_key(|(member, _)| sort_key(&member.name));
    taken
}

/// Emits `new`, and `Default` if `new` has no parameters.
pub fn emit(cx: &Context<'_>, definition: &Definition, members: &[Member]) -> TokenStream {
    let name = ident(&definition.name);
    let taken = parameters(members);
    let parameters = taken.iter().map(|(member, value)| {
        let (field, (parameter, _)) = (
            ident(&field(member)),
            parameter(cx.ir, definition, member, value),
        );
        quote!(#field: #parameter)
    });
    let values = field_members(members).map(|(member, value)| {
        let field = ident(&field(member));
        match default_string(member, value) {
            _ if !member.required => quote!(#field: None),
            Some(text) => quote!(#field: #text.into()),
            None if parameter(cx.ir, definition, member, value).1 => quote!(#field: #field.into()),
            None => quote!(#field),
        }
    });
    let words = if taken.is_empty() {
        " Creates a value without optional members."
    } else {
        " Creates a value with only the required members."
    };
    let default = taken.is_empty().then(|| {
        quote! {
            impl Default for #name {
                #[inline]
                fn default() -> Self {
                    Self::new()
                }
            }
        }
    });
    quote! {
        impl #name {
            #[doc = #words]
            pub fn new(#(#parameters),*) -> Self {
                Self { #(#values,)* extra: Extra::new() }
            }
        }
        #default
    }
}

/// Emits a function for each variant that is an object, such as `ContentBlock::text`. Unions of messages and of results
/// have no such functions: applications construct the variants of the request that they handle.
pub fn emit_variant_constructors(
    cx: &Context<'_>,
    definition: &Definition,
    union: &Union,
) -> TokenStream {
    let is_answer = |name: &str| name.ends_with("Result") || name.ends_with("Outcome");
    if is_answer(&definition.name) {
        return TokenStream::new();
    }
    let functions = union.variants.iter().filter_map(|variant| {
        let Type::Ref { name, .. } = &variant.value else {
            return None;
        };
        let target = cx.ir.get(name)?;
        let Shape::Struct(members) = &target.shape else {
            return None;
        };
        (!is_message(cx, target, members))
            .then(|| emit_variant_constructor(cx, &variant.name, target, members))
    });
    let functions: Vec<_> = functions.collect();
    if functions.is_empty() {
        return TokenStream::new();
    }
    let name = ident(&definition.name);
    quote!(impl #name { #(#functions)* })
}

/// Emits the constructor of a variant that is an object.
fn emit_variant_constructor(
    cx: &Context<'_>,
    variant: &str,
    target: &Definition,
    members: &[Member],
) -> TokenStream {
    let taken = parameters(members);
    let names: Vec<Ident> = taken.iter().map(|(m, _)| ident(&field(m))).collect();
    let types = taken
        .iter()
        .map(|(member, value)| parameter(cx.ir, target, member, value).0);
    let target = &target.name;
    let docs = format!(" Creates a [`{target}`], as [`{target}::new`] does.");
    let (function, variant) = (ident(&variant.to_snake_case()), ident(variant));
    let target = ident(target);
    quote! {
        #[doc = #docs]
        pub fn #function(#(#names: #types),*) -> Self {
            Self::#variant(#target::new(#(#names),*))
        }
    }
}
