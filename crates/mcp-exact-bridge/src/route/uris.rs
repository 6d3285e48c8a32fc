//! Table of the servers of resources: the servers that have listed a resource or a template, and the servers that have
//! answered a read request of a principal.
//!
//! Several servers can claim a URI: the first server of the configuration has precedence, whoever lists it first. A complete
//! list replaces the earlier URIs of its server, so that a resource can move to another server. The lists contain all
//! entries of a server, including the entries that rules hide from a principal. The lists of a server that each user reaches with
//! credentials of their own are those of one principal, and affect the requests of this one alone. The size of the table is limited.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::around::resource_uri::ResourceUri;

/// Maximum size of stored URIs, in bytes: of the resources of one server, of the templates of one server, and of all
/// read URIs together.
pub(crate) const MAX_BYTES: usize = 8 << 20;

/// Maximum size of stored URIs of one list for one principal, in bytes.
const MAX_OWN_BYTES: usize = 1 << 20;

/// Maximum size of all stored URIs for principals, in bytes.
const MAX_USERS_BYTES: usize = 64 << 20;

/// Maximum length of a URI that is remembered, in bytes.
const MAX_URI_BYTES: usize = 2 << 10;

/// Estimated memory of a remembered URI, without the memory of its text, in bytes.
const OVERHEAD: usize = 64;

/// Time for which a server that has not given its lists is not asked for them again.
const RETRY_DELAY: Duration = Duration::from_secs(60);

/// URIs by the index of their server.
#[derive(Debug, Default)]
pub(crate) struct KnownUris(Mutex<State>);

/// Listed URIs and answered read requests.
#[derive(Debug, Default)]
struct State {
    /// Listed URIs, by the index of the server.
    servers: BTreeMap<usize, ListedUris>,
    /// URIs that servers with credentials per user have listed for a principal, by principal and the index of the server.
    users: HashMap<String, BTreeMap<usize, ListedUris>>,
    /// Estimated memory of the URIs for principals, in bytes.
    users_bytes: usize,
    /// Servers that have answered read requests.
    answered: AnsweredUris,
}

/// Estimated memory of URIs.
fn size<'u>(uris: impl IntoIterator<Item = &'u String>) -> usize {
    let uris = uris.into_iter();
    OVERHEAD + uris.map(|uri| uri.len() + OVERHEAD).sum::<usize>()
}

impl State {
    /// Returns the URIs of a server for the requests of a principal.
    fn of(&self, reader: Option<&str>, server: usize) -> Option<&ListedUris> {
        let of_users = || self.users.get(reader?)?.get(&server);
        self.servers.get(&server).or_else(of_users)
    }

    /// Returns the URIs of a server that a list is stored in: those of a principal, or of all.
    fn entry(&mut self, owner: Option<&str>, server: usize) -> &mut ListedUris {
        let of_owner = match owner {
            Some(owner) => self.users.entry(owner.to_owned()).or_default(),
            None => &mut self.servers,
        };
        of_owner.entry(server).or_default()
    }

    /// Counts the memory of a list before it is stored. If there is too much for principals, that of all is forgotten: their lists
    /// are read again.
    fn count(&mut self, owner: Option<&str>, bytes: usize) {
        let Some(owner) = owner else { return };
        self.users_bytes += bytes + owner.len();
        if self.users_bytes > MAX_USERS_BYTES {
            self.users.clear();
            self.users_bytes = bytes + owner.len();
        }
    }
}

/// URIs of one server.
#[derive(Debug, Default)]
struct ListedUris {
    /// URIs of the listed resources; `None` before the first list.
    resources: Option<HashSet<String>>,
    /// Literal prefixes of the templates, before their first expressions; `None` before the first list.
    templates: Option<BTreeSet<String>>,
    /// Time before which the server is not asked for its lists, because it has not given them.
    until: Option<Instant>,
}

/// URI that two servers list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepeatedUri {
    /// The URI, or the literal prefix of a template.
    pub(crate) uri: String,
    /// Index of the other server.
    pub(crate) server: usize,
    /// Number of all URIs of the list that another server lists.
    pub(crate) count: usize,
}

impl ListedUris {
    /// Returns true if the server lists a resource.
    fn has(&self, uri: &str) -> bool {
        let resources = self.resources.as_ref();
        resources.is_some_and(|resources| resources.contains(uri))
    }

    /// Returns true if the server lists a resource, or a template with a matching prefix.
    fn claims(&self, uri: &str) -> bool {
        // Completions refer to a template by its text, so the text is also looked up.
        let begin = literal(uri);
        let mut templates = self.templates.iter().flatten();
        self.has(uri) || templates.any(|template| begin.starts_with(template.as_str()))
    }
}

