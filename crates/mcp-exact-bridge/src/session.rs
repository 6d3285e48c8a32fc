//! A client with a session (up to 2025-11-25): it has a connection to each server of its own.
//!
//! Relays its requests, and everything that the server asks and says. From 2026-07-28 on a server asks by results of type
//! `input_required`: the client's endpoint makes requests of them and brings the answers.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_exact_convert::Role;
use mcp_exact_session::{
    CallOptions, Change, ClientNotification, IncomingRequest, InputRequest, Json, JsonObject,
    Level, Lifecycle, LogMessage, Outcome, PeerError, Principal, RawResult, Reply, RequestInput,
    RequestKey, Scope, ServerNotification, ServerRequestKey, SessionInfo,
};
use mcp_exact_transport::{ProgressCallback, RequestContext, ServerHandle};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::backend::Backend;
use crate::relay::{self, Failed, ProgressReceiver};
use crate::translate::{Way, newest};
use crate::upstream::{Calls, ClientSide, Connection, EVERY_LIST, Question, Receiver};

/// Session of a client with one server.
pub(crate) struct Session {
    this: Weak<Session>,
    client: ServerHandle,
    info: SessionInfo,
    backend: Arc<Backend>,
    /// Held while the connection is opened.
    opening: tokio::sync::Mutex<()>,
    calls: Calls,
    /// Resources that the client is subscribed to.
    subscribed: watch::Sender<BTreeSet<String>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Questions of the server that wait for the client.
    questions: HashMap<ServerRequestKey, AbortHandle>,
    /// Principal of the latest request that has subscribed to a resource.
    subscriber: Option<Principal>,
    /// Task of the subscription at a server without sessions.
    listening: Option<AbortHandle>,
}

