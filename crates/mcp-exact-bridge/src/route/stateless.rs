//! Clients without sessions (from 2026-07-28 on): each request is independent, and connections to the server are shared
//! by the requests of one principal.
//!
//! A server of an older revision sends requests to the client while it works on a call. The bridge then answers the
//! client's call with a result of type `input_required`, and keeps the upstream call open until the client retries with
//! the answers. If the client can answer such requests, a connection serves one call at a time, because over stdio a
//! request of the server does not name the call that it belongs to.

mod connections;
mod input;
mod leased;
mod listening;
mod receivers;
mod sealing;
mod tasks;
mod waiting;

use std::sync::Arc;

use mcp_exact_session::{
    CallOptions, Filter, IncomingRequest, Json, Lifecycle, Outcome, PeerError, Principal, Reply,
    RequestKey, Seal,
};
use mcp_exact_transport::{RequestContext, ServerHandle};

pub(crate) use self::connections::SharedConnection;
use self::connections::{Connections, Owner};
use self::input::{input_of, pass_input_required};
use self::listening::Subscriptions;
pub(crate) use self::listening::{OnEstablished, SubscriptionRequest};
use self::sealing::{Binding, ProcessKey};
use self::waiting::{STATE_PREFIX, WaitingCalls, unknown_state_error};
use crate::around::gate::Admitted;
use crate::around::hooks::MessageHooks;
use crate::around::limits::Holder;
use crate::route::call::RelayedCall;
use crate::route::calls::SharedCalls;
use crate::route::relay::ProgressReceiver;
use crate::route::translate::Translation;
use crate::servers::backend::Backend;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::Connection;
use crate::servers::errors::{RelayError, Sending};
use crate::servers::tasks::is_extension_request;

/// State that all clients without sessions share.
pub(crate) struct Stateless {
    /// The server.
    backend: Arc<Backend>,
    /// Connections to the server, which the requests of each owner share.
    connections: Arc<Connections>,
    /// Subscriptions at the server, which equal subscriptions of clients share.
    subscriptions: Subscriptions,
    /// Key that binds the `requestState` of servers; `None` if the system provides no random numbers.
    seal: Option<Arc<dyn Seal>>,
    /// Calls that wait for the client's answers, by the `requestState` that the client has received.
    waiting: WaitingCalls,
}

impl Stateless {
    pub(crate) fn new(backend: &Arc<Backend>) -> Self {
        let connections = Arc::new(Connections::new(backend));
        let options = &backend.options;
        Self {
            backend: Arc::clone(backend),
            subscriptions: Subscriptions::new(&connections),
            seal: options.seal.clone().or_else(|| {
                let key = ProcessKey::random()?;
                Some(Arc::new(key) as Arc<dyn Seal>)
            }),
            waiting: WaitingCalls::new(options, &connections),
            connections,
        }
    }

    /// Returns the number of calls that wait for a client's answers.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Ends the waiting calls of a client, see [`WaitingCalls::end`].
    pub(crate) fn end_waiting_calls(&self, client: &ServerHandle, request: Option<RequestKey>) {
        self.waiting.end(client, request);
    }

    /// Relays changes to a subscription, see [`Server::listen`](crate::route::server::Server::listen).
    pub(crate) async fn listen(
        &self,
        request: &SubscriptionRequest,
        filter: &Filter,
        principal: Option<Principal>,
        established: OnEstablished,
    ) -> Result<(), PeerError> {
        let tasks = self.tasks_of_filter(filter, principal.as_ref());
        let listening = self
            .subscriptions
            .listen(request, filter, (principal, tasks), established);
        listening.await
    }

    /// Closes connections that are lost and that no call uses.
    pub(crate) fn release_lost(&self) {
        self.connections.release_lost();
    }

    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(
        &self,
        client: &ServerHandle,
        admitted: &Admitted,
    ) -> Result<Reply, PeerError> {
        let request = admitted.request();
        if is_extension_request(request) {
            return self.relay_task_request(client, request).await;
        }
        let (owner, holder) = (self.owner(request)?, Holder::of(request));
        let state = request.state.as_deref();
        let state = state.filter(|state| state.starts_with(STATE_PREFIX));
        // The bridge has created the `requestState` of a waiting call; the server does not define it.
        if let Some(state) = state.filter(|state| self.waiting.is_stored(state)) {
            let waiting = self.waiting.take(state, request)?;
            return self.resume(client, admitted, waiting).await;
        }
        let negotiation = self.backend.profile().await?.negotiation;
        let has_sessions = negotiation.lifecycle == Lifecycle::Initialize;
        // A server without sessions may be a bridge, too, and know the state.
        if state.is_some() && has_sessions {
            return Err(unknown_state_error());
        }
        let needs_lease = has_sessions && owner.client.supports_input_requests();
        let mut sending = Sending::new();
        loop {
            let relayed = if needs_lease {
                let lease = self.connections.lease(owner.clone(), &holder);
                self.call_on_leased_connection(client, admitted, lease.await?)
                    .await
            } else {
                let binding = self.binding(owner.principal.as_deref())?;
                let shared = self.connections.shared_connection(&owner, &holder);
                self.call_on_shared_connection(client, admitted, &shared.await?, binding)
                    .await
            };
            if let Some(answer) = sending.answered(relayed) {
                return answer;
            }
        }
    }

