//! Routing of requests among many servers. The lists of all servers are joined in `lists.rs`.
//!
//! Tools and prompts are found by their names, see [`Names`]. Resources keep their URIs, since tools and prompts
//! mention them: a request for a URI is sent first to the server that lists the URI or a template with a matching
//! prefix, and then to the other servers in turn, until a server has the resource.

mod lists;

use std::sync::Arc;

use mcp_exact_revisions::Side;
use mcp_exact_session::{IncomingRequest, Json, JsonObject, PeerError, Principal, Reply, Revision};
use mcp_exact_transport::{RequestContext, ServerHandle};

use crate::access::matches;
use crate::backend::Backend;
use crate::bridge::SharedState;
use crate::hooks::Call;
use crate::metrics::CallTimer;
use crate::names::Kind;
use crate::relay;
use crate::session::Session;
use crate::tasks;
use lists::{Entries, LISTS, List};

/// Destination of a request.
enum Target {
    /// The server with this index receives the request, with these params.
    One(usize, Option<JsonObject>),
    /// The servers receive the request in turn, until a server has the item that the request names.
    First,
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

    /// Returns true if the revision of the client defines the request, or a rule allows the method. Access rules do not
    /// apply to the items that an undefined request names, so by default an undefined request is relayed only in front
    /// of a single server without rules, and only for clients without a principal.
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

    /// Returns true if the request names a task of the tasks extension, and a server declares the extension.
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

    /// Returns the first server that satisfies a predicate. The predicate receives a server, and the session of the
    /// client with this server.
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

    /// Returns true if a principal may see and use an item of the server with an index.
    pub(crate) fn may_use(&self, server: usize, principal: Option<&Principal>, name: &str) -> bool {
        self.backends.get(server).may_use(principal, name)
    }

    /// Relays a request to a server, through the hooks, and counts the request.
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

    /// Returns true if there is a hook or an observer of requests.
    fn has_observers(&self) -> bool {
        self.options.on_call.is_some() || !self.options.hooks.is_empty()
    }

    /// Relays a request to a server without calling hooks.
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

    /// Returns the destination of a request: the server of the tool or prompt that its params name, or else the first
    /// server that has the item.
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

    /// Finds a tool or prompt by its name for clients; returns the index of the server, and the server's own name of
    /// the item. Reads the lists of all servers if the name is unknown.
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
    fn server_of_retry(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<usize> {
        request.state.as_ref()?;
        self.find_server(client, request, |backend, session| match session {
            Some(session) => session.is_server_of_retry(request),
            None => backend.stateless.is_server_of_retry(backend, request),
        })
    }

    /// Relays a request to one server after the other, until a server has the named item. Starts with the server whose
    /// input requests the retry answers, or else with the server that is known to have the item.
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
            let of_retry = is_retry(request).then(answered).flatten();
            of_retry.or_else(|| self.uris.server_of(reader, uri))
        });
        let first = self.server_of_retry(client, request).or(known);
        let mut last = None;
        let backends = self.backends.all();
        let mut servers: Vec<_> = backends.iter().enumerate().collect();
        servers.sort_by_key(|(server, _)| Some(*server) != first);
        for (server, backend) in servers {
            let name = uri.as_deref().unwrap_or_else(|| request.method());
            if !self.may_use(server, principal, name) {
                continue;
            }
            // The responses are for the server that has sent the input requests.
            let is_last = is_retry(request) && first == Some(server);
            match self.relay_to(server, client, request.clone()).await {
                Err(error) if is_unknown(&error) && !is_last => {
                    last.get_or_insert(error);
                }
                // An unreachable server may have the item, but its error is returned only after all other servers were
                // tried.
                Err(error) if backend.is_unreachable() && !is_last => last = Some(error),
                answered => {
                    if let ("resources/read", Some(uri), Ok(_)) =
                        (request.method(), &uri, &answered)
                    {
                        self.uris.record_answer(server, reader, uri);
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
}

/// Returns the description of a request for hooks and observers.
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

/// Returns the object with its member `name` replaced; the other members and their order do not change.
fn renamed(object: Option<&JsonObject>, name: &str) -> Option<JsonObject> {
    let object = object?;
    let members = object.view().iter().map(|(key, value)| match &*key {
        "name" => (key, Json::string(name)),
        _ => (key, value.to_json()),
    });
    Some(members.collect())
}

/// Returns true if the error means that the server does not have the item that a request names.
fn is_unknown(error: &PeerError) -> bool {
    matches!(error.code(), Some(-32601 | -32602 | -32002))
}

/// Returns true if a revision defines a request of clients with this method.
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

/// Returns true if the request contains responses to input requests of a server.
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
