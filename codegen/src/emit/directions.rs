//! The messages of each direction: which methods there are, and which result answers which request.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::types::ident;
use super::{Context, unions};
use crate::ir::{Ir, MemberValue, Method, Shape, Type, Union};
use crate::revision_table::{error_id_required, has_batches, has_envelope_in_types};

/// The directions of the revision.
pub fn emit(cx: &Context<'_>) -> TokenStream {
    let client = direction(cx, "Client", |method| method.from_client);
    let server = direction(cx, "Server", |method| method.from_server);
    // A client's results answer the server's requests, and the other way round.
    let client_results = results(cx, "ClientResult", |method| method.from_server);
    let server_results = results(cx, "ServerResult", |method| method.from_client);
    let ids = has_envelope_in_types(cx.ir)
        .then(|| ["ClientRequest", "ServerRequest"].map(|name| identified(cx.ir, name)));
    let ids = ids.into_iter().flatten();
    let called = ["Client", "Server"].into_iter().flat_map(|side| {
        ["Request", "Notification"].map(|kind| called(cx.ir, &format!("{side}{kind}")))
    });
    quote!(#client #server #client_results #server_results #(#ids)* #(#called)*)
}

/// The method of a message: of one definition, or of each variant of a union.
fn called(ir: &Ir, name: &str) -> TokenStream {
    let method_of = |definition: &str| {
        let mut methods = ir.methods.iter();
        let found = methods.find(|method| method.definition == definition);
        found.map(|method| &method.method)
    };
    let body = match ir.get(name).map(|definition| &definition.shape) {
        Some(Shape::Union(union)) => {
            let arms: Option<Vec<_>> = union
                .variants
                .iter()
                .map(|variant| {
                    let Type::Ref { name, .. } = &variant.value else {
                        return None;
                    };
                    let (variant, method) = (ident(&variant.name), method_of(name)?);
                    Some(quote!(Self::#variant(_) => #method,))
                })
                .collect();
            let Some(arms) = arms else {
                return TokenStream::new();
            };
            let unknown = union
                .open_tag()
                .is_some()
                .then(|| quote!(Self::Unrecognized(message) => message.tag(),));
            quote!(match self { #(#arms)* #unknown })
        }
        _ => match method_of(name) {
            Some(method) => quote!(#method),
            None => return TokenStream::new(),
        },
    };
    let name = ident(name);
    quote! {
        impl mcp_exact_wire::Called for #name {
            #[inline]
            fn method(&self) -> &str { #body }
        }
    }
}

/// Returns true if the definition of a request or notification holds `jsonrpc`.
pub fn holds_version(ir: &Ir, method: &Method) -> bool {
    let definition = ir.get(&method.definition);
    match definition.map(|definition| &definition.shape) {
        Some(Shape::Struct(members)) => members.iter().any(|member| member.name == "jsonrpc"),
        _ => false,
    }
}

fn direction(cx: &Context<'_>, side: &str, sends: impl Fn(&Method) -> bool) -> TokenStream {
    let ir = cx.ir;
    let marker = ident(&format!("From{side}"));
    let docs = format!(" Messages that a {} sends.", side.to_lowercase());
    let inside = has_envelope_in_types(ir);
    let union = |kind: &str| known(ir, &format!("{side}{kind}"));
    let (request, notification, result) =
        (union("Request"), union("Notification"), union("Result"));
    let requests = ir.get(&format!("{side}Request"));
    let requests = requests.map(|definition| &definition.shape);
    // A definition that is no union is the only request there is, which says so itself.
    let bare = (!inside && matches!(requests, Some(Shape::Union(_))))
        .then(|| quote!(impl mcp_exact_wire::private::Bare for #request {}));
    let request = if inside || requests.is_none() {
        request
    } else {
        quote!(mcp_exact_wire::WithId<#request>)
    };
    let methods = |request: bool| {
        let mut names: Vec<&str> = ir
            .methods
            .iter()
            .filter(|method| method.request == request && sends(method))
            .map(|method| method.method.as_str())
            .collect();
        names.sort_unstable();
        names
    };
    let (requests, notifications) = (methods(true), methods(false));
    let batches = has_batches(ir);
    let needs_id = error_id_required(ir);
    let alias = ident(&format!("{side}Message"));
    quote! {
        #[doc = #docs]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct #marker;
        #[doc = #docs]
        pub type #alias = mcp_exact_wire::Message<#marker>;
        impl mcp_exact_wire::private::Generated for #marker {}
        #bare
        impl mcp_exact_wire::Direction for #marker {
            type Request = #request;
            type Notification = #notification;
            type Result = #result;
            const REQUESTS: &'static [&'static str] = &[#(#requests),*];
            const NOTIFICATIONS: &'static [&'static str] = &[#(#notifications),*];
            const BATCHES: bool = #batches;
            const ENVELOPE_INSIDE: bool = #inside;
            const ERROR_NEEDS_ID: bool = #needs_id;
        }
    }
}

fn known(ir: &Ir, name: &str) -> TokenStream {
    if ir.get(name).is_some() {
        let name = ident(name);
        quote!(super::#name)
    } else {
        quote!(Never)
    }
}

/// Decoding of results by the method of the request.
fn results(cx: &Context<'_>, name: &str, asks: impl Fn(&Method) -> bool) -> TokenStream {
    let ir = cx.ir;
    let union = match ir.get(name).map(|definition| &definition.shape) {
        None => return TokenStream::new(),
        Some(Shape::Union(union)) => union,
        Some(_) => {
            let name = ident(name);
            return quote! {
                impl mcp_exact_wire::DecodeResult for #name {
                    #[inline]
                    fn decode_result(_: &str, r: &mut Reader<'_>) -> Read<Self> {
                        Decode::decode(r)
                    }
                }
            };
        }
    };
    let open = variant_of(ir, union, "Result").map(|variant| {
        let variant = ident(variant);
        quote!(Decode::decode(r).map(Self::#variant))
    });
    let open = open.unwrap_or_else(|| quote!(Decode::decode(r)));
    let arms = ir
        .methods
        .iter()
        .filter(|method| method.request && asks(method))
        .filter_map(|method| {
            let decode = match outcomes(ir, method) {
                Some(outcomes) => one_of(ir, union, method, outcomes),
                None => match variant_of(ir, union, method.result.as_deref()?)? {
                    "Result" => return None,
                    variant => decode_as(variant),
                },
            };
            let name = &method.method;
            Some(quote!(#name => #decode,))
        });
    let name = ident(name);
    quote! {
        impl mcp_exact_wire::DecodeResult for #name {
            #[inline]
            fn decode_result(method: &str, r: &mut Reader<'_>) -> Read<Self> {
                match method {
                    #(#arms)*
                    _ => #open,
                }
            }
        }
    }
}

fn decode_as(variant: &str) -> TokenStream {
    let variant = ident(variant);
    quote!(Decode::decode(r).map(Self::#variant))
}

/// The union of what a request can be answered with.
fn outcomes<'i>(ir: &'i Ir, method: &Method) -> Option<&'i Union> {
    if method.outcomes.is_empty() {
        return None;
    }
    match &ir.get(method.result.as_deref()?)?.shape {
        Shape::Union(union) => Some(union),
        _ => None,
    }
}

/// Decodes one of several results: told apart as in the union of the outcomes, kept in the union of all results.
fn one_of(ir: &Ir, results: &Union, method: &Method, outcomes: &Union) -> TokenStream {
    let name = method.result.as_deref().unwrap_or_default();
    let Some(objects) = &outcomes.dispatch.objects else {
        return quote!(Err(r.no_variant(#name)));
    };
    let table = unions::table("OUTCOME", name, objects);
    let arms = method.outcomes.iter().enumerate().map(|(index, outcome)| {
        let number = Literal::usize_unsuffixed(index);
        let decode = match variant_of(ir, results, outcome) {
            Some(variant) => decode_as(variant),
            None => match variant_of(ir, results, "Result") {
                Some(open) => decode_as(open),
                None => quote!(Err(r.no_variant(#name))),
            },
        };
        quote!(#number => #decode,)
    });
    quote!({
        #table
        match r.pick(&OUTCOME)? {
            #(#arms)*
            _ => Err(r.no_variant(#name)),
        }
    })
}

/// The variant that holds a definition, or what the definition is another name for.
fn variant_of<'i>(ir: &'i Ir, union: &'i Union, name: &'i str) -> Option<&'i str> {
    let holds = |value: &Type| matches!(value, Type::Ref { name: found, .. } if found == name);
    let found = union.variants.iter().find(|variant| holds(&variant.value));
    match (found, ir.get(name).map(|definition| &definition.shape)) {
        (Some(variant), _) => Some(&variant.name),
        (None, Some(Shape::Alias(Type::Ref { name, .. }))) => variant_of(ir, union, name),
        _ => None,
    }
}

/// The id of a request that holds it itself.
fn identified(ir: &Ir, name: &str) -> TokenStream {
    let Some(Shape::Union(union)) = ir.get(name).map(|definition| &definition.shape) else {
        return TokenStream::new();
    };
    let holds_id = |value: &Type| {
        let Type::Ref { name, .. } = value else {
            return false;
        };
        match ir.get(name).map(|definition| &definition.shape) {
            Some(Shape::Struct(members)) => members.iter().any(|member| {
                member.name == "id"
                    && member.required
                    && matches!(member.value, MemberValue::Type(_))
            }),
            _ => false,
        }
    };
    let arms = union.variants.iter().map(|variant| {
        let (name, has) = (ident(&variant.name), holds_id(&variant.value));
        if has {
            quote!(Self::#name(request) => Some(request.id.clone()),)
        } else {
            quote!(Self::#name(_) => None,)
        }
    });
    let unknown = union
        .open_tag()
        .is_some()
        .then(|| quote!(Self::Unrecognized(request) => request.request_id(),));
    let name = ident(name);
    quote! {
        impl mcp_exact_wire::Identified for #name {
            #[inline]
            fn request_id(&self) -> Option<mcp_exact_wire::RequestId> {
                match self { #(#arms)* #unknown }
            }
        }
    }
}
