//! Generates `MethodId`, the methods of all revisions and extensions as values, with the facts that the schemas show, and a
//! constant for each name.
//!
//! The facts of a method are those of the newest release that shows them. A draft or an extension decides them only for the methods
//! that no release has: what a draft proposes changes nothing for the revisions that endpoints speak.

use std::collections::BTreeMap;

use heck::ToShoutySnakeCase;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;

use crate::emit::ident;
use crate::ir::names::value_variants;
use crate::ir::{Definition, Ir, Member, MemberValue, Method, Shape, Type};

/// Variant of the methods that no schema defines.
const VENDOR: &str = "Vendor";

/// Params that name the subject of a request or notification.
const TARGET_PARAMS: [&str; 3] = ["name", "uri", "taskId"];

/// Name of the result that requires input.
const INPUT_REQUIRED: &str = "InputRequiredResult";

/// Required members of a result that clients may cache.
const CACHE_MEMBERS: [&str; 2] = ["ttlMs", "cacheScope"];

/// Facts of one method.
#[derive(Debug, Default)]
struct MethodFacts<'a> {
    /// True for a request.
    is_request: bool,
    /// Identifiers of the revisions and extensions that define the method.
    defined_by: Vec<&'a str>,
    /// Member of the result that contains one page of a list.
    list_member: Option<&'a str>,
    /// Param that names the subject of the message.
    target_param: Option<&'static str>,
    /// True if results have a cache lifetime.
    is_cached: bool,
    /// True if a result may require input.
    may_require_input: bool,
}

/// Names of a method: its variant and its constant.
struct MethodNames {
    /// Variant of `MethodId`.
    variant: Ident,
    /// Constant with the name.
    constant: Ident,
}

