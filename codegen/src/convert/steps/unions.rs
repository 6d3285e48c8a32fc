//! Steps between unions, and between a union and one of its members.
//!
//! Variants are paired by what they mean; those without a counterpart are converted as somebody chose, or refused.

use proc_macro2::TokenStream;
use quote::quote;

use super::{EffectKind, Step};
use crate::convert::table::{Action, Entry};
use crate::convert::tokens::{as_result, mentions, overlay, reference};
use crate::emit::{Role, ident, role};
use crate::ir::{Definition, Ir, Shape, Union, Variant};

impl<'i> Step<'_, 'i> {
    pub(super) fn wrap(
        &self,
        source: &Definition,
        target: &Definition,
        new: &'i Union,
        this: &TokenStream,
    ) -> TokenStream {
        let (_, to) = self.modules();
        let at = self.plan.member_of(new, self.target(), source, !self.up);
        let Some(variant) = at.map(|at| &new.variants[at]) else {
            return quote!(cx.refit(&#this));
        };
        let (target, name) = (ident(&target.name), ident(&variant.name));
        let own = reference(&source.name);
        let value = self.value_of(&own, &variant.value, this.clone());
        quote!(Ok(#to::#target::#name(#value)))
    }

    pub(super) fn unwrap(
        &self,
        source: &'i Definition,
        old: &'i Union,
        target: &'i Definition,
        this: &TokenStream,
    ) -> TokenStream {
        let at = self.plan.member_of(old, self.source(), target, self.up);
        let own = reference(&target.name);
        let arms = self.variants(source, old, |at_variant, variant| {
            (Some(at_variant) == at)
                .then(|| as_result(&self.value_of(&variant.value, &own, quote!(value))))
        });
        quote!(match #this { #arms })
    }

    pub(super) fn unions(
        &self,
        source: &'i Definition,
        old: &'i Union,
        target: &'i Definition,
        new: &'i Union,
        this: &TokenStream,
    ) -> TokenStream {
        let (_, to) = self.modules();
        let name = ident(&target.name);
        let (older, newer) = self.facing(old, new);
        let pairs = self.plan.variants(older, newer);
        let open = new.open_tag().is_some();
        let arms = self.variants(source, old, |_, variant| {
            let pair = pairs
                .iter()
                .find(|(a, b)| std::ptr::eq::<Variant>(*self.facing(a, b).0, variant))?;
            let after = self.facing(pair.0, pair.1).1;
            let value = self.value_of(&variant.value, &after.value, quote!(value));
            let after = ident(&after.name);
            Some(quote!(Ok(#to::#name::#after(#value))))
        });
        let convert = ident(self.unrecognized((source, old), (target, new)));
        let unrecognized = old.open_tag().is_some().then(|| {
            let (from, source) = (self.modules().0, ident(&source.name));
            let kept = if open {
                quote!(|kept| matches!(kept, #to::#name::Unrecognized(_)))
            } else {
                quote!(|_| false)
            };
            quote!(#from::#source::Unrecognized(value) => cx.#convert(value.json(), #kept),)
        });
        quote!(match #this { #arms #unrecognized })
    }

    /// The function that converts a variant that neither revision may know: a message gets the envelope that it lacks.
    fn unrecognized(
        &self,
        (source, old): (&Definition, &Union),
        (target, new): (&Definition, &Union),
    ) -> &'static str {
        let of = |ir: &Ir, definition: &Definition, union: &Union| {
            let tag = union.open_tag()?;
            Some(role(ir, &definition.name, tag))
        };
        let roles = (
            of(self.source(), source, old),
            of(self.target(), target, new),
        );
        match roles {
            (Some(Role::Bare), Some(Role::Request)) => "unrecognized_request",
            (Some(Role::Bare), Some(Role::Notification)) => "unrecognized_notification",
            _ => "unrecognized",
        }
    }

    /// The arms for the variants of a union: chosen, paired, or read as the other revision reads them.
    fn variants(
        &self,
        source: &'i Definition,
        union: &'i Union,
        paired: impl Fn(usize, &'i Variant) -> Option<TokenStream>,
    ) -> TokenStream {
        let (from, name) = (self.modules().0, ident(&source.name));
        let arms = union.variants.iter().enumerate().map(|(at, variant)| {
            let entry = self.table.variant(self.ids(), &source.name, &variant.name);
            let done = match entry {
                Some(entry) => self.chosen(source, &variant.name, entry),
                None => paired(at, variant).unwrap_or_else(|| {
                    let reason = format!("no counterpart in {}", self.target().revision);
                    self.note(&source.name, &variant.name, EffectKind::Refused, &reason);
                    quote!(cx.foreign(&value, #reason))
                }),
            };
            let variant = ident(&variant.name);
            let unused = if mentions(&done, "value") {
                quote!(value)
            } else {
                quote!(_)
            };
            quote!(#from::#name::#variant(#unused) => #done,)
        });
        let mut arms: TokenStream = arms.collect();
        if union.open_tag().is_some() && !self.target_is_union(source) {
            let reason = format!("no counterpart in {}", self.target().revision);
            arms.extend(quote!(#from::#name::Unrecognized(value) => cx.foreign(&value, #reason),));
        }
        arms
    }

    /// Whether some step of this definition handles unknown variants itself.
    fn target_is_union(&self, source: &Definition) -> bool {
        self.plan.pairs.iter().any(|(older, newer)| {
            let (mine, other) = self.facing(older, newer);
            let target = self.target().get(other).map(|d| &d.shape);
            *mine == source.name && matches!(target, Some(Shape::Union(_)))
        })
    }

    fn chosen(&self, source: &Definition, part: &str, entry: &Entry) -> TokenStream {
        let reason = &entry.reason;
        match &entry.action {
            Action::Call(function) => {
                self.note(&source.name, part, EffectKind::Replaced, reason);
                let function = overlay(function);
                quote!(#function(value, cx))
            }
            Action::Refuse => {
                self.note(&source.name, part, EffectKind::Refused, reason);
                quote!(Err(cx.refused(#reason)))
            }
            // The table lets nothing else through.
            _ => quote!(cx.foreign(&value, #reason)),
        }
    }
}
