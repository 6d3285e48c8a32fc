//! Answers of servers that are kept for their time (`ttlMs`), and given to other clients as their `cacheScope` allows (2026-07-28,
//! `server/utilities/caching`).
//!
//! What is kept is the answer of the server, before rules, catalogue and conversions for one client. A private answer is found only by
//! the principal, or the session, that it was for.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_revisions::method;
use mcp_exact_session::{
    Change, IncomingRequest, JsonObject, Lifecycle, Principal, RawResult, Revision, lifecycle,
};
use mcp_exact_transport::RequestContext;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::around::limits::Holder;
use crate::around::resource_uri::ResourceUri;
use crate::around::target;

/// Settings of the cache of answers.
///
/// Lists and `resources/read` of servers from 2026-07-28 on are kept as long as their `ttlMs` says, unless the server announces a
/// change before. A `public` answer is given to every client with the same name, version and capabilities; a `private` one only to such
/// clients of the principal that it was for, or to the session of a client without a principal. Answers are not kept for servers with credentials
/// of each user ([`Upstream::users`](crate::Upstream::users)), nor lists of tools that are compared with pins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cache {
    /// Maximum size of all answers that are kept, in bytes. Those that one client has requested take at most a quarter; the client of
    /// a program that serves standard input alone may use all.
    pub bytes: usize,
    /// Time after which an answer is requested again, even if it may be kept for longer.
    pub max_age: Duration,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            max_age: Duration::from_secs(60 * 60),
        }
    }
}

impl Cache {
    /// Creates the settings of a cache.
    pub fn new(bytes: usize, max_age: Duration) -> Self {
        Self { bytes, max_age }
    }
}

/// State of the cache of a server, for monitoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheState {
    /// Number of requests that were answered without the server.
    pub hits: u64,
    /// Number of requests that could have been.
    pub misses: u64,
    /// Size of the answers that are kept, in bytes.
    pub bytes: usize,
}

/// Bytes that an answer counts for besides its text and its key: more than the memory that it takes, so that there are few enough to be
/// searched at each change that a server announces.
const ENTRY: usize = 2 << 10;

/// Methods whose answers are kept.
const METHODS: [&str; 5] = [
    method::TOOLS_LIST,
    method::PROMPTS_LIST,
    method::RESOURCES_LIST,
    method::RESOURCES_TEMPLATES_LIST,
    READ,
];

const READ: &str = method::RESOURCES_READ;

/// Members of `_meta` that identify or trace a request, and that no answer depends on but by the other parts of the key. Baggage is
/// for the application of the server, which may look at it.
const META_OF_REQUEST: [&str; 7] = [
    "progressToken",
    "traceparent",
    "tracestate",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

/// Answers of all servers.
#[derive(Debug)]
pub(crate) struct AnswerStore {
    limits: Cache,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    servers: Vec<ServerAnswers>,
    /// What each client has requested.
    holders: HashMap<Holder, Held>,
    /// Size of all answers.
    bytes: usize,
    /// Number of the next use of an answer.
    next: u64,
}

/// Answers of one server.
#[derive(Debug, Default)]
struct ServerAnswers {
    entries: HashMap<Arc<Key>, Entry>,
    /// Number of changes of the server: answers to requests of before are not kept.
    epoch: u64,
    hits: u64,
    misses: u64,
    bytes: usize,
}

/// Answers that one client has requested.
#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// Server and key of each answer, by the number of its latest use.
    order: BTreeMap<u64, (usize, Arc<Key>)>,
}

/// What an answer depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    scope: Scope,
    method: &'static str,
    /// Capabilities of the client, and its `Implementation` object: the server gets both with the params, and may adapt to them.
    client: String,
    /// Params of the request without the members that do not change the answer.
    params: String,
}

/// Who may get an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Scope {
    Public,
    Principal(String),
    /// Session of a client without a principal, by its number, which no other session of the process ever has.
    Session(u64),
}

