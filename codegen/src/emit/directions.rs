//! Emits the messages of each direction: the methods, and the result type of each request.

use std::collections::BTreeMap;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::context::Context;
use super::types::ident;
use super::unions;
use crate::ir::properties::{has_batches, has_envelope_in_types, requires_error_id};
use crate::ir::{Ir, Member, MemberValue, Method, RustIr, Shape, Type, Union};

/// Emits the messages that clients send, and the messages that servers send.
pub fn emit(cx: &Context<'_>) -> TokenStream {
    let client = emit_direction(cx, "Client", |method| method.from_client);
    let server = emit_direction(cx, "Server", |method| method.from_server);
    // The results of a client are responses to requests of the server, and vice versa.
    let client_results = emit_results(cx, "ClientResult", |method| method.from_server);
    let server_results = emit_results(cx, "ServerResult", |method| method.from_client);
    // Both sides may send a definition that is not a union.
    let mut sent = BTreeMap::new();
    for (side, kind) in [
        ("Client", "Request"),
        ("Client", "Notification"),
        ("Server", "Request"),
        ("Server", "Notification"),
    ] {
        sent.insert(resolve_aliases(cx.ir, &format!("{side}{kind}")), kind);
    }
    let messages = sent
        .iter()
        .map(|(name, kind)| emit_call_methods(cx.ir, name, kind));
    quote!(#client #server #client_results #server_results #(#messages)*)
}

/// Resolves the aliases of a name and returns the name of the definition.
fn resolve_aliases(ir: &Ir, name: &str) -> String {
    match ir.get(name).map(|definition| &definition.shape) {
        Some(Shape::Alias(Type::Ref { name, .. })) => resolve_aliases(ir, name),
        _ => name.to_owned(),
    }
}

/// Generates the methods that return kind, method, id and params of a request or notification; for a union, with one
/// match arm per variant.
fn emit_call_methods(ir: &RustIr, name: &str, kind: &str) -> TokenStream {
    let Some(messages) = message_set(ir, name) else {
        return TokenStream::new();
    };
    let is_request = kind == "Request";
    let method = messages.emit_match_arms(quote!(_), |call| {
        let method = &call.method.method;
        quote!(#method)
    });
    let params =
        messages.emit_match_arms(quote!(message), |call| match call.member(ir, "params") {
            Some(member) if member.required => quote!(Some(Json::from_encode(&message.params))),
            Some(_) => quote!(message.params.as_ref().map(Json::from_encode)),
            None => quote!(message.extra.get("params").cloned()),
        });
    let holds_id = is_request && has_envelope_in_types(ir);
    let id = messages.emit_match_arms(quote!(message), |call| match call.member(ir, "id") {
        Some(member) if member.required => quote!(Some(message.id.clone())),
        _ => quote!(None),
    });
    let id = holds_id.then(|| {
        let unknown = messages.emit_unknown_arm(quote!(message.request_id()));
        quote! {
            #[inline]
            fn id(&self) -> Option<mcp_exact_wire::RequestId> { match self { #id #unknown } }
        }
    });
    let (name, kind) = (ident(name), ident(kind));
    let (unknown_method, unknown_params) = (
        messages.emit_unknown_arm(quote!(message.tag())),
        messages.emit_unknown_arm(quote!(message.params())),
    );
    quote! {
        impl mcp_exact_wire::Call for #name {
            #[inline]
            fn kind(&self) -> mcp_exact_wire::MessageKind { mcp_exact_wire::MessageKind::#kind }
            #[inline]
            fn method(&self) -> &str { match self { #method #unknown_method } }
            #id
            #[inline]
            fn params(&self) -> Option<Json> { match self { #params #unknown_params } }
        }
    }
}

/// The requests or notifications of one side.
struct MessageSet<'i> {
    /// Each message with the name of its variant; a definition that is not a union has no variant name.
    messages: Vec<MessageVariant<'i>>,
    /// True if messages of unknown methods are kept.
    is_open: bool,
}

/// A message, as a variant of a union or alone.
struct MessageVariant<'i> {
    /// Name of the variant; `None` if the definition is not a union.
    variant: Option<&'i str>,
    /// Method of the message.
    method: &'i Method,
}

impl MessageVariant<'_> {
    /// Returns a member of the message, unless it is a constant.
    fn member<'i>(&self, ir: &'i Ir, name: &str) -> Option<&'i Member> {
        let Shape::Struct(members) = &ir.get(&self.method.definition)?.shape else {
            return None;
        };
        let found = members.iter().find(|member| member.name == name);
        found.filter(|member| matches!(member.value, MemberValue::Type(_)))
    }
}

impl MessageSet<'_> {
    /// Generates one match arm per message; `binding` is the pattern for the message, and `value` returns the
    /// expression of an arm.
    fn emit_match_arms(
        &self,
        binding: TokenStream,
        value: impl Fn(&MessageVariant<'_>) -> TokenStream,
    ) -> TokenStream {
        let arms = self.messages.iter().map(|call| {
            let value = value(call);
            // A pattern with an unused binding would cause a warning in the generated crate.
            let used = value.to_string().contains("message");
            let binding = if used { binding.clone() } else { quote!(_) };
            match call.variant {
                Some(variant) => {
                    let variant = ident(variant);
                    quote!(Self::#variant(#binding) => #value,)
                }
                None => quote!(#binding => #value,),
            }
        });
        quote!(#(#arms)*)
    }

    /// Emits the match arm for messages of unknown methods.
    fn emit_unknown_arm(&self, value: TokenStream) -> Option<TokenStream> {
        self.is_open
            .then(|| quote!(Self::Unrecognized(message) => #value,))
    }
}

/// Returns the requests or notifications of a definition, or `None` if one of them has no method.
fn message_set<'i>(ir: &'i RustIr, name: &'i str) -> Option<MessageSet<'i>> {
    let method_of = |definition: &str| {
        let mut methods = ir.methods.iter();
        methods.find(|method| method.definition == definition)
    };
    let Some(union) = ir.unions.get(name) else {
        let call = MessageVariant {
            variant: None,
            method: method_of(name)?,
        };
        return Some(MessageSet {
            messages: vec![call],
            is_open: false,
        });
    };
    let messages: Option<Vec<_>> = union
        .variants
        .iter()
        .map(|variant| {
            let Type::Ref { name, .. } = &variant.value else {
                return None;
            };
            Some(MessageVariant {
                variant: Some(&variant.name),
                method: method_of(name)?,
            })
        })
        .collect();
    Some(MessageSet {
        messages: messages?,
        is_open: union.open_tag().is_some(),
    })
}

/// Returns true if the definition of a request or notification has the member `jsonrpc`.
pub fn has_jsonrpc_member(ir: &Ir, method: &Method) -> bool {
    let definition = ir.get(&method.definition);
    match definition.map(|definition| &definition.shape) {
        Some(Shape::Struct(members)) => members.iter().any(|member| member.name == "jsonrpc"),
        _ => false,
    }
}

/// Emits the marker type of a direction, which lists the messages of the direction; `side` is `Client` or `Server`.
fn emit_direction(cx: &Context<'_>, side: &str, sends: impl Fn(&Method) -> bool) -> TokenStream {
    let ir = cx.ir;
    let marker = ident(&format!("From{side}"));
    let docs = format!(" Messages that a {} sends.", side.to_lowercase());
    let inside = has_envelope_in_types(ir);
    let union = |kind: &str| message_type(ir, &format!("{side}{kind}"));
    let (request, notification, result) =
        (union("Request"), union("Notification"), union("Result"));
    let requests = ir.get(&format!("{side}Request"));
    let requests = requests.map(|definition| &definition.shape);
    // A definition that is not a union is the only request of its direction.
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
    let needs_id = requires_error_id(ir);
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

/// Returns the type with this name for the messages of a direction; `Never` if the revision does not define the type.
fn message_type(ir: &Ir, name: &str) -> TokenStream {
    if ir.get(name).is_some() {
        let name = ident(name);
        quote!(super::#name)
    } else {
        quote!(Never)
    }
}

/// Emits the decoding of results by the method of the request; `asks` returns true for the methods whose results the
/// type `name` contains.
fn emit_results(cx: &Context<'_>, name: &str, asks: impl Fn(&Method) -> bool) -> TokenStream {
    let ir = cx.ir;
    let union = match ir.get(name).map(|definition| &definition.shape) {
        None => return TokenStream::new(),
        Some(Shape::Union(_)) => ir.union(name),
        Some(_) => {
            let name = ident(name);
            return quote! {
                impl mcp_exact_wire::DecodeResult for #name {
                    #[inline]
                    fn decode_result(_: &str, r: &mut Reader<'_>) -> ReadResult<Self> {
                        Decode::decode(r)
                    }
                }
            };
        }
    };
    let open = variant_name(ir, union, "Result").map(|variant| {
        let variant = ident(variant);
        quote!(Decode::decode(r).map(Self::#variant))
    });
    let open = open.unwrap_or_else(|| quote!(Decode::decode(r)));
    let arms = ir
        .methods
        .iter()
        .filter(|method| method.request && asks(method))
        .filter_map(|method| {
            let decode = match outcome_union(ir, method) {
                Some(outcomes) => emit_outcome_decoding(ir, union, method, outcomes),
                None => match variant_name(ir, union, method.result.as_deref()?)? {
                    "Result" => return None,
                    variant => emit_decoding(variant),
                },
            };
            let name = &method.method;
            Some(quote!(#name => #decode,))
        });
    let name = ident(name);
    quote! {
        impl mcp_exact_wire::DecodeResult for #name {
            #[inline]
            fn decode_result(method: &str, r: &mut Reader<'_>) -> ReadResult<Self> {
                match method {
                    #(#arms)*
                    _ => #open,
                }
            }
        }
    }
}

/// Emits an expression that decodes a value as the given variant of `Self`.
fn emit_decoding(variant: &str) -> TokenStream {
    let variant = ident(variant);
    quote!(Decode::decode(r).map(Self::#variant))
}

/// Returns the union of the possible results of a request; `None` for a request with one possible result.
fn outcome_union<'i>(ir: &'i RustIr, method: &Method) -> Option<&'i Union> {
    if method.outcomes.is_empty() {
        return None;
    }
    ir.unions.get(method.result.as_deref()?)
}

/// Emits the decoding of a result with several possible types: the type is selected by the union of the request's
/// outcomes and stored in the union of all results.
fn emit_outcome_decoding(
    ir: &Ir,
    results: &Union,
    method: &Method,
    outcomes: &Union,
) -> TokenStream {
    let name = method.result.as_deref().unwrap_or_default();
    let Some(objects) = &outcomes.dispatch.objects else {
        return quote!(Err(r.no_variant(#name)));
    };
    let table = unions::emit_dispatch_table("OUTCOME", name, objects);
    let arms = method.outcomes.iter().enumerate().map(|(index, outcome)| {
        let number = Literal::usize_unsuffixed(index);
        let decode = match variant_name(ir, results, outcome) {
            Some(variant) => emit_decoding(variant),
            None => match variant_name(ir, results, "Result") {
                Some(open) => emit_decoding(open),
                None => quote!(Err(r.no_variant(#name))),
            },
        };
        quote!(#number => #decode,)
    });
    quote!({
        #table
        match r.select_variant(&OUTCOME)? {
            #(#arms)*
            _ => Err(r.no_variant(#name)),
        }
    })
}

/// Returns the variant that contains a definition, or the target of its alias.
fn variant_name<'i>(ir: &'i Ir, union: &'i Union, name: &'i str) -> Option<&'i str> {
    let holds = |value: &Type| matches!(value, Type::Ref { name: found, .. } if found == name);
    let found = union.variants.iter().find(|variant| holds(&variant.value));
    match (found, ir.get(name).map(|definition| &definition.shape)) {
        (Some(variant), _) => Some(&variant.name),
        (None, Some(Shape::Alias(Type::Ref { name, .. }))) => variant_name(ir, union, name),
        _ => None,
    }
}
