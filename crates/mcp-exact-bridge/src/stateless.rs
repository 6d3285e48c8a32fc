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

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, Filter, IncomingRequest, InputRequest, Json, JsonObject, Lifecycle, Outcome,
    PeerError, Principal, RawResult, Reply, RequestInput, Seal,
};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use self::connections::{Connections, Lease, Owner, SharedConnection};
pub(crate) use self::receivers::Established;
use self::receivers::{OfCall, OfSubscription};
use self::sealing::{Binding, ProcessKey};
use self::waiting::{RunningCall, STATE_PREFIX, WaitingCall, WaitingCalls, locked};
use crate::backend::Backend;
use crate::bridge::Options;
use crate::losses::Losses;
use crate::relay::{self, Failed, ProgressReceiver};
use crate::tools::KnownTools;
use crate::translate::{Way, newest};
use crate::update::Live;
use crate::upstream::{ClientSide, Connection, Receiver};

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
        let progress = ProgressReceiver::new(client, request.key);
        let pending = self.send(request, connection, &way, &progress, input)?;
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
        let progress = ProgressReceiver::new(client, request.key);
        // A server with sessions has no states, and asks by requests.
        let pending = self.send(request, &connection, &way, &progress, None)?;
        lease.is_busy = true;
        let call = RunningCall {
            lease,
            connection,
            pending,
            questions,
            progress,
            way,
        };
        Ok(self.wait(request, call).await?)
    }

    /// Waits for the answer of the server, or for a question.
    async fn wait(
        &self,
        request: &IncomingRequest<RequestContext>,
        mut call: RunningCall,
    ) -> Result<Reply, PeerError> {
        let questions = &mut call.questions;
        let first = tokio::select! {
            biased;
            outcome = &mut call.pending => {
                call.lease.is_busy = !matches!(outcome, Outcome::Result(_) | Outcome::Error(_));
                return self.finish(request, &call.connection, outcome, &call.way);
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
        let back = call.way.back();
        let asks = asked.iter().enumerate().map(|(at, question)| {
            let params = question.request.params().cloned();
            let ask = InputRequest::new(question.request.method(), params);
            let ask = back.question(&ask);
            let ask = ask.inspect_err(|error| question.refuse(error.message()))?;
            Ok((name_of(at), ask))
        });
        let requests = asks.collect::<Result<_, PeerError>>()?;
        let state = self.keep(request, call, asked)?;
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
        let way = Way {
            from: request.revision(),
            ..waiting.call.way.clone()
        };
        let answers = waiting.asked.iter().enumerate();
        let answers = answers.map(|(at, question)| {
            let answer = request.responses.result(&name_of(at));
            let answer =
                answer.map(|answer| way.answer(question.request.method(), answer.object()));
            answer.transpose()
        });
        let answers = match answers.collect::<Result<Vec<_>, PeerError>>() {
            Ok(answers) => answers,
            // The client can answer again.
            Err(error) => {
                self.put_back(waiting);
                return Err(error);
            }
        };
        let WaitingCall {
            mut call,
            asked,
            place,
            ..
        } = waiting;
        drop(place);
        // From now on the server tells this request, not the one before.
        let (sender, more) = mpsc::unbounded_channel();
        call.connection.set_receiver(Some(Arc::new(OfCall {
            client: client.clone(),
            key: request.key,
            questions: sender.clone(),
            back: way.back(),
        })));
        call.progress.replace(client, request.key);
        for (question, answer) in asked.into_iter().zip(answers) {
            match answer {
                Some(answer) => question.answer(Ok(RawResult::from(answer))),
                None => drop(sender.send(question)),
            }
        }
        while let Ok(question) = call.questions.try_recv() {
            let _ = sender.send(question);
        }
        call.questions = more;
        call.way = way;
        self.wait(request, call).await
    }

    fn send(
        &self,
        request: &IncomingRequest<RequestContext>,
        connection: &Connection,
        way: &Way,
        progress: &ProgressReceiver,
        input: Option<RequestInput>,
    ) -> Result<PendingRequest, Failed> {
        let client_meta = relay::client_meta(request.client());
        let params = way.params(request.method(), request.params(), client_meta)?;
        let progress = progress.callback(request);
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
        backend: &Arc<Backend>,
        client: &ServerHandle,
        filter: &Filter,
        principal: Option<Principal>,
        established: Established,
    ) -> Result<(), PeerError> {
        let nobody = ClientSide::new(None, &JsonObject::new());
        // A connection of its own: what it is subscribed to is nobody else's.
        let _permit = self.connections.lasting_permit(principal.as_ref()).await?;
        let uris: BTreeSet<String> = filter.uris.iter().cloned().collect();
        let receiver: Arc<dyn Receiver> = Arc::new(OfSubscription {
            client: client.clone(),
            backend: Arc::clone(backend),
            principal,
            uris: uris.clone(),
            established: Arc::clone(&established),
        });
        let connection = backend.connect(&nobody, Some(receiver)).await?;
        match connection.lifecycle() {
            Lifecycle::Discover => {
                if relay::filter_of(&connection.info.capabilities, uris.iter()).is_some() {
                    let (_uris, wanted) = watch::channel(uris);
                    return Err(connection.listen(wanted).await);
                }
            }
            Lifecycle::Initialize => {
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