/// Place of an answer among the pages of a list.
#[derive(Debug, Clone)]
struct Page {
    /// Params of the list without the cursor.
    list: String,
    /// Cursor of the page; `None` for the first one.
    cursor: Option<String>,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<CachedAnswer>,
    holder: Holder,
    /// Number of the latest use.
    number: u64,
    bytes: usize,
    /// URI of a resource in the form in which URIs are compared.
    uri: Option<String>,
    /// Place in a list; `None` for an answer that is no page of a list.
    page: Option<Page>,
}

impl Entry {
    /// Returns true if the answer is the page of a cursor, or names the cursor as that of its next page.
    fn knows_cursor(&self, cursor: &str) -> bool {
        let own = self.page.as_ref().and_then(|page| page.cursor.as_deref());
        let next = self.answer.result.view().find("nextCursor");
        own == Some(cursor)
            || next.is_some_and(|next| cursor_text(next.as_str(), next.text()) == cursor)
    }
}

/// Answer of a server.
#[derive(Debug)]
pub(crate) struct CachedAnswer {
    /// Result in the revision of the server.
    result: JsonObject,
    /// Revision of the server.
    pub(crate) revision: Revision,
    /// End of the time that the server has named.
    fresh_until: Instant,
    /// Time until which the answer is kept.
    kept_until: Instant,
}

impl CachedAnswer {
    /// Returns the result; its `ttlMs` is the time that is left.
    pub(crate) fn result(&self) -> RawResult {
        let left = self.fresh_until.saturating_duration_since(Instant::now());
        let mut result = self.result.clone();
        result.insert("ttlMs", u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        result.into()
    }
}

/// Answers of one server in the store.
#[derive(Debug)]
pub(crate) struct Answers {
    store: Arc<AnswerStore>,
    server: usize,
}

/// Request whose answer may be kept.
#[derive(Debug)]
pub(crate) struct CacheTicket {
    store: Arc<AnswerStore>,
    server: usize,
    public: Arc<Key>,
    /// Key of a private answer; `None` if it is not known whom the answer is for.
    private: Option<Arc<Key>>,
    holder: Holder,
    uri: Option<String>,
    page: Option<Page>,
    /// Number of changes of the server when the request began.
    epoch: u64,
}

impl AnswerStore {
    pub(crate) fn new(limits: Cache) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// Adds a server.
    pub(crate) fn add_server(self: &Arc<Self>) -> Answers {
        let mut state = self.state.lock();
        state.servers.push(ServerAnswers::default());
        Answers {
            store: Arc::clone(self),
            server: state.servers.len() - 1,
        }
    }

    /// Removes all answers of all servers.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        for server in 0..state.servers.len() {
            state.end(server, |_, _| true);
        }
    }

    /// Returns the maximum size of the answers that a client has requested.
    fn share(&self, holder: &Holder) -> usize {
        match holder {
            Holder::Local => self.limits.bytes,
            _ => self.limits.bytes / 4,
        }
    }
}

impl Answers {
    /// Returns the ticket of a request, if its answer may be kept. `capabilities` are those of the client as the
    /// server sees them, and `session` is the number of its session.
    pub(crate) fn ticket(
        &self,
        request: &IncomingRequest<RequestContext>,
        capabilities: &str,
        session: Option<u64>,
    ) -> Option<CacheTicket> {
        let method = *METHODS.iter().find(|known| **known == request.method())?;
        // "Results produced by retrying a request […] MUST NOT be cached" (`server/utilities/caching`, "Cache Key").
        if target::has_input(request) {
            return None;
        }
        let name = request.client().implementation.as_ref();
        let client = format!("{capabilities}{}", name.map_or("", JsonObject::text));
        let own_params = own_params_of(request);
        let params = with_baggage(request, &own_params);
        let key = |scope: Scope| {
            Arc::new(Key {
                scope,
                method,
                client: client.clone(),
                params: params.clone(),
            })
        };
        let scope = match &request.context().principal {
            Some(Principal(name)) => Some(Scope::Principal(name.clone())),
            None => session.map(Scope::Session),
        };
        let uri = request.param("uri").filter(|_| method == READ);
        let uri = uri.and_then(|uri| Some(comparable(&uri.as_str()?)));
        Some(CacheTicket {
            store: Arc::clone(&self.store),
            server: self.server,
            public: key(Scope::Public),
            private: scope.map(key),
            holder: Holder::of(request),
            uri,
            page: (method != READ).then(|| page_of(request, &own_params)),
            epoch: self.store.state.lock().servers[self.server].epoch,
        })
    }

