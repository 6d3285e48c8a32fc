//! Clients without sessions (from 2026-07-28 on): each request is independent, and connections to the server are shared by
//! the requests of one principal.
//!
//! A server of an older revision asks by requests, on which its call waits. The call then ends with a result of type
//! `input_required`, and is kept here until the client repeats it with the answer. A connection whose client can be asked
//! serves one call at a time: on standard streams a question does not name its call.

mod receivers;
mod sealing;
mod waiting;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, Filter, IncomingRequest, InputRequest, Json, JsonObject, Lifecycle, Outcome,
    PeerError, Principal, RawResult, Reply, RequestInput, Seal,
};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout};

pub(crate) use self::receivers::Established;
use self::receivers::{OfCall, OfShared, OfSubscription, SharedCalls};
use self::sealing::{Binding, ProcessKey};
use self::waiting::{STATE_PREFIX, WaitingCall, bound_params};
use crate::backend::Backend;
use crate::bridge::Options;
use crate::losses::Losses;
use crate::relay::{self, Failed};
use crate::tools::KnownTools;
use crate::translate::{Way, newest};
use crate::update::Live;
use crate::upstream::{ClientSide, Connection, Question, Receiver};

/// Questions that are asked at once.
const MOST_QUESTIONS: usize = 16;

/// Time between questions that are asked at once.
const ASKED_TOGETHER: Duration = Duration::from_millis(5);

/// Time that a call waits for the permission to open a connection, and interval at which unused ones are closed meanwhile.
const PERMIT_WITHIN: Duration = Duration::from_secs(30);
const PERMIT_RETRIED: Duration = Duration::from_millis(20);

/// Time after which a connection is closed whose call has ended without an answer.
const CLOSED_AFTER: Duration = Duration::from_secs(1);

/// Returns the name of a question that a server of an older revision has asked.
fn name_of(at: usize) -> String {
    format!("question-{}", at + 1)
}

/// Everything that clients without sessions share.
pub(crate) struct Stateless {
    connections: Arc<Semaphore>,
    /// Connections that one authenticated principal may hold.
    share: usize,
    idle_after: Duration,
    answer_within: Duration,
    most_waiting: usize,
    live: Arc<Live>,
    /// `None` if the system has no random numbers for a key.
    seal: Option<Arc<dyn Seal>>,
    tools: Arc<KnownTools>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Connections for one call at a time that none uses, the latest used one last.
    idle: HashMap<Owner, Vec<Idle>>,
    /// Connections that the calls of an owner share.
    open: HashMap<Owner, Open>,
    /// Locks that are held while such a connection is opened.
    opening: HashMap<Owner, Weak<tokio::sync::Mutex<()>>>,
    /// Calls whose question waits for the client, by the state that it has got.
    waiting: HashMap<String, WaitingCall>,
    /// Shares of the connections, by principal.
    shares: HashMap<String, Weak<Semaphore>>,
}

/// Permission for one connection. Authenticated principals hold one of their share, too.
struct Permit {
    _connection: OwnedSemaphorePermit,
    _share: Option<OwnedSemaphorePermit>,
}

/// Owner of a connection: connections are never shared between principals, or between clients with other capabilities.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner {
    principal: Option<String>,
    client: ClientSide,
}

/// Connection that the calls of an owner share.
#[derive(Clone)]
struct SharedConnection {
    connection: Arc<Connection>,
    calls: Arc<SharedCalls>,
}

struct Open {
    shared: SharedConnection,
    _permit: Permit,
    since: Instant,
}

struct Idle {
    connection: Arc<Connection>,
    permit: Permit,
    since: Instant,
}

/// A connection for one call, given back when it is dropped.
struct Lease {
    owner: Owner,
    /// `None` once it was given back.
    held: Option<(Arc<Connection>, Permit)>,
    /// True while the server works on a call. It goes on after a cancellation: what it then asks and logs must reach no other call.
    is_busy: bool,
    state: Arc<Mutex<State>>,
    idle_after: Duration,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Returns the connection that the calls of an owner share, unless it is lost.
    fn open_connection(&mut self, owner: &Owner) -> Option<SharedConnection> {
        let open = self.open.get_mut(owner)?;
        if open.shared.connection.is_lost() {
            self.open.remove(owner);
            return None;
        }
        open.since = Instant::now();
        Some(open.shared.clone())
    }