impl Session {
    pub(crate) fn new(
        client: &ServerHandle,
        info: SessionInfo,
        backend: &Arc<Backend>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            client: client.clone(),
            info,
            backend: Arc::clone(backend),
            opening: tokio::sync::Mutex::default(),
            calls: Calls::default(),
            subscribed: watch::Sender::default(),
            state: Mutex::default(),
        })
    }

    /// Makes a session of the same client with another server.
    pub(crate) fn like(other: &Self, backend: &Arc<Backend>) -> Arc<Self> {
        Self::new(&other.client, other.info.clone(), backend)
    }

    /// Returns the client.
    pub(crate) fn client(&self) -> &ServerHandle {
        &self.client
    }

    /// Lets go of a lost connection, and opens another one unless the server was taken out.
    pub(crate) fn replace_lost(self: &Arc<Self>) {
        if !self.backend.is_removed() {
            if self.open_connection().is_none() {
                self.prepare();
            }
            return;
        }
        let mut state = self.lock();
        let is_lost = |connection: &mut Arc<Connection>| connection.is_lost();
        let released = state.connection.take_if(is_lost);
        let listening = state.listening.take();
        // The lock is needed to close it.
        drop(state);
        drop(released);
        if let Some(listening) = listening {
            listening.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the server as soon as the client is ready, so that it gets the messages that the server sends on its own.
    pub(crate) fn prepare(self: &Arc<Self>) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = session.connection().await {
                tracing::warn!(error = error.message(), "a client has no server yet");
            }
        });
    }

    /// Returns the connection if it is open.
    fn open_connection(&self) -> Option<Arc<Connection>> {
        let connection = self.lock().connection.clone();
        connection.filter(|connection| !connection.is_lost())
    }

    /// Returns the connection, and opens it before if it is not. What a server remembers of a session is lost with the
    /// connection: with the only server the session has to begin anew, but not with one of many, or if the server has no sessions.
    async fn connection(&self) -> Result<Arc<Connection>, PeerError> {
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let _opening = self.opening.lock().await;
        if let Some(connection) = self.open_connection() {
            return Ok(connection);
        }
        let before = self.lock().connection.clone();
        let was_open = before.is_some();
        let had_session = before.is_some_and(|before| before.lifecycle() == Lifecycle::Initialize);
        if had_session && !self.backend.is_one_of_many {
            return Err(relay::connection_lost());
        }
        let capabilities = self
            .newest_way()
            .definition("ClientCapabilities", &self.info.capabilities);
        let client = ClientSide::new(self.info.info.as_ref(), &capabilities?);
        let receiver: Arc<dyn Receiver> = Arc::new(OfSession(self.this.clone()));
        let connection = self.backend.connect(&client, Some(receiver)).await?;
        self.lock().connection = Some(Arc::clone(&connection));
        match connection.lifecycle() {
            Lifecycle::Discover => self.listen(&connection),
            Lifecycle::Initialize => {
                let subscribed = self.subscribed.borrow().clone();
                relay::subscribe_again(&connection, &subscribed);
            }
        }
        if was_open {
            // Another process may offer something else.
            for change in EVERY_LIST {
                self.client.publish(&change);
            }
        }
        Ok(connection)
    }

    fn newest_way(&self) -> Way {
        Way {
            from: self.info.revision,
            to: newest(),
            losses: self.backend.losses(),
        }
    }

    fn way(&self, connection: &Connection) -> Way {
        Way {
            from: self.info.revision,
            to: connection.info.revision,
            losses: self.backend.losses(),
        }
    }

    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(
        &self,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        loop {
            let connection = self.connection().await?;
            match self.relay_on(&connection, &request).await {
                // Nothing was sent on a connection that was lost meanwhile: another one is as good, if there may be one.
                Err(Failed::Unsent) => {}
                Err(Failed::Error(error)) => return Err(error),
                Ok(reply) => return Ok(reply),
            }
        }
    }

    async fn relay_on(
        &self,
        connection: &Arc<Connection>,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, Failed> {
        let method = request.method();
        if connection.lifecycle() == Lifecycle::Discover
            && matches!(method, "resources/subscribe" | "resources/unsubscribe")
        {
            return Ok(self.subscribe(request)?);
        }
        let way = self.way(connection).of_request();
        let params = way.params(
            method,
            request.params(),
            relay::client_meta(request.client()),
        )?;
        let progress = ProgressReceiver::new(&self.client, request.key).callback(request);
        let options = CallOptions {
            progress: progress.is_some(),
            log_level: Some(Level::Debug),
            trace: relay::trace(request),
            input: input_of(request, &way, &self.backend.name)?,
            ..CallOptions::default()
        };
        let outcome = self
            .call(connection, request, params, options, progress)
            .await?;
        if let Outcome::Result(_) = &outcome {
            self.note_subscription(request);
        }
        let uri = relay::uri(request.params());
        if let ("tools/list", Outcome::Result(result)) = (method, &outcome) {
            self.backend.tools.learn(result.object());
        }
        match outcome {
            Outcome::Result(result) => match relay::input_required(&result) {
                Some(required) => {
                    let state = required.session_state(&self.backend.name);
                    let back = way.back();
                    let asked = required.asks.into_iter();
                    let asked = asked.map(|(name, ask)| Ok((name, back.question(&ask)?)));
                    Ok(Reply::InputRequired {
                        requests: asked.collect::<Result<_, PeerError>>()?,
                        state: Some(state),
                    })
                }
                None => Ok(Reply::Result(way.back().result(
                    method,
                    result,
                    uri.as_deref(),
                )?)),
            },
            Outcome::Error(error) => Err(way.back().error(method, &error, uri.as_deref()).into()),
            other => Err(relay::no_answer(&other).into()),
        }
    }

    async fn call(
        &self,
        connection: &Connection,
        request: &IncomingRequest<RequestContext>,
        params: Option<JsonObject>,
        options: CallOptions,
        progress: Option<ProgressCallback>,
    ) -> Result<Outcome, Failed> {
        let sent = connection
            .client
            .request(request.method(), params, options, progress);
        let pending = sent.map_err(|error| connection.unsent(&error))?;
        let key = pending.key();
        self.calls.insert(key, request.key);
        let ended = CallEnds {
            calls: &self.calls,
            key,
        };
        // A lost call is not a lost connection: over HTTP other calls go on.
        let outcome = pending.await;
        drop(ended);
        Ok(outcome)
    }

    /// Subscribes to a resource at a server of 2026-07-28, where one subscription names them all
    /// (`basic/patterns/subscriptions`).
    fn subscribe(&self, request: &IncomingRequest<RequestContext>) -> Result<Reply, PeerError> {
        if relay::uri(request.params()).is_none() {
            return Err(PeerError::invalid_params("`uri` has to be a string"));
        }
        self.note_subscription(request);
        Ok(Reply::Result(JsonObject::new().into()))
    }

    /// Remembers what the client is subscribed to.
    fn note_subscription(&self, request: &IncomingRequest<RequestContext>) {
        let Some(uri) = relay::uri(request.params()) else {
            return;
        };
        let method = request.method();
        if method == "resources/subscribe" {
            self.lock().subscriber = request.context().principal.clone();
        }
        self.subscribed.send_if_modified(|subscribed| match method {
            "resources/subscribe" => subscribed.insert(uri),
            "resources/unsubscribe" => subscribed.remove(&uri),
            _ => false,
        });
    }

    /// Begins the subscription at a server of 2026-07-28.
    fn listen(&self, connection: &Arc<Connection>) {
        let (connection, wanted) = (Arc::clone(connection), self.subscribed.subscribe());
        let listening = tokio::spawn(async move {
            let error = connection.listen(wanted).await;
            let error = error.message();
            tracing::warn!(error, "changes of the server are not told");
        });
        let before = self.lock().listening.replace(listening.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Hands a notification of the client on.
    pub(crate) fn notify(&self, notification: &ClientNotification<RequestContext>) {
        let Some(connection) = self.open_connection() else {
            return;
        };
        let method = notification.method();
        let params =
            self.way(&connection)
                .notification(method, notification.params(), Role::Client);
        let sent = params.map(|params| connection.client.notify(method, params));
        match sent {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, method, "a notification was not handed on"),
            Err(error) => {
                tracing::debug!(
                    error = error.message(),
                    method,
                    "a notification was not handed on"
                );
            }
        }
    }

    /// Passes a request of the server to the client, and brings the answer back.
    async fn ask(self: Arc<Self>, connection: Arc<Connection>, question: Question) {
        let answer = self.answer_of(&connection, &question).await;
        self.lock().questions.remove(&question.key);
        question.answer(answer);
    }

    async fn answer_of(
        &self,
        connection: &Connection,
        question: &Question,
    ) -> Result<RawResult, PeerError> {
        let back = self.way(connection).back();
        let method = question.request.method();
        let ask = InputRequest::new(method, question.request.params().cloned());
        let ask = back.question(&ask)?;
        let scope = self
            .calls
            .about(question.during)
            .map_or(Scope::Peer, Scope::During);
        let options = CallOptions::default();
        let asked = self
            .client
            .request(scope, method, ask.params, options, None);
        let asked = asked.map_err(|error| PeerError::internal(error.to_string()))?;
        match asked.await {
            Outcome::Result(result) => {
                let answer = back.back().answer(method, result.object())?;
                Ok(RawResult::from(answer))
            }
            Outcome::Error(error) => Err(error),
            _ => Err(PeerError::internal("the client gave no answer")),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let questions = state.questions.drain().map(|(_, asking)| asking);
        questions
            .chain(state.listening.take())
            .for_each(|task| task.abort());
    }
}

/// Forgets a call when its request ends or is cancelled.
struct CallEnds<'a> {
    calls: &'a Calls,
    key: RequestKey,
}

impl Drop for CallEnds<'_> {
    fn drop(&mut self) {
        self.calls.remove(self.key);
    }
}