    /// Ends what a change concerns.
    pub(crate) fn end(&self, change: &Change) {
        let changed = match change {
            Change::Resource(uri) => comparable(uri),
            _ => String::new(),
        };
        let is_ended = |key: &Key, entry: &Entry| match change {
            Change::Tools => key.method == method::TOOLS_LIST,
            Change::Prompts => key.method == method::PROMPTS_LIST,
            Change::Resources => key.method.starts_with("resources/"),
            // "The URI of the resource that has been updated. This might be a sub-resource of the one that the client actually
            // subscribed to" (schema, `ResourceUpdatedNotificationParams`).
            Change::Resource(_) => {
                let known = entry.uri.as_deref();
                known.is_some_and(|known| known.starts_with(&changed) || changed.starts_with(known))
            }
            _ => false,
        };
        self.store.state.lock().end(self.server, is_ended);
    }

    /// Removes all answers of the server, because another one may have taken its place, or changes may have been missed; what is
    /// requested at the moment is not kept.
    pub(crate) fn clear(&self) {
        self.store.state.lock().end(self.server, |_, _| true);
    }

    /// Returns the state for monitoring.
    pub(crate) fn state(&self) -> CacheState {
        let state = self.store.state.lock();
        let server = &state.servers[self.server];
        CacheState {
            hits: server.hits,
            misses: server.misses,
            bytes: server.bytes,
        }
    }
}

impl CacheTicket {
    /// Returns the answer to the request, if it is kept.
    pub(crate) fn find(&self) -> Option<Arc<CachedAnswer>> {
        let mut state = self.store.state.lock();
        let keys = [Some(&self.public), self.private.as_ref()];
        let found = keys.into_iter().flatten();
        let mut found = found.filter_map(|key| state.find(self.server, key));
        let answer = found.next();
        let server = &mut state.servers[self.server];
        match &answer {
            Some(_) => server.hits += 1,
            None => server.misses += 1,
        }
        answer
    }

    /// Keeps the answer of a server of this revision, if it may be kept.
    pub(crate) fn keep(&self, result: &RawResult, revision: Revision) {
        let object = result.object();
        let names = ["resultType", "ttlMs", "cacheScope"];
        let [kind, ttl, scope] = object.view().find_each(names);
        let is_complete = kind.is_none_or(|kind| kind.as_str().as_deref() == Some("complete"));
        let ttl = ttl.and_then(|ttl| ttl.text().parse::<u64>().ok());
        let key = match scope.and_then(|scope| scope.as_str()).as_deref() {
            Some("public") => Some(&self.public),
            Some("private") => self.private.as_ref(),
            _ => None,
        };
        let (Some(ttl), Some(key)) = (ttl.filter(|ttl| *ttl > 0), key) else {
            return;
        };
        // Members of these names mean nothing in an older revision.
        let has_hints = lifecycle(revision.as_str()) == Some(Lifecycle::Discover);
        if !is_complete || !has_hints || result.retries() > 0 {
            return;
        }
        let now = Instant::now();
        let ttl = Duration::from_millis(ttl);
        let kept = ttl.min(self.store.limits.max_age);
        let Some(kept_until) = now.checked_add(kept) else {
            return;
        };
        let answer = CachedAnswer {
            result: object.clone(),
            revision,
            fresh_until: now.checked_add(ttl).unwrap_or(kept_until),
            kept_until,
        };
        let page = self.page.as_ref();
        let page = page.map_or(0, |page| {
            page.list.len() + page.cursor.as_ref().map_or(0, String::len)
        });
        let bytes = object.text().len() + key.params.len() + key.client.len() + page + ENTRY;
        self.insert(key, answer, bytes);
    }

