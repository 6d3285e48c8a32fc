//! Sessions of clients (up to 2025-11-25): each client has a separate connection to each server, unless the server is
//! shared.
//!
//! Relays the requests of the client, and the requests and notifications of the server. A server of 2026-07-28 returns
//! results of type `input_required`: the client's endpoint converts their input requests to requests to the client, and
//! retries the call with the answers.

mod own_tasks;
mod receiver;
mod shared;
mod subscribing;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mcp_exact_convert::Role;
use mcp_exact_revisions::MethodId;
use mcp_exact_session::{
    CallOptions, ClientNotification, IncomingRequest, Json, JsonObject, Level, Lifecycle, Outcome,
    PeerError, Principal, Reply, RequestInput, Revision, ServerRequestKey, SessionInfo,
};
use mcp_exact_transport::{RequestContext, ServerHandle};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::around::gate::Admitted;
use crate::around::hooks::{MessageHooks, MessageKind};
use crate::around::limits::{Holder, Place};
use crate::around::server_uris::ServerUris;
use crate::route::call::RelayedCall;
use crate::route::calls::SharedCalls;
use crate::route::relay::{self, InputRequired, ProgressReceiver};
use crate::route::server::Server;
use crate::route::translate::{Translation, newest};
use crate::servers::client_side::ClientSide;
use crate::servers::connection::{Connection, publish_every_list, subscribe_again};
use crate::servers::errors::{RelayError, Sending, without_last_words};
use crate::servers::tasks;
use crate::servers::users::Caller;

/// Number of the next session.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Session of a client with one server.
pub(crate) struct Session {
    /// Reference to this session for the tasks that it starts.
    this: Weak<Session>,
    /// Number that no other session of the process ever has.
    number: u64,
    /// Handle of the endpoint that serves the client.
    client: ServerHandle,
    /// Negotiated revision, identity and capabilities of the client.
    info: SessionInfo,
    /// Server of the session.
    backend: Arc<Server>,
    /// Form in which the client knows the URIs of the server.
    uris: ServerUris,
    /// Lock that is held while the connection is opened.
    opening: tokio::sync::Mutex<()>,
    /// Calls in progress on the connection of the session.
    calls: SharedCalls,
    /// Resources that the client is subscribed to; most clients subscribe to none.
    subscribed: OnceLock<watch::Sender<BTreeSet<String>>>,
    /// Mutable state of the session.
    state: Mutex<State>,
}

/// Mutable state of a session.
#[derive(Default)]
struct State {
    /// Current connection to the server; `None` before the first one.
    connection: Option<Arc<Connection>>,
    /// Tasks that wait for the client's answer to a request of the server.
    server_requests: HashMap<ServerRequestKey, AbortHandle>,
    /// Place of the connection among those of all sessions.
    place: Option<Place>,
    /// Client that the session belongs to; `None` before its first request.
    holder: Option<Holder>,
    /// Principal of the latest request.
    principal: Option<Principal>,
    /// Ids of the tasks that the client has created for requests of the server; most clients create none.
    client_tasks: Vec<String>,
    /// Task that listens to the subscription at a server without sessions.
    listening: Option<AbortHandle>,
    /// Caller of that task at a shared server with credentials of each user.
    listening_for: Option<Caller>,
    /// Task that connects to the server before a request needs the connection.
    connecting: Option<AbortHandle>,
}

