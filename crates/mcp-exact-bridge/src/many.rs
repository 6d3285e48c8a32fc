//! Routing of requests among many servers, and lists that join the lists of all servers.
//!
//! Tools and prompts are found by their names, see [`Names`]. Resources keep their URIs, since tools and prompts
//! mention them: a request about a URI goes to the server that has listed the URI or a template with a matching prefix
//! first, and then to the others, until one knows the URI.

use std::sync::Arc;

use mcp_exact_revisions::Side;
use mcp_exact_session::{
    IncomingRequest, Json, JsonObject, Outcome, PeerError, Principal, Reply, Revision,
};
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::matches;
use crate::backend::Backend;
use crate::bridge::SharedState;
use crate::hooks::Call;
use crate::losses::{self, Losses};
use crate::metrics::CallTimer;
use crate::names::Kind;
use crate::relay;
use crate::session::Session;
use crate::tasks;
use crate::translate::Translation;
use crate::update::SERVER_ANSWER_TIMEOUT;

/// Maximum number of pages that are read from a server's list.
const MAX_PAGES: usize = 1000;

/// Kind of list, such as the list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct List {
    method: &'static str,
    /// Capability that a server must declare to have the list.
    capability: &'static str,
    /// Member of the result that contains the entries.
    member: &'static str,
    entries: Entries,
}

/// Member that identifies the entries of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entries {
    Named(Kind),
    Resources,
    Templates,
    /// Tasks of a client with a session (2025-11-25).
    Tasks,
}

const LISTS: [List; 5] = [
    List {
        method: "tools/list",
        capability: "tools",
        member: "tools",
        entries: Entries::Named(Kind::Tool),
    },
    List {
        method: "prompts/list",
        capability: "prompts",
        member: "prompts",
        entries: Entries::Named(Kind::Prompt),
    },
    List {
        method: "resources/list",
        capability: "resources",
        member: "resources",
        entries: Entries::Resources,
    },
    List {
        method: "resources/templates/list",
        capability: "resources",
        member: "resourceTemplates",
        entries: Entries::Templates,
    },
    List {
        method: "tasks/list",
        capability: "tasks",
        member: "tasks",
        entries: Entries::Tasks,
    },
];

impl Entries {
    /// Returns the name of the member that identifies an entry.
    fn key(self) -> &'static str {
        match self {
            Self::Named(_) => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
            Self::Tasks => "taskId",
        }
    }
}

/// Destination of a request.
enum Target {
    /// The request is relayed to this server, with these params.
    One(usize, Option<JsonObject>),
    /// The request is relayed to the first server that knows the named item.
    First,
}

impl List {
    /// Returns true if a server has the list for the clients of the bridge.
    fn is_offered(self, backend: &Backend, capabilities: &JsonObject) -> bool {
        match self.entries {
            Entries::Tasks => !backend.is_shared() && tasks::is_list_declared(capabilities),
            _ => capabilities.view().find(self.capability).is_some(),
        }
    }
}

impl SharedState {
    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(
        self: &Arc<Self>,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        if !self.may_relay(&request) {
            return Err(PeerError::method_not_found(request.method()));
        }
        if self.relays_without_inspection() {
            return self.relay_to(0, client, request).await;
        }
        let is_list = |list: &&List| list.method == request.method();
        if let Some(list) = LISTS.iter().find(is_list)
            && is_defined(request.revision(), list.method)
        {
            return self.list(*list, client, &request).await;
        }
        if names_task(&request) {
            let server = self.server_of_task(client, &request);
            let server = server.ok_or_else(tasks::unknown_task)?;
            return self.relay_to(server, client, request).await;
        }
        match self.target(client, &request).await? {
            Target::One(server, params) => {
                let request = request.with_call(request.method(), params);
                self.relay_to(server, client, request).await
            }
            Target::First => self.relay_to_first(client, &request).await,
        }
    }

    /// Returns true if the revision of the client defines the request, or a rule allows the method. Access rules cannot
    /// be applied to the items that other requests name, so by default such requests are relayed only in front of a
    /// single server without rules, and only for clients without a principal.
    fn may_relay(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let method = request.method();
        let is_alone = || request.context().principal.is_none() && self.relays_without_inspection();
        let rules = self.live.rules();
        let mut patterns = rules.extension_methods.iter();
        is_defined(request.revision(), method)
            || self.relays_extension_tasks(request)
            || patterns.any(|pattern| matches(pattern, method))
            || is_alone()
    }