    /// Removes the pages of the list, because the server has refused the cursor of one: "If a cursor becomes invalid (e.g., the server
    /// returns an error for a previously valid cursor), the client SHOULD discard all cached pages and re-fetch from the beginning"
    /// (`server/utilities/caching`, "Interaction with Pagination"). A cursor that no page has named was never valid, and ends nothing.
    pub(crate) fn end_pages(&self) {
        let Some(page) = &self.page else { return };
        let Some(cursor) = &page.cursor else { return };
        let mut state = self.store.state.lock();
        for key in [Some(&self.public), self.private.as_ref()]
            .into_iter()
            .flatten()
        {
            let is_page = |of: &Key, entry: &Entry| is_of_list(of, entry, key, &page.list);
            let mut all = state.servers[self.server].entries.iter();
            if all.any(|(of, entry)| is_page(of, entry) && entry.knows_cursor(cursor)) {
                state.retain(self.server, |of, entry| !is_page(of, entry));
            }
        }
    }

    fn insert(&self, key: &Arc<Key>, answer: CachedAnswer, bytes: usize) {
        let share = self.store.share(&self.holder);
        let mut state = self.store.state.lock();
        // What was requested before a change may be older than the change.
        if bytes > share || state.servers[self.server].epoch != self.epoch {
            return;
        }
        state.remove(self.server, key);
        if let Some(Page { list, cursor: None }) = &self.page {
            // Later pages of an earlier list have cursors of their own.
            state.retain(self.server, |of, entry| !is_of_list(of, entry, key, list));
        }
        while state.held_by(&self.holder) + bytes > share {
            state.remove_oldest(&self.holder);
        }
        while state.bytes + bytes > self.store.limits.bytes {
            let all = state.holders.iter();
            let Some((largest, _)) = all.max_by_key(|(_, held)| held.bytes) else {
                return;
            };
            let largest = largest.clone();
            state.remove_oldest(&largest);
        }
        let entry = Entry {
            answer: Arc::new(answer),
            holder: self.holder.clone(),
            number: 0,
            bytes,
            uri: self.uri.clone(),
            page: self.page.clone(),
        };
        state.add(self.server, key, entry);
    }
}

impl State {
    /// Returns an answer that is still kept, and makes it the latest one of its client.
    fn find(&mut self, server: usize, key: &Arc<Key>) -> Option<Arc<CachedAnswer>> {
        let entry = self.servers[server].entries.get(key)?;
        if Instant::now() >= entry.answer.kept_until {
            self.remove(server, key);
            return None;
        }
        let entry = self.remove(server, key)?;
        let answer = Arc::clone(&entry.answer);
        self.add(server, key, entry);
        Some(answer)
    }

    fn add(&mut self, server: usize, key: &Arc<Key>, mut entry: Entry) {
        entry.number = self.next;
        self.next += 1;
        self.bytes += entry.bytes;
        let held = self.holders.entry(entry.holder.clone()).or_default();
        held.bytes += entry.bytes;
        held.order.insert(entry.number, (server, Arc::clone(key)));
        let of_server = &mut self.servers[server];
        of_server.bytes += entry.bytes;
        of_server.entries.insert(Arc::clone(key), entry);
    }

    fn remove(&mut self, server: usize, key: &Arc<Key>) -> Option<Entry> {
        let of_server = &mut self.servers[server];
        let entry = of_server.entries.remove(key)?;
        of_server.bytes -= entry.bytes;
        self.bytes -= entry.bytes;
        if let Some(held) = self.holders.get_mut(&entry.holder) {
            held.bytes -= entry.bytes;
            held.order.remove(&entry.number);
            if held.order.is_empty() {
                self.holders.remove(&entry.holder);
            }
        }
        Some(entry)
    }

