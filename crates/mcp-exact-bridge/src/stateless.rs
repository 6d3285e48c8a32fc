//! Clients without sessions (from 2026-07-28 on): each request is independent, and connections to the server are shared
//! by the requests of one principal.
//!
//! A server of an older revision sends requests to the client while it works on a call. The bridge then answers the
//! client's call with a result of type `input_required`, and keeps the upstream call open until the client retries with
//! the answers. If the client can answer such requests, a connection serves one call at a time, because over stdio a
//! request of the server does not name the call that it belongs to.

mod connections;
mod listening;
mod receivers;
mod sealing;
mod tasks;
mod undeclared;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, Filter, IncomingRequest, InputRequest, Json, JsonObject, Lifecycle, Outcome,
    PeerError, Principal, RawResult, Reply, RequestInput, RequestKey, Seal,
};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use tokio::sync::mpsc;
use tokio::time::timeout;

pub(crate) use self::connections::SharedConnection;
use self::connections::{Connections, Lease, Owner};
use self::listening::Subscriptions;
pub(crate) use self::listening::{OnEstablished, SubscriptionRequest};
use self::receivers::CallReceiver;
pub(crate) use self::receivers::SharedCalls;
use self::sealing::{Binding, ProcessKey};
use self::undeclared::UndeclaredCapabilities;
use self::waiting::{RunningCall, STATE_PREFIX, WaitingCall, WaitingCalls, unknown_state_error};
use crate::backend::Backend;
use crate::client_side::ClientSide;
use crate::connection::{Connection, PendingServerRequest};
use crate::errors::RelayError;
use crate::gate::Admitted;
use crate::hooks::{Hooks, MessageHooks, method_of_answer};
use crate::limits::Holder;
use crate::live::LiveRules;
use crate::losses::Losses;
use crate::options::Options;
use crate::relay::{self, ProgressReceiver};
use crate::tasks::is_extension_request;
use crate::tools::KnownTools;
use crate::translate::{Translation, newest};

/// Maximum number of server requests that are combined into one result of type `input_required`.
const MAX_COMBINED_REQUESTS: usize = 16;

/// Time to wait for a further server request before the result of type `input_required` is sent.
const COMBINING_TIME: Duration = Duration::from_millis(5);

/// Returns the key in `inputRequests` of a server request, for a server that sends requests instead of results of type
/// `input_required`. The key identifies the request as long as the call lasts, also when the request is sent to the
/// client again: a client may repeat its earlier responses in a retry.
fn input_request_key(request: &PendingServerRequest) -> String {
    format!("question-{}", request.number.unwrap_or_default())
}

/// State that all clients without sessions share.
pub(crate) struct Stateless {
    /// Connections to the server, which the requests of each owner share.
    connections: Arc<Connections>,
    /// Subscriptions at the server, which equal subscriptions of clients share.
    subscriptions: Subscriptions,
    /// Hooks of the application.
    hooks: Hooks,
    /// Name of the server.
    server: String,
    /// Time limit for a sign of life of the server.
    check_within: Duration,
    /// Current rules.
    live: Arc<LiveRules>,
    /// Key that binds the `requestState` of servers; `None` if the system provides no random numbers.
    seal: Option<Arc<dyn Seal>>,
    /// Cache of the server's tools.
    tools: Arc<KnownTools>,
    /// Calls that wait for the client's answers, by the `requestState` that the client has received.
    waiting: WaitingCalls,
}

