//! What a step does with one member of an object: one that both revisions have, one that only the source has, and one that
//! only the target has.
//!
//! Every decision is noted for the page of the documentation.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::{EffectKind, Step};
use crate::convert::plan::{Resolved, resolve};
use crate::convert::table::{Action, Entry};
use crate::convert::tokens::{as_result, closure, context_for, json_text, local};
use crate::emit::ident;
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};

/// What is done with the members of one pair of objects.
pub(super) struct Members<'s, 'p, 'i> {
    pub step: &'s Step<'p, 'i>,
    pub source: &'i Definition,
    pub target: &'i Definition,
    /// Whether they are requests or notifications.
    pub request: bool,
    /// Whether the id is gone.
    pub has_id: bool,
    /// Whether `jsonrpc` is gone.
    pub has_constant: bool,
}

impl Members<'_, '_, '_> {
    fn note(&self, member: &Member, kind: EffectKind, reason: &str) {
        self.step
            .note(&self.source.name, &member.name, kind, reason);
    }

    /// A member that only the source has.
    pub fn gone(&self, member: &Member) -> TokenStream {
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
    pub fn silence(&self, gone: &[&Member]) -> Option<TokenStream> {
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
    pub fn member(
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
                let (cx, converted) = (context_for(converted), as_result(converted));
                quote!(cx.at(#name, |#cx| #converted)?)
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
                    let convert = closure(&quote!(value), &value);
                    quote!(cx.optional(#name, #local, #convert)?)
                }
            },
            (true, false) => {
                let value = match converted {
                    None => quote!(Some(#local)),
                    Some(value) => {
                        let convert = closure(&quote!(value), &value);
                        quote!(cx.optional(#name, Some(#local), #convert)?)
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
