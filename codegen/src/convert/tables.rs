//! The tables of the dynamic conversion, the chains of message roots, and the list of known revisions.
//!
//! Takes all released revisions and the plans between neighbours; gives tokens. What a row does is in the crate.

use std::collections::BTreeSet;

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::plan::{Plan, Resolved, resolve};
use super::tokens::as_result;
use crate::emit::{ident, marker_name};
use crate::error::{Error, Result};
use crate::ir::{Definition, Ir, Method, Type};
use crate::revision_table::static_name;

/// The name of a crate as it stands in paths.
pub fn library(id: &str) -> proc_macro2::Ident {
    let plain = id.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    ident(&format!("mcp_{plain}"))
}

/// The enum of known revisions.
pub fn revisions(irs: &[&Ir]) -> TokenStream {
    let names: Vec<_> = irs
        .iter()
        .map(|ir| ident(&marker_name(&ir.revision)))
        .collect();
    let statics = irs.iter().map(|ir| ident(&static_name(&ir.revision)));
    let docs = irs.iter().map(|ir| format!(" Revision {}.", ir.revision));
    let homes = irs.iter().zip(&names).map(|(ir, name)| {
        let (id, library) = (&ir.revision, library(&ir.revision));
        quote! {
            #[cfg(feature = #id)]
            impl Home for #library::#name {
                const KNOWN: KnownRevision = KnownRevision::#name;
            }
        }
    });
    quote! {
        use mcp_exact_revisions::RevisionSpec;
        use crate::Home;
        /// The released revisions that this crate was generated for, oldest first. None depends on a feature.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum KnownRevision {
            #(#[doc = #docs] #names,)*
        }
        impl KnownRevision {
            /// All of them, oldest first.
            pub const ALL: &'static [Self] = &[#(Self::#names),*];
            /// Returns what is known of the revision: lifecycle, methods and named properties.
            pub const fn spec(self) -> &'static RevisionSpec {
                match self { #(Self::#names => mcp_exact_revisions::#statics,)* }
            }
        }
        #(#homes)*
    }
}