impl Stateless {
    pub(crate) fn new(
        server: &str,
        options: &Options,
        live: &Arc<LiveRules>,
        tools: &Arc<KnownTools>,
    ) -> Self {
        let connections = Arc::new(Connections::new(options));
        Self {
            hooks: options.hooks.clone(),
            server: server.to_owned(),
            subscriptions: Subscriptions::new(&connections),
            check_within: options.request_timeout.idle,
            live: Arc::clone(live),
            seal: options.seal.clone().or_else(|| {
                let key = ProcessKey::random()?;
                Some(Arc::new(key) as Arc<dyn Seal>)
            }),
            tools: Arc::clone(tools),
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

    /// Relays changes to a subscription until the connection to the server ends. Calls `established` when the server has
    /// accepted the subscription.
    pub(crate) async fn listen(
        &self,
        backend: &Arc<Backend>,
        request: &SubscriptionRequest,
        filter: &Filter,
        principal: Option<Principal>,
        established: OnEstablished,
    ) -> Result<(), PeerError> {
        let tasks = self.tasks_of_filter(backend, filter, principal.as_ref());
        let listening =
            self.subscriptions
                .listen(backend, request, filter, (principal, tasks), established);
        listening.await
    }

    /// Closes connections that are lost and that no call uses.
    pub(crate) fn release_lost(&self) {
        self.connections.release_lost();
    }

    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(
        &self,
        backend: &Backend,
        client: &ServerHandle,
        admitted: &Admitted,
    ) -> Result<Reply, PeerError> {
        let request = admitted.request();
        if is_extension_request(request) {
            return self.relay_task_request(backend, client, request).await;
        }
        let (owner, holder) = (self.owner(request)?, Holder::of(request));
        let state = request.state.as_deref();
        let state = state.filter(|state| state.starts_with(STATE_PREFIX));
        // The bridge has created the `requestState` of a waiting call; the server does not define it.
        if let Some(state) = state.filter(|state| self.waiting.is_stored(state)) {
            let waiting = self.waiting.take(state, request)?;
            return self.resume(client, request, waiting).await;
        }
        let negotiation = backend.profile().await?.negotiation;
        let has_sessions = negotiation.lifecycle == Lifecycle::Initialize;
        // A server without sessions may be a bridge, too, and know the state.
        if state.is_some() && has_sessions {
            return Err(unknown_state_error());
        }
        let needs_lease = has_sessions && owner.client.supports_input_requests();
        loop {
            let relayed = if needs_lease {
                let lease = self.connections.lease(backend, (owner.clone(), &holder));
                let lease = lease.await?;
                self.call_on_leased_connection(client, request, lease).await
            } else {
                let binding = self.binding(backend, owner.principal.as_deref())?;
                let connection = self
                    .connections
                    .shared_connection(backend, (&owner, &holder));
                let connection = connection.await?;
                self.call_on_shared_connection(client, request, &connection, binding)
                    .await
            };
            match relayed {
                // The connection was lost before the request was sent, so the request can be sent on another
                // connection.
                Err(RelayError::Unsent) => {}
                Err(RelayError::Error(error)) => return Err(error),
                Ok(reply) => return Ok(reply),
            }
        }
    }

    /// Returns true if the server has sent the input requests that a retry answers: the retry continues a waiting call,
    /// or its `requestState` is bound to the server and the principal.
    pub(crate) fn is_server_of_retry(
        &self,
        backend: &Backend,
        request: &IncomingRequest<RequestContext>,
    ) -> bool {
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
                let binding = self.binding(backend, principal);
                binding.is_ok_and(|binding| binding.unbind(Json::string(state)).is_ok())
            }
        }
    }

