//! Emits objects with known members: the struct, `new`, decoding and encoding.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::context::{Context, Parts, field_members, is_message};
use super::types::{field_type, ident};
use super::{constructors, docs, request_meta, validate};
use crate::ir::{Definition, Member, MemberValue, Type, field};

/// Emits a struct with its constructor and codec.
pub fn emit(cx: &Context<'_>, definition: &Definition, members: &[Member]) -> Parts {
    let name = ident(&definition.name);
    let struct_ = emit_struct(cx, definition, members);
    let new = constructors::emit(cx, definition, members);
    let names = members.iter().map(|member| &member.name);
    let is_message = is_message(cx, definition, members).then(|| {
        quote!(
            const IS_MESSAGE: bool = true;
        )
    });
    let decode = emit_decoding(cx, definition, members);
    let encode = emit_encoding(members);
    let check = validate::emit_member_checks(cx, members, definition.closed);
    let codec = quote! {
        impl Members for #name {
            const MEMBERS: &'static [&'static str] = &[#(#names),*];
            #is_message
        }
        impl Decode for #name {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> ReadResult<Self> { #decode }
        }
        impl Encode for #name {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) { #encode }
        }
        impl Validate for #name { #check }
        mcp_exact_wire::serde_through_wire!(#name);
    };
    Parts {
        definition: quote!(#struct_ #new),
        codec,
    }
}

/// Emits a JSON Schema document type and its typed view.
pub fn emit_document(cx: &Context<'_>, definition: &Definition, members: &[Member]) -> Parts {
    let view = Definition {
        name: format!("{}View", definition.name),
        description: Some(format!(
            "The members of {{@link {}}} that the protocol's schema speaks of.",
            definition.name
        )),
        ..definition.clone()
    };
    let view_parts = emit(cx, &view, members);
    let (view_struct, view_codec) = (view_parts.definition, view_parts.codec);
    let (name, view) = (ident(&definition.name), ident(&view.name));
    let docs = docs::definition_docs(cx.ir, definition);
    let rules = members
        .iter()
        .map(|member| validate::document_rule(cx.ir, member));
    let smallest = minimal_document(members);
    let closed = definition.closed.then(|| {
        quote!(
            const CLOSED: bool = true;
        )
    });
    let definition = quote! {
        #docs
        ///
        /// A JSON Schema document: kept as the text that arrived, with a typed view on demand.
        pub type #name = Document<#view>;
        #view_struct
    };
    let codec = quote! {
        #view_codec
        impl DocumentView for #view {
            const RULES: &'static [DocumentRule] = &[#(#rules),*];
            const SMALLEST: &'static str = #smallest;
            #closed
        }
    };
    Parts { definition, codec }
}

/// Returns the document with only the required constants.
fn minimal_document(members: &[Member]) -> String {
    let constants = members
        .iter()
        .filter(|member| member.required)
        .filter_map(constant_json);
    format!("{{{}}}", constants.collect::<Vec<_>>().join(","))
}

/// Returns a constant member as JSON text; `None` for a member that is not a constant.
fn constant_json(member: &Member) -> Option<String> {
    let name = quote_json(&member.name);
    match &member.value {
        MemberValue::ConstString(value) => Some(format!("{name}:{}", quote_json(value))),
        MemberValue::ConstInteger(value) => Some(format!("{name}:{value}")),
        MemberValue::Type(_) => None,
    }
}