/// The types and methods of one revision.
pub fn types(ir: &Ir, older: Option<&Plan<'_>>, newer: Option<&Plan<'_>>) -> TokenStream {
    let library = library(&ir.revision);
    let rows = ir.definitions.iter().map(|definition| {
        let (name, text) = (ident(&definition.name), &definition.name);
        let newer = newer.and_then(|plan| counterpart(plan, definition, true));
        let older = older.and_then(|plan| counterpart(plan, definition, false));
        let (newer, older) = (index(newer), index(older));
        let official = definition.official;
        quote!(TypeRow::of::<#library::#name>(#text, #official, #newer, #older))
    });
    quote! {
        use crate::rows::TypeRow;
        pub static TYPES: &[TypeRow] = &[#(#rows),*];
    }
}

/// The methods of all revisions.
///
/// # Errors
/// When the definitions that a revision has of one method differ: a row has one type of parameters and one of results.
pub fn methods(irs: &[&Ir], plans: &[Plan<'_>]) -> Result<TokenStream> {
    for ir in irs {
        check_one_type(ir)?;
    }
    let names: BTreeSet<(&str, bool)> = irs
        .iter()
        .flat_map(|ir| ir.methods.iter().map(|m| (m.method.as_str(), m.request)))
        .collect();
    let rows = names.into_iter().map(|(name, request)| {
        let found: Vec<Option<&Method>> = irs
            .iter()
            .map(|ir| {
                let mut methods = ir.methods.iter();
                methods.find(|m| m.method == name && m.request == request)
            })
            .collect();
        let entries = found.iter().enumerate().map(|(at, method)| match method {
            None => quote!(None),
            Some(method) => {
                let next = plans.get(at).zip(found.get(at + 1).copied().flatten());
                let entry = method_in(irs[at], method, next);
                quote!(Some(#entry))
            }
        });
        quote!(MethodRow { method: #name, request: #request, revisions: &[#(#entries),*] })
    });
    Ok(quote! {
        use crate::rows::{MethodIn, MethodRow};
        /// Sorted by method; the revisions in the order of `KnownRevision::ALL`.
        pub static METHODS: &[MethodRow] = &[#(#rows),*];
    })
}

/// Each side can have a definition of its own, as of `notifications/cancelled` in 2026-07-28; their types are the same.
fn check_one_type(ir: &Ir) -> Result<()> {
    let types = |method: &Method| (method.params.clone(), method.result.clone());
    let differs = ir.methods.iter().enumerate().find(|(at, method)| {
        let mut before = ir.methods[..*at].iter();
        before.any(|other| {
            (&other.method, other.request) == (&method.method, method.request)
                && types(other) != types(method)
        })
    });
    match differs {
        None => Ok(()),
        Some((_, method)) => {
            let problem = format!(
                "the definitions of `{}` differ between the sides, which conversions cannot express",
                method.method
            );
            let remedy = "give both the same parameters and result by an erratum, or teach the conversions a row a side";
            Err(Error::new(&ir.revision, "", problem, remedy))
        }
    }
}

fn method_in(ir: &Ir, method: &Method, next: Option<(&Plan<'_>, &Method)>) -> TokenStream {
    let place = |name: &str| index(position(ir, name));
    let name = |method: &Method| match &method.params {
        Some(Type::Ref { name, .. }) => Some(name.clone()),
        _ => None,
    };
    let params = name(method).map_or(quote!(None), |name| place(&name));
    let result = method.result.as_deref().map_or(quote!(None), place);
    let same = |old: Option<String>, new: Option<String>| match next.map(|(plan, _)| plan) {
        Some(plan) => match (old, new) {
            (Some(old), Some(new)) => plan.same_by_name(&old, &new),
            (None, None) => true,
            _ => false,
        },
        None => false,
    };
    let params_same = same(name(method), next.and_then(|(_, method)| name(method)));
    let result_same = same(
        method.result.clone(),
        next.and_then(|(_, method)| method.result.clone()),
    );
    let required = method.params_required;
    quote! {
        MethodIn {
            params: #params,
            params_required: #required,
            params_same: #params_same,
            result: #result,
            result_same: #result_same,
        }
    }
}

fn position(ir: &Ir, name: &str) -> Option<usize> {
    ir.definitions
        .binary_search_by(|definition| definition.name.as_str().cmp(name))
        .ok()
}

/// The index of the definition that means the same in the neighbour.
fn counterpart(plan: &Plan<'_>, definition: &Definition, up: bool) -> Option<usize> {
    let edges = edges(plan);
    let name = definition.name.as_str();
    let other = if up {
        let found: Vec<&str> = edges.iter().filter(|e| e.0 == name).map(|e| e.1).collect();
        best(&found, |other| plan.is_counterpart(name, other), name)
    } else {
        let found: Vec<&str> = edges.iter().filter(|e| e.1 == name).map(|e| e.0).collect();
        best(&found, |other| plan.is_counterpart(other, name), name)
    }?;
    position(if up { plan.newer } else { plan.older }, other)
}

fn best<'n>(found: &[&'n str], is: impl Fn(&str) -> bool, name: &str) -> Option<&'n str> {
    let mut ranked: Vec<&str> = found.to_vec();
    ranked.sort_by_key(|other| (!is(other), *other != name));
    ranked.first().copied()
}

/// Every pair of definitions that has a row: those with a step, and other names for types.
fn edges<'i>(plan: &Plan<'i>) -> BTreeSet<(&'i str, &'i str)> {
    let mut edges = plan.pairs.clone();
    edges.extend(plan.official_pairs());
    edges
}

/// The steps between two neighbours, both ways, as rows.
pub fn edges_table(
    plan: &Plan<'_>,
    values: impl Fn(bool, &Type, &Type) -> TokenStream,
) -> TokenStream {
    let rows = edges(plan).into_iter().filter_map(|(old, new)| {
        let typed = plan.pairs.contains(&(old, new));
        let (from, to) = (position(plan.older, old)?, position(plan.newer, new)?);
        let reference = |name: &str| Type::Ref {
            name: name.to_owned(),
            boxed: false,
        };
        let (a, b) = (reference(old), reference(new));
        let same = plan.same_by_name(old, new);
        let (up, down) = (values(true, &a, &b), values(false, &b, &a));
        let (from, to) = (short(from), short(to));
        let (old, new) = (ident(old), ident(new));
        let types = quote!(older::#old, newer::#new);
        if typed {
            return Some(quote!(EdgeRow::typed::<#types>(#from, #to, #same)));
        }
        let step = |source: TokenStream, target: TokenStream, value: TokenStream| {
            let cx = if value.to_string().contains("cx") {
                quote!(cx)
            } else {
                quote!(_)
            };
            let value = as_result(&value);
            let f = quote!(|value: #source, #cx| -> Result<#target, Refused> { #value });
            quote!(|value, cx| step(value, cx, #f))
        };
        let (older, newer) = (quote!(older::#old), quote!(newer::#new));
        let (up, down) = (
            step(older.clone(), newer.clone(), up),
            step(newer, older, down),
        );
        Some(quote!(EdgeRow { older: #from, newer: #to, same: #same, up: #up, down: #down }))
    });
    quote! {
        /// The steps, sorted by both indices.
        pub static EDGES: &[EdgeRow] = &[#(#rows),*];
    }
}

fn short(index: usize) -> Literal {
    Literal::usize_unsuffixed(index)
}

fn index(index: Option<usize>) -> TokenStream {
    match index {
        Some(index) => {
            let index = short(index);
            quote!(Some(#index))
        }
        None => quote!(None),
    }
}

/// The list of what is compiled in.
pub fn index_module(irs: &[&Ir]) -> TokenStream {
    let ids: Vec<_> = irs.iter().map(|ir| &ir.revision).collect();
    let names: Vec<_> = irs
        .iter()
        .map(|ir| ident(&marker_name(&ir.revision)))
        .collect();
    let modules: Vec<_> = ids.iter().map(|id| ident(&types_module(id))).collect();
    let steps: Vec<_> = irs
        .windows(2)
        .map(|pair| {
            let (id, module) = (&pair[0].revision, ident(&step_module(&pair[0].revision)));
            (
                quote!(#[cfg(feature = #id)] mod #module;),
                quote!(#module::EDGES),
            )
        })
        .collect();
    let step_modules = steps.iter().map(|(module, _)| module);
    let edges = (0..irs.len()).map(|at| match steps.get(at) {
        Some((_, edges)) => edges.clone(),
        None => quote!(&[]),
    });
    let tables = quote! {
        #(
            #[cfg(feature = #ids)]
            RevisionRow {
                revision: KnownRevision::#names,
                types: #modules::TYPES,
                to_newer: #edges,
            },
        )*
    };
    quote! {
        mod chains;
        mod methods;
        mod revisions;
        #(#[cfg(feature = #ids)] mod #modules;)*
        #(#step_modules)*
        pub use methods::METHODS;
        pub use revisions::KnownRevision;
        use crate::rows::RevisionRow;
        /// The revisions that are compiled in, oldest first and without gaps.
        pub static REVISIONS: &[RevisionRow] = &[#tables];
    }
}

/// The module of the types of a revision.
pub fn types_module(id: &str) -> String {
    format!(
        "types_{}",
        id.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    )
}

/// The module of the steps between a revision and the next one.
pub fn step_module(id: &str) -> String {
    format!(
        "from_{}",
        id.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    )
}

/// The chains of message roots between revisions that are no neighbours.
pub fn chains<'i>(irs: &[&'i Ir], plans: &[Plan<'i>]) -> TokenStream {
    let mut done = BTreeSet::new();
    let mut out = TokenStream::new();
    for path in paths(irs, plans) {
        for from in 0..path.names.len() {
            for to in from + 2..path.names.len() {
                for (from, to) in [(from, to), (to, from)] {
                    let next = if from < to { from + 1 } else { from - 1 };
                    let at = |at: usize| (path.start + at, path.names[at]);
                    if done.insert((at(from), at(to))) {
                        out.extend(chain(irs, [at(from), at(next), at(to)]));
                    }
                }
            }
        }
    }
    quote! {
        use crate::rows::chain;
        #out
    }
}

/// A root and what it is called in each of some consecutive revisions.
struct Chain<'i> {
    start: usize,
    names: Vec<&'i str>,
}

fn paths<'i>(irs: &[&'i Ir], plans: &[Plan<'i>]) -> Vec<Chain<'i>> {
    let mut paths = Vec::new();
    for (start, ir) in irs.iter().enumerate() {
        for method in &ir.methods {
            let roles: [fn(&Method) -> Option<&str>; 3] = [
                |method| Some(&method.definition),
                |method| match &method.params {
                    Some(Type::Ref { name, .. }) => Some(name),
                    _ => None,
                },
                |method| method.result.as_deref(),
            ];
            for role in roles {
                let name = |ir: &'i Ir| -> Option<&'i str> {
                    let same =
                        |m: &&Method| m.method == method.method && m.request == method.request;
                    definition_name(ir, role(ir.methods.iter().find(same)?)?)
                };
                paths.extend(path(irs, plans, start, |_, at| name(irs[at])));
                paths.extend(path(irs, plans, start, |before, at| match before {
                    None => name(irs[at]),
                    Some(before) => plans[at - 1]
                        .pairs
                        .iter()
                        .find(|(a, b)| *a == before && plans[at - 1].is_counterpart(a, b))
                        .map(|(_, b)| *b),
                }));
            }
        }
    }
    paths
}

/// The longest chain from `start` on.
fn path<'i>(
    irs: &[&'i Ir],
    plans: &[Plan<'i>],
    start: usize,
    name: impl Fn(Option<&'i str>, usize) -> Option<&'i str>,
) -> Option<Chain<'i>> {
    let mut names = vec![name(None, start)?];
    for at in start + 1..irs.len() {
        let before = names[names.len() - 1];
        match name(Some(before), at) {
            Some(next) if plans[at - 1].pairs.contains(&(before, next)) => names.push(next),
            _ => break,
        }
    }
    (names.len() > 2).then_some(Chain { start, names })
}

fn definition_name<'i>(ir: &'i Ir, name: &'i str) -> Option<&'i str> {
    let value = Type::Ref {
        name: name.to_owned(),
        boxed: false,
    };
    match resolve(ir, &value) {
        Resolved::Definition(definition, _) => ir
            .get(&definition.name)
            .map(|definition| definition.name.as_str()),
        _ => None,
    }
}

fn chain(irs: &[&Ir], stops: [(usize, &str); 3]) -> TokenStream {
    let oldest = stops.iter().map(|(at, _)| *at).min().unwrap_or_default();
    let feature = &irs[oldest].revision;
    let [from, next, to] = stops.map(|(at, name)| {
        let (library, name) = (library(&irs[at].revision), ident(name));
        quote!(#library::#name)
    });
    quote! {
        #[cfg(feature = #feature)]
        chain!(#from, #next, #to);
    }
}
