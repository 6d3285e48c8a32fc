//! Emits the enum of each union, its conversions, and the static tables that select its variants.

use std::collections::BTreeMap;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::context::{Context, Parts};
use super::types::{ident, rust_type};
use super::{constructors, docs, validate};
use crate::ir::properties::has_envelope_in_types;
use crate::ir::{Definition, Ir, MemberValue, ObjectDispatch, Shape, Tag, Type, Union};

/// Emits an enum with its conversions and codec.
pub fn emit(cx: &Context<'_>, definition: &Definition, union: &Union) -> Parts {
    let name = ident(&definition.name);
    let docs = docs::definition_docs(cx.ir, definition);
    let variants: Vec<_> = union
        .variants
        .iter()
        .map(|variant| ident(&variant.name))
        .collect();
    let types: Vec<_> = union
        .variants
        .iter()
        .map(|variant| rust_type(&variant.value))
        .collect();
    let variant_docs = union.variants.iter().map(|variant| match &variant.value {
        crate::ir::Type::Ref { name, .. } => format!(" [`{name}`]"),
        _ => format!(" The member of the kind `{}`.", variant.name),
    });
    let open = union.open_tag().is_some();
    let unrecognized = open.then(|| {
        quote! {
            /// A member that this revision does not define, kept as it arrived.
            Unrecognized(UnknownVariant<Self>),
        }
    });
    let encode_unrecognized = open.then(|| quote!(Self::Unrecognized(value) => value.encode(w),));
    let conversions = emit_conversions(cx.ir, definition, union);
    let constructors = constructors::emit_variant_constructors(cx, definition, union);
    let tag = emit_tag_method(cx.ir, definition, union);
    let open_union = union
        .open_tag()
        .map(|tag| emit_open_union(cx.ir, definition, tag));
    let decode = emit_decoding(definition, union);
    let check = validate::emit_union_check(cx, union);
    let non_exhaustive = cx.non_exhaustive();
    let definition = quote! {
        #docs
        #[derive(Debug, Clone, PartialEq, Eq)]
        #non_exhaustive
        pub enum #name {
            #(#[doc = #variant_docs] #variants(#types),)*
            #unrecognized
        }
        #constructors
        #tag
    };
    let codec = quote! {
        #conversions
        #open_union
        impl Decode for #name {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> ReadResult<Self> { #decode }
        }
        impl Encode for #name {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                match self {
                    #(Self::#variants(value) => value.encode(w),)*
                    #encode_unrecognized
                }
            }
        }
        impl Validate for #name { #check }
        mcp_exact_wire::serde_through_wire!(#name);
    };
    Parts { definition, codec }
}

/// Emits a method that returns the discriminant of a value, for unions in which each variant has one.
fn emit_tag_method(ir: &Ir, definition: &Definition, union: &Union) -> Option<TokenStream> {
    let tag = union.open_tag()?;
    if union_role(ir, &definition.name, tag) != UnionRole::Value {
        return None;
    }
    let mut values = Vec::new();
    for variant in &union.variants {
        let Type::Ref { name, .. } = &variant.value else {
            return None;
        };
        let Shape::Struct(members) = &ir.get(name)?.shape else {
            return None;
        };
        match &members.iter().find(|member| member.name == tag)?.value {
            MemberValue::ConstString(value) => values.push((ident(&variant.name), value)),
            _ => return None,
        }
    }
    let arms = values
        .iter()
        .map(|(variant, value)| quote!(Self::#variant(_) => #value,));
    let name = ident(&definition.name);
    let docs =
        format!(" Returns the `{tag}`, also of a variant that this revision does not define.");
    Some(quote! {
        impl #name {
            #[doc = #docs]
            pub fn tag(&self) -> &str {
                match self {
                    #(#arms)*
                    Self::Unrecognized(value) => value.tag(),
                }
            }
        }
    })
}

/// Emits the implementation of `OpenUnion` for a union that keeps unknown variants: the discriminant and the role of
/// the objects.
fn emit_open_union(ir: &Ir, definition: &Definition, tag: &str) -> TokenStream {
    let name = ident(&definition.name);
    let role = match union_role(ir, &definition.name, tag) {
        UnionRole::Value => quote!(Value),
        UnionRole::Bare => quote!(Bare),
        UnionRole::Request => quote!(Request),
        UnionRole::Notification => quote!(Notification),
    };
    quote! {
        impl mcp_exact_wire::OpenUnion for #name {
            const TAG: &'static str = #tag;
            const ROLE: mcp_exact_wire::UnionRole = mcp_exact_wire::UnionRole::#role;
        }
    }
}

