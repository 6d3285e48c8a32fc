//! The steps between two neighbours: one implementation of `ConvertTo` for each pair of definitions and direction.
//!
//! Values are taken apart by patterns and built by literals, so that a forgotten member does not compile. What a step does
//! with a member is noted for the table in the documentation.

mod members;
mod structs;
mod unions;
mod values;

use std::cell::RefCell;
use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::plan::Plan;
use super::table::{Action, Table};
use super::tokens::{context_for, overlay};
use crate::emit::ident;
use crate::ir::{Definition, Ir, Member, Shape};
use crate::names::variant as variant_name;

/// One direction between two neighbours.
pub struct Step<'p, 'i> {
    pub plan: &'p Plan<'i>,
    pub up: bool,
    pub table: &'p Table,
    /// What the steps do, for the documentation.
    pub effects: RefCell<BTreeSet<Effect>>,
}

/// What a step does with a part of a definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// The definition of the source revision.
    pub definition: String,
    /// The member or variant, empty for the whole.
    pub part: String,
    /// What happens to it.
    pub kind: EffectKind,
    /// Why, in words.
    pub reason: String,
}

/// What happens to a part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// It says the same in another way, or stays as an unknown member.
    Rewritten,
    /// It is filled in.
    Defaulted,
    /// It is left out.
    Dropped,
    /// Something else stands for it.
    Replaced,
    /// It is left out when it does not fit.
    Checked,
    /// The message is refused.
    Refused,
}

impl<'i> Step<'_, 'i> {
    /// The revision from which it converts.
    pub fn source(&self) -> &'i Ir {
        self.facing(self.plan.older, self.plan.newer).0
    }

    /// The revision to which it converts.
    pub fn target(&self) -> &'i Ir {
        self.facing(self.plan.older, self.plan.newer).1
    }

    fn ids(&self) -> (&'i str, &'i str) {
        (&self.source().revision, &self.target().revision)
    }

    /// The same step the other way round.
    fn ids_back(&self) -> (&'i str, &'i str) {
        (&self.target().revision, &self.source().revision)
    }

    /// What belongs to the source revision and to the target revision, of an older and a newer thing; and, the same swap
    /// being its own inverse, the older and the newer one of a source and a target.
    fn facing<T>(&self, older: T, newer: T) -> (T, T) {
        if self.up {
            (older, newer)
        } else {
            (newer, older)
        }
    }

    fn modules(&self) -> (Ident, Ident) {
        self.facing(ident("older"), ident("newer"))
    }

    fn note(&self, definition: &str, part: &str, kind: EffectKind, reason: &str) {
        self.effects.borrow_mut().insert(Effect {
            definition: definition.to_owned(),
            part: part.to_owned(),
            kind,
            reason: reason.to_owned(),
        });
    }

    /// All implementations of this direction.
    pub fn emit(&self) -> TokenStream {
        let pairs = self.plan.pairs.iter();
        let impls = pairs.filter_map(|(older, newer)| {
            let (source, target) = self.facing(older, newer);
            Some(self.pair(self.source().get(source)?, self.target().get(target)?))
        });
        impls.collect()
    }

    fn pair(&self, source: &'i Definition, target: &'i Definition) -> TokenStream {
        let (from, to) = self.modules();
        let (from_name, to_name) = (ident(&source.name), ident(&target.name));
        let entry = self.table.whole(self.ids(), &source.name);
        let this = entry.map_or_else(|| quote!(self), |_| quote!(this));
        let body = self.body(source, target, &this);
        let cx = match entry {
            Some(_) => quote!(cx),
            None => context_for(&body),
        };
        let prepare = entry.and_then(|entry| {
            let Action::Prepare(function) = &entry.action else {
                return None;
            };
            self.note(&source.name, "", EffectKind::Replaced, &entry.reason);
            let function = overlay(function);
            Some(quote!(let this = #function(self, cx)?;))
        });
        quote! {
            impl ConvertTo<#to::#to_name> for #from::#from_name {
                fn convert_to(self, #cx: &mut Context) -> Result<#to::#to_name, Refused> {
                    #prepare
                    #body
                }
            }
        }
    }

    fn body(
        &self,
        source: &'i Definition,
        target: &'i Definition,
        this: &TokenStream,
    ) -> TokenStream {
        match (&source.shape, &target.shape) {
            (Shape::Struct(old), Shape::Struct(new)) => {
                self.structs(source, old, target, new, this)
            }
            (Shape::Enum(old), Shape::Enum(new)) => self.enums(source, old, target, new, this),
            (Shape::Constant(old), Shape::Constant(new)) => {
                self.constants(source, old, target, new, this)
            }
            (Shape::Union(old), Shape::Union(new)) => self.unions(source, old, target, new, this),
            (Shape::Document(old), Shape::Document(new)) => self.documents(source, old, new, this),
            (_, Shape::Union(new)) => self.wrap(source, target, new, this),
            (Shape::Union(old), _) => self.unwrap(source, old, target, this),
            _ => quote!(cx.refit(&#this)),
        }
    }

    fn documents(
        &self,
        source: &Definition,
        old: &[Member],
        new: &[Member],
        this: &TokenStream,
    ) -> TokenStream {
        let looser = new.iter().all(|new| {
            let found = old.iter().find(|old| old.name == new.name);
            found.is_some_and(|old| old.value == new.value && (old.required || !new.required))
        });
        if looser {
            return quote!(Ok(Document::from(#this.into_object())));
        }
        let reason = "members that the target revision gives another type are left out";
        self.note(&source.name, "", EffectKind::Checked, reason);
        quote!(cx.document(#this))
    }

    fn constants(
        &self,
        source: &Definition,
        old: &str,
        target: &Definition,
        new: &str,
        this: &TokenStream,
    ) -> TokenStream {
        let ((from, to), name) = (self.modules(), ident(&source.name));
        let (target, before, after) = (
            ident(&target.name),
            ident(&variant_name(old)),
            ident(&variant_name(new)),
        );
        if old == new {
            return quote!(match #this { #from::#name::#before => Ok(#to::#target::#after) });
        }
        let reason = format!("always {new:?} in {}", self.target().revision);
        self.note(&source.name, "", EffectKind::Checked, &reason);
        quote!(match #this { #from::#name::#before => Err(cx.misfit(#reason)) })
    }

    fn enums(
        &self,
        source: &Definition,
        old: &[String],
        target: &Definition,
        new: &[String],
        this: &TokenStream,
    ) -> TokenStream {
        let ((from, to), name) = (self.modules(), ident(&source.name));
        let target = ident(&target.name);
        let arms = old.iter().map(|value| {
            let variant = ident(&variant_name(value));
            if new.contains(value) {
                quote!(#from::#name::#variant => #to::#target::#variant,)
            } else {
                let reason = format!("`{value}` is no value of {}", self.target().revision);
                self.note(&source.name, value, EffectKind::Checked, &reason);
                quote!(#from::#name::#variant => return Err(cx.misfit(#reason)),)
            }
        });
        quote! {
            Ok(match #this {
                #(#arms)*
                #from::#name::Unrecognized(name) => #to::#target::from(name.as_str()),
            })
        }
    }
}