    /// Returns the connection that the calls of the request's owner share.
    pub(crate) async fn shared_connection(
        &self,
        backend: &Backend,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<SharedConnection, PeerError> {
        let (owner, holder) = (self.owner(request)?, Holder::of(request));
        let shared = self
            .connections
            .shared_connection(backend, (&owner, &holder));
        shared.await
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
        let translation = Translation {
            from: request.revision(),
            to: newest(),
            losses: Losses::ignored(),
        };
        let capabilities = translation.definition("ClientCapabilities", &client.capabilities)?;
        Ok(ClientSide::new(
            client.implementation.as_ref(),
            &capabilities,
        ))
    }

    /// Returns the binding of the server's `requestState` values and task ids to a principal.
    fn binding<'a>(
        &'a self,
        backend: &'a Backend,
        principal: Option<&'a str>,
    ) -> Result<Binding<'a>, PeerError> {
        let seal = self.seal.as_deref();
        let seal = seal.ok_or_else(|| PeerError::internal("the system gave no random numbers"))?;
        Ok(Binding {
            seal,
            server: &backend.name,
            principal,
        })
    }

    /// Returns the hooks for the messages that client and server exchange during a request.
    fn messages(&self, request: &IncomingRequest<RequestContext>) -> MessageHooks {
        MessageHooks::new(&self.hooks, || {
            let principal = request.context().principal.as_ref();
            let (client, revision) = (request.client().implementation.as_ref(), request.revision());
            MessageHooks::describe(&self.server, principal, client, revision)
        })
    }

    /// Returns the translation from the revision of the client to the revision of a connection.
    fn translation_to(
        &self,
        request: &IncomingRequest<RequestContext>,
        connection: &Connection,
    ) -> Translation {
        Translation {
            from: request.revision(),
            to: connection.info.revision,
            losses: self.live.losses(),
        }
    }

    /// Sends a call on a connection that other calls share. The server sends no requests during the call; it may return
    /// a result of type `input_required`.
    async fn call_on_shared_connection(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        SharedConnection { connection, calls }: &SharedConnection,
        binding: Binding<'_>,
    ) -> Result<Reply, RelayError> {
        let translation = self
            .translation_to(request, connection)
            .of_request(&request.context().app_data);
        let messages = self.messages(request);
        let input = input_of(request, binding, &messages)?;
        let progress = ProgressReceiver::new(client, request.key);
        let pending = self.send(request, connection, &translation, &progress, input)?;
        let mut call = calls.begin(pending.key(), client, request.key, &messages);
        let watched = connection.watch(self.check_within);
        let outcome = call.outcome(pending).await;
        watched.end(&outcome);
        if let Some(error) = call.undeclared.error_of(request, &outcome) {
            return Err(error.into());
        }
        Ok(
            match self.reply_of(request, connection, outcome, &translation)? {
                Reply::Result(result) => {
                    let tool = request.param("name").and_then(|name| name.as_str());
                    let result = binding.bind_task(result, &tool.unwrap_or_default());
                    Reply::Result(binding.bind(pass_input_required(result, &messages)?))
                }
                reply => reply,
            },
        )
    }

    /// Sends a call on a connection that no other call uses until the call has ended.
    async fn call_on_leased_connection(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        mut lease: Lease,
    ) -> Result<Reply, RelayError> {
        let connection = lease.connection()?;
        let translation = self
            .translation_to(request, &connection)
            .of_request(&request.context().app_data);
        let (sender, mut server_requests) = mpsc::unbounded_channel();
        if !may_require_input(request) {
            // The receiver of the connection refuses the requests that the channel does not accept.
            server_requests.close();
        }
        let undeclared = Arc::<UndeclaredCapabilities>::default();
        connection.set_receiver(Some(Arc::new(CallReceiver {
            client: client.clone(),
            key: request.key,
            server_requests: sender,
            undeclared: Arc::clone(&undeclared),
            back: self.translation_to(request, &connection).reversed(),
            messages: self.messages(request),
        })));
        let progress = ProgressReceiver::new(client, request.key);
        // A server with sessions does not use `requestState`; it sends requests to the client instead.
        let pending = self.send(request, &connection, &translation, &progress, None)?;
        lease.is_busy = true;
        let call = RunningCall {
            lease,
            connection,
            pending,
            server_requests,
            asked: 0,
            undeclared,
            progress,
            translation,
            waiting_permits: None,
        };
        Ok(self.wait(client, request, call).await?)
    }

    /// Waits for the server's answer to a call, or for a request of the server during the call.
    async fn wait(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        mut call: RunningCall,
    ) -> Result<Reply, PeerError> {
        let incoming = &mut call.server_requests;
        let first = tokio::select! {
            biased;
            outcome = &mut call.pending => {
                call.lease.is_busy = !matches!(outcome, Outcome::Result(_) | Outcome::Error(_));
                if let Some(error) = call.undeclared.error_of(request, &outcome) {
                    return Err(error);
                }
                return self.reply_of(request, &call.connection, outcome, &call.translation);
            }
            Some(server_request) = incoming.recv() => server_request,
        };
        let mut server_requests = vec![first];
        // Requests that the server sends together are combined into one result.
        while server_requests.len() < MAX_COMBINED_REQUESTS
            && let Ok(Some(server_request)) = timeout(COMBINING_TIME, incoming.recv()).await
        {
            server_requests.push(server_request);
        }
        for server_request in &mut server_requests {
            server_request.number.get_or_insert_with(|| {
                call.asked += 1;
                call.asked
            });
        }
        let (back, messages) = (call.translation.reversed(), self.messages(request));
        let input_requests = server_requests.iter().map(|server_request| {
            let params = server_request.request.params().cloned();
            let ask = InputRequest::new(server_request.request.method(), params);
            let ask = back
                .input_request(&ask)
                .and_then(|ask| messages.input_request(ask));
            let ask = ask.inspect_err(|error| server_request.refuse(error.message()))?;
            Ok((input_request_key(server_request), ask))
        });
        let requests = input_requests.collect::<Result<_, PeerError>>()?;
        let state = self.waiting.store(client, request, call, server_requests)?;
        Ok(Reply::InputRequired {
            requests,
            state: Some(state),
        })
    }

    /// Continues a call with the answers of its client. Requests without an answer are sent to the client again.
    async fn resume(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        waiting: WaitingCall,
    ) -> Result<Reply, PeerError> {
        let translation = Translation {
            from: request.revision(),
            to: waiting.call.translation.to,
            losses: waiting
                .call
                .translation
                .losses
                .of_retry(&request.context().app_data),
        };
        let messages = self.messages(request);
        let answers = waiting.server_requests.iter().map(|server_request| {
            let method = server_request.request.method();
            match request.responses.get(&input_request_key(server_request)) {
                None => Ok(None),
                Some(Outcome::Result(answer)) => {
                    let answer = messages.answer(method, answer.object())?;
                    let answer = translation.answer(method, &answer)?;
                    Ok(Some(Ok(RawResult::from(answer))))
                }
                // A client with a session can respond with an error.
                Some(Outcome::Error(error)) => Ok(Some(Err(error.clone()))),
                Some(_) => Ok(Some(Err(relay::missing_client_answer_error()))),
            }
        });
        let answers = match answers.collect::<Result<Vec<_>, PeerError>>() {
            Ok(answers) => answers,
            // The client can retry with another answer.
            Err(error) => {
                self.waiting.store_again(waiting);
                return Err(error);
            }
        };
        let WaitingCall {
            mut call,
            server_requests,
            expiry,
            ..
        } = waiting;
        drop(expiry);
        // From now on, messages of the server are relayed to this request instead of the previous one.
        let (sender, more) = mpsc::unbounded_channel();
        call.connection.set_receiver(Some(Arc::new(CallReceiver {
            client: client.clone(),
            key: request.key,
            server_requests: sender.clone(),
            undeclared: Arc::clone(&call.undeclared),
            back: translation.reversed(),
            messages: messages.clone(),
        })));
        call.progress.replace(client, request.key);
        for (server_request, answer) in server_requests.into_iter().zip(answers) {
            match answer {
                Some(answer) => server_request.answer(answer),
                None => drop(sender.send(server_request)),
            }
        }
        while let Ok(server_request) = call.server_requests.try_recv() {
            let _ = sender.send(server_request);
        }
        call.server_requests = more;
        call.translation = translation;
        self.wait(client, request, call).await
    }

    /// Converts a request and sends it to the server.
    fn send(
        &self,
        request: &IncomingRequest<RequestContext>,
        connection: &Connection,
        translation: &Translation,
        progress: &ProgressReceiver,
        input: Option<RequestInput>,
    ) -> Result<PendingRequest, RelayError> {
        let client_meta = relay::client_meta(request.client());
        let params = translation.params(request.method(), request.params(), client_meta, false)?;
        let progress = progress.callback(request, self.messages(request));
        let is_stateless = connection.lifecycle() == Lifecycle::Discover;
        let options = CallOptions {
            progress: progress.is_some(),
            log_level: request.log_level(),
            trace: relay::trace(request),
            capabilities: is_stateless.then(|| request.client().capabilities.clone()),
            input,
            ..CallOptions::default()
        };
        let sent = connection
            .client
            .request(request.method(), params, options, progress);
        sent.map_err(|error| connection.unsent_error(&error))
    }

    /// Returns the reply for the client, converted from the outcome of the upstream request.
    fn reply_of(
        &self,
        request: &IncomingRequest<RequestContext>,
        connection: &Connection,
        outcome: Outcome,
        translation: &Translation,
    ) -> Result<Reply, PeerError> {
        if outcome == Outcome::Lost {
            // The next call uses another connection.
            connection.set_lost();
        }
        let back = translation.reversed();
        let (method, uri) = (request.method(), relay::uri_of(request));
        match outcome {
            Outcome::Result(result) => {
                if method == "tools/list" {
                    self.tools.update(result.object());
                }
                Ok(Reply::Result(back.result(
                    method,
                    result,
                    uri.as_deref(),
                )?))
            }
            Outcome::Error(error) => Err(back.error(method, &error, uri.as_deref())),
            other => Err(connection.missing_answer(&other)),
        }
    }
}