    /// Returns the lock that is held while a connection of an owner is opened.
    fn opening(&mut self, owner: &Owner) -> Arc<tokio::sync::Mutex<()>> {
        self.opening.retain(|_, lock| lock.strong_count() > 0);
        let known = self.opening.get(owner).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let lock = Arc::default();
            self.opening.insert(owner.clone(), Arc::downgrade(&lock));
            lock
        })
    }

    /// Makes room for another connection: closes the one that has been without a call for the longest time, of a principal or of
    /// all.
    fn close_oldest_unused(&mut self, principal: Option<&str>) {
        let is_candidate =
            |owner: &Owner| principal.is_none() || owner.principal.as_deref() == principal;
        let idle = self.idle.iter().filter_map(|(owner, idle)| {
            let oldest = idle.first().filter(|_| is_candidate(owner))?;
            Some((oldest.since, owner.clone(), false))
        });
        let open = self.open.iter().filter_map(|(owner, open)| {
            let is_unused = open.shared.calls.is_empty() && is_candidate(owner);
            is_unused.then(|| (open.since, owner.clone(), true))
        });
        let Some((_, owner, is_shared)) = idle.chain(open).min_by_key(|(since, ..)| *since) else {
            return;
        };
        if is_shared {
            self.open.remove(&owner);
        } else if let Some(idle) = self.idle.get_mut(&owner) {
            idle.remove(0);
            if idle.is_empty() {
                self.idle.remove(&owner);
            }
        }
    }

    /// Returns the share of a principal.
    fn share(&mut self, principal: &str, connections: usize) -> Arc<Semaphore> {
        self.shares.retain(|_, share| share.strong_count() > 0);
        let known = self.shares.get(principal).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(connections));
            let known = Arc::downgrade(&share);
            self.shares.insert(principal.to_owned(), known);
            share
        })
    }
}

impl Stateless {
    pub(crate) fn new(options: &Options, live: &Arc<Live>, tools: &Arc<KnownTools>) -> Self {
        Self {
            connections: Arc::new(Semaphore::new(options.connections)),
            share: options.connections.div_ceil(2).max(1),
            idle_after: options.idle,
            answer_within: options.answer_within,
            most_waiting: options.waiting_calls,
            live: Arc::clone(live),
            seal: options.seal.clone().or_else(|| {
                let key = ProcessKey::random()?;
                Some(Arc::new(key) as Arc<dyn Seal>)
            }),
            tools: Arc::clone(tools),
            state: Arc::default(),
        }
    }

    /// Returns the number of calls that wait for a client.
    pub(crate) fn waiting(&self) -> usize {
        locked(&self.state).waiting.len()
    }

    /// Closes connections that are lost and that no call uses.
    pub(crate) fn release_lost(&self) {
        let mut state = locked(&self.state);
        state
            .open
            .retain(|_, open| !open.shared.connection.is_lost());
        for idle in state.idle.values_mut() {
            idle.retain(|idle| !idle.connection.is_lost());
        }
        state.idle.retain(|_, idle| !idle.is_empty());
    }

