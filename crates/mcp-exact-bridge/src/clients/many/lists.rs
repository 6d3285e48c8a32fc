//! Lists that join the lists of all servers.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_revisions::method;
use mcp_exact_session::{
    Change, IncomingRequest, Json, JsonObject, ListCursors, PeerError, PeerFailure, Repair,
    RepairRule, Reply, Revision, Tolerance,
};
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument as _;

use super::SERVER_ANSWER_TIMEOUT;
use crate::around::access::Item;
use crate::around::gate::Gate;
use crate::around::losses::{self, Losses};
use crate::around::names::Kind;
use crate::around::resource_uri::ResourceUri;
use crate::around::retry::end_of;
use crate::around::search;
use crate::around::server_uris::is_of_one_server;
use crate::around::skills;
use crate::clients::shared_state::SharedState;
use crate::route::server::Server;
use crate::route::translate::{self, Translation, newest};
use crate::route::uris;
use crate::servers::errors;
use crate::servers::tasks;
use crate::servers::users::UserAccess;

/// Maximum size in bytes of the entries of all skills, whose list has one page.
const MAX_SKILL_LIST_BYTES: usize = 8 << 20;

/// Kind of list, such as the list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct List {
    /// Method of the list request.
    pub(super) method: &'static str,
    /// Capability that a server must declare to have the list.
    capability: &'static str,
    /// Member of the result that contains the entries.
    member: &'static str,
    /// Kind of the entries.
    pub(super) entries: Entries,
}

/// Kind of the entries of a list, which determines the member that identifies an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entries {
    /// Tools or prompts.
    Named(Kind),
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
    /// Tasks of a client with a session (2025-11-25).
    Tasks,
    /// Skills (SEP-2640).
    Skills,
}

/// List of tools.
pub(super) const TOOLS: List = List {
    method: method::TOOLS_LIST,
    capability: "tools",
    member: "tools",
    entries: Entries::Named(Kind::Tool),
};

/// All lists that are joined.
pub(super) const LISTS: [List; 6] = [
    TOOLS,
    List {
        method: method::PROMPTS_LIST,
        capability: "prompts",
        member: "prompts",
        entries: Entries::Named(Kind::Prompt),
    },
    List {
        method: method::RESOURCES_LIST,
        capability: "resources",
        member: "resources",
        entries: Entries::Resources,
    },
    List {
        method: method::RESOURCES_TEMPLATES_LIST,
        capability: "resources",
        member: "resourceTemplates",
        entries: Entries::Templates,
    },
    List {
        method: method::TASKS_LIST,
        capability: "tasks",
        member: "tasks",
        entries: Entries::Tasks,
    },
    List {
        method: skills::LIST,
        capability: "extensions",
        member: "skills",
        entries: Entries::Skills,
    },
];

impl Entries {
    /// Returns the name of the member that identifies an entry.
    fn key(self) -> &'static str {
        match self {
            Self::Named(_) => "name",
            Self::Resources | Self::Skills => "uri",
            Self::Templates => "uriTemplate",
            Self::Tasks => "taskId",
        }
    }
}

impl List {
    /// Returns true if a server declares the list; a shared server offers no list of tasks.
    fn is_offered(self, backend: &Server, capabilities: &JsonObject) -> bool {
        match self.entries {
            Entries::Tasks => !backend.is_shared() && tasks::is_list_declared(capabilities),
            Entries::Skills => skills::is_declared(capabilities),
            _ => capabilities.view().find(self.capability).is_some(),
        }
    }
}

