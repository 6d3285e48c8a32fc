//! Routing of requests among many servers. The lists of all servers are joined in `lists.rs`.
//!
//! Tools and prompts are found by their names, see [`Names`], and resources by their URIs, see `resources.rs`.

mod lists;
mod resources;
mod search;
mod users;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_exact_revisions::{MethodId, Side};
use mcp_exact_session::{IncomingRequest, JsonObject, PeerError, Reply, Revision};
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::time::{Instant, timeout_at};

use crate::around::access::matches;
use crate::around::gate::{self, Admitted, Gate};
use crate::around::hooks::Call;
use crate::around::metrics::{CallNotes, CallTimer};
use crate::around::names::Kind;
use crate::around::retry::Attempts;
use crate::around::server_uris::is_of_one_server;
use crate::around::skills;
use crate::around::target::{self, Target};
use crate::clients::shared_state::SharedState;
use crate::route::cached;
use crate::route::retry;
use crate::route::server::Server;
use crate::route::session::Session;
use crate::servers::tasks;
use lists::{Entries, LISTS, List};

/// Time limit for the answer of one server to a list that is needed to find a name.
const SERVER_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

impl SharedState {
    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(
        self: &Arc<Self>,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let gate = Gate::new(&self.live, request.context().principal.as_ref());
        let gate = &gate;
        if !self.may_relay(gate, &request) {
            let error = PeerError::method_not_found(request.method());
            return Err(self.refuse(&request, error));
        }
        if self.relays_without_inspection(gate) {
            let method = request.method().to_owned();
            let reply = self.relay_to(gate, 0, client, request).await?;
            return Ok(self.without_namesakes(&method, reply));
        }
        let request = match self.called_request(gate, request) {
            Ok(request) => request,
            Err(answer) => return answer,
        };
        if let Some(searched) = self.searched(gate, client, &request).await {
            return searched;
        }
        let is_list = |list: &&List| list.method == request.method();
        if let Some(list) = LISTS.iter().find(is_list)
            && (list.entries == Entries::Skills || is_defined(request.revision(), list.method))
        {
            return self.list(gate, *list, client, &request).await;
        }
        if names_task(&request) {
            let server = self.server_of_task(client, &request);
            let server = server.ok_or_else(|| self.refuse(&request, tasks::unknown_task()))?;
            return self.relay_to(gate, server, client, request).await;
        }
        let target = Target::of(request.method(), request.params());
        if let Some(uri) = named_uri(&target, &request).filter(|uri| is_of_one_server(uri)) {
            return self.relay_to_its_server(gate, &uri, client, request).await;
        }
        if self.is_joint && skills::is_method(request.method()) {
            // Skills and their files are those of one server.
            let error = match target.uri() {
                Some(uri) => gate::unknown_resource(&uri, &request),
                None => target::missing_member("uri"),
            };
            return Err(self.refuse(&request, error));
        }
        match target {
            Target::Named(kind, name) => {
                let (server, own) = self.find(gate, kind, &name, client, &request).await?;
                let named = self.named_by_server(gate, server, kind, &own, &request);
                let request = match named {
                    Ok(request) => request,
                    Err(error) => return search::mistake(&request, self.refuse(&request, error)),
                };
                self.relay_to(gate, server, client, request).await
            }
            Target::Missing("name") => Err(self.refuse(&request, target::missing_member("name"))),
            target => self.relay_to_first(gate, target, client, &request).await,
        }
    }