/// Role of a union's objects, as in `UnionRole` of the crate `mcp-exact-wire`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnionRole {
    /// Values inside a message.
    Value,
    /// Requests or notifications without `jsonrpc` and `id`.
    Bare,
    /// Requests that contain `jsonrpc` and `id`.
    Request,
    /// Notifications that contain `jsonrpc`.
    Notification,
}

/// Returns the role of the objects of the union `name` with the discriminant `tag`.
pub fn union_role(ir: &Ir, name: &str, tag: &str) -> UnionRole {
    let inside = has_envelope_in_types(ir);
    match name {
        "ClientRequest" | "ServerRequest" if inside => UnionRole::Request,
        "ClientNotification" | "ServerNotification" if inside => UnionRole::Notification,
        _ if tag == "method" => UnionRole::Bare,
        _ => UnionRole::Value,
    }
}

/// Emits `From` for each type of exactly one variant, and `From<&str>` if there is a string variant.
fn emit_conversions(ir: &Ir, definition: &Definition, union: &Union) -> TokenStream {
    let name = ident(&definition.name);
    let text = |value: &Type| rust_type(value).to_string();
    let mut same: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_type: BTreeMap<String, usize> = BTreeMap::new();
    for (index, variant) in union.variants.iter().enumerate() {
        *same
            .entry(text(resolve_aliases(ir, &variant.value)))
            .or_default() += 1;
        by_type.insert(text(&variant.value), index);
    }
    let once = by_type
        .into_iter()
        .filter(|(_, at)| same[&text(resolve_aliases(ir, &union.variants[*at].value))] == 1);
    let impls = once.map(|(text, at)| {
        let variant = &union.variants[at];
        let (from, value) = (rust_type(&variant.value), ident(&variant.name));
        let from_str = (text == "String").then(|| {
            quote! {
                impl From<&str> for #name {
                    #[inline]
                    fn from(value: &str) -> Self {
                        Self::#value(value.into())
                    }
                }
            }
        });
        quote! {
            impl From<#from> for #name {
                #[inline]
                fn from(value: #from) -> Self {
                    Self::#value(value)
                }
            }
            #from_str
        }
    });
    quote!(#(#impls)*)
}

/// Resolves the aliases of a type.
fn resolve_aliases<'i>(ir: &'i Ir, value: &'i Type) -> &'i Type {
    let Type::Ref { name, .. } = value else {
        return value;
    };
    match ir.get(name).map(|definition| &definition.shape) {
        Some(Shape::Alias(inner)) => resolve_aliases(ir, inner),
        _ => value,
    }
}