/// Emits the enum and the constants for the methods of these releases, oldest first, and of these drafts and extensions.
pub(super) fn emit_method_ids(releases: &[&Ir], others: &[&Ir]) -> TokenStream {
    let methods = collect_facts(releases, others);
    let names = name_methods(&methods);
    let all: Vec<_> = methods.iter().zip(&names).collect();
    let count = Literal::usize_unsuffixed(all.len() + 1);
    let (mut variants, mut constants) = (TokenStream::new(), TokenStream::new());
    for ((method, facts), MethodNames { variant, constant }) in &all {
        let kind = if facts.is_request {
            "request"
        } else {
            "notification"
        };
        let docs = format!(" The {kind} `{method}` of {}.", facts.defined_by.join(", "));
        variants.extend(quote!(#[doc = #docs] #variant,));
        let docs = format!(" Name of [`MethodId::{variant}`](super::MethodId::{variant}).");
        constants.extend(quote!(#[doc = #docs] pub const #constant: &str = #method;));
    }
    let ids = names.iter().map(|names| &names.variant);
    let with_names = all.iter().map(|((method, _), names)| {
        let variant = &names.variant;
        quote!(Self::#variant => #method,)
    });
    let by_length = emit_by_length(&all);
    let list_member = emit_optional(&all, |facts| facts.list_member);
    let target_param = emit_optional(&all, |facts| facts.target_param);
    let is_cached = emit_flag(&all, |facts| facts.is_cached);
    let may_require_input = emit_flag(&all, |facts| facts.may_require_input);
    quote! {
        /// Method of a message, as a value that can be matched and compared.
        ///
        /// There is one variant for each request and notification of the revisions and extensions in `schema/`, whichever side
        /// sends it. A new revision or extension adds variants.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum MethodId {
            #variants
            /// A method that no revision and no extension defines; its name is in the message.
            Vendor,
        }
        impl MethodId {
            /// Number of variants.
            pub const COUNT: usize = #count;
            /// All methods that a schema defines, sorted by name.
            pub const KNOWN: &[Self] = &[#(Self::#ids),*];
            /// Returns the method with this name; [`Vendor`](Self::Vendor) if no schema defines it.
            pub fn from_name(name: &str) -> Self {
                match name.len() {
                    #by_length
                    _ => Self::Vendor,
                }
            }
            /// Returns the name, such as `tools/call`; `None` for [`Vendor`](Self::Vendor).
            #[inline]
            pub const fn name(self) -> Option<&'static str> {
                Some(match self {
                    #(#with_names)*
                    Self::Vendor => return None,
                })
            }
            /// Returns the index of the variant, which is less than [`COUNT`](Self::COUNT). Do not store indexes: a new version
            /// of this crate may contain more methods.
            #[inline]
            pub const fn index(self) -> usize {
                self as usize
            }
            /// Returns the member of the result that contains one page of a list, such as `tools`; `None` unless the result has
            /// pages (`server/utilities/pagination`).
            pub const fn list_member(self) -> Option<&'static str> {
                #list_member
            }
            /// Returns the param that names the subject of the message: `name` of a tool or prompt, `uri` of a resource, or
            /// `taskId`; `None` if no such param is required.
            pub const fn target_param(self) -> Option<&'static str> {
                #target_param
            }
            /// Returns true if results have a cache lifetime and scope from 2026-07-28 on (`server/utilities/caching`).
            pub const fn is_cached(self) -> bool {
                #is_cached
            }
            /// Returns true if a result of type `input_required` may answer the request from 2026-07-28 on
            /// (`basic/patterns/mrtr`, "Supported Requests").
            pub const fn may_require_input(self) -> bool {
                #may_require_input
            }
        }
        /// Names of the methods that a schema defines.
        pub mod method {
            #constants
        }
    }
}

/// Collects the facts of every method, sorted by name.
fn collect_facts<'a>(releases: &[&'a Ir], others: &[&'a Ir]) -> BTreeMap<&'a str, MethodFacts<'a>> {
    let mut all: BTreeMap<&str, MethodFacts<'_>> = BTreeMap::new();
    for ir in releases {
        for method in &ir.methods {
            all.entry(&method.method).or_default().add(ir, method);
        }
    }
    let of_releases: Vec<&str> = all.keys().copied().collect();
    for ir in others {
        for method in &ir.methods {
            let facts = all.entry(&method.method).or_default();
            if of_releases.binary_search(&&*method.method).is_ok() {
                facts.name_definer(ir);
            } else {
                facts.add(ir, method);
            }
        }
    }
    all
}

impl<'a> MethodFacts<'a> {
    /// Adds what a schema shows of the method.
    fn add(&mut self, ir: &'a Ir, method: &'a Method) {
        self.name_definer(ir);
        self.is_request |= method.request;
        self.list_member = list_member(ir, method).or(self.list_member);
        self.target_param = target_param(ir, method).or(self.target_param);
        let is_cached = |members| CACHE_MEMBERS.iter().all(|name| has_required(members, name));
        self.is_cached |= results(ir, method).any(is_cached);
        self.may_require_input |= result_names(method).any(|name| name == INPUT_REQUIRED);
    }

    /// Adds the revision or extension of a schema to those that define the method.
    fn name_definer(&mut self, ir: &'a Ir) {
        if !self.defined_by.contains(&&*ir.revision) {
            self.defined_by.push(&ir.revision);
        }
    }
}

/// Returns the name of each possible result.
fn result_names(method: &Method) -> impl Iterator<Item = &String> {
    let plain = method.result.iter().filter(|_| method.outcomes.is_empty());
    method.outcomes.iter().chain(plain)
}

/// Returns the members of each possible result.
fn results<'a>(ir: &'a Ir, method: &'a Method) -> impl Iterator<Item = &'a [Member]> {
    result_names(method).filter_map(|name| members(ir.get(name)?))
}

/// Returns the only array in a result with a `nextCursor`.
fn list_member<'a>(ir: &'a Ir, method: &'a Method) -> Option<&'a str> {
    results(ir, method).find_map(|members| {
        members.iter().find(|member| member.name == "nextCursor")?;
        let is_list = |value: &MemberValue| matches!(value, MemberValue::Type(Type::Array { .. }));
        let mut lists = members.iter().filter(|member| is_list(&member.value));
        let only = lists.next()?;
        lists.next().is_none().then_some(only.name.as_str())
    })
}

/// Returns the param that names the subject.
fn target_param(ir: &Ir, method: &Method) -> Option<&'static str> {
    let params = members(ir.get(method.params.as_ref()?.reference()?)?)?;
    let mut names = TARGET_PARAMS.into_iter();
    names.find(|name| has_required(params, name))
}

