//! Steps between objects: taken apart by a pattern, built by a literal, with unknown members handed over.
//!
//! What is done with one member is in `members.rs`.

use proc_macro2::TokenStream;
use quote::quote;

use super::Step;
use super::members::Members;
use crate::convert::tokens::{bound, local};
use crate::emit::ident;
use crate::ir::{Definition, Member, MemberValue, Type};

impl<'i> Step<'_, 'i> {
    pub(super) fn structs(
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
        let built = quote!(Ok(#to::#to_name { #(#built,)* extra }));
        if new.len() == old.len() && gone.is_empty() {
            return quote! {
                #pattern
                let (extra, _) = extra.retype();
                #(#steps)*
                #built
            };
        }
        let (extra, check) = unknown_members(&gone, &steps, &quote!(#to::#to_name));
        quote! {
            #pattern
            #extra
            #(#gone)*
            #(#steps)*
            #check
            #built
        }
    }
}

/// How unknown members are handed over, and the check that each one that is known now was asked for.
fn unknown_members(
    gone: &[TokenStream],
    steps: &[TokenStream],
    target: &TokenStream,
) -> (TokenStream, Option<TokenStream>) {
    let is_changed = |name: &str| {
        let uses = format!("& mut {name}");
        let mut all = gone.iter().chain(steps);
        all.any(|tokens| tokens.to_string().contains(&uses))
    };
    let mut_extra = is_changed("extra").then(|| quote!(mut));
    let (known, check) = if is_changed("known") {
        let words = "every known member was asked for";
        let check = quote!(debug_assert!(known.is_empty(), #words););
        (quote!(mut known), Some(check))
    } else {
        (quote!(_), None)
    };
    let extra = quote!(let (#mut_extra extra, #known) = extra.retype::<#target>(););
    (extra, check)
}

/// The members that are fields.
fn typed(members: &[Member]) -> impl Iterator<Item = (&Member, &Type)> {
    members.iter().filter_map(|member| match &member.value {
        MemberValue::Type(value) => Some((member, value)),
        _ => None,
    })
}
