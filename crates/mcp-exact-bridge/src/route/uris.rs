//! Table of the servers of resources: the servers that have listed a resource or a template, and the servers that have
//! answered a read request of a principal.
//!
//! A complete list replaces the earlier URIs of its server, so that a resource can move to another server. The lists
//! contain all entries of a server, including the entries that rules hide from a principal. The size of the table is
//! limited.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use parking_lot::Mutex;

use crate::around::resource_uri::ResourceUri;

/// Maximum size of stored URIs, in bytes: of the resources of one server, of the templates of one server, and of all
/// read URIs together.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// Maximum length of a URI that is remembered, in bytes.
const MAX_URI_BYTES: usize = 2 << 10;

/// Estimated memory of a remembered URI, without the memory of its text, in bytes.
const OVERHEAD: usize = 64;

/// URIs by the index of their server.
#[derive(Debug, Default)]
pub(crate) struct KnownUris(Mutex<State>);

/// Listed URIs and answered read requests.
#[derive(Debug, Default)]
struct State {
    /// Listed URIs, by the index of the server.
    servers: BTreeMap<usize, ServerUris>,
    /// Servers that have answered read requests.
    answered: AnsweredUris,
}

/// URIs of one server.
#[derive(Debug, Default)]
struct ServerUris {
    /// URIs of the listed resources.
    listed: HashSet<String>,
    /// Literal prefixes of the templates, before their first expressions.
    templates: BTreeSet<String>,
}

/// Servers that have answered a read request, by principal and URI. The requests of one principal never affect the
/// routing of others.
#[derive(Debug, Default)]
struct AnsweredUris {
    /// Index of the server, by principal and URI.
    by_principal: HashMap<Option<String>, HashMap<String, usize>>,
    /// Estimated memory of all entries, in bytes.
    bytes: usize,
}

impl AnsweredUris {
    /// Returns the server that has answered a read request of a principal for a URI.
    fn find(&self, principal: Option<&str>, uri: &str) -> Option<usize> {
        let of_principal = self.by_principal.get(&principal.map(str::to_owned))?;
        of_principal.get(uri).copied()
    }

    /// Records that a server has answered a read request; removes all earlier entries if the limit is exceeded.
    fn record(&mut self, principal: Option<&str>, uri: &str, server: usize) {
        if uri.len() > MAX_URI_BYTES {
            return;
        }
        let bytes = uri.len() + OVERHEAD + principal.map_or(0, str::len);
        if self.bytes + bytes > MAX_BYTES {
            *self = Self::default();
        }
        let principal = principal.map(str::to_owned);
        let of_principal = self.by_principal.entry(principal).or_default();
        if of_principal.insert(uri.to_owned(), server).is_none() {
            self.bytes += bytes;
        }
    }
}

impl State {
    /// Returns the first server that lists a URI and satisfies the predicate.
    fn listed_by(&self, uri: &str, is_right: impl Fn(usize) -> bool) -> Option<usize> {
        let listing = self
            .servers
            .iter()
            .filter(|(_, of)| of.listed.contains(uri));
        let mut listing = listing.map(|(server, _)| *server);
        listing.find(|server| is_right(*server))
    }

    /// Returns the server that has the template with the longest matching prefix.
    fn templated_by(&self, uri: &str) -> Option<usize> {
        // Completions refer to a template by its text, so the text is also looked up.
        let uri = literal(uri);
        let matching = |of_server: &ServerUris| {
            let begins = of_server.templates.iter();
            let begins = begins.filter(|begin| uri.starts_with(begin.as_str()));
            begins.map(String::len).max()
        };
        let lengths = self.servers.iter();
        let lengths = lengths.filter_map(|(server, of)| Some((matching(of)?, *server)));
        // If several prefixes have the same length, the first server is selected.
        let best = lengths.max_by_key(|(length, server)| (*length, std::cmp::Reverse(*server)));
        best.map(|(_, server)| server)
    }
}

impl KnownUris {
    /// Replaces the resources of a server by the resources of a complete list.
    pub(crate) fn set_resources(&self, server: usize, uris: Vec<String>) {
        let uris = limit_uris(uris.into_iter().map(|uri| key(&uri))).collect();
        self.0.lock().servers.entry(server).or_default().listed = uris;
    }

    /// Replaces the templates of a server by the templates of a complete list. A template that begins with an
    /// expression is ignored, because it matches every URI.
    pub(crate) fn set_templates(&self, server: usize, templates: &[String]) {
        let literals = templates
            .iter()
            .map(|template| literal(&key(template)).to_owned());
        let literals = limit_uris(literals.filter(|literal| !literal.is_empty())).collect();
        self.0.lock().servers.entry(server).or_default().templates = literals;
    }

    /// Records that a server has answered a request of a principal that reads a URI.
    pub(crate) fn record_answer(&self, server: usize, principal: Option<&str>, uri: &str) {
        let uri = key(uri);
        let mut state = self.0.lock();
        if state.listed_by(&uri, |by| by == server).is_none() {
            state.answered.record(principal, &uri, server);
        }
    }