/// Returns true if a member is required.
fn has_required(members: &[Member], name: &str) -> bool {
    let mut members = members.iter();
    members.any(|member| member.required && member.name == name)
}

/// Returns the members of an object.
fn members(definition: &Definition) -> Option<&[Member]> {
    match &definition.shape {
        Shape::Struct(members) => Some(members),
        _ => None,
    }
}

/// Returns unique names of variants and constants, in the order of the methods.
fn name_methods(methods: &BTreeMap<&str, MethodFacts<'_>>) -> Vec<MethodNames> {
    let methods: Vec<&str> = methods.keys().copied().collect();
    let mut variants = value_variants(&methods);
    for at in 0..variants.len() {
        while variants[at] == VENDOR || variants[..at].contains(&variants[at]) {
            variants[at].push_str("Method");
        }
    }
    let constants: Vec<String> = variants
        .iter()
        .map(|name| name.to_shouty_snake_case())
        .collect();
    let unique = |at: usize| {
        let mut all = constants.iter().filter(|name| **name == constants[at]);
        all.nth(1).is_none()
    };
    let names = variants.iter().enumerate().map(|(at, variant)| {
        let constant = if unique(at) {
            constants[at].clone()
        } else {
            let bytes = methods[at].bytes().map(|byte| format!("{byte:02X}"));
            format!("METHOD_{}", bytes.collect::<String>())
        };
        MethodNames {
            variant: ident(variant),
            constant: ident(&constant),
        }
    });
    names.collect()
}

/// A method, its facts and its names.
type NamedMethod<'a> = ((&'a &'a str, &'a MethodFacts<'a>), &'a MethodNames);

/// Emits one arm for each length of a name, so that few names are compared.
fn emit_by_length(all: &[NamedMethod<'_>]) -> TokenStream {
    let mut lengths: BTreeMap<usize, TokenStream> = BTreeMap::new();
    for ((method, _), names) in all {
        let variant = &names.variant;
        let arms = lengths.entry(method.len()).or_default();
        arms.extend(quote!(#method => Self::#variant,));
    }
    let arms = lengths.into_iter().map(|(length, arms)| {
        let length = Literal::usize_unsuffixed(length);
        quote!(#length => match name { #arms _ => Self::Vendor },)
    });
    arms.collect()
}

/// Emits the match for a text that some methods have.
fn emit_optional<'a>(
    all: &[NamedMethod<'a>],
    text: impl Fn(&MethodFacts<'a>) -> Option<&'a str>,
) -> TokenStream {
    let mut texts: BTreeMap<&str, Vec<&Ident>> = BTreeMap::new();
    for ((_, facts), names) in all {
        if let Some(text) = text(facts) {
            texts.entry(text).or_default().push(&names.variant);
        }
    }
    let arms = texts
        .iter()
        .map(|(text, variants)| quote!(#(Self::#variants)|* => Some(#text),));
    quote!(match self { #(#arms)* _ => None })
}

/// Emits the match for a flag that some methods have.
fn emit_flag<'a>(all: &[NamedMethod<'a>], flag: impl Fn(&MethodFacts<'a>) -> bool) -> TokenStream {
    let having = all.iter().filter(|((_, facts), _)| flag(facts));
    let mut having = having.map(|(_, names)| &names.variant).peekable();
    if having.peek().is_none() {
        return quote!(false);
    }
    quote!(matches!(self, #(Self::#having)|*))
}
