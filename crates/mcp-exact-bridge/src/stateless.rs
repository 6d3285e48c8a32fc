//! Clients without sessions (from 2026-07-28 on): each request is independent, and connections to the server are shared by
//! the requests of one principal.
//!
//! A server of an older revision asks by requests, on which its call waits. The call then ends with a result of type
//! `input_required`, and is kept here until the client repeats it with the answer. A connection whose client can be asked
//! serves one call at a time: on standard streams a question does not name its call.

mod connections;
mod receivers;
mod sealing;
mod waiting;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, Filter, IncomingRequest, InputRequest, Json, JsonObject, Lifecycle, Outcome,
    PeerError, Principal, RawResult, Reply, RequestInput, Seal,
};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::connections::{Connections, Lease, Owner, SharedConnection};
pub(crate) use self::receivers::Established;
use self::receivers::{OfCall, OfSubscription};
use self::sealing::{Binding, ProcessKey};
use self::waiting::{STATE_PREFIX, WaitingCall, WaitingCalls, bound_params, locked};
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

/// Returns the name of a question that a server of an older revision has asked.
fn name_of(at: usize) -> String {
    format!("question-{}", at + 1)
}

/// Everything that clients without sessions share.
pub(crate) struct Stateless {
    connections: Connections,
    answer_within: Duration,
    most_waiting: usize,
    live: Arc<Live>,
    /// `None` if the system has no random numbers for a key.
    seal: Option<Arc<dyn Seal>>,
    tools: Arc<KnownTools>,
    /// Calls whose question waits for the client, by the state that it has got.
    waiting: Arc<Mutex<WaitingCalls>>,
}

impl Stateless {
    pub(crate) fn new(options: &Options, live: &Arc<Live>, tools: &Arc<KnownTools>) -> Self {
        Self {
            connections: Connections::new(options),
            answer_within: options.answer_within,
            most_waiting: options.waiting_calls,
            live: Arc::clone(live),
            seal: options.seal.clone().or_else(|| {
                let key = ProcessKey::random()?;
                Some(Arc::new(key) as Arc<dyn Seal>)
            }),
            tools: Arc::clone(tools),
            waiting: Arc::default(),
        }
    }

    /// Returns the number of calls that wait for a client.
    pub(crate) fn waiting(&self) -> usize {
        locked(&self.waiting).len()
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
                let lease = self.connections.lease(backend, owner.clone()).await?;
                self.call_alone(client, &request, lease).await
            } else {
                let binding = self.binding(backend, &owner)?;
                let connection = self.connections.shared_connection(backend, &owner).await?;
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
        let permit = self.connections.permit(owner.principal.as_deref()).await?;
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