impl SharedState {
    /// Joins the lists of all servers. The entries of a server that does not answer are omitted.
    pub(super) async fn list(
        self: &Arc<Self>,
        gate: &Gate,
        list: List,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        if request.param("cursor").is_some() {
            let words = "`cursor` is none of this server's: its lists have one page";
            return Err(PeerError::invalid_params(words));
        }
        let within = self.options.list_within;
        let search = gate.rules().search.as_ref().filter(|_| list == TOOLS);
        // A search that lists nothing besides itself needs no list of a server.
        let is_wanted = |_| search.is_none_or(|search| !search.always.is_empty());
        let read = self.entries_of(gate, is_wanted, list, client, request, within);
        let (mut listed, is_complete) = read.await;
        leave_out_repeated(list, &mut listed);
        let mut result = empty(list, request)?;
        if let Some(lifetime) = lifetime(gate, &listed)
            && is_complete
            && result.get("ttlMs").is_some()
        {
            result.insert("ttlMs", lifetime.milliseconds);
            if lifetime.is_public {
                result.insert("cacheScope", Json::string("public"));
            }
        }
        let (mut entries, mut losses) = (Vec::new(), Vec::new());
        if search.is_some() {
            let revision = request.revision();
            let own = search::definitions();
            entries.extend(own.filter_map(|tool| definition_in(revision, &tool)));
        }
        for mut of_server in listed {
            if let Some(search) = search {
                of_server.entries.retain(|tool| {
                    let name = tool.view().find("name").and_then(|name| name.as_str());
                    name.is_some_and(|name| search.lists(&name))
                });
            }
            entries.extend(of_server.entries);
            losses.extend(self.losses_of(of_server.server, of_server.losses));
        }
        if list.entries == Entries::Skills {
            leave_out_last(&mut entries);
        }
        result.insert(list.member, Json::from_encode(&entries));
        Ok(Reply::Result(losses::with_losses(result, &losses).into()))
    }

    /// Adds the name of the server to each listed loss, as a member `server`.
    fn losses_of(&self, server: usize, losses: Vec<Json>) -> impl Iterator<Item = Json> {
        let name = Json::string(&self.backends.get(server).name);
        losses
            .into_iter()
            .map(move |loss| match JsonObject::try_from(loss.clone()) {
                Ok(mut object) => {
                    object.insert("server", name.clone());
                    object.into()
                }
                Err(_) => loss,
            })
    }

    /// Reads a list of the wanted servers concurrently and returns the lists in the order of the servers. The returned flag is
    /// false if a server did not answer within the time `within`; the client is notified when its list is there, and the next request
    /// for it waits as long as the server may take.
    pub(super) async fn entries_of(
        self: &Arc<Self>,
        gate: &Gate,
        is_wanted: impl Fn(usize) -> bool,
        list: List,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        within: Duration,
    ) -> (Vec<ServerList>, bool) {
        let mut is_complete = true;
        let mut reading = JoinSet::new();
        let longest = SERVER_ANSWER_TIMEOUT.max(self.options.connect_timeout);
        let backends = self.backends.all();
        let in_time = end_of(Instant::now(), within);
        let is_asked = |server: usize| !backends[server].is_removed() && is_wanted(server);
        let is_late = {
            let late = self.late_lists.lock();
            (0..backends.len())
                .any(|server| is_asked(server) && late.contains(&(server, list.method)))
        };
        let answered_at = if is_late {
            end_of(Instant::now(), within.max(longest))
        } else {
            in_time
        };
        for server in 0..backends.len() {
            if !is_asked(server) {
                continue;
            }
            let (shared, client, request) = (Arc::clone(self), client.clone(), request.clone());
            let gate = gate.clone();
            let read = async move {
                let reading = shared.entries(&gate, server, list, &client, &request);
                let read = timeout(longest, reading).await;
                let late = |_| Err(PeerError::internal("the server gave no answer in time"));
                let read = read.unwrap_or_else(late);
                let (now, key) = (Instant::now(), (server, list.method));
                if now < in_time {
                    shared.late_lists.lock().remove(&key);
                } else if matches!(read, Ok(Some(_))) {
                    shared.late_lists.lock().insert(key);
                    // The list was answered without this server.
                    if now >= answered_at {
                        shared.announce_late(&client, list);
                    }
                }
                (server, read)
            };
            reading.spawn(read.in_current_span());
        }
        let mut all: Vec<Option<ServerList>> = backends.iter().map(|_| None).collect();
        let mut missing: BTreeSet<usize> = (0..backends.len())
            .filter(|server| is_asked(*server))
            .collect();
        let leave_out = |server: usize, error: &str| {
            backends[server].set_missed();
            let server = backends[server].name.as_str();
            let (method, error) = (list.method, errors::without_last_words(error));
            tracing::warn!(server, method, error, "a server is left out of a list");
        };
        while let Ok(Some(read)) = timeout_at(answered_at, reading.join_next()).await {
            match read {
                Ok((server, read)) => {
                    missing.remove(&server);
                    match read {
                        Ok(Some(listed)) => all[server] = Some(listed),
                        Ok(None) => self.set_uris(gate, list, server, Vec::new()),
                        Err(error) => {
                            if error.code() == Some(-32601) {
                                self.set_uris(gate, list, server, Vec::new());
                            }
                            is_complete = false;
                            leave_out(server, error.message());
                        }
                    }
                }
                Err(error) => tracing::error!(%error, "a list was not read"),
            }
        }
        for server in missing {
            is_complete = false;
            leave_out(server, "the server is not ready yet");
        }
        // Those that are late are read on, because a dropped request would start a slow server anew.
        reading.detach_all();
        let mut listed: Vec<ServerList> = all.into_iter().flatten().collect();
        // Names are assigned in the order of the servers, not of their answers.
        for listed in &mut listed {
            self.rename(gate, list, listed, request.revision());
        }
        (listed, is_complete)
    }