/// Returns true if the call may be answered with a result of type `input_required` (2026-07-28, `basic/patterns/mrtr`,
/// "Supported Requests"). A client with a session receives the requests of the server themselves.
fn may_require_input(request: &IncomingRequest<RequestContext>) -> bool {
    request.spec().lifecycle() == Lifecycle::Initialize
        || matches!(
            request.method(),
            "tools/call" | "prompts/get" | "resources/read"
        )
}

/// Returns the client's input responses after the hooks have received them, and the server's original `requestState`;
/// `None` if the request is not a retry.
fn input_of(
    request: &IncomingRequest<RequestContext>,
    binding: Binding<'_>,
    messages: &MessageHooks,
) -> Result<Option<RequestInput>, PeerError> {
    let responses = request
        .param("inputResponses")
        .and_then(|responses| responses.object())
        .map(|responses| responses.to_object());
    let state = request.param("requestState");
    if responses.is_none() && state.is_none() {
        return Ok(None);
    }
    let state = state.map(|state| binding.unbind(state.to_json()));
    Ok(Some(RequestInput {
        responses: responses
            .map(|responses| pass_input_responses(responses, messages))
            .transpose()?,
        state: state.transpose()?,
    }))
}

/// Passes the members of `inputResponses` to the hooks.
fn pass_input_responses(
    responses: JsonObject,
    messages: &MessageHooks,
) -> Result<JsonObject, PeerError> {
    if messages.is_empty() {
        return Ok(responses);
    }
    let responses = responses.view().iter().map(|(name, answer)| {
        let Some(answer) = answer.object().map(|answer| answer.to_object()) else {
            return Ok((name, answer.to_json()));
        };
        let answer = messages.answer(method_of_answer(&answer), &answer)?;
        Ok((name, Json::from(answer)))
    });
    responses.collect()
}

/// Passes the input requests in a result of type `input_required` to the hooks.
fn pass_input_required(result: RawResult, messages: &MessageHooks) -> Result<RawResult, PeerError> {
    if messages.is_empty() {
        return Ok(result);
    }
    let Some(required) = relay::input_required(&result) else {
        return Ok(result);
    };
    let mut object = result.into_object();
    object.insert(
        "inputRequests",
        pass_input_requests(required.requests, messages)?,
    );
    Ok(object.into())
}

/// Passes input requests of the server to the hooks; returns them as the member `inputRequests`.
fn pass_input_requests(
    requests: Vec<(String, InputRequest)>,
    messages: &MessageHooks,
) -> Result<JsonObject, PeerError> {
    let passed = requests.into_iter().map(|(name, ask)| {
        let InputRequest { method, params, .. } = messages.input_request(ask)?;
        let mut ask = JsonObject::from_iter([("method", Json::string(&method))]);
        if let Some(params) = params {
            ask.insert("params", params);
        }
        Ok((name, Json::from(ask)))
    });
    passed.collect()
}