    /// Returns a request as the server defines it: with its own name of the tool or prompt, and with the arguments that the catalogue
    /// gives to a tool.
    fn named_by_server(
        &self,
        gate: &Gate,
        server: usize,
        kind: Kind,
        own: &str,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<IncomingRequest<RequestContext>, PeerError> {
        let method = request.method();
        let Some(params) = request.params() else {
            return Ok(request.clone());
        };
        let mut params = target::renamed(method, params, "name", own);
        let server = self.backends.get(server);
        if kind == Kind::Tool
            && let Some(catalogue) = gate.catalogue(server.listed_name())
            && catalogue.has_arguments(own)
        {
            let given = catalogue.arguments(own, params.get("arguments"));
            let given = given.map_err(|error| PeerError::invalid_params(error.to_string()))?;
            if let Some(arguments) = given {
                params.insert("arguments", arguments);
            }
        }
        Ok(request.with_call(method, Some(params)))
    }

    /// Reports a request that is refused and reaches no server; returns the error of the refusal.
    pub(crate) fn refuse(
        &self,
        request: &IncomingRequest<RequestContext>,
        error: PeerError,
    ) -> PeerError {
        if let Some(observer) = &self.options.on_call {
            observer.report_refusal(&Call::new("", request), &error);
        }
        error
    }

    /// Returns true if the revision of the client defines the request, or a rule allows the method. Access rules do not
    /// apply to the items that an undefined request names, so by default an undefined request is relayed only in front
    /// of a single server without rules, and only for clients without a principal.
    fn may_relay(&self, gate: &Gate, request: &IncomingRequest<RequestContext>) -> bool {
        let method = request.method();
        let is_alone = || gate.principal().is_none() && self.relays_without_inspection(gate);
        let mut patterns = gate.rules().extension_methods.iter();
        is_defined(request.revision(), method)
            || self.relays_extension_tasks(request)
            || self.relays_skills(request)
            || patterns.any(|pattern| matches(pattern, method))
            || is_alone()
    }

    /// Returns true if the request names a task of the tasks extension, and a server declares the extension.
    fn relays_extension_tasks(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let backends = self.backends.all();
        let has_extension = |backend: &Arc<Server>| {
            let profile = backend.cached_profile();
            profile.is_some_and(|known| tasks::declares_extension(&known.info.capabilities))
        };
        tasks::is_extension_request(request) && backends.iter().any(has_extension)
    }

    /// Returns true if the request is one of the extension of skills, and a server declares the extension, or was not reached
    /// yet. In front of many servers, the extension may have been declared because of a server that has no skills, or that is gone:
    /// the list is empty then.
    fn relays_skills(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let backends = self.backends.all();
        skills::is_method(request.method())
            && (self.is_joint || backends.iter().any(|backend| may_have_skills(backend)))
    }

    /// Returns the server that has created the task that a request names, if the task belongs to the client.
    fn server_of_task(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<usize> {
        self.find_server(client, request, |backend, session| match session {
            Some(session) => session.has_task(request),
            None => backend.stateless.has_task(request),
        })
    }

    /// Returns the first server that satisfies a predicate. The predicate receives a server, and the session of the
    /// client with this server.
    fn find_server(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        is_right: impl Fn(&Server, Option<&Session>) -> bool,
    ) -> Option<usize> {
        let backends = self.backends.all();
        let mut servers = backends.iter().enumerate();
        let found = servers.find(|(server, backend)| {
            let session = self.session(client, request, *server);
            is_right(backend, session.as_deref())
        });
        found.map(|(server, _)| server)
    }

    /// Returns true if clients see one server as it is and there is no rule, so that requests are relayed without inspection.
    fn relays_without_inspection(&self, gate: &Gate) -> bool {
        !self.is_joint
            && gate.rules().access.is_empty()
            && !gate.changes_tools(&self.backends.get(0).name)
    }

    /// Relays a request to a server, as [`relay_own`](Self::relay_own), and returns the answer with the URIs of the server in the
    /// form for clients.
    async fn relay_to(
        self: &Arc<Self>,
        gate: &Gate,
        server: usize,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let backend = self.backends.get(server);
        let uris = self.uris_of(&backend);
        let skills_method =
            skills::is_method(request.method()).then(|| request.method().to_owned());
        let mut answered = self.relay_own(gate, server, client, request).await;
        if let Some(method) = skills_method {
            let name = backend.listed_name();
            answered = answered.map(|reply| skills::without_hidden(gate, name, &method, reply));
        }
        answered
            .map(|reply| uris.reply(reply))
            .map_err(|error| uris.error(error))
    }

    /// Admits a request to a server, relays it through the hooks, and counts it. What a hook has changed is admitted again. The
    /// URIs of request and answer are those of the server.
    async fn relay_own(
        self: &Arc<Self>,
        gate: &Gate,
        server: usize,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let backend = self.backends.get(server);
        let uris = self.uris_of(&backend);
        // The names of joint servers were found in their lists.
        let is_named = matches!(
            request.method_id(),
            MethodId::ToolsCall | MethodId::PromptsGet
        );
        if (self.is_joint && is_named) || backend.tools.knows(&request) {
            client.set_target_known(&request);
        }
        let admitted = if is_defined_by_server_only(&backend, &request) {
            Err(PeerError::method_not_found(request.method()))
        } else if skills::is_method(request.method()) && !may_have_skills(&backend) {
            // The gateway declares the extension for other servers.
            let uri = request
                .param("uri")
                .and_then(|uri| Some(uri.as_str()?.into_owned()));
            Err(gate::unknown_resource(&uri.unwrap_or_default(), &request))
        } else {
            backend.admit(gate, &uris, request.clone())
        };
        let request = admitted.as_ref().map_or(&request, Admitted::request);
        let call = self.has_observers().then(|| {
            let call = Call::new(&backend.name, request);
            call.listed_by(gate.catalogue(Some(&backend.name)))
        });
        let observer = self.options.on_call.clone().zip(call.clone());
        let timer = CallTimer::begin(&self.counters, observer, &backend.name, request.method());
        let notes = timer.notes();
        let send = async |admitted: Result<Admitted, PeerError>| match admitted {
            Ok(admitted) => {
                let place = (&*backend, server);
                self.send(place, client, admitted, &notes).await
            }
            Err(error) => Reply::Error(error),
        };
        let is_hooked = admitted.is_ok() && !self.options.hooks.is_empty();
        let reply = match call.filter(|_| is_hooked) {
            None => send(admitted).await,
            Some(call) => {
                let relay = async |changed: Option<JsonObject>| match changed {
                    None => send(admitted.clone()).await,
                    params => {
                        let changed = request.with_call(request.method(), params);
                        send(backend.admit(gate, &uris, changed)).await
                    }
                };
                self.options.hooks.run(call, relay).await
            }
        };
        timer.end(&reply);
        match reply {
            Reply::Error(error) => Err(error),
            reply => Ok(reply),
        }
    }

    /// Returns true if there is a hook or an observer of requests.
    fn has_observers(&self) -> bool {
        self.options.on_call.is_some() || !self.options.hooks.is_empty()
    }

    /// Sends an admitted request to a server, and returns the answer.
    async fn send(
        &self,
        (backend, server): (&Server, usize),
        client: &ServerHandle,
        admitted: Admitted,
        notes: &CallNotes,
    ) -> Reply {
        let (admitted, is_private) = match users::admit(backend, admitted).await {
            Ok(admitted) => admitted,
            Err(reply) => return reply,
        };
        let relayed = self.relay_again((backend, server), client, &admitted, notes);
        let relayed = relayed.await;
        let reply = relayed.unwrap_or_else(Reply::Error);
        if is_private {
            users::keep_private(reply)
        } else {
            reply
        }
    }

    /// Relays an admitted request to a server, and repeats it as the settings of the server allow.
    async fn relay_again(
        &self,
        (backend, server): (&Server, usize),
        client: &ServerHandle,
        admitted: &Admitted,
        notes: &CallNotes,
    ) -> Result<Reply, PeerError> {
        let request = admitted.request();
        let session = self.session(client, request, server);
        let number = session.as_ref().map(|session| session.number());
        let ticket = cached::ticket(backend, request, number);
        if let Some(answer) = ticket.as_ref().and_then(|ticket| ticket.find()) {
            if let Some(session) = &session {
                session.keep_informed(request)?;
            }
            notes.is_cached.store(true, Ordering::Relaxed);
            return cached::reply(backend, request, &answer);
        }
        let keeping = ticket.map(|ticket| admitted.clone().with_ticket(ticket));
        let admitted = keeping.as_ref().unwrap_or(admitted);
        let attempt = async || {
            let passed = backend.pass_breaker().await;
            passed.map_err(|refused| refused.error(&backend.name))?;
            match &session {
                Some(session) => session.relay(admitted).await,
                None => backend.stateless.relay(client, admitted).await,
            }
        };
        let Some(policy) = retry::policy_for(backend, request) else {
            return attempt().await;
        };
        let mut attempts = Attempts::new(&policy, backend.layers().request_timeout, Instant::now());
        let deadline = attempts.deadline();
        let mut relayed = attempt().await;
        while let Err(error) = &relayed
            && let Some(pause) = attempts.pause_after(error)
        {
            let again = async {
                tokio::time::sleep(pause).await;
                backend.wait_for_backoff().await;
                backend.count_retry();
                notes.retries.fetch_add(1, Ordering::Relaxed);
                attempt().await
            };
            match timeout_at(deadline, again).await {
                Ok(next) => relayed = next,
                Err(_) => break,
            }
        }
        relayed
    }

    /// Finds a tool or prompt by its name for clients; returns the index of the server, and the server's own name of
    /// the item. Reads the lists of all servers if the name is unknown.
    async fn find(
        self: &Arc<Self>,
        gate: &Gate,
        kind: Kind,
        name: &str,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<(usize, String), PeerError> {
        let find = || {
            let (server, listed) = self.names.find(kind, name)?;
            let own = self.own_name(gate, server, kind, &listed)?;
            Some((server, own))
        };
        let mut found = find();
        // A tool with a pin is called once its definition is known, and again after the server has changed.
        let named_tool = found.as_ref().filter(|_| kind == Kind::Tool);
        let unseen = named_tool.and_then(|(server, own)| {
            let backend = self.backends.get(*server);
            gate.unseen_since(backend.listed_name(), own)
        });
        if (found.is_none() || unseen.is_some())
            && let Some(list) = LISTS
                .iter()
                .find(|list| list.entries == Entries::Named(kind))
        {
            // The client may have learned the name from another process.
            tracing::debug!(name, "an unknown name is looked for");
            let within = SERVER_ANSWER_TIMEOUT;
            let known = found.as_ref().map(|(server, _)| *server);
            let is_wanted = |server: usize| known.is_none_or(|known| known == server);
            let read = self.entries_of(gate, is_wanted, *list, client, request, within);
            read.await;
            found = find();
        }
        let is_shown = |(server, own): &(usize, String)| {
            let backend = self.backends.get(*server);
            let server = backend.listed_name();
            gate.shows_named(server, kind, own)
                && unseen.is_none_or(|changes| gate.is_seen_since(server, own, changes))
        };
        found
            .filter(is_shown)
            .ok_or_else(|| self.refuse(request, self.unknown_item(gate, kind, name)))
    }

    /// Returns the error for a name that the client cannot use. If the configuration of the server switches the tool off, the error names
    /// the list.
    fn unknown_item(&self, gate: &Gate, kind: Kind, name: &str) -> PeerError {
        let unknown = || gate::unknown_item(kind, name);
        if kind != Kind::Tool {
            return unknown();
        }
        let catalogue_of = |server: &Server| gate.catalogue(server.listed_name());
        let key = match self.names.find(kind, name) {
            Some((server, listed)) => catalogue_of(&self.backends.get(server))
                .and_then(|catalogue| catalogue.key_against(&listed).map(str::to_owned)),
            // A name that was never listed does not say whose it is, unless a list has it.
            None => self.backends.all().iter().find_map(|server| {
                let catalogue = catalogue_of(server)?;
                let key = if self.is_joint {
                    catalogue.filter().key_denying(name)
                } else {
                    catalogue.key_against(name)
                };
                key.map(str::to_owned)
            }),
        };
        key.map_or_else(unknown, |key| gate::tool_switched_off(name, &key))
    }

    /// Returns the name that a server itself has for a tool or prompt; `None` if the catalogue gives the name to no tool.
    fn own_name(&self, gate: &Gate, server: usize, kind: Kind, listed: &str) -> Option<String> {
        let backend = self.backends.get(server);
        match gate.catalogue(backend.listed_name()) {
            Some(catalogue) if kind == Kind::Tool => catalogue.own_name(listed).map(str::to_owned),
            _ => Some(listed.to_owned()),
        }
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
            _ if users::is_state_of(&backend.name, request) => true,
            Some(session) => session.is_server_of_retry(request),
            None => backend.stateless.is_server_of_retry(request),
        })
    }
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

/// Returns true if a server declares the extension of skills, or was not reached yet.
fn may_have_skills(backend: &Server) -> bool {
    let profile = backend.cached_profile();
    profile.is_none_or(|known| skills::is_declared(&known.info.capabilities))
}

/// Returns true if the request names a task.
fn names_task(request: &IncomingRequest<RequestContext>) -> bool {
    tasks::is_extension_request(request)
        || tasks::is_session_request(request.revision(), request.method())
}

/// Returns true if the server's revision defines the method but the client's revision does not, such as `initialize`
/// from a client of 2026-07-28. Such a request cannot be converted.
fn is_defined_by_server_only(backend: &Server, request: &IncomingRequest<RequestContext>) -> bool {
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

/// Returns the URI that a request names: by a member of its method or, if the method is of an extension, by its member `uri`.
fn named_uri(target: &Target, request: &IncomingRequest<RequestContext>) -> Option<String> {
    match target {
        Target::Resource(uri) => Some(uri.clone()),
        Target::Nothing if !is_defined(request.revision(), request.method()) => {
            Some(request.param("uri")?.as_str()?.into_owned())
        }
        _ => None,
    }
}