    fn held_by(&self, holder: &Holder) -> usize {
        self.holders.get(holder).map_or(0, |held| held.bytes)
    }

    /// Removes the answer of a client that was used the longest time ago.
    fn remove_oldest(&mut self, holder: &Holder) {
        let held = self.holders.get(holder);
        let oldest = held.and_then(|held| held.order.values().next().cloned());
        if let Some((server, key)) = oldest {
            self.remove(server, &key);
        }
    }

    /// Removes the answers of a server that a change has ended; what is requested at the moment is not kept.
    fn end(&mut self, server: usize, is_ended: impl Fn(&Key, &Entry) -> bool) {
        self.servers[server].epoch += 1;
        self.retain(server, |key, entry| !is_ended(key, entry));
    }

    fn retain(&mut self, server: usize, is_kept: impl Fn(&Key, &Entry) -> bool) {
        let all = self.servers[server].entries.iter();
        let ended = all.filter(|(key, entry)| !is_kept(key, entry));
        let ended: Vec<Arc<Key>> = ended.map(|(key, _)| Arc::clone(key)).collect();
        for key in ended {
            self.remove(server, &key);
        }
    }
}

/// Returns true if answers to requests with a method may be kept.
pub(crate) fn is_cacheable(method: &str) -> bool {
    METHODS.contains(&method)
}

/// Returns a URI in the form in which URIs are compared.
fn comparable(uri: &str) -> String {
    match ResourceUri::parse(uri) {
        Some(normal) => normal.folded().to_owned(),
        None => uri.to_owned(),
    }
}

/// Returns true if an answer is a page of the list that a key and the params without a cursor name.
fn is_of_list(of: &Key, entry: &Entry, key: &Key, list: &str) -> bool {
    let page = entry.page.as_ref();
    of.method == key.method
        && of.scope == key.scope
        && of.client == key.client
        && page.is_some_and(|page| page.list == list)
}

/// Returns the place of the page that a request is for.
fn page_of(request: &IncomingRequest<RequestContext>, params: &JsonObject) -> Page {
    let list = params.view();
    let list = list.iter().filter(|(name, _)| name != "cursor");
    let list: JsonObject = list
        .map(|(name, value)| (name.into_owned(), value.to_json()))
        .collect();
    let cursor = request.param("cursor");
    Page {
        list: with_baggage(request, &list),
        cursor: cursor.map(|cursor| cursor_text(cursor.as_str(), cursor.text())),
    }
}

/// Returns a cursor in the form in which cursors are compared; `text` is its JSON text.
fn cursor_text(cursor: Option<Cow<'_, str>>, text: &str) -> String {
    cursor.map_or_else(|| text.to_owned(), Cow::into_owned)
}

/// Returns the params that the answer to a request may depend on, with the header that it may depend on, too.
fn with_baggage(request: &IncomingRequest<RequestContext>, params: &JsonObject) -> String {
    let params = params.text();
    match request.context().app_data.header("baggage") {
        Some(baggage) => format!("{params} {baggage}"),
        None => params.to_owned(),
    }
}

/// Returns the members of the params that the answer to a request may depend on.
fn own_params_of(request: &IncomingRequest<RequestContext>) -> JsonObject {
    let Some(params) = request.params() else {
        return JsonObject::new();
    };
    let meta = params.view().find("_meta").and_then(|meta| meta.object());
    let Some(meta) = meta else {
        return params.clone();
    };
    let significant = meta
        .iter()
        .filter(|(name, _)| !META_OF_REQUEST.contains(&&**name));
    let significant: JsonObject = significant
        .map(|(name, value)| (name.into_owned(), value.to_json()))
        .collect();
    let mut rest = target::without(params, &["_meta"]);
    if !significant.is_empty() {
        rest.insert("_meta", significant);
    }
    rest
}