    /// Relays a request, and returns the answer for the client.
    pub(crate) async fn relay(
        &self,
        backend: &Backend,
        client: &ServerHandle,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let principal = request.context().principal.clone();
        let owner = Owner {
            client: self.client_side(&request)?,
            principal: principal.map(|Principal(name)| name),
        };
        let state = request.state.as_deref();
        // The state of a call that waits here is none of the server's.
        if let Some(state) = state.filter(|state| state.starts_with(STATE_PREFIX)) {
            let waiting = self.take_waiting(state, &owner, &request)?;
            return self.resume(client, &request, waiting).await;
        }
        let negotiation = backend.known().await?.negotiation;
        let asks_by_requests = negotiation.lifecycle == Lifecycle::Initialize;
        let is_alone = asks_by_requests && owner.client.answers_questions();
        loop {
            let relayed = if is_alone {
                let lease = self.lease(backend, owner.clone()).await?;
                self.call_alone(client, &request, lease).await
            } else {
                let binding = self.binding(backend, &owner)?;
                let connection = self.shared_connection(backend, &owner).await?;
                self.call_shared(client, &request, &connection, binding)
                    .await
            };
            match relayed {
                // Nothing was sent on a connection that was lost meanwhile: another one is as good.
                Err(Failed::Unsent) => {}
                Err(Failed::Error(error)) => return Err(error),
                Ok(reply) => return Ok(reply),
            }
        }
    }