impl Session {
    pub(crate) fn new(
        client: &ServerHandle,
        info: SessionInfo,
        backend: &Arc<Server>,
        uris: ServerUris,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            client: client.clone(),
            info,
            backend: Arc::clone(backend),
            uris,
            opening: tokio::sync::Mutex::default(),
            calls: SharedCalls::of_session(),
            subscribed: OnceLock::new(),
            state: Mutex::default(),
        })
    }

    /// Returns a number that no other session of the process ever has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns negotiated revision, identity and capabilities of the client.
    pub(crate) fn info(&self) -> &SessionInfo {
        &self.info
    }

    /// Returns the handle of the gateway's endpoint that serves the client.
    pub(crate) fn client(&self) -> &ServerHandle {
        &self.client
    }

    /// Releases a lost connection, and opens a new one unless the server was removed or is shared now.
    pub(crate) fn replace_lost(self: &Arc<Self>) {
        let is_removed = self.backend.is_removed();
        if !is_removed && self.open_connection().is_some() {
            return;
        }
        if !is_removed && !self.backend.is_shared() {
            return self.connect_in_background();
        }
        let mut state = self.state.lock();
        let released = state.connection.take_if(|connection| connection.is_lost());
        if !is_removed && released.is_none() {
            // The task of a shared server finds out by itself that it was replaced.
            return;
        }
        let (place, listening) = (state.place.take(), state.listening.take());
        // Closing the connection needs the lock.
        drop(state);
        drop((released, place));
        if let Some(listening) = listening {
            listening.abort();
        }
    }

    /// Connects to the server as soon as the client is ready, so that the client receives the server's unsolicited
    /// notifications. A shared connection is not opened here, but by the first request, because only a request has a
    /// principal.
    pub(crate) fn connect_in_background(self: &Arc<Self>) {
        if self.backend.is_shared() {
            return;
        }
        let session = Arc::clone(self);
        let connecting = tokio::spawn(async move {
            if let Err(error) = session.connection().await {
                let error = without_last_words(error.message());
                tracing::warn!(error, "a client has no server yet");
            }
        });
        self.state.lock().connecting = Some(connecting.abort_handle());
    }

    /// Does what a request does besides, although it is answered without the server: counts the connection towards its client, and
    /// makes sure that the client is notified of changes.
    pub(crate) fn keep_informed(
        self: &Arc<Self>,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<(), PeerError> {
        self.set_holder(request)?;
        if self.backend.is_shared() {
            self.listen_shared(request);
        } else if self.open_connection().is_none() {
            self.reconnect_in_background();
        }
        Ok(())
    }

    /// Connects to the server once it may be tried again, unless the session is about to connect.
    fn reconnect_in_background(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let is_running = |task: &AbortHandle| !task.is_finished();
        if state.connecting.as_ref().is_some_and(is_running) {
            return;
        }
        let session = Arc::clone(self);
        let connecting = tokio::spawn(async move {
            session.backend.wait_until_retry().await;
            if let Err(error) = session.connection().await {
                let error = without_last_words(error.message());
                tracing::debug!(error, "a client has no connection to the server");
            }
        });
        state.connecting = Some(connecting.abort_handle());
    }

    /// Ends what the session does on its own, because its client has left.
    pub(crate) fn close(&self) {
        let connecting = self.state.lock().connecting.take();
        if let Some(connecting) = connecting {
            connecting.abort();
        }
    }

    /// Returns the connection if it is open.
    fn open_connection(&self) -> Option<Arc<Connection>> {
        let connection = self.state.lock().connection.clone();
        connection.filter(|connection| !connection.is_lost())
    }

    /// Returns the connection; opens one if there is none. The server's session state is lost with a connection. The bridge
    /// restores what it knows of it (the log level and the subscriptions), and announces a change of every list, because a
    /// client over stdio could begin no new session.
    async fn connection(&self) -> Result<Arc<Connection>, PeerError> {
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let was_open = self.hold_place()?;
        let client = ClientSide::new(self.info.implementation.as_ref(), &self.capabilities()?);
        let connection = self.backend.connect(&client, Some(self.receiver())).await?;
        self.state.lock().connection = Some(Arc::clone(&connection));
        match connection.lifecycle() {
            Lifecycle::Discover => self.listen(&connection),
            Lifecycle::Initialize => {
                // The server that was replaced may have had no sessions: its subscription keeps the connection to it.
                let before = self.state.lock().listening.take();
                if let Some(before) = before {
                    before.abort();
                }
                subscribe_again(&connection, &self.resources());
            }
        }
        if was_open {
            // A restarted server may have other tools, prompts and resources.
            self.backend.miss_changes();
            publish_every_list(&self.client);
        }
        Ok(connection)
    }

    /// Takes a place for the connection, unless the session has one. Returns true if the session had a connection before.
    fn hold_place(&self) -> Result<bool, PeerError> {
        let mut state = self.state.lock();
        if state.place.is_none() {
            let holder = state.holder.clone().unwrap_or(Holder::Unknown);
            state.place = Some(self.backend.places.take(holder)?);
        }
        Ok(state.connection.is_some())
    }

    /// Counts the connection towards the client of a request; a client above its share loses it.
    fn set_holder(&self, request: &IncomingRequest<RequestContext>) -> Result<(), PeerError> {
        let holder = Holder::of(request);
        let mut state = self.state.lock();
        state.principal.clone_from(&request.context().principal);
        let place = state.place.as_mut();
        let passed = place.map_or(Ok(()), |place| place.pass_to(&holder, &self.backend.places));
        state.holder = Some(holder);
        if passed.is_ok() {
            return Ok(());
        }
        let released = (state.connection.take(), state.place.take());
        // Closing the connection needs the lock.
        drop(state);
        drop(released);
        passed
    }

    /// Returns the capabilities of the client in the form of the newest revision. The member `tasks` of 2025-11-25 is
    /// kept if the server supports tasks, too.
    fn capabilities(&self) -> Result<JsonObject, PeerError> {
        let mut declared = self.info.capabilities.clone();
        // What is kept is not lost.
        let tasks = if self.may_relay_tasks() {
            declared.remove("tasks")
        } else {
            None
        };
        let translation = self.translation_to(newest());
        let mut capabilities = translation.definition("ClientCapabilities", &declared)?;
        if let Some(tasks) = tasks {
            capabilities.insert("tasks", tasks);
        }
        Ok(capabilities)
    }

    /// Returns the translation from the revision of the client to another one.
    fn translation_to(&self, revision: Revision) -> Translation {
        Translation::new(self.info.revision, revision, self.backend.losses())
    }

    /// Returns the hooks on messages other than requests of the client and their results.
    fn messages(&self) -> MessageHooks {
        let hooks = &self.backend.options.hooks;
        if hooks.is_empty() {
            return MessageHooks::default();
        }
        let principal = self.state.lock().principal.clone();
        let client = (self.info.implementation.as_ref(), self.info.revision);
        MessageHooks::new(hooks, &self.backend.name, principal.as_ref(), client)
    }

    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(&self, admitted: &Admitted) -> Result<Reply, PeerError> {
        let request = admitted.request();
        self.set_holder(request)?;
        if self.backend.is_shared() {
            return self.relay_shared(admitted).await;
        }
        let mut sending = Sending::new();
        loop {
            let connection = self.connection().await?;
            let relayed = self.relay_on(&connection, &self.calls, admitted).await;
            if let Some(answer) = sending.answered(relayed) {
                return answer;
            }
        }
    }

    /// Returns true if the server has sent the input requests that a retry answers.
    pub(crate) fn is_server_of_retry(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let state = request.state.as_deref();
        let kept = state.and_then(relay::SessionCallState::read);
        match kept {
            Some(kept) => kept.server == self.backend.name,
            None => self.backend.is_shared() && self.backend.stateless.is_server_of_retry(request),
        }
    }

    /// Relays a request on a connection with these calls in progress.
    async fn relay_on(
        &self,
        connection: &Arc<Connection>,
        calls: &SharedCalls,
        admitted: &Admitted,
    ) -> Result<Reply, RelayError> {
        let request = admitted.request();
        if connection.lifecycle() == Lifecycle::Discover
            && matches!(
                request.method_id(),
                MethodId::ResourcesSubscribe | MethodId::ResourcesUnsubscribe
            )
        {
            return Ok(self.subscribe(request)?);
        }
        let (backend, messages) = (&self.backend, self.messages());
        let call = RelayedCall::new(request, connection, backend, messages);
        let call = call.keeping_answer(admitted);
        let relays_tasks = self.relays_tasks(connection);
        let params = if relays_tasks {
            self.task_params(request)?
        } else {
            request.params().cloned()
        };
        let keeps_task =
            relays_tasks && tasks::are_declared_for_calls(&connection.info.capabilities);
        let options = CallOptions {
            log_level: Some(Level::Debug),
            input: input_of(request, &call.translation, &backend.name, &call.messages)?,
            ..CallOptions::default()
        };
        let progress = ProgressReceiver::new(&self.client, request.key);
        let mut running = calls.call(&self.client, request, &call.messages);
        let begun = |key| running.begin(key);
        let pending = call.send(params.as_ref(), keeps_task, &progress, options, begun)?;
        let watched = connection.watch(backend.options.request_timeout.idle);
        // A lost call does not mean a lost connection: over HTTP, other calls continue.
        let mut outcome = running.outcome(pending).await;
        let has_asked = running.has_asked();
        drop(running);
        watched.end(&outcome);
        backend.record(connection, &outcome);
        if let Outcome::Result(result) = outcome {
            self.record_subscription(request);
            if let Some(required) = relay::input_required(&result) {
                return Ok(self.ask_client(&call, required)?);
            }
            outcome = Outcome::Result(if relays_tasks {
                self.task_result(request, result)
            } else {
                result
            });
        }
        let reply = call.reply(outcome);
        // A request during which the server has asked its client is not repeated, whatever the failure: the client would be asked again.
        let reply = reply.map_err(|error| {
            if has_asked {
                error.with_failure(None)
            } else {
                error
            }
        });
        Ok(reply?)
    }

    /// Returns the reply by which the endpoint of the client asks it what a server of 2026-07-28 requires.
    fn ask_client(
        &self,
        call: &RelayedCall<'_>,
        required: InputRequired,
    ) -> Result<Reply, PeerError> {
        let state = required.session_state(&self.backend.name);
        let back = call.translation.reversed();
        let requests = required.requests.into_iter().map(|(name, ask)| {
            let ask = call.messages.input_request(back.input_request(&ask)?)?;
            Ok((name, ask))
        });
        Ok(Reply::InputRequired {
            requests: requests.collect::<Result<_, PeerError>>()?,
            state: Some(state),
        })
    }

    /// Relays a notification of the client to the server.
    pub(crate) fn notify(&self, notification: &ClientNotification<RequestContext>) {
        let Some(connection) = self.open_connection() else {
            return;
        };
        let method = notification.method();
        if !self.may_notify(method, notification.params()) {
            return;
        }
        let kind = MessageKind::ClientNotification;
        let params = self
            .messages()
            .pass(kind, method, notification.params().cloned());
        let translation = self.translation_to(connection.info.revision);
        let params = params
            .and_then(|params| translation.notification(method, params.as_ref(), Role::Client));
        relay::notify(method, params, |params| {
            connection.client.notify(method, params)
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.forget_tasks();
        let state = self.state.get_mut();
        let server_requests = state.server_requests.drain().map(|(_, task)| task);
        server_requests
            .chain(state.listening.take())
            .for_each(|task| task.abort());
    }
}

/// Returns the client's answers to input requests, for a server of 2026-07-28; `None` if the request is not a retry.
fn input_of(
    request: &IncomingRequest<RequestContext>,
    translation: &Translation,
    server: &str,
    messages: &MessageHooks,
) -> Result<Option<RequestInput>, PeerError> {
    let Some(kept) = request
        .state
        .as_deref()
        .and_then(relay::SessionCallState::read)
    else {
        return Ok(None);
    };
    if kept.server != server {
        return Err(PeerError::invalid_params("another server has asked"));
    }
    let outcomes = request.responses.iter();
    let responses = outcomes.map(|(name, outcome)| match outcome {
        Outcome::Result(result) => {
            let method = kept.method_of(name);
            let answer = messages.answer(&method, result.object())?;
            Ok((
                name.to_owned(),
                Json::from(translation.answer(&method, &answer)?),
            ))
        }
        // In 2026-07-28 an input response cannot be an error, so the call ends with the error.
        Outcome::Error(error) => Err(error.clone()),
        _ => Err(relay::missing_client_answer_error()),
    });
    Ok(Some(RequestInput {
        responses: Some(responses.collect::<Result<JsonObject, PeerError>>()?),
        state: kept.state,
    }))
}