/// Servers that have answered a read request, by principal and URI. The requests of one principal never affect the
/// routing of others.
#[derive(Debug, Default)]
struct AnsweredUris {
    /// Index of the server, and true if no server with precedence has it, by principal and URI.
    by_principal: HashMap<Option<String>, HashMap<String, (usize, bool)>>,
    /// Estimated memory of all entries, in bytes.
    bytes: usize,
}

impl AnsweredUris {
    /// Returns the server that has answered a read request of a principal for a URI, and true if no server with precedence
    /// has it.
    fn find(&self, principal: Option<&str>, uri: &str) -> Option<(usize, bool)> {
        let of_principal = self.by_principal.get(&principal.map(str::to_owned))?;
        of_principal.get(uri).copied()
    }

    /// Records that a server has answered a read request; removes all earlier entries if the limit is exceeded.
    fn record(&mut self, principal: Option<&str>, uri: &str, server: (usize, bool)) {
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

impl KnownUris {
    /// Replaces the resources of a server by the resources of a complete list, which is for `owner` alone if there is one. Returns a
    /// new URI that another server lists, too.
    pub(crate) fn set_resources(
        &self,
        server: usize,
        owner: Option<&str>,
        uris: Vec<String>,
    ) -> Option<RepeatedUri> {
        let uris: HashSet<String> =
            limit_uris(owner, uris.into_iter().map(|uri| key(&uri))).collect();
        let mut state = self.0.lock();
        state.count(owner, size(&uris));
        let before = state.entry(owner, server).resources.take();
        if let (Some(before), Some(_)) = (&before, owner) {
            state.users_bytes = state.users_bytes.saturating_sub(size(before));
        }
        let is_new = |uri: &String| before.as_ref().is_none_or(|before| !before.contains(uri));
        let repeated = repeated(&state.servers, &uris, is_new, |of, uri| of.has(uri));
        state.entry(owner, server).resources = Some(uris);
        repeated
    }

    /// Replaces the templates of a server by the templates of a complete list. A template that begins with an
    /// expression is ignored, because it matches every URI. The list is for `owner` alone if there is one. Returns a new template
    /// that another server lists, too.
    pub(crate) fn set_templates(
        &self,
        server: usize,
        owner: Option<&str>,
        templates: &[String],
    ) -> Option<RepeatedUri> {
        let literals = templates
            .iter()
            .map(|template| literal(&key(template)).to_owned());
        let literals = literals.filter(|literal| !literal.is_empty());
        let literals: BTreeSet<String> = limit_uris(owner, literals).collect();
        let mut state = self.0.lock();
        state.count(owner, size(&literals));
        let before = state.entry(owner, server).templates.take();
        if let (Some(before), Some(_)) = (&before, owner) {
            state.users_bytes = state.users_bytes.saturating_sub(size(before));
        }
        let is_new = |uri: &String| before.as_ref().is_none_or(|before| !before.contains(uri));
        let has = |of: &ListedUris, uri: &str| {
            let templates = of.templates.as_ref();
            templates.is_some_and(|templates| templates.contains(uri))
        };
        let repeated = repeated(&state.servers, &literals, is_new, has);
        state.entry(owner, server).templates = Some(literals);
        repeated
    }

    /// Records that a server has not given its lists, so that it is not asked again for some time.
    pub(crate) fn set_unlisted(&self, server: usize, owner: Option<&str>) {
        let until = Some(Instant::now() + RETRY_DELAY);
        let mut state = self.0.lock();
        state.count(owner, OVERHEAD);
        state.entry(owner, server).until = until;
    }

    /// Returns true if a server has given its lists for the requests of a principal, or has not given them lately.
    pub(crate) fn is_known(&self, server: usize, reader: Option<&str>) -> bool {
        let state = self.0.lock();
        state.of(reader, server).is_some_and(|of| {
            let is_listed = of.resources.is_some() && of.templates.is_some();
            is_listed || of.until.is_some_and(|until| Instant::now() < until)
        })
    }

    /// Records that a server has answered a request of a principal that reads a URI. `is_sure` is true if no server with
    /// precedence has the resource.
    pub(crate) fn record_answer(
        &self,
        server: usize,
        principal: Option<&str>,
        uri: &str,
        is_sure: bool,
    ) {
        let uri = key(uri);
        let mut state = self.0.lock();
        if !state.of(principal, server).is_some_and(|of| of.has(&uri)) {
            state.answered.record(principal, &uri, (server, is_sure));
        }
    }

    /// Removes all URIs of a server, and the read URIs of all servers.
    pub(crate) fn forget(&self, server: usize) {
        let mut state = self.0.lock();
        state.servers.remove(&server);
        for of_user in state.users.values_mut() {
            of_user.remove(&server);
        }
        // Servers change rarely, and later answers are recorded again.
        state.answered = AnsweredUris::default();
    }

    /// Returns the first of these servers that lists a URI; `None` if an earlier one has not given its list.
    pub(crate) fn listed_by(
        &self,
        reader: Option<&str>,
        uri: &str,
        mut servers: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let (uri, state) = (key(uri), self.0.lock());
        let of = |server: &usize| state.of(reader, *server);
        let has_no_list = |server: &usize| of(server).is_none_or(|of| of.resources.is_none());
        let lists = |server: &usize| of(server).is_some_and(|of| of.has(&uri));
        let found = servers.find(|server| has_no_list(server) || lists(server));
        found.filter(lists)
    }

    /// Returns the first of these servers that lists a URI, or a template with a matching prefix.
    pub(crate) fn claimed_by(
        &self,
        reader: Option<&str>,
        uri: &str,
        mut servers: impl Iterator<Item = usize>,
    ) -> Option<usize> {
        let (uri, state) = (key(uri), self.0.lock());
        servers.find(|server| {
            let of_server = state.of(reader, *server);
            of_server.is_some_and(|of| of.claims(&uri))
        })
    }

    /// Returns the server that has answered an earlier request of a principal that reads a URI, and true if no server with
    /// precedence has the resource.
    pub(crate) fn answered_by(&self, principal: Option<&str>, uri: &str) -> Option<(usize, bool)> {
        self.0.lock().answered.find(principal, &key(uri))
    }
}

/// Returns the first new URI that another server has, and the number of all.
fn repeated<'u>(
    servers: &BTreeMap<usize, ListedUris>,
    uris: impl IntoIterator<Item = &'u String>,
    is_new: impl Fn(&String) -> bool,
    has: impl Fn(&ListedUris, &str) -> bool,
) -> Option<RepeatedUri> {
    let mut found: Option<RepeatedUri> = None;
    for uri in uris.into_iter().filter(|uri| is_new(uri)) {
        let Some((server, _)) = servers.iter().find(|(_, of)| has(of, uri)) else {
            continue;
        };
        let repeated = found.get_or_insert_with(|| RepeatedUri {
            uri: uri.clone(),
            server: *server,
            count: 0,
        });
        repeated.count += 1;
    }
    found
}

/// Removes URIs that are too long, and all URIs after the limit in bytes is reached.
fn limit_uris(
    owner: Option<&str>,
    uris: impl Iterator<Item = String>,
) -> impl Iterator<Item = String> {
    let most = owner.map_or(MAX_BYTES, |_| MAX_OWN_BYTES);
    let mut bytes = 0;
    uris.filter(|uri| uri.len() <= MAX_URI_BYTES)
        .take_while(move |uri| {
            bytes += uri.len() + OVERHEAD;
            bytes <= most
        })
}

/// Returns the text by which spellings of a URI or template are compared.
pub(crate) fn key(uri: &str) -> String {
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

    /// Returns the first of two servers that claims a URI.
    fn claimer(uris: &KnownUris, uri: &str) -> Option<usize> {
        uris.claimed_by(None, uri, 0..2)
    }

    /// A resource belongs to the next server that lists it once its first server does not list it any more.
    #[test]
    fn resources_move_to_other_servers() {
        let uris = KnownUris::default();
        uris.set_resources(1, None, strings(&["doc://x"]));
        assert_eq!(
            uris.listed_by(None, "doc://x", 0..2),
            None,
            "the first is not known"
        );
        assert_eq!(claimer(&uris, "doc://x"), Some(1));
        uris.set_resources(0, None, strings(&["doc://x", "doc://y"]));
        assert_eq!(claimer(&uris, "doc://x"), Some(0), "the first one");
        assert_eq!(uris.listed_by(None, "doc://x", 0..2), Some(0));
        uris.set_resources(0, None, strings(&["doc://y"]));
        assert_eq!(claimer(&uris, "doc://x"), Some(1), "the list was replaced");
        uris.forget(1);
        assert_eq!(claimer(&uris, "doc://x"), None, "the server was removed");
        assert_eq!(claimer(&uris, "doc://y"), Some(0));
    }

    /// The first server of the configuration gets a URI that several servers list or have a template of.
    #[test]
    fn first_server_has_precedence() {
        let uris = KnownUris::default();
        uris.set_templates(0, None, &strings(&["{scheme}://all", "doc://{+page}"]));
        uris.set_templates(1, None, &strings(&["doc://b/{page}", "web://{page}"]));
        uris.set_resources(1, None, strings(&["doc://c"]));
        for uri in ["doc://b/1", "doc://c", "doc://{+page}"] {
            assert_eq!(claimer(&uris, uri), Some(0), "{uri}");
        }
        assert_eq!(claimer(&uris, "web://x"), Some(1));
        assert_eq!(claimer(&uris, "other://x"), None, "no template names it");
    }

    /// A URI that two servers list is reported once, until one of them lists it anew.
    #[test]
    fn repeated_uris_are_reported() {
        let uris = KnownUris::default();
        let both = strings(&["doc://x", "doc://y"]);
        assert_eq!(uris.set_resources(1, None, both.clone()), None);
        let repeated = uris.set_resources(0, None, both.clone()).expect("repeated");
        assert_eq!((repeated.server, repeated.count), (1, 2));
        assert_eq!(uris.set_resources(0, None, both.clone()), None);
        assert_eq!(uris.set_resources(1, None, both), None);
        uris.set_templates(0, None, &strings(&["doc://{x}"]));
        let repeated = uris.set_templates(1, None, &strings(&["doc://{y}"]));
        assert_eq!(repeated.expect("repeated").uri, "doc://");
    }

    /// A server that has not given its lists counts as known for some time.
    #[tokio::test(start_paused = true)]
    async fn servers_without_lists_are_asked_again() {
        let uris = KnownUris::default();
        assert!(!uris.is_known(0, None));
        uris.set_unlisted(0, None);
        assert!(uris.is_known(0, None));
        tokio::time::advance(RETRY_DELAY).await;
        assert!(!uris.is_known(0, None));
        uris.set_resources(0, None, Vec::new());
        uris.set_templates(0, None, &[]);
        assert!(uris.is_known(0, None));
    }

    /// An answered read request affects the routing only of later requests of the same principal.
    #[test]
    fn answers_route_one_principal_only() {
        let uris = KnownUris::default();
        uris.record_answer(1, Some("red"), "web://x", true);
        assert_eq!(uris.answered_by(Some("red"), "web://x"), Some((1, true)));
        assert_eq!(uris.answered_by(Some("blue"), "web://x"), None);
        assert_eq!(uris.answered_by(None, "web://x"), None);
        uris.forget(1);
        assert_eq!(uris.answered_by(Some("red"), "web://x"), None);
    }

    /// Listed and answered URIs are limited in bytes, and URIs that are too long are not stored.
    #[test]
    fn stored_bytes_are_limited() {
        let uris = KnownUris::default();
        let long = format!("doc://{}", "x".repeat(MAX_URI_BYTES));
        uris.record_answer(0, None, &long, true);
        uris.set_resources(1, None, vec![long.clone()]);
        assert_eq!(uris.answered_by(None, &long), None, "it is too long");
        assert_eq!(claimer(&uris, &long), None, "it is too long");
        let uri = |number: usize| format!("doc://{number:0>1000}");
        let most = 2 * MAX_BYTES / 1000;
        uris.set_resources(1, None, (0..most).map(uri).collect());
        for number in most..2 * most {
            uris.record_answer(0, Some("red"), &uri(number), true);
            assert!(uris.0.lock().answered.bytes <= MAX_BYTES);
        }
        let state = uris.0.lock();
        let answered: usize = state.answered.by_principal.values().map(HashMap::len).sum();
        let listed = state.servers[&1].resources.as_ref().map(HashSet::len);
        for kept in [answered, listed.unwrap_or_default()] {
            assert!(kept * 1000 <= MAX_BYTES, "{kept} URIs are kept");
        }
    }

    /// The lists of a server with credentials per user are of one principal: those of others, also empty ones, change nothing.
    #[test]
    fn lists_of_users_are_kept_apart() {
        let uris = KnownUris::default();
        uris.set_resources(1, None, strings(&["mail://inbox"]));
        uris.set_templates(1, None, &[]);
        uris.set_resources(0, Some("ann"), strings(&["mail://inbox"]));
        uris.set_templates(0, Some("ann"), &[]);
        uris.set_resources(0, Some("bob"), Vec::new());
        let claimer = |reader| uris.claimed_by(reader, "mail://inbox", 0..2);
        assert_eq!(claimer(Some("ann")), Some(0));
        assert_eq!(claimer(Some("bob")), Some(1));
        assert_eq!(claimer(None), Some(1));
        let listed = |reader| uris.listed_by(reader, "mail://inbox", 0..2);
        assert_eq!(listed(Some("ann")), Some(0));
        assert_eq!(listed(Some("bob")), Some(1));
        assert_eq!(listed(Some("cleo")), None, "not known yet");
        uris.set_unlisted(0, Some("cleo"));
        for (reader, is_known) in [
            ("ann", true),
            ("bob", false),
            ("cleo", true),
            ("dan", false),
        ] {
            assert_eq!(uris.is_known(0, Some(reader)), is_known, "{reader}");
        }
        uris.forget(0);
        assert_eq!(claimer(Some("ann")), Some(1));
        // All lists of principals together are limited.
        let mut state = uris.0.lock();
        state.count(Some("dan"), MAX_USERS_BYTES);
        assert!(state.users.is_empty());
    }
}
