//! The steps between two neighbours: one implementation of `ConvertTo` for each pair of definitions and direction.
//!
//! Values are taken apart by patterns and built by literals, so that a forgotten member does not compile. What a step does
//! with a member is noted for the table in the documentation.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use super::plan::{Plan, Resolved, narrower, resolve};
use super::table::{Action, Entry, Table};
use crate::emit::ident;
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type, Union};
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
        if self.up {
            self.plan.older
        } else {
            self.plan.newer
        }
    }

    /// The revision to which it converts.
    pub fn target(&self) -> &'i Ir {
        if self.up {
            self.plan.newer
        } else {
            self.plan.older
        }
    }

    fn ids(&self) -> (&'i str, &'i str) {
        (&self.source().revision, &self.target().revision)
    }

    /// The same step the other way round.
    fn ids_back(&self) -> (&'i str, &'i str) {
        (&self.target().revision, &self.source().revision)
    }

    fn modules(&self) -> (Ident, Ident) {
        let (source, target) = if self.up {
            ("older", "newer")
        } else {
            ("newer", "older")
        };
        (ident(source), ident(target))
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
            let (source, target) = if self.up {
                (older, newer)
            } else {
                (newer, older)
            };
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
        let cx = if entry.is_some() || mentions_context(&body) {
            quote!(cx)
        } else {
            quote!(_)
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

    fn wrap(
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

    fn unwrap(
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

    fn unions(
        &self,
        source: &'i Definition,
        old: &'i Union,
        target: &'i Definition,
        new: &'i Union,
        this: &TokenStream,
    ) -> TokenStream {
        let (_, to) = self.modules();
        let name = ident(&target.name);
        let (older, newer) = if self.up { (old, new) } else { (new, old) };
        let pairs = self.plan.variants(older, newer);
        let open = new.open_tag().is_some();
        let arms = self.variants(source, old, |_, variant| {
            let pair = pairs.iter().find(|(a, b)| {
                let mine = if self.up { a } else { b };
                std::ptr::eq::<crate::ir::Variant>(*mine, variant)
            })?;
            let after = if self.up { pair.1 } else { pair.0 };
            let value = self.value_of(&variant.value, &after.value, quote!(value));
            let after = ident(&after.name);
            Some(quote!(Ok(#to::#name::#after(#value))))
        });
        let unrecognized = old.open_tag().is_some().then(|| {
            let (from, source) = (self.modules().0, ident(&source.name));
            let kept = if open {
                quote!(|kept| matches!(kept, #to::#name::Unrecognized(_)))
            } else {
                quote!(|_| false)
            };
            quote!(#from::#source::Unrecognized(value) => cx.unrecognized(&value, #kept),)
        });
        quote!(match #this { #arms #unrecognized })
    }

    /// The arms for the variants of a union: chosen, paired, or read as the other revision reads them.
    fn variants(
        &self,
        source: &'i Definition,
        union: &'i Union,
        paired: impl Fn(usize, &'i crate::ir::Variant) -> Option<TokenStream>,
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
            let (mine, other) = if self.up {
                (older, newer)
            } else {
                (newer, older)
            };
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

    /// A value in its new form.
    pub fn value_of(&self, source: &Type, target: &Type, place: TokenStream) -> TokenStream {
        self.value(source, target, &place).unwrap_or(place)
    }

    /// A value in its new form; `None` when it is the same value of the same Rust type.
    fn value(&self, source: &Type, target: &Type, place: &TokenStream) -> Option<TokenStream> {
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
                let (older, newer) = if self.up { (old, new) } else { (new, old) };
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
                    let cx = closure_context(&item);
                    {
                        let item = as_result(&item);
                        quote!(cx.items(#place, |item, #cx| #item)?)
                    }
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
                let cx = closure_context(&value);
                let value = as_result(&value);
                Some(quote!(cx.entries(#place, |value, #cx| #value)?))
            }
            (Type::Nullable(old), Type::Nullable(new)) => {
                let value = self.value(old, new, &quote!(value))?;
                let cx = closure_context(&value);
                let value = as_result(&value);
                Some(quote!(cx.nullable(#place, |value, #cx| #value)?))
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

    fn structs(
        &self,
        source: &'i Definition,
        old: &'i [Member],
        target: &'i Definition,
        new: &'i [Member],
        this: &TokenStream,
    ) -> TokenStream {
        let (from, to) = self.modules();
        let (from_name, to_name) = (ident(&source.name), ident(&target.name));
        let fields = typed(old).map(|(member, _)| bound(member));
        let request = new.iter().chain(old).any(|m| m.name == "method");
        let lacks = |name: &str| {
            let has = |members: &[Member]| members.iter().any(|member| member.name == name);
            request && has(old) && !has(new)
        };
        let members = Members {
            step: self,
            source,
            target,
            request,
            has_id: lacks("id"),
            has_constant: lacks("jsonrpc"),
        };
        let gone: Vec<&Member> = old
            .iter()
            .filter(|old| new.iter().all(|new| new.name != old.name))
            .collect();
        let silence = members.silence(&gone);
        let gone: Vec<TokenStream> = gone.iter().map(|member| members.gone(member)).collect();
        let gone: Vec<TokenStream> = silence.into_iter().chain(gone).collect();
        let (mut steps, mut built) = (Vec::new(), Vec::new());
        for member in new {
            let before = old.iter().find(|old| old.name == member.name);
            let (step, value) = members.member(before, member);
            steps.extend(step);
            if let Some(value) = value {
                let local = local(member);
                if local != value.to_string() {
                    steps.push(quote!(let #local = #value;));
                }
                built.push(bound(member));
            }
        }
        let pattern = quote!(let #from::#from_name { #(#fields,)* extra } = #this;);
        let same_names = new.len() == old.len() && gone.is_empty();
        if same_names {
            return quote! {
                #pattern
                let (extra, _) = extra.retype();
                #(#steps)*
                Ok(#to::#to_name { #(#built,)* extra })
            };
        }
        let mutable = |name: &str| {
            let uses = format!("& mut {name}");
            let mut all = gone.iter().chain(&steps);
            all.any(|tokens| tokens.to_string().contains(&uses))
                .then(|| quote!(mut))
        };
        let (mut_extra, mut_known) = (mutable("extra"), mutable("known"));
        let (known, check) = if mut_known.is_some() {
            let check = "every known member was asked for";
            (
                quote!(mut known),
                quote!(debug_assert!(known.is_empty(), #check);),
            )
        } else {
            (quote!(_), TokenStream::new())
        };
        quote! {
            #pattern
            let (#mut_extra extra, #known) = extra.retype::<#to::#to_name>();
            #(#gone)*
            #(#steps)*
            #check
            Ok(#to::#to_name { #(#built,)* extra })
        }
    }
}

/// What is done with the members of one pair of objects.
struct Members<'s, 'p, 'i> {
    step: &'s Step<'p, 'i>,
    source: &'i Definition,
    target: &'i Definition,
    /// Whether they are requests or notifications.
    request: bool,
    /// Whether the id is gone.
    has_id: bool,
    /// Whether `jsonrpc` is gone.
    has_constant: bool,
}

impl Members<'_, '_, '_> {
    fn note(&self, member: &Member, kind: EffectKind, reason: &str) {
        self.step
            .note(&self.source.name, &member.name, kind, reason);
    }

    /// A member that only the source has.
    fn gone(&self, member: &Member) -> TokenStream {
        let (name, since) = (&member.name, &self.step.source().revision);
        let envelope = self.request && matches!(name.as_str(), "id" | "jsonrpc");
        let rule = if self.step.up {
            quote!(Gone::Older)
        } else {
            quote!(Gone::Newer { since: #since })
        };
        let text = match &member.value {
            MemberValue::Type(_) => return self.gone_value(member, envelope, &rule),
            MemberValue::ConstString(value) => json_text(value),
            MemberValue::ConstInteger(value) => value.to_string(),
        };
        let what = if envelope {
            "part of the envelope"
        } else {
            "a constant of the type"
        };
        self.note(member, EffectKind::Rewritten, what);
        // The constant of the envelope goes with the id.
        let stays = match (self.step.up, self.has_id) {
            (true, _) => quote!(true),
            (false, true) if envelope => quote!(with_id),
            (false, _) => quote!(false),
        };
        let reason = if envelope {
            quote!(ENVELOPE)
        } else {
            quote!("a constant of the type, which the other revision leaves out")
        };
        quote!(cx.constant_gone(#name, #text, &mut extra, #stays, #reason);)
    }

    fn gone_value(&self, member: &Member, envelope: bool, rule: &TokenStream) -> TokenStream {
        let (name, local) = (&member.name, local(member));
        if let Some(entry) = self.entry(member) {
            let reason = &entry.reason;
            self.note(member, EffectKind::Refused, reason);
            let refuse = quote!(cx.at(#name, |cx| Err::<(), _>(cx.refused(#reason)))?;);
            return if member.required {
                refuse
            } else {
                quote!(if #local.is_some() { #refuse })
            };
        }
        if envelope && !self.step.up {
            self.note(member, EffectKind::Rewritten, "part of the envelope");
            let with_id = self.has_constant.then(|| quote!(let with_id =));
            return quote!(#with_id cx.id_to_envelope(#name, &#local, &mut extra););
        }
        let default = self.said_by_silence(member);
        if self.step.up {
            self.note(member, EffectKind::Rewritten, "stays as an unknown member");
        } else if let Some((text, _, true)) = default {
            let reason =
                format!("{text} is left out: it says what absence says; another value is refused");
            self.note(member, EffectKind::Rewritten, &reason);
        } else if let Some((text, ..)) = default {
            let reason = format!(
                "a member of {} and later; {text} says what absence says",
                self.step.source().revision
            );
            self.note(member, EffectKind::Dropped, &reason);
        } else {
            let reason = format!("a member of {} and later", self.step.source().revision);
            self.note(member, EffectKind::Dropped, &reason);
        }
        let place = if member.required {
            quote!(#local)
        } else {
            quote!(value)
        };
        let (gone, said) = match default {
            None => (quote!(cx.gone(#name, &#place, &mut extra, #rule);), None),
            Some((text, reason, decides)) => (
                if decides {
                    quote!(cx.gone_or_refused(#name, &#place, &mut extra, #rule)?;)
                } else {
                    quote!(cx.gone(#name, &#place, &mut extra, #rule);)
                },
                Some(quote!(!cx.stripped(#name, &#place, #text, silent, #reason))),
            ),
        };
        match (member.required, said) {
            (true, None) => gone,
            (true, Some(said)) => quote!(if #said { #gone }),
            (false, None) => quote!(if let Some(value) = #local { #gone }),
            (false, Some(said)) => quote!(if let Some(value) = #local && #said { #gone }),
        }
    }

    /// What the absence of a newer member says, why, and whether another value decides what the message means.
    fn said_by_silence(&self, member: &Member) -> Option<(&String, &String, bool)> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids_back(), &self.target.name, &member.name);
        let entry = entry.filter(|_| !step.up)?;
        match &entry.action {
            Action::Default(text) | Action::Session(text) => Some((text, &entry.reason, false)),
            Action::Means(text) => Some((text, &entry.reason, true)),
            _ => None,
        }
    }

    /// Whether all members of which the absence says something say just that.
    fn silence(&self, gone: &[&Member]) -> Option<TokenStream> {
        let said = gone.iter().filter_map(|member| {
            let (text, ..) = self.said_by_silence(member)?;
            let local = local(member);
            Some(if member.required {
                quote!(says(&#local, #text))
            } else {
                quote!(#local.is_none())
            })
        });
        let said: Vec<TokenStream> = said.collect();
        (!said.is_empty()).then(|| quote!(let silent = #(#said)&&*;))
    }

    /// The refusal that somebody chose for a member that is gone.
    fn entry(&self, member: &Member) -> Option<&Entry> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids(), &self.source.name, &member.name)?;
        matches!(entry.action, Action::Refuse).then_some(entry)
    }

    /// A member of the target: what has to be done, and its value when it is a field.
    fn member(
        &self,
        before: Option<&Member>,
        after: &Member,
    ) -> (Option<TokenStream>, Option<TokenStream>) {
        let name = &after.name;
        let text = match &after.value {
            MemberValue::ConstString(value) => json_text(value),
            MemberValue::ConstInteger(value) => value.to_string(),
            MemberValue::Type(target) => return (None, Some(self.value(before, after, target))),
        };
        let step = match before {
            Some(before) if before.value == after.value => None,
            Some(before) => match &before.value {
                MemberValue::Type(_) => {
                    let local = local(before);
                    let reason = format!("always {text} in {}", self.step.target().revision);
                    self.note(after, EffectKind::Checked, &reason);
                    Some(quote!(cx.at(#name, |cx| cx.same_constant(&#local, #text, #reason))?;))
                }
                _ => {
                    let reason = format!("always {text} in {}", self.step.target().revision);
                    self.note(after, EffectKind::Refused, &reason);
                    Some(quote!(cx.at(#name, |cx| Err::<(), _>(cx.refused(#reason)))?;))
                }
            },
            None => {
                let envelope = self.request && name == "jsonrpc";
                let what = if envelope {
                    "part of the envelope"
                } else {
                    "a constant of the type"
                };
                self.note(after, EffectKind::Rewritten, what);
                let reason = if envelope {
                    quote!(ENVELOPE)
                } else {
                    quote!(#what)
                };
                Some(quote!(cx.constant(#name, #text, &mut known, #reason);))
            }
        };
        (step, None)
    }

    fn value(&self, before: Option<&Member>, after: &Member, target: &Type) -> TokenStream {
        let name = &after.name;
        let Some(before) = before else {
            return self.new_value(after);
        };
        let local = local(before);
        let source = match &before.value {
            MemberValue::Type(source) => source,
            MemberValue::ConstString(text) => {
                let value = quote!(cx.at(#name, |cx| cx.refit(&#text))?);
                return if after.required {
                    value
                } else {
                    quote!(Some(#value))
                };
            }
            MemberValue::ConstInteger(number) => {
                let number = Literal::i64_unsuffixed(*number);
                let value = quote!(cx.at(#name, |cx| cx.refit(&Integer::from(#number)))?);
                return if after.required {
                    value
                } else {
                    quote!(Some(#value))
                };
            }
        };
        let converted = self.step.value(source, target, &quote!(value));
        let in_place = match &converted {
            None => quote!(value),
            Some(converted) => {
                let cx = closure_context(converted);
                {
                    let converted = as_result(converted);
                    quote!(cx.at(#name, |#cx| #converted)?)
                }
            }
        };
        match (before.required, after.required) {
            (true, true) => match converted {
                None => quote!(#local),
                Some(_) => quote! {{ let value = #local; #in_place }},
            },
            (false, false) => match converted {
                None => quote!(#local),
                Some(value) => {
                    let cx = closure_context(&value);
                    {
                        let value = as_result(&value);
                        quote!(cx.optional(#name, #local, |value, #cx| #value)?)
                    }
                }
            },
            (true, false) => {
                let value = match converted {
                    None => quote!(Some(#local)),
                    Some(value) => {
                        let cx = closure_context(&value);
                        {
                            let value = as_result(&value);
                            quote!(cx.optional(#name, Some(#local), |value, #cx| #value)?)
                        }
                    }
                };
                if self.step.up || !self.empty_stands_for_absence(target, self.step.target()) {
                    value
                } else {
                    quote!(#value.filter(|value| !is_empty_object(value)))
                }
            }
            (false, true) => {
                let default = self.default_of(before, after, source, &in_place);
                quote!(match #local { Some(value) => #in_place, None => #default })
            }
        }
    }

    /// What stands for a member that may be absent in the source and has to be there in the target.
    fn default_of(
        &self,
        before: &Member,
        after: &Member,
        source: &Type,
        in_place: &TokenStream,
    ) -> TokenStream {
        let name = &after.name;
        if let Some(filled) = self.filled(after) {
            return filled;
        }
        if self.empty_stands_for_absence(source, self.step.source()) {
            let reason = "an empty object says what absence says";
            self.note(before, EffectKind::Rewritten, reason);
            let annotation = match resolve(self.step.source(), source) {
                Resolved::Definition(definition, _) => {
                    let (from, name) = (self.step.modules().0, ident(&definition.name));
                    quote!(: #from::#name)
                }
                _ => TokenStream::new(),
            };
            return quote! {{
                let value #annotation = cx.filled(#name, "{}", LossKind::Rewritten, #reason)?;
                #in_place
            }};
        }
        let reason = format!("required in {}", self.step.target().revision);
        self.note(after, EffectKind::Refused, &reason);
        quote!(cx.missing(#name, #reason)?)
    }

    /// A member that only the target has.
    fn new_value(&self, after: &Member) -> TokenStream {
        let name = &after.name;
        let known = quote!(cx.known(#name, &mut known));
        if !after.required {
            let entry = self
                .step
                .table
                .member(self.step.ids(), &self.source.name, name);
            let session = entry.is_some_and(|e| matches!(e.action, Action::Session(_)));
            return if session {
                quote!(match #known { Some(value) => Some(value), None => cx.perhaps_of_session(#name) })
            } else {
                known
            };
        }
        let default = self.filled(after).unwrap_or_else(|| {
            if self.request && name == "id" {
                self.note(after, EffectKind::Rewritten, "part of the envelope");
                return quote!(cx.id_of_request(#name)?);
            }
            let reason = format!("required in {}", self.step.target().revision);
            self.note(after, EffectKind::Refused, &reason);
            quote!(cx.missing(#name, #reason)?)
        });
        quote!(match #known { Some(value) => value, None => #default })
    }

    /// The value that somebody chose for a member that the source does not say.
    fn filled(&self, after: &Member) -> Option<TokenStream> {
        let (step, name) = (self.step, &after.name);
        let entry = step.table.member(step.ids(), &self.source.name, name)?;
        let reason = &entry.reason;
        match &entry.action {
            Action::Default(text) => {
                self.note(after, EffectKind::Defaulted, reason);
                Some(quote!(cx.filled(#name, #text, LossKind::Defaulted, #reason)?))
            }
            Action::Means(text) => {
                self.note(after, EffectKind::Rewritten, reason);
                Some(quote!(cx.filled(#name, #text, LossKind::Rewritten, #reason)?))
            }
            Action::Session(text) => {
                self.note(after, EffectKind::Defaulted, reason);
                Some(quote!(cx.of_session(#name, #text, #reason)?))
            }
            _ => None,
        }
    }

    /// Whether an object without members is a value of the type.
    fn empty_stands_for_absence(&self, value: &Type, ir: &Ir) -> bool {
        match resolve(ir, value) {
            Resolved::Definition(definition, _) => match &definition.shape {
                Shape::Struct(members) => members.iter().all(|member| !member.required),
                _ => false,
            },
            Resolved::Plain(value) => matches!(value, Type::JsonObject | Type::Map(_)),
            Resolved::Runtime(_) => false,
        }
    }
}

/// Whether some tokens name a variable.
fn mentions(tokens: &TokenStream, variable: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(name) => name == variable,
        proc_macro2::TokenTree::Group(group) => mentions(&group.stream(), variable),
        _ => false,
    })
}

/// Whether a step uses its context.
fn mentions_context(tokens: &TokenStream) -> bool {
    mentions(tokens, "cx")
}

/// An expression as a result: without its `?`, or as it is in `Ok`.
pub fn as_result(tokens: &TokenStream) -> TokenStream {
    let mut all: Vec<proc_macro2::TokenTree> = tokens.clone().into_iter().collect();
    match all.last() {
        Some(proc_macro2::TokenTree::Punct(last)) if last.as_char() == '?' => {
            all.pop();
            all.into_iter().collect()
        }
        _ => quote!(Ok(#tokens)),
    }
}

/// The context as a closure around some steps names it.
fn closure_context(tokens: &TokenStream) -> TokenStream {
    if mentions_context(tokens) {
        quote!(cx)
    } else {
        quote!(_)
    }
}

/// The members that are fields.
fn typed(members: &[Member]) -> impl Iterator<Item = (&Member, &Type)> {
    members.iter().filter_map(|member| match &member.value {
        MemberValue::Type(value) => Some((member, value)),
        _ => None,
    })
}

/// The variable of a member: named as the field, but for names that steps need themselves.
fn local(member: &Member) -> Ident {
    match member.field.as_str() {
        taken @ ("cx" | "extra" | "known" | "this" | "value" | "item" | "items") => {
            ident(&format!("{taken}_"))
        }
        free => ident(free),
    }
}

/// A field and its variable, in a pattern or a literal.
fn bound(member: &Member) -> TokenStream {
    let (field, local) = (ident(&member.field), local(member));
    if field == local {
        quote!(#field)
    } else {
        quote!(#field: #local)
    }
}

fn reference(name: &str) -> Type {
    Type::Ref {
        name: name.to_owned(),
        boxed: false,
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

/// The path of a function of the overlay.
fn overlay(function: &str) -> TokenStream {
    let segments = function.split("::").map(ident);
    quote!(crate::overlay #(::#segments)*)
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