/// Returns the input that the client has given, for a server of 2026-07-28.
fn input_of(
    request: &IncomingRequest<RequestContext>,
    way: &Way,
    server: &str,
) -> Result<Option<RequestInput>, PeerError> {
    let Some(kept) = request.state.as_deref().and_then(relay::Kept::read) else {
        return Ok(None);
    };
    if kept.server != server {
        return Err(PeerError::invalid_params("another server has asked"));
    }
    let asked = request.responses.iter();
    let responses = asked.map(|(name, outcome)| match outcome {
        Outcome::Result(result) => {
            let method = kept.method_of(name);
            Ok((
                name.to_owned(),
                Json::from(way.answer(&method, result.object())?),
            ))
        }
        // An answer of 2026-07-28 is no error: the call ends with it.
        Outcome::Error(error) => Err(error.clone()),
        _ => Err(PeerError::internal("the client gave no answer")),
    });
    Ok(Some(RequestInput {
        responses: Some(responses.collect::<Result<JsonObject, PeerError>>()?),
        state: kept.state,
    }))
}

/// Receiver of the server's messages to the client of a session.
struct OfSession(Weak<Session>);

impl Receiver for OfSession {
    fn asked(&self, connection: &Arc<Connection>, question: Question) {
        let Some(session) = self.0.upgrade() else {
            return question.refuse("the client is gone");
        };
        let key = question.key;
        let asking = Arc::clone(&session).ask(Arc::clone(connection), question);
        // The task needs the lock to end, so that it is known before.
        let mut state = session.lock();
        let asking = tokio::spawn(asking);
        state.questions.insert(key, asking.abort_handle());
    }

    fn withdrawn(&self, question: ServerRequestKey) {
        let session = self.0.upgrade();
        let asking = session.and_then(|session| session.lock().questions.remove(&question));
        if let Some(asking) = asking {
            asking.abort();
        }
    }

    fn logged(&self, about: Option<RequestKey>, message: LogMessage) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let scope = session
            .calls
            .about(about)
            .map_or(Scope::Peer, Scope::During);
        let logger = message.logger.as_deref();
        if let Err(error) = session
            .client
            .log(scope, message.level, logger, message.data)
        {
            tracing::debug!(%error, "a log message was not handed on");
        }
    }

    fn changed(&self, change: Change) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        if let Change::Resource(uri) = &change {
            let subscriber = session.lock().subscriber.clone();
            // The rules may have changed since the client has subscribed.
            if !session.backend.may_use(subscriber.as_ref(), uri) {
                return;
            }
        }
        session.client.publish(&change);
    }

    fn resources(&self) -> BTreeSet<String> {
        let session = self.0.upgrade();
        session.map_or_else(BTreeSet::new, |session| session.subscribed.borrow().clone())
    }

    fn notified(&self, connection: &Arc<Connection>, notification: ServerNotification) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let method = notification.method();
        let back = session.way(connection).back();
        match back.notification(method, notification.params(), Role::Server) {
            Ok(params) => {
                if let Err(error) = session.client.notify(Scope::Peer, method, params) {
                    tracing::debug!(%error, method, "a notification was not handed on");
                }
            }
            Err(error) => {
                tracing::debug!(
                    error = error.message(),
                    method,
                    "a notification was not handed on"
                );
            }
        }
    }
}
