//! Emits enums for strings with known values.

use quote::quote;

use super::context::{Context, Parts};
use super::docs;
use super::types::ident;
use crate::ir::Definition;
use crate::ir::names;

/// Emits a string enum; values that the revision does not define are kept as unknown values.
pub fn emit(cx: &Context<'_>, definition: &Definition, values: &[String]) -> Parts {
    let name = ident(&definition.name);
    let docs = docs::definition_docs(cx.ir, definition);
    let variants: Vec<_> = names::value_variants(values)
        .iter()
        .map(|n| ident(n))
        .collect();
    let variant_docs = values.iter().map(|value| format!(" `{value}`"));
    let non_exhaustive = cx.non_exhaustive();
    // Variant names that differ only in case contain the value after an underscore.
    let is_plain = variants.iter().all(|name| !name.to_string().contains('_'));
    let camel_case = (!is_plain).then(|| quote!(#[allow(non_camel_case_types)]));
    let definition = quote! {
        #docs
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #camel_case
        #non_exhaustive
        pub enum #name {
            #(#[doc = #variant_docs] #variants,)*
            /// A value that this revision does not define.
            Unrecognized(UnknownName<Self>),
        }
        impl #name {
            /// The value in JSON.
            #[inline]
            pub fn as_str(&self) -> &str {
                match self {
                    #(Self::#variants => #values,)*
                    Self::Unrecognized(name) => name.as_str(),
                }
            }
        }
    };
    let codec = quote! {
        impl From<&str> for #name {
            #[inline]
            fn from(value: &str) -> Self {
                match value {
                    #(#values => Self::#variants,)*
                    unknown => Self::Unrecognized(UnknownName::from_unknown(unknown)),
                }
            }
        }
        impl Decode for #name {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
                r.str().map(|value| Self::from(&*value))
            }
        }
        impl Encode for #name {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                w.string(self.as_str());
            }
        }
        impl Validate for #name {
            #[inline]
            fn check(&self, path: &Path<'_>, to: &mut Violations) {
                if let Self::Unrecognized(name) = self {
                    name.check(path, to);
                }
            }
        }
        mcp_exact_wire::serde_through_wire!(#name);
    };
    Parts { definition, codec }
}

/// Emits an optional constant as an enum with one value, because its presence has a meaning.
pub fn emit_constant(cx: &Context<'_>, definition: &Definition, value: &str) -> Parts {
    let name = ident(&definition.name);
    let docs = docs::definition_docs(cx.ir, definition);
    let only = ident(&names::value_variant(value));
    let variant_doc = format!(" `{value}`");
    let text = serde_json::Value::from(value).to_string();
    let non_exhaustive = cx.non_exhaustive();
    let definition = quote! {
        #docs
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #non_exhaustive
        pub enum #name {
            #[doc = #variant_doc]
            #only,
        }
    };
    let codec = quote! {
        impl Decode for #name {
            #[inline]
            fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
                r.constant(#value).map(|()| Self::#only)
            }
        }
        impl Encode for #name {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                w.put(#text);
            }
        }
        impl Validate for #name {
            #[inline]
            fn check(&self, _: &Path<'_>, _: &mut Violations) {}
        }
        mcp_exact_wire::serde_through_wire!(#name);
    };
    Parts { definition, codec }
}