    fn client_side(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<ClientSide, PeerError> {
        let client = request.client();
        let way = Way {
            from: request.revision(),
            to: newest(),
            losses: Losses::ignored(),
        };
        let capabilities = way.definition("ClientCapabilities", &client.capabilities)?;
        Ok(ClientSide::new(client.info.as_ref(), &capabilities))
    }

    /// Binds states of a server to the principal.
    fn binding<'a>(
        &'a self,
        backend: &'a Backend,
        owner: &'a Owner,
    ) -> Result<Binding<'a>, PeerError> {
        let seal = self.seal.as_deref();
        let seal = seal.ok_or_else(|| PeerError::internal("the system gave no random numbers"))?;
        Ok(Binding {
            seal,
            server: &backend.name,
            principal: owner.principal.as_deref(),
        })
    }

    fn way(&self, request: &IncomingRequest<RequestContext>, connection: &Connection) -> Way {
        Way {
            from: request.revision(),
            to: connection.info.revision,
            losses: self.live.losses(),
        }
    }

    /// Calls a server that asks nothing, or by results.
    async fn call_shared(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        SharedConnection { connection, calls }: &SharedConnection,
        binding: Binding<'_>,
    ) -> Result<Reply, Failed> {
        let way = self.way(request, connection).of_request();
        let input = input_of(request, binding)?;
        let pending = self.send(client, request, connection, &way, input)?;
        let _call = calls.begin(pending.key(), client, request.key);
        let reply = self.finish(request, connection, pending.await, &way)?;
        Ok(match reply {
            Reply::Result(result) => Reply::Result(binding.bind(result)),
            reply => reply,
        })
    }

    /// Calls a server on a connection that no other call uses meanwhile.
    async fn call_alone(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        mut lease: Lease,
    ) -> Result<Reply, Failed> {
        let connection = lease.connection()?;
        let way = self.way(request, &connection).of_request();
        let (sender, questions) = mpsc::unbounded_channel();
        connection.set_receiver(Some(Arc::new(OfCall {
            client: client.clone(),
            key: request.key,
            questions: sender,
            back: self.way(request, &connection).back(),
        })));
        // A server with sessions has no states, and asks by requests.
        let pending = self.send(client, request, &connection, &way, None)?;
        lease.is_busy = true;
        let waited = self.wait(request, way, lease, connection, pending, questions);
        Ok(waited.await?)
    }

    /// Waits for the answer of the server, or for a question.
    async fn wait(
        &self,
        request: &IncomingRequest<RequestContext>,
        way: Way,
        mut lease: Lease,
        connection: Arc<Connection>,
        mut pending: PendingRequest,
        mut questions: mpsc::UnboundedReceiver<Question>,
    ) -> Result<Reply, PeerError> {
        let first = tokio::select! {
            outcome = &mut pending => {
                lease.is_busy = !matches!(outcome, Outcome::Result(_) | Outcome::Error(_));
                return self.finish(request, &connection, outcome, &way);
            }
            Some(question) = questions.recv() => question,
        };
        let mut asked = vec![first];
        // What the server asks at the same time is asked at once.
        while asked.len() < MOST_QUESTIONS
            && let Ok(Some(question)) = timeout(ASKED_TOGETHER, questions.recv()).await
        {
            asked.push(question);
        }
        let back = way.back();
        let asks = asked.iter().enumerate().map(|(at, question)| {
            let params = question.request.params().cloned();
            let ask = InputRequest::new(question.request.method(), params);
            let ask = back.question(&ask);
            let ask = ask.inspect_err(|error| question.refuse(error.message()))?;
            Ok((name_of(at), ask))
        });
        let requests = asks.collect::<Result<_, PeerError>>()?;
        let principal = request.context().principal.clone();
        let state = self.keep(
            request,
            WaitingCall {
                lease,
                pending,
                questions,
                asked,
                way,
                owner: principal.map(|Principal(name)| name),
                method: request.method().to_owned(),
                params: bound_params(request),
            },
        )?;
        Ok(Reply::InputRequired {
            requests,
            state: Some(state),
        })
    }

    /// Goes on with a call whose client has answered. Unanswered questions are asked again.
    async fn resume(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        waiting: WaitingCall,
    ) -> Result<Reply, PeerError> {
        let connection = waiting.lease.connection()?;
        let WaitingCall {
            lease,
            pending,
            mut questions,
            asked,
            way,
            ..
        } = waiting;
        let way = Way {
            from: request.revision(),
            ..way
        };
        // From now on the server tells this request, not the one before.
        let (sender, more) = mpsc::unbounded_channel();
        connection.set_receiver(Some(Arc::new(OfCall {
            client: client.clone(),
            key: request.key,
            questions: sender.clone(),
            back: way.back(),
        })));
        for (at, question) in asked.into_iter().enumerate() {
            let Some(answer) = request.responses.result(&name_of(at)) else {
                let _ = sender.send(question);
                continue;
            };
            let answer = way.answer(question.request.method(), answer.object())?;
            question.answer(Ok(RawResult::from(answer)));
        }
        while let Ok(question) = questions.try_recv() {
            let _ = sender.send(question);
        }
        self.wait(request, way, lease, connection, pending, more)
            .await
    }

    fn send(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        connection: &Connection,
        way: &Way,
        input: Option<RequestInput>,
    ) -> Result<PendingRequest, Failed> {
        let client_meta = relay::client_meta(request.client());
        let params = way.params(request.method(), request.params(), client_meta)?;
        let (progress, callback) = relay::progress(client, request);
        let is_stateless = connection.lifecycle() == Lifecycle::Discover;
        let options = CallOptions {
            progress,
            log_level: request.log_level(),
            trace: relay::trace(request),
            capabilities: is_stateless.then(|| request.client().capabilities.clone()),
            input,
            ..CallOptions::default()
        };
        let sent = connection
            .client
            .request(request.method(), params, options, callback);
        sent.map_err(|error| connection.unsent(&error))
    }

    fn finish(
        &self,
        request: &IncomingRequest<RequestContext>,
        connection: &Connection,
        outcome: Outcome,
        way: &Way,
    ) -> Result<Reply, PeerError> {
        if outcome == Outcome::Lost {
            // The next call begins with another one, whatever became of this one.
            connection.set_lost();
        }
        let back = way.back();
        let (method, uri) = (request.method(), relay::uri(request.params()));
        match outcome {
            Outcome::Result(result) => {
                if method == "tools/list" {
                    self.tools.learn(result.object());
                }
                Ok(Reply::Result(back.result(
                    method,
                    result,
                    uri.as_deref(),
                )?))
            }
            Outcome::Error(error) => Err(back.error(method, &error, uri.as_deref())),
            other => Err(relay::no_answer(&other)),
        }
    }

    /// Tells a subscription what changes, until the connection to the server ends. Calls `established` when it has begun.
    pub(crate) async fn listen(
        &self,
        backend: &Backend,
        client: &ServerHandle,
        filter: &Filter,
        principal: Option<Principal>,
        established: Established,
    ) -> Result<(), PeerError> {
        let owner = Owner {
            principal: principal.map(|Principal(name)| name),
            client: ClientSide::new(None, &JsonObject::new()),
        };
        // A connection of its own: what it is subscribed to is nobody else's.
        let permit = self.permit(owner.principal.as_deref()).await?;
        let receiver: Arc<dyn Receiver> = Arc::new(OfSubscription {
            client: client.clone(),
            established: Arc::clone(&established),
        });
        let connection = backend.connect(&owner.client, Some(receiver)).await?;
        match connection.lifecycle() {
            Lifecycle::Discover => {
                let all = relay::filter_of(&connection.info.capabilities, filter.uris.iter());
                if let Some(params) = all {
                    let listening = connection.client.request(
                        "subscriptions/listen",
                        Some(params),
                        CallOptions::default(),
                        None,
                    );
                    let listening = listening.map_err(|error| relay::not_sent(&error))?;
                    let ended = listening.await;
                    drop(permit);
                    return Err(relay::no_answer(&ended));
                }
            }
            _ => {
                for uri in &filter.uris {
                    let params = JsonObject::from_iter([("uri", Json::string(uri))]);
                    let subscribing = connection.client.request(
                        "resources/subscribe",
                        Some(params),
                        CallOptions::default(),
                        None,
                    );
                    let subscribing = subscribing.map_err(|error| relay::not_sent(&error))?;
                    if let Outcome::Error(error) = subscribing.await {
                        tracing::warn!(
                            uri,
                            error = error.message(),
                            "a resource is not subscribed to"
                        );
                    }
                }
            }
        }
        established();
        let reason = connection.client.closed().await;
        drop(permit);
        Err(PeerError::internal(reason.to_string()))
    }

    /// Waits for the permission to open a connection. An authenticated principal gets half of them at most: its subscriptions and
    /// waiting calls, which hold connections for long, leave some to the others.
    async fn permit(&self, principal: Option<&str>) -> Result<Permit, PeerError> {
        let share = match principal {
            None => None,
            Some(name) => {
                let share = locked(&self.state).share(name, self.share);
                Some(self.acquire(&share, principal).await?)
            }
        };
        Ok(Permit {
            _connection: self.acquire(&self.connections, None).await?,
            _share: share,
        })
    }

    /// Acquires a permit. While there is none, connections that no call uses are closed, of a principal or of all.
    async fn acquire(
        &self,
        permits: &Arc<Semaphore>,
        principal: Option<&str>,
    ) -> Result<OwnedSemaphorePermit, PeerError> {
        let permit = Arc::clone(permits).acquire_owned();
        tokio::pin!(permit);
        let end = Instant::now() + PERMIT_WITHIN;
        while Instant::now() < end {
            if permits.available_permits() == 0 {
                locked(&self.state).close_oldest_unused(principal);
            }
            // Calls that end meanwhile leave connections that can be closed.
            if let Ok(Ok(permit)) = timeout(PERMIT_RETRIED, &mut permit).await {
                return Ok(permit);
            }
        }
        Err(PeerError::internal(
            "all connections to the server are in use; try again later",
        ))
    }

    /// Returns the connection that the calls of an owner share.
    async fn shared_connection(
        &self,
        backend: &Backend,
        owner: &Owner,
    ) -> Result<SharedConnection, PeerError> {
        let opening = {
            let mut state = locked(&self.state);
            if let Some(open) = state.open_connection(owner) {
                return Ok(open);
            }
            state.opening(owner)
        };
        // One call opens the connection, the owner's others wait for it.
        let _opening = opening.lock().await;
        if let Some(open) = locked(&self.state).open_connection(owner) {
            return Ok(open);
        }
        let permit = self.permit(owner.principal.as_deref()).await?;
        let calls = Arc::new(SharedCalls::default());
        let receiver: Arc<dyn Receiver> = Arc::new(OfShared(Arc::downgrade(&calls)));
        let connection = backend.connect(&owner.client, Some(receiver)).await?;
        let opened = SharedConnection { connection, calls };
        let open = Open {
            shared: opened.clone(),
            _permit: permit,
            since: Instant::now(),
        };
        locked(&self.state).open.insert(owner.clone(), open);
        self.close_when_idle(owner.clone());
        Ok(opened)
    }

    /// Closes the connection that an owner's calls share, once no call has used it for some time.
    fn close_when_idle(&self, owner: Owner) {
        let (state, idle_after) = (Arc::downgrade(&self.state), self.idle_after);
        tokio::spawn(async move {
            let mut wait = idle_after;
            loop {
                tokio::time::sleep(wait).await;
                let Some(state) = state.upgrade() else {
                    return;
                };
                let mut state = locked(&state);
                let Some(open) = state.open.get(&owner) else {
                    return;
                };
                let used = open.since.elapsed();
                if used >= idle_after && open.shared.calls.is_empty() {
                    state.open.remove(&owner);
                    return;
                } else {
                    wait = idle_after
                        .saturating_sub(used)
                        .max(Duration::from_millis(10))
                }
            }
        });
    }

    /// Takes an unused connection for exclusive use, the latest used one first, or opens one.
    async fn lease(&self, backend: &Backend, owner: Owner) -> Result<Lease, PeerError> {
        let idle = loop {
            let mut state = locked(&self.state);
            match state.idle.get_mut(&owner).and_then(Vec::pop) {
                Some(idle) if idle.connection.is_lost() => {}
                other => break other,
            }
        };
        let held = match idle {
            Some(idle) => (idle.connection, idle.permit),
            None => {
                let permit = self.permit(owner.principal.as_deref()).await?;
                (backend.connect(&owner.client, None).await?, permit)
            }
        };
        Ok(Lease {
            owner,
            held: Some(held),
            is_busy: false,
            state: Arc::clone(&self.state),
            idle_after: self.idle_after,
        })
    }
}