/// Emits the expression that decodes a union.
fn emit_decoding(definition: &Definition, union: &Union) -> TokenStream {
    let dispatch = &union.dispatch;
    let name = &definition.name;
    let variant = |index: usize| ident(&union.variants[index].name);
    let scalars = [
        (dispatch.string, quote!(Kind::String)),
        (dispatch.number, quote!(Kind::Number)),
        (dispatch.boolean, quote!(Kind::Boolean)),
        (dispatch.null, quote!(Kind::Null)),
    ];
    let mut arms: Vec<TokenStream> = Vec::new();
    for (index, kind) in scalars {
        let Some(index) = index else { continue };
        let variant = variant(index);
        if !dispatch.values.is_empty() && dispatch.string == Some(index) && arms.is_empty() {
            let known = emit_known_strings(union);
            arms.push(quote!(#kind => { #known }));
            continue;
        }
        arms.push(quote!(#kind => Decode::decode(r).map(Self::#variant),));
    }
    if let Some(array) = emit_array_dispatch(definition, union) {
        arms.push(quote!(Kind::Array => { #array }));
    }
    let objects = dispatch
        .objects
        .as_ref()
        .map(|objects| emit_object_cases(definition, union, objects));
    match objects {
        Some(objects) if arms.is_empty() => objects,
        objects => {
            if let Some(objects) = objects {
                arms.push(quote!(Kind::Object => { #objects }));
            }
            quote! {
                match r.kind()? {
                    #(#arms)*
                    _ => Err(r.no_variant(#name)),
                }
            }
        }
    }
}

/// Emits the decoding of strings for a union in which some variants have known values and another variant accepts all
/// other strings.
fn emit_known_strings(union: &Union) -> TokenStream {
    let dispatch = &union.dispatch;
    let sets = dispatch
        .values
        .iter()
        .map(|(values, _)| quote!(&[#(#values),*]));
    let cases = dispatch.values.iter().enumerate().map(|(at, (_, index))| {
        let (number, variant) = (
            Literal::usize_unsuffixed(at),
            ident(&union.variants[*index].name),
        );
        quote!(Some(#number) => Decode::decode(r).map(Self::#variant),)
    });
    let others = dispatch.string.map(|index| {
        let variant = ident(&union.variants[index].name);
        quote!(_ => Decode::decode(r).map(Self::#variant),)
    });
    quote! {
        match r.select_string_set(&[#(#sets),*])? {
            #(#cases)*
            #others
        }
    }
}

/// Emits the expression that selects a variant for an array and decodes it; `None` if the union has no array variant.
fn emit_array_dispatch(definition: &Definition, union: &Union) -> Option<TokenStream> {
    let dispatch = &union.dispatch;
    let first = ident(&union.variants[*dispatch.arrays.first()?].name);
    let Some(items) = &dispatch.items else {
        return Some(quote!(Decode::decode(r).map(Self::#first)));
    };
    let (table, name) = (
        emit_dispatch_table("ITEMS", &definition.name, items),
        &definition.name,
    );
    let cases = dispatch.arrays.iter().map(|&index| {
        let (number, variant) = (
            Literal::usize_unsuffixed(index),
            ident(&union.variants[index].name),
        );
        quote!(Some(#number) => Decode::decode(r).map(Self::#variant),)
    });
    Some(quote! {
        #table
        match r.select_item_variant(&ITEMS)? {
            None => Decode::decode(r).map(Self::#first),
            #(#cases)*
            Some(_) => Err(r.no_variant(#name)),
        }
    })
}

/// Emits the expression that selects a variant for an object and decodes it.
fn emit_object_cases(
    definition: &Definition,
    union: &Union,
    objects: &ObjectDispatch,
) -> TokenStream {
    let mut used: Vec<usize> = objects.cases.iter().map(|case| case.variant).collect();
    used.sort_unstable();
    used.dedup();
    if let ([only], None) = (used.as_slice(), union.open_tag()) {
        let variant = ident(&union.variants[*only].name);
        return quote!(Decode::decode(r).map(Self::#variant));
    }
    let (table, name) = (
        emit_dispatch_table("DISPATCH", &definition.name, objects),
        &definition.name,
    );
    let cases = used.iter().map(|&index| {
        let (number, variant) = (
            Literal::usize_unsuffixed(index),
            ident(&union.variants[index].name),
        );
        quote!(#number => Decode::decode(r).map(Self::#variant),)
    });
    let otherwise = match union.open_tag() {
        Some(_) => quote!(_ => UnknownVariant::read(r).map(Self::Unrecognized),),
        None => quote!(_ => Err(r.no_variant(#name)),),
    };
    quote! {
        #table
        match r.select_variant(&DISPATCH)? {
            #(#cases)*
            #otherwise
        }
    }
}

/// Emits the static table named `table` that selects among the object variants of a union.
pub fn emit_dispatch_table(table: &str, union: &str, objects: &ObjectDispatch) -> TokenStream {
    let table = ident(table);
    let tag = objects.tag.as_deref().unwrap_or_default();
    let probes = objects.probes.iter().map(|(name, inner)| {
        let inner = inner.as_deref().unwrap_or_default();
        quote!(Probe { name: #name, inner: #inner })
    });
    let cases = objects.cases.iter().map(|case| {
        let tag = match &case.tag {
            Tag::Is(value) => quote!(Tag::Is(#value)),
            Tag::Absent => quote!(Tag::Absent),
            Tag::Any => quote!(Tag::Any),
        };
        let has = bit_set(case.has.iter().copied());
        let variant = Literal::usize_unsuffixed(case.variant);
        quote!(DispatchCase { tag: #tag, has: #has, variant: #variant })
    });
    let exclusive = objects.exclusive.iter().map(|(a, b)| {
        let (a, b) = (bit_set([*a]), bit_set([*b]));
        quote!((#a, #b))
    });
    quote! {
        static #table: UnionDispatch = UnionDispatch {
            name: #union,
            tag: #tag,
            members: &[#(#probes),*],
            cases: &[#(#cases),*],
            exclusive: &[#(#exclusive),*],
        };
    }
}

/// Returns an integer literal in which the bits with these indexes are set.
fn bit_set(indices: impl IntoIterator<Item = usize>) -> Literal {
    Literal::u32_unsuffixed(indices.into_iter().fold(0, |bits, index| bits | 1 << index))
}
