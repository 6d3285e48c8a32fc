//! Servers that have listed a resource or a template.
//!
//! A complete list replaces what is known of its server, so that a resource can move to another server.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of URIs of each kind that are remembered of a server.
const MOST_URIS: usize = 100_000;

/// URIs by the index of their server.
#[derive(Debug, Default)]
pub(crate) struct KnownUris(Mutex<BTreeMap<usize, OfServer>>);

/// URIs of one server.
#[derive(Debug, Default)]
struct OfServer {
    listed: HashSet<String>,
    /// Literal prefixes of the templates, before their first expressions.
    templates: BTreeSet<String>,
    /// URIs that are not listed, of which requests were answered.
    answered: HashSet<String>,
}

impl KnownUris {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, OfServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the resources of a server by those of a complete list.
    pub(crate) fn set_resources(&self, server: usize, uris: Vec<String>) {
        let uris = uris.into_iter().take(MOST_URIS).collect();
        self.lock().entry(server).or_default().listed = uris;
    }

    /// Replaces the templates of a server by those of a complete list. A template that begins with an expression matches
    /// every URI and says nothing about the server.
    pub(crate) fn set_templates(&self, server: usize, templates: &[String]) {
        let literals = templates
            .iter()
            .map(|template| literal(template).to_owned());
        let literals = literals.filter(|literal| !literal.is_empty());
        self.lock().entry(server).or_default().templates = literals.take(MOST_URIS).collect();
    }

    /// Notes that a server has answered a request about a URI.
    pub(crate) fn note_answer(&self, server: usize, uri: &str) {
        let mut all = self.lock();
        let of_server = all.entry(server).or_default();
        if of_server.listed.contains(uri) || of_server.answered.contains(uri) {
            return;
        }
        if of_server.answered.len() >= MOST_URIS {
            of_server.answered.clear();
        }
        of_server.answered.insert(uri.to_owned());
    }

    /// Removes everything that is known of a server.
    pub(crate) fn forget(&self, server: usize) {
        self.lock().remove(&server);
    }

    /// Returns the server of a URI: the first one that lists it, or else has answered a request about it, or else has the
    /// template with the longest matching prefix.
    pub(crate) fn server_of(&self, uri: &str) -> Option<usize> {
        let all = self.lock();
        let find = |is_its: fn(&OfServer, &str) -> bool| {
            let mut servers = all.iter();
            let found = servers.find(|(_, of_server)| is_its(of_server, uri));
            found.map(|(server, _)| *server)
        };
        find(|of_server, uri| of_server.listed.contains(uri))
            .or_else(|| find(|of_server, uri| of_server.answered.contains(uri)))
            .or_else(|| {
                // Completions refer to a template by its text, so the text is also looked up.
                let uri = literal(uri);
                let matching = |of_server: &OfServer| {
                    let begins = of_server.templates.iter();
                    let begins = begins.filter(|begin| uri.starts_with(begin.as_str()));
                    begins.map(String::len).max()
                };
                let lengths = all.iter();
                let lengths = lengths.filter_map(|(server, of)| Some((matching(of)?, *server)));
                // Of equal lengths the first server counts.
                let best =
                    lengths.max_by_key(|(length, server)| (*length, std::cmp::Reverse(*server)));
                best.map(|(_, server)| server)
            })
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

    #[test]
    fn resources_move_to_other_servers() {
        let uris = KnownUris::default();
        uris.set_resources(0, strings(&["doc://x", "doc://y"]));
        uris.set_resources(1, strings(&["doc://x"]));
        assert_eq!(uris.server_of("doc://x"), Some(0), "the first one");
        uris.set_resources(0, strings(&["doc://y"]));
        assert_eq!(uris.server_of("doc://x"), Some(1), "the list was replaced");
        uris.forget(1);
        assert_eq!(uris.server_of("doc://x"), None, "the server was removed");
        assert_eq!(uris.server_of("doc://y"), Some(0));
    }

    #[test]
    fn longest_prefix_of_a_template_decides() {
        let uris = KnownUris::default();
        uris.set_templates(0, &strings(&["{scheme}://all", "doc://{+page}"]));
        uris.set_templates(1, &strings(&["doc://b/{page}"]));
        assert_eq!(uris.server_of("doc://b/1"), Some(1));
        assert_eq!(uris.server_of("doc://c"), Some(0));
        assert_eq!(uris.server_of("doc://{+page}"), Some(0));
        assert_eq!(uris.server_of("web://x"), None, "no template names it");
        uris.note_answer(1, "web://x");
        assert_eq!(uris.server_of("web://x"), Some(1));
    }
}