/// Returns a string as JSON.
fn quote_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Emits the struct with its fields.
fn emit_struct(cx: &Context<'_>, definition: &Definition, members: &[Member]) -> TokenStream {
    let name = ident(&definition.name);
    let docs = docs::definition_docs(cx.ir, definition);
    let fields = field_members(members).map(|(member, value)| {
        let (field, docs) = (ident(&field(member)), docs::member_docs(cx.ir, member));
        let value = field_type(cx.ir, definition, member, value);
        let value = if member.required {
            value
        } else {
            quote!(Option<#value>)
        };
        quote!(#docs pub #field: #value)
    });
    let non_exhaustive = cx.non_exhaustive();
    quote! {
        #docs
        #[derive(Debug, Clone, PartialEq, Eq)]
        #non_exhaustive
        pub struct #name {
            #(#fields,)*
            /// Members that this revision does not define, in order of arrival.
            pub extra: Extra<Self>,
        }
    }
}

/// Emits the decoding of a struct.
fn emit_decoding(cx: &Context<'_>, definition: &Definition, members: &[Member]) -> TokenStream {
    let name = ident(&definition.name);
    let required = members.iter().filter(|member| member.required);
    let required = required.map(|member| &member.name);
    let count = proc_macro2::Literal::usize_unsuffixed(members.len());
    let locals = field_members(members).map(|(member, _)| decoding_variable(member));
    let arms = emit_member_arms(cx, definition, members);
    let needed = field_members(members).filter(|(member, _)| member.required);
    let unpack = needed.map(|(member, _)| {
        let local = decoding_variable(member);
        let is_provided = request_meta::is_provided(cx.ir, definition, member);
        let provided = is_provided.then(|| quote!(.or_else(|| r.provided())));
        quote!(let Some(#local) = #local #provided else { return Err(object.incomplete(r)); };)
    });
    // Without members, no decoded value determines the type of the result.
    let type_ = members.is_empty().then(|| quote!(: ReadResult<()>));
    let all = field_members(members).map(|(member, _)| {
        let (field, local) = (ident(&field(member)), decoding_variable(member));
        if field == local {
            quote!(#field)
        } else {
            quote!(#field: #local)
        }
    });
    quote! {
        static LAYOUT: ObjectLayout = ObjectLayout {
            members: <#name as Members>::MEMBERS,
            keys: &keys::<#count>(<#name as Members>::MEMBERS),
            required: required_bits(<#name as Members>::MEMBERS, &[#(#required),*]),
        };
        let mut object = ObjectReader::of(&LAYOUT);
        #(let mut #locals = None;)*
        loop {
            let read #type_ = match object.step(r) {
                #arms
                ObjectReader::END => break,
                _ => Err(DecodeFailed),
            };
            if read.is_err() {
                return Err(DecodeFailed);
            }
        }
        #(#unpack)*
        Ok(Self { #(#all,)* extra: object.extra() })
    }
}

/// Returns the name of the variable for a member during decoding: the field name, except for names that the emitted
/// `decode` uses itself.
fn decoding_variable(member: &Member) -> Ident {
    match field(member).as_str() {
        taken @ ("object" | "r" | "read") => ident(&format!("{taken}_")),
        free => ident(free),
    }
}

/// Emits the match arms by which decoding handles each known member.
fn emit_member_arms(cx: &Context<'_>, definition: &Definition, members: &[Member]) -> TokenStream {
    let arms = members
        .iter()
        .map(|member| emit_decoding_step(cx, definition, member))
        .enumerate()
        .map(|(index, step)| {
            let index = proc_macro2::Literal::usize_unsuffixed(index);
            quote!(#index => #step,)
        });
    quote!(#(#arms)*)
}

/// Emits the expression that decodes the value of a member.
fn emit_decoding_step(cx: &Context<'_>, definition: &Definition, member: &Member) -> TokenStream {
    match &member.value {
        MemberValue::ConstString(value) => quote!(r.constant(#value)),
        MemberValue::ConstInteger(value) => {
            let words = value.to_string();
            let value = proc_macro2::Literal::i64_unsuffixed(*value);
            quote!(r.constant_integer(#value, #words))
        }
        MemberValue::Type(_) => {
            let local = decoding_variable(member);
            if request_meta::is_provided(cx.ir, definition, member) {
                return quote!(r.shared_member(&mut #local));
            }
            quote!(r.member(&mut #local))
        }
    }
}

/// Emits the encoding of a struct: constants first, then required members, then optional members, so that adjacent
/// constant text is one string.
fn emit_encoding(members: &[Member]) -> TokenStream {
    let mut steps = Vec::new();
    let mut text = "{".to_owned();
    let constants = members
        .iter()
        .filter(|m| m.required)
        .filter_map(constant_json);
    for (index, constant) in constants.enumerate() {
        text += if index == 0 { "" } else { "," };
        text += &constant;
    }
    for (member, value) in field_members(members).filter(|(member, _)| member.required) {
        text += if text == "{" { "" } else { "," };
        text += &format!("{}:", quote_json(&member.name));
        let field = ident(&field(member));
        let write = emit_value_encoding(value, quote!(self.#field));
        steps.push(quote!(w.put(#text); #write));
        text = String::new();
    }
    if !text.is_empty() {
        steps.push(quote!(w.put(#text);));
    }
    for (member, value) in field_members(members).filter(|(member, _)| !member.required) {
        let key = format!("{}:", quote_json(&member.name));
        let field = ident(&field(member));
        let write = emit_value_encoding(value, quote!(value));
        steps.push(quote!(if let Some(value) = &self.#field { w.key(#key); #write }));
    }
    quote!(#(#steps)* self.extra.encode(w); w.put("}");)
}

/// Emits the statement that encodes the value of the type `value` in the expression `place`.
fn emit_value_encoding(value: &Type, place: TokenStream) -> TokenStream {
    match value {
        Type::String(_) => quote!(w.string(&#place);),
        _ => quote!(#place.encode(w);),
    }
}