    /// Returns true if the server has sent the input requests that a retry answers: the retry continues a waiting call,
    /// or its `requestState` is bound to the server and the principal.
    pub(crate) fn is_server_of_retry(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let principal = request.context().principal.as_ref();
        let principal = principal.map(|Principal(name)| name.as_str());
        match request.state.as_deref() {
            None => false,
            Some(state)
                if state.starts_with(STATE_PREFIX) && self.waiting.is_waiting(state, principal) =>
            {
                true
            }
            // The state of a server, which may be a gateway.
            Some(state) => {
                let binding = self.binding(principal);
                binding.is_ok_and(|binding| binding.unbind(Json::string(state)).is_ok())
            }
        }
    }

    /// Returns the connection that the calls of the request's owner share.
    pub(crate) async fn shared_connection(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<SharedConnection, PeerError> {
        let (owner, holder) = (self.owner(request)?, Holder::of(request));
        self.connections.shared_connection(&owner, &holder).await
    }

    /// Returns the owner of the connections that a request can use.
    fn owner(&self, request: &IncomingRequest<RequestContext>) -> Result<Owner, PeerError> {
        let principal = request.context().principal.clone();
        Ok(Owner {
            client: self.client_side(request)?,
            principal: principal.map(|Principal(name)| name),
        })
    }

    /// Returns the name and capabilities of the client that sends a request.
    fn client_side(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<ClientSide, PeerError> {
        let client = request.client();
        let translation = Translation::to_newest(request.revision());
        let capabilities = translation.definition("ClientCapabilities", &client.capabilities)?;
        let side = ClientSide::new(client.implementation.as_ref(), &capabilities);
        Ok(side.of_user(self.backend.caller(request)))
    }

    /// Returns the binding of the server's `requestState` values and task ids to a principal.
    fn binding<'a>(&'a self, principal: Option<&'a str>) -> Result<Binding<'a>, PeerError> {
        let seal = self.seal.as_deref();
        let seal = seal.ok_or_else(|| PeerError::internal("the system gave no random numbers"))?;
        Ok(Binding {
            seal,
            server: &self.backend.name,
            principal,
        })
    }

    /// Returns the hooks for the messages that client and server exchange during a request.
    fn messages(&self, request: &IncomingRequest<RequestContext>) -> MessageHooks {
        let principal = request.context().principal.as_ref();
        let client = (request.client().implementation.as_ref(), request.revision());
        MessageHooks::new(
            &self.backend.options.hooks,
            &self.backend.name,
            principal,
            client,
        )
    }

    /// Returns a request on a connection.
    fn call<'a>(
        &'a self,
        request: &'a IncomingRequest<RequestContext>,
        connection: &'a Arc<Connection>,
    ) -> RelayedCall<'a> {
        RelayedCall::new(request, connection, &self.backend, self.messages(request))
    }

    /// Sends a call on a connection that other calls share. The server sends no requests during the call; it may return
    /// a result of type `input_required`.
    async fn call_on_shared_connection(
        &self,
        client: &ServerHandle,
        admitted: &Admitted,
        SharedConnection { connection, calls }: &SharedConnection,
        binding: Binding<'_>,
    ) -> Result<Reply, RelayError> {
        let request = admitted.request();
        let sent = self.call(request, connection).keeping_answer(admitted);
        let options = CallOptions {
            input: input_of(request, binding, &sent.messages)?,
            ..options_of(request, connection)
        };
        let outcome = self.outcome(&sent, client, calls, options).await?;
        Ok(match sent.reply(outcome)? {
            Reply::Result(result) => {
                let tool = request.param("name").and_then(|name| name.as_str());
                let result = binding.bind_task(result, &tool.unwrap_or_default());
                let result = pass_input_required(result, &sent.messages)?;
                Reply::Result(binding.bind(result))
            }
            reply => reply,
        })
    }

    /// Sends a request on a connection that other calls share, and returns its outcome.
    async fn outcome(
        &self,
        sent: &RelayedCall<'_>,
        client: &ServerHandle,
        calls: &SharedCalls,
        options: CallOptions,
    ) -> Result<Outcome, RelayError> {
        let (request, connection) = (sent.request, sent.connection);
        let progress = ProgressReceiver::new(client, request.key);
        let mut call = calls.call(client, request, &sent.messages);
        let begun = |key| call.begin(key);
        let pending = sent.send(request.params(), false, &progress, options, begun)?;
        let watched = connection.watch(self.backend.options.request_timeout.idle);
        let outcome = call.outcome(pending).await;
        watched.end(&outcome);
        self.backend.record(connection, &outcome);
        if outcome == Outcome::Lost {
            // The next call uses another connection.
            connection.set_lost();
        }
        match call.undeclared.error_of(request, &outcome) {
            Some(error) => Err(error.into()),
            None => Ok(outcome),
        }
    }
}

/// Returns the options of a request of a client without a session, which names its capabilities to a server without sessions.
fn options_of(request: &IncomingRequest<RequestContext>, connection: &Connection) -> CallOptions {
    let is_stateless = connection.lifecycle() == Lifecycle::Discover;
    CallOptions {
        log_level: request.log_level(),
        capabilities: is_stateless.then(|| request.client().capabilities.clone()),
        ..CallOptions::default()
    }
}
