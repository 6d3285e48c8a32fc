//! A value of one type as a value of another one: what a step does with members, items and entries.
//!
//! Gives nothing where both are the same Rust type and no bound is narrower, so that the value is moved.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Step;
use crate::convert::plan::{Resolved, narrower, resolve};
use crate::convert::tokens::closure;
use crate::ir::Type;

impl Step<'_, '_> {
    /// A value in its new form.
    pub fn value_of(&self, source: &Type, target: &Type, place: TokenStream) -> TokenStream {
        self.value(source, target, &place).unwrap_or(place)
    }

    /// A value in its new form; `None` when it is the same value of the same Rust type.
    pub(super) fn value(
        &self,
        source: &Type,
        target: &Type,
        place: &TokenStream,
    ) -> Option<TokenStream> {
        match (
            resolve(self.source(), source),
            resolve(self.target(), target),
        ) {
            (Resolved::Definition(old, old_boxed), Resolved::Definition(new, new_boxed)) => {
                let place = if old_boxed {
                    quote!((*#place))
                } else {
                    place.clone()
                };
                let (older, newer) = self.facing(old, new);
                let pair = (older.name.as_str(), newer.name.as_str());
                let converted = if self.plan.pairs.contains(&pair) {
                    quote!(#place.convert_to(cx)?)
                } else {
                    quote!(cx.refit(&#place)?)
                };
                Some(if new_boxed {
                    quote!(Box::new(#converted))
                } else {
                    converted
                })
            }
            (Resolved::Runtime(old), Resolved::Runtime(new)) if old == new => None,
            (Resolved::Plain(old), Resolved::Plain(new)) => self.plain(old, new, place),
            (Resolved::Plain(Type::JsonObject), Resolved::Definition(..)) => {
                Some(quote!(cx.fit(&#place)?))
            }
            (_, Resolved::Plain(Type::Json)) => Some(quote!(Json::from_encode(&#place))),
            _ => Some(quote!(cx.refit(&#place)?)),
        }
    }

    fn plain(&self, old: &Type, new: &Type, place: &TokenStream) -> Option<TokenStream> {
        match (old, new) {
            (Type::String { .. }, Type::String { .. })
            | (Type::Boolean, Type::Boolean)
            | (Type::Json, Type::Json)
            | (Type::JsonObject, Type::JsonObject) => None,
            (Type::Integer(old), Type::Integer(new)) | (Type::Number(old), Type::Number(new)) => {
                let (low, high) = narrower(*old, *new);
                if low.is_none() && high.is_none() {
                    return None;
                }
                let (low, high) = (optional(low), optional(high));
                Some(quote!(cx.bounded(#place, #low, #high)?))
            }
            (
                Type::Array {
                    items: old,
                    min_items: low_old,
                    max_items: high_old,
                },
                Type::Array {
                    items: new,
                    min_items,
                    max_items,
                },
            ) => {
                let items = self.value(old, new, &quote!(item)).map(|item| {
                    let convert = closure(&quote!(item), &item);
                    quote!(cx.items(#place, #convert)?)
                });
                let low = min_items.filter(|low| low_old.is_none_or(|old| old < *low));
                let high = max_items.filter(|high| high_old.is_none_or(|old| old > *high));
                if low.is_none() && high.is_none() {
                    return items;
                }
                let (low, high) = (optional(low), optional(high));
                let items = items.unwrap_or_else(|| place.clone());
                Some(quote! {{ let items = #items; cx.sized(items, #low, #high)? }})
            }
            (Type::Map(old), Type::Map(new)) => {
                let value = self.value(old, new, &quote!(value))?;
                let convert = closure(&quote!(value), &value);
                Some(quote!(cx.entries(#place, #convert)?))
            }
            (Type::Nullable(old), Type::Nullable(new)) => {
                let value = self.value(old, new, &quote!(value))?;
                let convert = closure(&quote!(value), &value);
                Some(quote!(cx.nullable(#place, #convert)?))
            }
            (old, Type::Nullable(new)) => {
                let value = self.value_of(old, new, place.clone());
                Some(quote!(Nullable::Value(#value)))
            }
            (Type::Nullable(old), new) => {
                let value = self.value_of(old, new, quote!(value));
                Some(quote! {{ let value = cx.not_null(#place)?; #value }})
            }
            (_, Type::Json) => Some(quote!(Json::from_encode(&#place))),
            _ => Some(quote!(cx.refit(&#place)?)),
        }
    }
}

fn optional<N: TryInto<i64>>(bound: Option<N>) -> TokenStream {
    match bound.and_then(|bound| bound.try_into().ok()) {
        Some(bound) => {
            let bound = Literal::i64_unsuffixed(bound);
            quote!(Some(#bound))
        }
        None => quote!(None),
    }
}
