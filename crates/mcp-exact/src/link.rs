//! The server's side of one connection: the only module of the server that calls `mcp-exact-session`.
//!
//! Owns the endpoint behind a lock; takes frames and gives frames; starts a task for each request and cancels it. What the
//! rest of the crate uses of the session is re-exported here.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_exact_session as session;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;

pub use mcp_exact_wire::Encode;
pub(crate) use session::{Answers, Change, ConfigError, RequestKey, Time};
pub use session::{
    Ask, CacheHint, Identity, Json, JsonObject, Level, Limits, NegotiationError, Offer, Outcome,
    PeerError, Principal, Progress, Revision, Seal, SendError,
};

use crate::cx::Token;
use crate::server::Server;

/// How a revision is negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// By `initialize`, for a session (up to 2025-11-25).
    Initialize,
    /// By every request (from 2026-07-28 on).
    Discover,
}

/// Returns how a revision is negotiated.
pub(crate) fn lifecycle_of(revision: Revision) -> Lifecycle {
    match session::era(revision.as_str()) {
        Some(session::Era::PerRequest) => Lifecycle::Discover,
        _ => Lifecycle::Initialize,
    }
}

/// Returns every revision that is compiled in, oldest first.
pub fn revisions() -> impl DoubleEndedIterator<Item = Revision> {
    session::revisions()
}

pub(crate) fn resource_not_found(uri: &str) -> PeerError {
    let data = JsonObject::from_iter([("uri", Json::string(uri))]);
    let words = format!("Resource not found: {uri}");
    PeerError::new(session::code::RESOURCE_NOT_FOUND, words).with_data(data)
}

pub(crate) fn missing_capability(capability: &str) -> PeerError {
    PeerError::missing_capability(capability)
}

/// Time since the Unix epoch that never goes back: a record that one process has sealed is opened by another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    epoch: Duration,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            epoch: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        Time::since_start(self.epoch + self.start.elapsed())
    }

    /// Returns the milliseconds since the epoch.
    pub(crate) fn millis(&self) -> u64 {
        u64::try_from(self.now().elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request that has come in, with what is known of its sender.
pub struct Request {
    incoming: session::Incoming<()>,
}

impl Request {
    pub(crate) fn key(&self) -> RequestKey {
        self.incoming.key
    }

    pub(crate) fn method(&self) -> &str {
        self.incoming.method()
    }

    pub(crate) fn params(&self) -> Option<&JsonObject> {
        self.incoming.params()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.incoming.revision()
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        lifecycle_of(self.revision())
    }

    pub(crate) fn client_capabilities(&self) -> &JsonObject {
        &self.incoming.client().capabilities
    }

    pub(crate) fn client_info(&self) -> Option<&JsonObject> {
        self.incoming.client().info.as_ref()
    }

    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.incoming.with().principal.as_ref()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let http = self.incoming.with().http.as_ref();
        http.and_then(|http| http.header(name))
    }

    pub(crate) fn headers(&self) -> &[(String, String)] {
        let http = self.incoming.with().http.as_ref();
        http.map_or(&[], |http| &http.headers)
    }

    /// Returns the state that the retry of a request carries, opened.
    pub(crate) fn state(&self) -> Option<&str> {
        self.incoming.state.as_deref()
    }

    pub(crate) fn answers(&self) -> &Answers {
        &self.incoming.answers
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.incoming, f)
    }
}

/// Answer to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(JsonObject),
    Error(PeerError),
    InputRequired {
        asks: Vec<(String, Ask)>,
        state: String,
    },
}

/// Configuration of the endpoints of a server.
#[derive(Debug, Clone)]
pub(crate) struct Settings(Arc<session::ServerConfig>);