/// Returns the input that a client hands on to a server of its own lifecycle, as it came.
fn input_of(
    request: &IncomingRequest<RequestContext>,
    binding: Binding<'_>,
) -> Result<Option<RequestInput>, PeerError> {
    let responses = request
        .param("inputResponses")
        .and_then(|responses| responses.object());
    let state = request.param("requestState");
    if responses.is_none() && state.is_none() {
        return Ok(None);
    }
    let state = state.map(|state| binding.unbind(state.to_json()));
    Ok(Some(RequestInput {
        responses: responses.map(|responses| responses.to_object()),
        state: state.transpose()?,
    }))
}

impl Lease {
    fn connection(&self) -> Result<Arc<Connection>, PeerError> {
        let held = self.held.as_ref();
        let connection = held.map(|(connection, _)| Arc::clone(connection));
        connection.ok_or_else(|| PeerError::internal("the connection was given back"))
    }
}

impl Drop for Lease {
    /// Gives the connection back, unless it is lost or the server still works on the call. It is closed when it was not used for
    /// some time.
    fn drop(&mut self) {
        let Some((connection, permit)) = self.held.take() else {
            return;
        };
        connection.set_receiver(None);
        if connection.is_lost() {
            return;
        }
        if self.is_busy {
            // Some servers stop serving when the response to a cancelled request is closed at once (Python SDK 1.8).
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    tokio::time::sleep(CLOSED_AFTER).await;
                    drop((connection, permit));
                });
            }
            return;
        }
        let since = Instant::now();
        let idle = Idle {
            connection,
            permit,
            since,
        };
        locked(&self.state)
            .idle
            .entry(self.owner.clone())
            .or_default()
            .push(idle);
        let (state, owner, idle_after) = (
            Arc::downgrade(&self.state),
            self.owner.clone(),
            self.idle_after,
        );
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            tokio::time::sleep(idle_after).await;
            let Some(state) = state.upgrade() else {
                return;
            };
            let mut state = locked(&state);
            if let Some(idle) = state.idle.get_mut(&owner) {
                idle.retain(|idle| idle.since > since);
                if idle.is_empty() {
                    state.idle.remove(&owner);
                }
            }
        });
    }
}