    /// Returns true if the request names a task of the tasks extension, and a server has the extension.
    fn relays_extension_tasks(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let backends = self.backends.all();
        let has_extension = |backend: &Arc<Backend>| {
            let profile = backend.cached_profile();
            profile.is_some_and(|known| tasks::declares_extension(&known.info.capabilities))
        };
        tasks::is_extension_request(request) && backends.iter().any(has_extension)
    }

    /// Returns the server that has created the task that a request names, if the task belongs to the client.
    fn server_of_task(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<usize> {
        self.find_server(client, request, |backend, session| match session {
            Some(session) => session.has_task(request),
            None => backend.stateless.has_task(backend, request),
        })
    }

    /// Returns the first server that satisfies a predicate, which gets the session of the client with the server.
    fn find_server(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        is_right: impl Fn(&Backend, Option<&Session>) -> bool,
    ) -> Option<usize> {
        let backends = self.backends.all();
        let mut servers = backends.iter().enumerate();
        let found = servers.find(|(server, backend)| {
            let session = self.session(client, request, *server);
            is_right(backend, session.as_deref())
        });
        found.map(|(server, _)| server)
    }

    /// Returns true if there is one server and no rule, so that requests are relayed without inspection.
    fn relays_without_inspection(&self) -> bool {
        let backends = self.backends.all();
        backends.len() == 1 && !backends[0].is_one_of_many && self.live.rules().access.is_empty()
    }

    pub(crate) fn may_use(&self, server: usize, principal: Option<&Principal>, name: &str) -> bool {
        self.backends.get(server).may_use(principal, name)
    }

    async fn relay_to(
        self: &Arc<Self>,
        server: usize,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let backend = self.backends.get(server);
        if is_defined_by_server_only(&backend, &request) {
            return Err(PeerError::method_not_found(request.method()));
        }
        let span = tracing::Span::current();
        span.record("server", &backend.name);
        let call = self.has_observers().then(|| call_of(&backend, &request));
        let observer = self.options.on_call.clone().zip(call.clone());
        let timer = CallTimer::begin(&self.counters, observer, &backend.name, request.method());
        let reply = match call.filter(|_| !self.options.hooks.is_empty()) {
            None => {
                self.relay_without_hooks(&backend, server, client, request)
                    .await
            }
            Some(call) => {
                let relay = async |params| {
                    let request = request.with_call(request.method(), params);
                    self.relay_without_hooks(&backend, server, client, request)
                        .await
                };
                self.options.hooks.run(call, relay).await
            }
        };
        timer.end(&reply);
        match reply {
            Reply::Error(error) => {
                span.record("otel.status_code", "ERROR");
                Err(error)
            }
            reply => Ok(reply),
        }
    }

    fn has_observers(&self) -> bool {
        self.options.on_call.is_some() || !self.options.hooks.is_empty()
    }

    async fn relay_without_hooks(
        &self,
        backend: &Backend,
        server: usize,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Reply {
        let relayed = match self.session(client, &request, server) {
            Some(session) => session.relay(request).await,
            None => backend.stateless.relay(backend, client, request).await,
        };
        relayed.unwrap_or_else(Reply::Error)
    }

    async fn target(
        self: &Arc<Self>,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Target, PeerError> {
        let text = |name: &str| {
            let text = request.param(name).and_then(|text| text.as_str());
            text.map(|text| text.into_owned())
        };
        let by_name = match request.method() {
            "tools/call" => Some((Kind::Tool, text("name"))),
            "prompts/get" => Some((Kind::Prompt, text("name"))),
            _ => None,
        };
        if let Some((kind, name)) = by_name {
            let name =
                name.ok_or_else(|| PeerError::invalid_params("`name` has to be a string"))?;
            let (server, own) = self.find(kind, &name, client, request).await?;
            return Ok(Target::One(server, renamed(request.params(), &own)));
        }
        if request.method() == "completion/complete"
            && let Some(reference) = request.param("ref").and_then(|value| value.object())
        {
            let [kind, name] = reference.find_each(["type", "name"]).map(|value| {
                let text = value.and_then(|value| value.as_str());
                text.map(|text| text.into_owned())
            });
            if let (Some("ref/prompt"), Some(name)) = (kind.as_deref(), name) {
                let (server, own) = self.find(Kind::Prompt, &name, client, request).await?;
                let reference = renamed(Some(&reference.to_object()), &own);
                let mut params = request.params().cloned().unwrap_or_default();
                params.insert("ref", reference.unwrap_or_default());
                return Ok(Target::One(server, Some(params)));
            }
        }
        Ok(Target::First)
    }

    /// Finds the server of a tool or prompt by its name.
    async fn find(
        self: &Arc<Self>,
        kind: Kind,
        name: &str,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<(usize, String), PeerError> {
        let mut found = self.names.find(kind, name);
        if found.is_none()
            && let Some(list) = LISTS
                .iter()
                .find(|list| list.entries == Entries::Named(kind))
        {
            // The client may have learned the name from another process.
            tracing::debug!(name, "an unknown name is looked for");
            self.entries_of_all(*list, client, request).await;
            found = self.names.find(kind, name);
        }
        let principal = request.context().principal.as_ref();
        let found = found.filter(|(server, own)| self.may_use(*server, principal, own));
        found.ok_or_else(|| {
            let what = match kind {
                Kind::Tool => "tool",
                Kind::Prompt => "prompt",
            };
            PeerError::invalid_params(format!("Unknown {what}: {name}"))
        })
    }

    /// Returns the server whose input requests a retry answers; `None` if the `requestState` of the retry does not name
    /// one.
    fn asked_by(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<usize> {
        request.state.as_ref()?;
        self.find_server(client, request, |backend, session| match session {
            Some(session) => session.has_asked(request),
            None => backend.stateless.has_asked(backend, request),
        })
    }

    /// Relays a request to one server after the other, until one knows the named item. The first one is the server that has asked
    /// what a retry answers, or else the server that is known to have the item.
    async fn relay_to_first(
        self: &Arc<Self>,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let principal = request.context().principal.as_ref();
        // A completion names a template in its reference.
        let reference = request
            .param("ref")
            .and_then(|reference| relay::uri_of(Some(&reference.object()?.to_object())));
        let uri = relay::uri_of(request.params()).or(reference);
        let reader = principal.map(|Principal(name)| name.as_str());
        let known = uri.as_deref().and_then(|uri| {
            let answered = || self.uris.answered_by(reader, uri);
            let asked = is_retry(request).then(answered).flatten();
            asked.or_else(|| self.uris.server_of(reader, uri))
        });
        let first = self.asked_by(client, request).or(known);
        let mut last = None;
        let backends = self.backends.all();
        let mut servers: Vec<_> = backends.iter().enumerate().collect();
        servers.sort_by_key(|(server, _)| Some(*server) != first);
        for (server, backend) in servers {
            let name = uri.as_deref().unwrap_or_else(|| request.method());
            if !self.may_use(server, principal, name) {
                continue;
            }
            // Answers of the user are for the server that has asked.
            let is_last = is_retry(request) && first == Some(server);
            match self.relay_to(server, client, request.clone()).await {
                Err(error) if is_unknown(&error) && !is_last => {
                    last.get_or_insert(error);
                }
                // An unreachable server may have the item, but its error is returned only after the others were tried.
                Err(error) if backend.is_unreachable() && !is_last => last = Some(error),
                answered => {
                    if let ("resources/read", Some(uri), Ok(_)) =
                        (request.method(), &uri, &answered)
                    {
                        self.uris.note_answer(server, reader, uri);
                    }
                    return answered;
                }
            }
        }
        Err(last.unwrap_or_else(|| match uri {
            Some(uri) => unknown_resource(&uri, request.revision()),
            None => PeerError::method_not_found(request.method()),
        }))
    }

    /// Joins the lists of all servers. The entries of a server that does not answer are omitted.
    async fn list(
        self: &Arc<Self>,
        list: List,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        if request.param("cursor").is_some() {
            let words = "`cursor` is none of this server's: its lists have one page";
            return Err(PeerError::invalid_params(words));
        }
        let (listed, is_complete) = self.entries_of_all(list, client, request).await;
        let mut result = empty(list, request)?;
        if let Some(lifetime) = self.lifetime(&listed)
            && is_complete
            && result.get("ttlMs").is_some()
        {
            result.insert("ttlMs", lifetime.milliseconds);
            if lifetime.is_public {
                result.insert("cacheScope", Json::string("public"));
            }
        }
        let (mut entries, mut losses) = (Vec::new(), Vec::new());
        for of_server in listed {
            entries.extend(of_server.entries);
            losses.extend(self.losses_of(of_server.server, of_server.losses));
        }
        result.insert(list.member, Json::from_encode(&entries));
        Ok(Reply::Result(losses::with_losses(result, &losses).into()))
    }

    /// Adds the name of the server to its losses.
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

    /// Returns the most restrictive cache hint of all servers (2026-07-28, `server/utilities/caching`).
    fn lifetime(&self, listed: &[ServerList]) -> Option<Lifetime> {
        let mut strictest = Lifetime {
            milliseconds: u64::MAX,
            // A list that depends on the principal must not be shared between principals.
            is_public: self.live.rules().access.is_empty(),
        };
        for ServerList { first, .. } in listed {
            let [milliseconds, scope] = first.view().find_each(["ttlMs", "cacheScope"]);
            let milliseconds = milliseconds?.text().parse::<u64>().ok()?;
            strictest.milliseconds = strictest.milliseconds.min(milliseconds);
            strictest.is_public &= scope?.as_str()? == "public";
        }
        (!listed.is_empty()).then_some(strictest)
    }

    /// Reads a list of all servers concurrently and returns the lists in the order of the servers. The flag is false if
    /// a server did not answer.
    async fn entries_of_all(
        self: &Arc<Self>,
        list: List,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> (Vec<ServerList>, bool) {
        let mut is_complete = true;
        let mut reading = JoinSet::new();
        let backends = self.backends.all();
        for (server, backend) in backends.iter().enumerate() {
            if backend.is_removed() {
                continue;
            }
            let (shared, client, request) = (Arc::clone(self), client.clone(), request.clone());
            reading.spawn(async move {
                let reading = shared.entries(server, list, &client, &request);
                let read = timeout(SERVER_ANSWER_TIMEOUT, reading).await;
                let late = |_| Err(PeerError::internal("the server gave no answer in time"));
                (server, read.unwrap_or_else(late))
            });
        }
        let mut all: Vec<Option<ServerList>> = backends.iter().map(|_| None).collect();
        while let Some(read) = reading.join_next().await {
            match read {
                Ok((server, Ok(listed))) => all[server] = listed,
                Ok((server, Err(error))) => {
                    is_complete = false;
                    let server = backends[server].name.as_str();
                    tracing::warn!(
                        server,
                        error = error.message(),
                        "a server is left out of a list"
                    );
                }
                Err(error) => tracing::error!(%error, "a list was not read"),
            }
        }
        let mut listed: Vec<ServerList> = all.into_iter().flatten().collect();
        // Names are assigned in the order of the servers, not of their answers.
        for listed in &mut listed {
            self.rename(list, listed, request.context().principal.as_ref());
        }
        (listed, is_complete)
    }

    /// Reads all pages of a server's list; `None` if the server has no such list.
    async fn entries(
        self: &Arc<Self>,
        server: usize,
        list: List,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Option<ServerList>, PeerError> {
        let backend = self.backends.get(server);
        if !list.is_offered(&backend, &backend.profile().await?.info.capabilities) {
            return Ok(None);
        }
        let mut listed: Option<ServerList> = None;
        let mut cursor: Option<Json> = None;
        let params = list_params(request);
        for _ in 0..MAX_PAGES {
            let mut params = params.clone();
            if let Some(cursor) = cursor.take() {
                params.insert("cursor", cursor);
            }
            let params = (!params.is_empty()).then_some(params);
            let request = request.with_call(list.method, params);
            let mut page = self.relay_to(server, client, request.clone()).await;
            if page
                .as_ref()
                .is_err_and(|error| *error == relay::missing_answer_error(&Outcome::Lost))
            {
                // Repeating a list request is safe.
                page = self.relay_to(server, client, request).await;
            }
            let page = match page? {
                Reply::Result(page) => page.into_object(),
                Reply::Error(error) => return Err(error),
                _ => return Err(PeerError::internal("the server asks before it lists")),
            };
            let entries = page.view().find(list.member);
            let entries = entries.and_then(|entries| entries.decode_as::<Vec<JsonObject>>().ok());
            let entries = entries.unwrap_or_default();
            cursor = page.get("nextCursor");
            let losses = losses::listed_in(&page);
            match &mut listed {
                Some(listed) => {
                    listed.entries.extend(entries);
                    listed.losses.extend(losses);
                }
                None => {
                    listed = Some(ServerList {
                        server,
                        first: page,
                        entries,
                        losses,
                    });
                }
            }
            if cursor.is_none() {
                break;
            }
        }
        Ok(listed)
    }

    /// Removes the entries that the principal may not use, and renames the others for clients.
    fn rename(&self, list: List, listed: &mut ServerList, principal: Option<&Principal>) {
        let server = listed.server;
        let mut uris = Vec::new();
        listed.entries.retain_mut(|entry| {
            let key = entry.view().find(list.entries.key());
            let Some(key) = key.and_then(|key| Some(key.as_str()?.into_owned())) else {
                return false;
            };
            // The server's session has removed the tasks of other clients.
            let is_shown = list.entries == Entries::Tasks || self.may_use(server, principal, &key);
            let Entries::Named(kind) = list.entries else {
                // What the server has does not depend on who looks at it.
                uris.push(key);
                return is_shown;
            };
            if !is_shown {
                return false;
            }
            let Some(name) = self.names.assign(kind, server, &key) else {
                return false;
            };
            if name != key {
                *entry = renamed(Some(entry), &name).unwrap_or_default();
            }
            true
        });
        match list.entries {
            Entries::Named(_) | Entries::Tasks => {}
            Entries::Resources => self.uris.set_resources(server, uris),
            Entries::Templates => self.uris.set_templates(server, &uris),
        }
    }
}

/// Describes a request for hooks and observers.
fn call_of(backend: &Backend, request: &IncomingRequest<RequestContext>) -> Call {
    let principal = request.context().principal.clone();
    Call {
        server: backend.name.clone(),
        principal: principal.map(|Principal(name)| name),
        client: request.client().implementation.clone(),
        revision: request.revision(),
        method: request.method().to_owned(),
        params: request.params().cloned(),
    }
}

/// Cache hint of a list: its lifetime and scope.
struct Lifetime {
    milliseconds: u64,
    is_public: bool,
}

/// List of one server.
struct ServerList {
    server: usize,
    /// First page of the list, which has the cache hints.
    first: JsonObject,
    entries: Vec<JsonObject>,
    /// Losses in the conversions of all pages.
    losses: Vec<Json>,
}

/// Returns the params of a list request: the `_meta` about the client, taken from another request.
fn list_params(request: &IncomingRequest<RequestContext>) -> JsonObject {
    let meta = request.param("_meta").map(|meta| meta.to_json());
    meta.map(|meta| ("_meta", meta)).into_iter().collect()
}

/// Returns the object with another `name`; the other members and their order do not change.
fn renamed(object: Option<&JsonObject>, name: &str) -> Option<JsonObject> {
    let object = object?;
    let members = object.view().iter().map(|(key, value)| match &*key {
        "name" => (key, Json::string(name)),
        _ => (key, value.to_json()),
    });
    Some(members.collect())
}

/// Returns a result of the list without entries, in the revision of the client.
fn empty(list: List, request: &IncomingRequest<RequestContext>) -> Result<JsonObject, PeerError> {
    let none: Vec<Json> = Vec::new();
    let result = JsonObject::from_iter([(list.member, Json::from_encode(&none))]);
    if list.entries == Entries::Tasks {
        return Ok(result);
    }
    let oldest = mcp_exact_session::revisions().next();
    let translation = Translation {
        from: oldest.unwrap_or_else(|| request.revision()),
        to: request.revision(),
        losses: Losses::ignored(),
    };
    let result = translation.result(list.method, result.into(), None)?;
    Ok(result.into_object())
}

/// Returns true if the error means that the server does not know the item that a request names.
fn is_unknown(error: &PeerError) -> bool {
    matches!(error.code(), Some(-32601 | -32602 | -32002))
}

/// Returns true if a revision defines requests of this method for clients.
fn is_defined(revision: Revision, method: &str) -> bool {
    let spec = mcp_exact_revisions::find(revision.as_str());
    spec.is_some_and(|spec| spec.sends_request(Side::Client, method))
}

/// Returns true if the request names a task.
fn names_task(request: &IncomingRequest<RequestContext>) -> bool {
    tasks::is_extension_request(request)
        || tasks::is_session_request(request.revision(), request.method())
}

/// Returns true if the server's revision defines the method but the client's revision does not, such as `initialize`
/// from a client of 2026-07-28. Such a request cannot be converted.
fn is_defined_by_server_only(backend: &Backend, request: &IncomingRequest<RequestContext>) -> bool {
    let method = request.method();
    !is_defined(request.revision(), method)
        && backend
            .cached_profile()
            .is_some_and(|known| is_defined(known.info.revision, method))
}

/// Returns true if the request has answers to input requests of a server.
fn is_retry(request: &IncomingRequest<RequestContext>) -> bool {
    request.state.is_some() || !request.responses.is_empty()
}

/// Returns the error for a missing resource, with the code of the client's revision (`server/resources`, "Error Handling").
fn unknown_resource(uri: &str, revision: Revision) -> PeerError {
    let data = JsonObject::from_iter([("uri", Json::string(uri))]);
    let spec = mcp_exact_revisions::find(revision.as_str());
    let code = spec.map_or(-32602, |spec| spec.resource_not_found_code());
    PeerError::new(code, "Resource not found").with_data(data)
}