impl Settings {
    pub(crate) fn new(config: session::ServerConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn capabilities(&self) -> &JsonObject {
        &self.0.capabilities
    }
}

pub(crate) use session::ServerConfig;

struct Running {
    abort: Option<AbortHandle>,
    token: Token,
    cooperative: bool,
}

/// One connection of a server.
pub(crate) struct Link {
    endpoint: Mutex<session::Server<()>>,
    clock: Clock,
    wake: Notify,
    running: Mutex<HashMap<RequestKey, Running>>,
    questions: Mutex<HashMap<RequestKey, oneshot::Sender<Outcome>>>,
    /// The latest progress of requests whose client reads slowly.
    delayed: Mutex<HashMap<RequestKey, Progress>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// Opens a connection over one stream for both directions, such as stdio.
    pub(crate) fn duplex(settings: &Settings) -> Result<Arc<Self>, ConfigError> {
        let clock = Clock::new();
        let config = Arc::clone(&settings.0);
        let endpoint = session::Server::new(config, session::Binding::Duplex, clock.now())?;
        Ok(Arc::new(Self {
            endpoint: Mutex::new(endpoint),
            clock,
            wake: Notify::new(),
            running: Mutex::default(),
            questions: Mutex::default(),
            delayed: Mutex::default(),
        }))
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    fn with<T>(&self, f: impl FnOnce(&mut session::Server<()>) -> T) -> T {
        let done = f(&mut locked(&self.endpoint));
        self.wake.notify_one();
        done
    }

    /// Sends progress; the latest one is kept when the client reads slowly.
    pub(crate) fn progress(&self, key: RequestKey, progress: Progress) -> Result<(), SendError> {
        match self.with(|endpoint| endpoint.progress(key, &progress))? {
            session::Sent::Dropped => {
                locked(&self.delayed).insert(key, progress);
            }
            _ => {
                locked(&self.delayed).remove(&key);
            }
        }
        Ok(())
    }

    pub(crate) fn log(
        &self,
        key: RequestKey,
        level: Level,
        logger: Option<&str>,
        data: Json,
    ) -> Result<(), SendError> {
        let scope = session::Scope::During(key);
        self.with(|endpoint| endpoint.log(scope, level, logger, data))
            .map(drop)
    }

    pub(crate) fn notify(
        &self,
        key: RequestKey,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<(), SendError> {
        let scope = session::Scope::During(key);
        self.with(|endpoint| endpoint.notify(scope, method, params))
            .map(drop)
    }

    /// Sends a question of a request as a request of the server (up to 2025-11-25).
    pub(crate) fn ask(
        &self,
        during: RequestKey,
        ask: Ask,
        patience: Option<Duration>,
    ) -> Result<(RequestKey, oneshot::Receiver<Outcome>), SendError> {
        let options = session::CallOptions {
            patience: Some(patience_of(patience)),
            ..session::CallOptions::default()
        };
        let (sender, receiver) = oneshot::channel();
        let scope = session::Scope::During(during);
        let now = self.clock.now();
        // The lock of the questions is held so that the answer cannot come before its receiver is known.
        let mut questions = locked(&self.questions);
        let key =
            self.with(|endpoint| endpoint.request(scope, &ask.method, ask.params, options, now))?;
        questions.insert(key, sender);
        Ok((key, receiver))
    }

    pub(crate) fn cancel_question(&self, key: RequestKey) {
        locked(&self.questions).remove(&key);
        let now = self.clock.now();
        self.with(|endpoint| endpoint.cancel(key, "the handler does not wait any more", now));
    }

    pub(crate) fn publish(&self, change: &Change) {
        self.with(|endpoint| endpoint.publish(change));
    }

    /// Answers a request. When the answer is refused, the request is answered with the reason instead.
    pub(crate) fn reply(&self, key: RequestKey, reply: Reply) {
        locked(&self.running).remove(&key);
        locked(&self.delayed).remove(&key);
        let now = self.clock.now();
        let reply = match reply {
            Reply::Result(result) => session::Reply::Result(result.into()),
            Reply::Error(error) => session::Reply::Error(error),
            Reply::InputRequired { asks, state } => session::Reply::Ask {
                asks,
                state: Some(state),
            },
        };
        self.with(|endpoint| {
            if let Err(error) = endpoint.reply(key, reply, now) {
                let error = PeerError::internal(error.to_string());
                if let Err(error) = endpoint.reply(key, error, now) {
                    tracing::debug!(%error, "a request could not be answered");
                }
            }
        });
    }

    /// Handles frames until the peer closes its direction and all output has left, or the peer takes no more frames.
    pub(crate) async fn run(
        self: Arc<Self>,
        server: Server,
        mut frames: mpsc::Receiver<Vec<u8>>,
        peer: mpsc::Sender<Vec<u8>>,
    ) {
        let mut output = VecDeque::new();
        let mut open = true;
        loop {
            self.handle_events(&server);
            self.collect(&mut output);
            if !open && output.is_empty() {
                break;
            }
            let (ready, timeout) = {
                let endpoint = locked(&self.endpoint);
                (endpoint.wants_input(), endpoint.poll_timeout())
            };
            let wait = timeout.map(|at| at.after(self.clock.now()));
            let timer = tokio::time::sleep(wait.unwrap_or(Duration::from_secs(3600)));
            tokio::select! {
                permit = peer.reserve(), if !output.is_empty() => match permit {
                    Ok(permit) => {
                        if let Some(frame) = output.pop_front() {
                            permit.send(frame);
                        }
                    }
                    Err(_) => {
                        output.clear();
                        self.close(session::Closed::Lost);
                        open = false;
                    }
                },
                frame = frames.recv(), if open && ready => match frame {
                    Some(frame) => self.receive(&frame),
                    None => {
                        self.close(session::Closed::Clean);
                        open = false;
                    }
                },
                () = self.wake.notified() => {}
                () = timer => {
                    let now = self.clock.now();
                    locked(&self.endpoint).handle_timeout(now);
                }
            }
        }
        self.handle_events(&server);
        self.cancel_all();
    }

    fn receive(&self, frame: &[u8]) {
        tracing::debug!(frame = %String::from_utf8_lossy(frame), "received");
        let now = self.clock.now();
        let inbound = session::Inbound::new(());
        let mut endpoint = locked(&self.endpoint);
        if let Err(error) = endpoint.receive(session::StreamId::DUPLEX, frame, inbound, now) {
            tracing::debug!(%error, "a frame was not taken");
        }
    }

    fn close(&self, how: session::Closed) {
        let now = self.clock.now();
        locked(&self.endpoint).closed(session::StreamId::DUPLEX, how, now);
    }

    fn collect(&self, output: &mut VecDeque<Vec<u8>>) {
        // The peer is slow while frames wait here: what is not collected fills the endpoint, which then refuses more.
        while output.len() < 16 {
            let mut frame = Vec::new();
            // The lock must not be held in the arms: they take it again.
            let transmit = locked(&self.endpoint).poll_transmit(&mut frame);
            match transmit {
                Some(session::Transmit::Frame { .. }) => {
                    tracing::debug!(frame = %String::from_utf8_lossy(&frame), "sent");
                    output.push_back(frame);
                }
                Some(_) => {}
                None => {
                    self.send_delayed();
                    return;
                }
            }
        }
    }

    fn send_delayed(&self) {
        let delayed = std::mem::take(&mut *locked(&self.delayed));
        for (key, progress) in delayed {
            // The request may have ended meanwhile.
            let _ = self.progress(key, progress);
        }
    }

    fn handle_events(self: &Arc<Self>, server: &Server) {
        loop {
            let Some(event) = locked(&self.endpoint).poll_event() else {
                return;
            };
            match event {
                session::ServerEvent::Request(incoming) => self.start(server, incoming),
                session::ServerEvent::Cancelled { key, .. } => self.cancel(key),
                session::ServerEvent::Done(key, outcome) => {
                    if let Some(sender) = locked(&self.questions).remove(&key) {
                        // The handler may have stopped waiting.
                        let _ = sender.send(outcome);
                    }
                }
                session::ServerEvent::Violation(violation) => {
                    tracing::debug!(%violation, "the client broke a rule");
                }
                session::ServerEvent::Closed => self.cancel_all(),
                _ => {}
            }
        }
    }

    fn start(self: &Arc<Self>, server: &Server, incoming: session::Incoming<()>) {
        let key = incoming.key;
        let token = Token::default();
        let request = Arc::new(Request { incoming });
        let cooperative = server.is_cooperative(&request);
        let (link, token_of_task) = (Arc::clone(self), token.clone());
        let server = server.clone();
        // Known before the task runs, which may end at once.
        let running = Running {
            abort: None,
            token,
            cooperative,
        };
        locked(&self.running).insert(key, running);
        let task = tokio::spawn(async move {
            let reply = server
                .serve(request, Arc::clone(&link), token_of_task)
                .await;
            link.reply(key, reply);
        });
        if let Some(running) = locked(&self.running).get_mut(&key) {
            running.abort = Some(task.abort_handle());
        }
    }

    fn cancel(&self, key: RequestKey) {
        let running = locked(&self.running).remove(&key);
        if let Some(running) = running {
            running.cancel();
        }
    }

    fn cancel_all(&self) {
        let all = std::mem::take(&mut *locked(&self.running));
        all.into_values().for_each(|running| running.cancel());
        locked(&self.questions).clear();
    }
}

impl Running {
    fn cancel(self) {
        self.token.cancel();
        if let Some(abort) = self.abort.filter(|_| !self.cooperative) {
            abort.abort();
        }
    }
}

/// A question waits for a person: without a limit of its own it waits a day.
fn patience_of(limit: Option<Duration>) -> session::Patience {
    let limit = limit.unwrap_or(Duration::from_secs(24 * 3600));
    session::Patience {
        timeout: limit,
        reset_on_progress: false,
        at_most: limit,
    }
}