    /// Removes all URIs of a server, and the read URIs of all servers.
    pub(crate) fn forget(&self, server: usize) {
        let mut state = self.0.lock();
        state.servers.remove(&server);
        // Servers change rarely, and later answers are recorded again.
        state.answered = AnsweredUris::default();
    }

    /// Returns the first server that lists a URI and satisfies the predicate.
    pub(crate) fn listed_by(&self, uri: &str, is_right: impl Fn(usize) -> bool) -> Option<usize> {
        self.0.lock().listed_by(&key(uri), is_right)
    }

    /// Returns the server that has answered an earlier request of a principal that reads a URI.
    pub(crate) fn answered_by(&self, principal: Option<&str>, uri: &str) -> Option<usize> {
        self.0.lock().answered.find(principal, &key(uri))
    }

    /// Returns the server of a URI for a principal: the first server that lists the URI, or else the server that has
    /// the template with the longest matching prefix, or else the server that has answered the principal.
    pub(crate) fn server_of(&self, principal: Option<&str>, uri: &str) -> Option<usize> {
        let uri = key(uri);
        let state = self.0.lock();
        state
            .listed_by(&uri, |_| true)
            .or_else(|| state.templated_by(&uri))
            .or_else(|| state.answered.find(principal, &uri))
    }
}

/// Removes URIs that are too long, and all URIs after the limit in bytes is reached.
fn limit_uris(uris: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut bytes = 0;
    uris.filter(|uri| uri.len() <= MAX_URI_BYTES)
        .take_while(move |uri| {
            bytes += uri.len() + OVERHEAD;
            bytes <= MAX_BYTES
        })
}

/// Returns the text by which spellings of a URI or template are compared.
fn key(uri: &str) -> String {
    match ResourceUri::parse(uri) {
        Some(normal) => normal.folded().to_owned(),
        None => uri.to_owned(),
    }
}

/// Returns the literal prefix of a template, before its first expression.
fn literal(template: &str) -> &str {
    template
        .split_once('{')
        .map_or(template, |(begin, _)| begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    /// A resource belongs to the next server that lists it once its first server does not list it any more.
    #[test]
    fn resources_move_to_other_servers() {
        let uris = KnownUris::default();
        uris.set_resources(0, strings(&["doc://x", "doc://y"]));
        uris.set_resources(1, strings(&["doc://x"]));
        assert_eq!(uris.server_of(None, "doc://x"), Some(0), "the first one");
        uris.set_resources(0, strings(&["doc://y"]));
        let of = uris.server_of(None, "doc://x");
        assert_eq!(of, Some(1), "the list was replaced");
        uris.forget(1);
        let of = uris.server_of(None, "doc://x");
        assert_eq!(of, None, "the server was removed");
        assert_eq!(uris.server_of(None, "doc://y"), Some(0));
    }

    /// The template with the longest matching literal prefix determines the server of a URI.
    #[test]
    fn longest_prefix_of_a_template_decides() {
        let uris = KnownUris::default();
        uris.set_templates(0, &strings(&["{scheme}://all", "doc://{+page}"]));
        uris.set_templates(1, &strings(&["doc://b/{page}"]));
        let of = |uri| uris.server_of(None, uri);
        assert_eq!(of("doc://b/1"), Some(1));
        assert_eq!(of("doc://c"), Some(0));
        assert_eq!(of("doc://{+page}"), Some(0));
        assert_eq!(of("web://x"), None, "no template names it");
    }

    /// An answered read request affects the routing only of later requests of the same principal.
    #[test]
    fn answers_route_one_principal_only() {
        let uris = KnownUris::default();
        uris.set_templates(0, &strings(&["doc://{+page}"]));
        for uri in ["doc://x", "web://x"] {
            uris.record_answer(1, Some("red"), uri);
        }
        assert_eq!(uris.server_of(Some("red"), "web://x"), Some(1));
        assert_eq!(uris.server_of(Some("blue"), "web://x"), None);
        assert_eq!(uris.server_of(None, "web://x"), None);
        let of = uris.server_of(Some("red"), "doc://x");
        assert_eq!(of, Some(0), "a template counts before an answer");
        uris.forget(1);
        assert_eq!(uris.server_of(Some("red"), "web://x"), None);
    }

    /// Listed and answered URIs are limited in bytes, and URIs that are too long are not stored.
    #[test]
    fn stored_bytes_are_limited() {
        let uris = KnownUris::default();
        let long = format!("doc://{}", "x".repeat(MAX_URI_BYTES));
        uris.record_answer(0, None, &long);
        uris.set_resources(1, vec![long.clone()]);
        assert_eq!(uris.server_of(None, &long), None, "it is too long");
        let uri = |number: usize| format!("doc://{number:0>1000}");
        let most = 2 * MAX_BYTES / 1000;
        uris.set_resources(1, (0..most).map(uri).collect());
        for number in most..2 * most {
            uris.record_answer(0, Some("red"), &uri(number));
            assert!(uris.0.lock().answered.bytes <= MAX_BYTES);
        }
        let state = uris.0.lock();
        let answered: usize = state.answered.by_principal.values().map(HashMap::len).sum();
        for kept in [answered, state.servers[&1].listed.len()] {
            assert!(kept * 1000 <= MAX_BYTES, "{kept} URIs are kept");
        }
    }
}