    /// Notifies a client that a list may have changed, because a server has answered after the list was answered without it.
    fn announce_late(&self, client: &ServerHandle, list: List) {
        let change = match list.entries {
            Entries::Named(Kind::Tool) => Change::Tools,
            Entries::Named(Kind::Prompt) => Change::Prompts,
            Entries::Resources | Entries::Templates | Entries::Skills => Change::Resources,
            // The revision has no notification for this list.
            Entries::Tasks => return,
        };
        client.publish(&change);
    }

    /// Reads all pages of a server's list; `None` if the server has no such list.
    async fn entries(
        self: &Arc<Self>,
        gate: &Gate,
        server: usize,
        list: List,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Option<ServerList>, PeerError> {
        let backend = self.backends.get(server);
        // A user without credentials is offered what leads to them. What a server declares may depend on the user.
        let users = backend.users();
        let known = match (&users, list.entries) {
            (Some(_), Entries::Tasks | Entries::Skills) => backend.cached_profile(),
            (Some(_), _) => None,
            (None, _) => Some(backend.profile().await?),
        };
        let has_uris = matches!(list.entries, Entries::Resources | Entries::Templates);
        let users = users.filter(|_| has_uris);
        let is_stand_in = lacks_account(users.as_deref(), list, request).await;
        if known.is_some_and(|known| !list.is_offered(&backend, &known.info.capabilities)) {
            return Ok(None);
        }
        let mut listed: Option<ServerList> = None;
        let mut cursor: Option<Json> = None;
        let mut cursors = ListCursors::new(backend.max_pages());
        let params = list_params(request);
        loop {
            let mut params = params.clone();
            if let Some(cursor) = cursor.take() {
                params.insert("cursor", cursor);
            }
            let params = (!params.is_empty()).then_some(params);
            let request = request.with_call(list.method, params);
            let mut page = self.relay_own(gate, server, client, request.clone()).await;
            let is_lost = |error: &PeerError| error.failure() == Some(PeerFailure::Lost);
            if backend.layers().retry.is_none() && page.as_ref().is_err_and(is_lost) {
                // Repeating a list request is safe.
                page = self.relay_own(gate, server, client, request).await;
            }
            if backend.users().is_some() && page.as_ref().is_err_and(is_unknown_method) {
                return Ok(None);
            }
            let page = match page? {
                Reply::Result(page) => page.into_object(),
                Reply::Error(error) => return Err(error),
                _ => return Err(PeerError::internal("the server asks before it lists")),
            };
            let entries = page.view().find(list.member);
            let entries = entries.and_then(|entries| entries.decode_as::<Vec<JsonObject>>().ok());
            let mut entries = entries.unwrap_or_default();
            let next = cursors.next_cursor(&page);
            let repeated = |repair: &Repair| repair.rule == RepairRule::RepeatedCursor;
            let has_repeated = next.as_ref().is_err_and(repeated);
            let losses = losses::listed_in(&page);
            match &mut listed {
                Some(listed) => {
                    if has_repeated {
                        // The page may be one that was read before.
                        let known: HashSet<&str> =
                            listed.entries.iter().map(JsonObject::text).collect();
                        entries.retain(|entry| !known.contains(entry.text()));
                    }
                    listed.entries.extend(entries);
                    listed.losses.extend(losses);
                }
                None => {
                    listed = Some(ServerList {
                        server,
                        first: page,
                        entries,
                        losses,
                        is_stand_in: false,
                    });
                }
            }
            match next {
                Ok(Some(next)) => cursor = Some(next),
                Ok(None) => break,
                Err(repair) if self.options.tolerance == Tolerance::Strict => {
                    return Err(errors::endless_list_error(list.method, &repair));
                }
                Err(repair) => {
                    backend.repairs().report(list.method, &[repair]);
                    break;
                }
            }
        }
        if let Some(listed) = &mut listed {
            // The account may have been taken away meanwhile.
            listed.is_stand_in = is_stand_in
                || listed.entries.is_empty()
                    && lacks_account(users.as_deref(), list, request).await;
        }
        Ok(listed)
    }

    /// Removes from a page of the only server the tools or prompts whose name an earlier one of the page has: hosts refuse all tools
    /// because of two of the same name.
    pub(super) fn without_namesakes(&self, method: &str, reply: Reply) -> Reply {
        let list = LISTS.iter().find(|list| list.method == method);
        let (Some(list), Reply::Result(page)) = (list, &reply) else {
            return reply;
        };
        let Entries::Named(kind) = list.entries else {
            return reply;
        };
        let all = page.object().view().find(list.member);
        let all = all.and_then(|all| all.decode_as::<Vec<JsonObject>>().ok());
        let mut kept = all.unwrap_or_default();
        let count = kept.len();
        self.leave_out_namesakes(kind, 0, &mut kept);
        if kept.len() == count {
            return reply;
        }
        let mut page = page.object().clone();
        page.insert(list.member, Json::from_encode(&kept));
        Reply::Result(page.into())
    }

    /// Removes the tools or prompts of a server whose name an earlier one has: the server cannot tell the calls of both apart.
    fn leave_out_namesakes(&self, kind: Kind, server: usize, entries: &mut Vec<JsonObject>) {
        let mut known = HashSet::new();
        entries.retain(|entry| {
            let name = entry.view().find("name");
            let Some(name) = name.and_then(|name| Some(name.as_str()?.into_owned())) else {
                return true;
            };
            if known.contains(&name) {
                self.names.report_namesake(kind, server, &name);
                return false;
            }
            known.insert(name)
        });
    }

    /// Removes the entries that the principal may not use, and describes and names the others for clients.
    fn rename(&self, gate: &Gate, list: List, listed: &mut ServerList, revision: Revision) {
        let server = listed.server;
        let backend = self.backends.get(server);
        let form = self.uris_of(&backend);
        let mut uris = Vec::new();
        let mut foreign = 0_usize;
        if let Entries::Named(kind) = list.entries {
            self.leave_out_namesakes(kind, server, &mut listed.entries);
        }
        listed.entries.retain_mut(|entry| {
            let key = entry.view().find(list.entries.key());
            let Some(key) = key.and_then(|key| Some(key.as_str()?.into_owned())) else {
                return false;
            };
            // The server's session has removed the tasks of other clients.
            let kind = match list.entries {
                Entries::Named(kind) => kind,
                Entries::Tasks => return true,
                Entries::Skills if self.is_joint && !skills::is_entry_of_one_server(entry) => {
                    foreign += 1;
                    return false;
                }
                Entries::Skills => {
                    let normal = ResourceUri::parse(&key);
                    let name = backend.listed_name();
                    let shown = skills::without_hidden_files(gate, name, std::mem::take(entry));
                    *entry = form.object(shown);
                    return gate.shows(name, &Item::Uri(normal.as_ref()));
                }
                Entries::Resources | Entries::Templates => {
                    let normal = ResourceUri::parse(&key);
                    let is_shown = gate.shows(backend.listed_name(), &Item::Uri(normal.as_ref()));
                    *entry = form.object(std::mem::take(entry));
                    // Rules do not change whose resources they are.
                    uris.push(key);
                    return is_shown;
                }
            };
            if !gate.shows_named(backend.listed_name(), kind, &key) {
                return false;
            }
            let mut key = key;
            if kind == Kind::Tool
                && let Some(catalogue) = gate.catalogue(backend.listed_name())
            {
                let described = |tool| definition_in(revision, &tool);
                let Some(changed) = catalogue.definition(std::mem::take(entry), described) else {
                    return false;
                };
                *entry = changed;
                key = catalogue.listed_name(&key).unwrap_or(&key).to_owned();
            }
            let has_search = kind == Kind::Tool && gate.rules().search.is_some();
            let is_reserved = has_search && search::is_own(&key);
            let name = match backend.users() {
                Some(_) => self.names.assign_of_user(kind, server, &key, is_reserved),
                None => self.names.assign(kind, server, &key, is_reserved),
            };
            let Some(name) = name else {
                return false;
            };
            *entry = form.object(std::mem::take(entry));
            if name != key {
                entry.insert("name", Json::string(&name));
            }
            true
        });
        if foreign > 0 {
            tracing::warn!(
                server = backend.name,
                count = foreign,
                "skills are left out of the list, because in front of many servers all their URIs have to begin with skill://"
            );
        }
        if !listed.is_stand_in {
            self.set_uris(gate, list, server, uris);
        }
    }

    /// Records the URIs of a complete list of a server, and warns if another server has listed one of them: the first server of
    /// the configuration gets the requests for it. The list of a server with credentials per user is that of the principal.
    fn set_uris(&self, gate: &Gate, list: List, server: usize, mut uris: Vec<String>) {
        let backend = self.backends.get(server);
        let owner = backend
            .users()
            .map(|_| gate.principal().unwrap_or_default());
        // The others name their server.
        uris.retain(|uri| !is_of_one_server(uri));
        let repeated = match list.entries {
            Entries::Named(_) | Entries::Tasks | Entries::Skills => return,
            Entries::Resources => self.uris.set_resources(server, owner, uris),
            Entries::Templates => self.uris.set_templates(server, owner, &uris),
        };
        let Some(repeated) = repeated else { return };
        let name = |server: usize| self.backends.get(server).name.clone();
        tracing::warn!(
            uri = repeated.uri,
            further = repeated.count - 1,
            server = name(server.min(repeated.server)),
            other = name(server.max(repeated.server)),
            "two servers have the same URI: the first one gets all requests for it"
        );
    }
}

/// Returns a definition of a tool in the newest revision in the form of another one; `None` if there is none.
fn definition_in(revision: Revision, tool: &JsonObject) -> Option<JsonObject> {
    let translation = Translation::new(newest(), revision, Losses::new(None));
    translation.definition("Tool", tool).ok()
}

/// Removes the resources, templates and skills that an earlier server lists, too: requests for them reach that server.
fn leave_out_repeated(list: List, listed: &mut [ServerList]) {
    if matches!(list.entries, Entries::Named(_) | Entries::Tasks) {
        return;
    }
    let mut known = HashSet::new();
    for of_server in listed {
        let key_of = |entry: &JsonObject| {
            let key = entry.view().find(list.entries.key());
            key.and_then(|key| Some(uris::key(&key.as_str()?)))
        };
        of_server
            .entries
            .retain(|entry| key_of(entry).is_none_or(|key| !known.contains(&key)));
        known.extend(of_server.entries.iter().filter_map(key_of));
    }
}

/// Removes the last skills of a list that is larger than [`MAX_SKILL_LIST_BYTES`]: `skills/get` still has them.
fn leave_out_last(entries: &mut Vec<JsonObject>) {
    let mut bytes = 0_usize;
    let fits = entries.iter().take_while(|entry| {
        bytes = bytes.saturating_add(entry.text().len());
        bytes <= MAX_SKILL_LIST_BYTES
    });
    let (fits, all) = (fits.count(), entries.len());
    if fits < all {
        entries.truncate(fits);
        let (count, max_bytes) = (all - fits, MAX_SKILL_LIST_BYTES);
        tracing::warn!(
            count,
            max_bytes,
            "the last skills are left out of the list, which would be too large"
        );
    }
}

/// Cache hint of a list (`ttlMs` and `cacheScope`).
struct Lifetime {
    /// Cache lifetime, in milliseconds.
    milliseconds: u64,
    /// True if caches may share the list between users.
    is_public: bool,
}

/// Returns the most restrictive cache hint of all servers (2026-07-28, `server/utilities/caching`); `None` if the
/// list of a server has no hint.
fn lifetime(gate: &Gate, listed: &[ServerList]) -> Option<Lifetime> {
    let mut strictest = Lifetime {
        milliseconds: u64::MAX,
        // A list that depends on the principal must not be shared between principals.
        is_public: gate.rules().access.is_empty(),
    };
    for ServerList { first, .. } in listed {
        let [milliseconds, scope] = first.view().find_each(["ttlMs", "cacheScope"]);
        let milliseconds = milliseconds?.text().parse::<u64>().ok()?;
        strictest.milliseconds = strictest.milliseconds.min(milliseconds);
        strictest.is_public &= scope?.as_str()? == "public";
    }
    (!listed.is_empty()).then_some(strictest)
}

/// List of one server.
pub(super) struct ServerList {
    /// Index of the server.
    pub(super) server: usize,
    /// First page of the list; its cache hints apply to the list.
    first: JsonObject,
    /// Entries of all pages.
    pub(super) entries: Vec<JsonObject>,
    /// Losses in the conversions of all pages.
    losses: Vec<Json>,
    /// True if the list stands in for that of a user without credentials, and says nothing about the server.
    pub(super) is_stand_in: bool,
}

/// Returns true if the user of a request has no account at a server that needs one.
async fn lacks_account(
    users: Option<&dyn UserAccess>,
    list: List,
    request: &IncomingRequest<RequestContext>,
) -> bool {
    match users {
        Some(users) => {
            // Nobody is asked to connect an account for the list that another request needs.
            let listing = request.with_call(list.method, None);
            users.admit(&listing).await.is_err()
        }
        None => false,
    }
}

/// Returns true if a server does not have the method of a list.
fn is_unknown_method(error: &PeerError) -> bool {
    error.code() == Some(-32601)
}

/// Returns the params of a list request with the `_meta` of the client's request.
fn list_params(request: &IncomingRequest<RequestContext>) -> JsonObject {
    let meta = request.param("_meta").map(|meta| meta.to_json());
    meta.map(|meta| ("_meta", meta)).into_iter().collect()
}

/// Returns the result of a list request without entries, in the revision of the client.
fn empty(list: List, request: &IncomingRequest<RequestContext>) -> Result<JsonObject, PeerError> {
    let none: Vec<Json> = Vec::new();
    let mut result = JsonObject::from_iter([(list.member, Json::from_encode(&none))]);
    match list.entries {
        Entries::Tasks => return Ok(result),
        Entries::Skills => {
            // The extension is written against 2026-07-28, and has these members in every revision.
            result.insert("resultType", Json::string("complete"));
            result.insert("ttlMs", 0_u64);
            result.insert("cacheScope", Json::string("private"));
            return Ok(result);
        }
        _ => {}
    }
    translate::from_oldest(list.method, result, request.revision())
}

/// Returns a result of a tool of the gateway in the revision of the client.
pub(super) fn converted(
    request: &IncomingRequest<RequestContext>,
    result: JsonObject,
) -> Result<JsonObject, PeerError> {
    translate::from_oldest(request.method(), result, request.revision())
}
