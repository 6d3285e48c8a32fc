//! The client's side of one connection: the only module of the client that calls `mcp-exact-session`.
//!
//! Owns the endpoint behind a lock; takes frames and gives frames; hands results to those who wait for them and questions to
//! the handlers of the program.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_exact_session as session;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::ClientError;
use super::answer::Handlers;
use super::connect::{ClientChange, LogMessage};
use crate::link::{
    Clock, Identity, JsonObject, Level, Limits, Outcome, PeerError, Progress, RequestKey, Revision,
    SendError,
};

/// What was agreed with the server.
#[derive(Debug, Clone)]
pub(super) struct SessionInfo {
    pub(super) revision: Revision,
    pub(super) capabilities: JsonObject,
    pub(super) info: Option<JsonObject>,
    pub(super) instructions: Option<String>,
}

/// State of a connection.
#[derive(Debug, Clone)]
enum Phase {
    Negotiating,
    Open(SessionInfo),
    Failed(ClientError),
}

/// Settings of a client, as the builder gathers them.
#[derive(Debug, Clone)]
pub(super) struct Settings(session::ClientConfig);

impl Settings {
    pub(super) fn new(identity: Identity) -> Self {
        Self(session::ClientConfig::new(identity))
    }

    pub(super) fn set_identity(&mut self, identity: Identity) {
        self.0.identity = identity;
    }

    pub(super) fn set_revisions(&mut self, revisions: Vec<Revision>) {
        self.0.offer.revisions = revisions;
    }

    pub(super) fn set_floor(&mut self, revision: Revision) {
        self.0.offer.floor = Some(revision);
    }

    pub(super) fn set_idle(&mut self, limit: Duration) {
        self.0.patience.timeout = limit;
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.0.limits = limits;
    }

    pub(super) fn set_capabilities(&mut self, capabilities: JsonObject) {
        self.0.capabilities = capabilities;
    }
}

/// How one request is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) idle: Option<Duration>,
    pub(super) total: Option<Duration>,
    pub(super) log_level: Option<Level>,
}

pub(super) type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

struct Waiting {
    done: oneshot::Sender<Outcome>,
    progress: Option<OnProgress>,
}

pub(super) struct ClientLink {
    endpoint: Mutex<session::Client>,
    clock: Clock,
    wake: Arc<Notify>,
    waiting: Mutex<HashMap<RequestKey, Waiting>>,
    answering: Mutex<HashMap<session::AskKey, AbortHandle>>,
    /// Subscriptions that the server has not acknowledged yet.
    listens: Mutex<HashMap<RequestKey, oneshot::Sender<()>>>,
    phase: watch::Sender<Phase>,
    handlers: Handlers,
    defaults: session::Patience,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ClientLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLink").finish_non_exhaustive()
    }
}

impl Drop for ClientLink {
    fn drop(&mut self) {
        // The task that moves frames holds the link weakly and ends by itself.
        self.wake.notify_one();
    }
}

impl ClientLink {
    /// Opens a connection whose frames come from `frames` and go to `peer`, and waits until a revision is agreed.
    pub(super) async fn open(
        settings: Settings,
        handlers: Handlers,
        frames: mpsc::Receiver<Vec<u8>>,
        peer: mpsc::Sender<Vec<u8>>,
    ) -> Result<Arc<Self>, ClientError> {
        let clock = Clock::new();
        let defaults = settings.0.patience;
        let config = Arc::new(settings.0);
        let endpoint = session::Client::new(config, session::Binding::Duplex, None, clock.now());
        let endpoint = endpoint.map_err(|error| ClientError::Config(error.to_string()))?;
        let (phase, mut changed) = watch::channel(Phase::Negotiating);
        let link = Arc::new(Self {
            endpoint: Mutex::new(endpoint),
            clock,
            wake: Arc::new(Notify::new()),
            waiting: Mutex::default(),
            answering: Mutex::default(),
            listens: Mutex::default(),
            phase,
            handlers,
            defaults,
        });
        let wake = Arc::clone(&link.wake);
        tokio::spawn(run(Arc::downgrade(&link), wake, frames, peer));
        let agreed = changed
            .wait_for(|phase| !matches!(phase, Phase::Negotiating))
            .await;
        match agreed.map(|phase| phase.clone()) {
            Ok(Phase::Failed(error)) => Err(error),
            Ok(_) => Ok(link),
            Err(_) => Err(ClientError::Lost),
        }
    }

    pub(super) fn session(&self) -> SessionInfo {
        match &*self.phase.borrow() {
            Phase::Open(info) => info.clone(),
            // Links are given out once the phase is open, and it never goes back.
            Phase::Negotiating | Phase::Failed(_) => SessionInfo {
                revision: crate::outgoing::home(),
                capabilities: JsonObject::new(),
                info: None,
                instructions: None,
            },
        }
    }

    pub(super) fn request(
        &self,
        method: &str,
        params: Option<JsonObject>,
        options: Options,
        progress: Option<OnProgress>,
    ) -> Result<(RequestKey, oneshot::Receiver<Outcome>), SendError> {
        let idle = options.idle.unwrap_or(self.defaults.timeout);
        let patience = session::Patience {
            timeout: idle,
            reset_on_progress: true,
            at_most: options.total.unwrap_or(self.defaults.at_most.max(idle)),
        };
        let options = session::CallOptions {
            patience: Some(patience),
            progress: progress.is_some(),
            log_level: options.log_level,
        };
        let (done, receiver) = oneshot::channel();
        let now = self.clock.now();
        // The lock is held so that the answer cannot come before its receiver is known.
        let mut waiting = locked(&self.waiting);
        let key = locked(&self.endpoint).request(method, params, options, now)?;
        waiting.insert(key, Waiting { done, progress });
        self.wake.notify_one();
        Ok((key, receiver))
    }

    /// Sends `subscriptions/listen`, which has no limit of time, and waits until the server has acknowledged it.
    pub(super) async fn listen(&self, params: JsonObject) -> Result<RequestKey, ClientError> {
        const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
        let options = Options {
            idle: Some(FOREVER),
            total: Some(FOREVER),
            log_level: None,
        };
        let (acknowledged, listening) = oneshot::channel();
        let (key, done) = {
            // The lock is held so that the acknowledgement cannot come before its receiver is known.
            let mut listens = locked(&self.listens);
            let (key, done) = self.request("subscriptions/listen", Some(params), options, None)?;
            listens.insert(key, acknowledged);
            (key, done)
        };
        tokio::select! {
            biased;
            ended = done => Err(super::result_of(ended.unwrap_or(Outcome::Lost)).err().unwrap_or(ClientError::Lost)),
            Ok(()) = listening => Ok(key),
            else => Err(ClientError::Lost),
        }
    }

    pub(super) fn cancel(&self, key: RequestKey) {
        if locked(&self.waiting).remove(&key).is_some() {
            let now = self.clock.now();
            locked(&self.endpoint).cancel(key, "the caller does not wait any more", now);
            self.wake.notify_one();
        }
    }

    pub(super) fn notify(&self, method: &str, params: Option<JsonObject>) -> Result<(), SendError> {
        locked(&self.endpoint).notify(method, params)?;
        self.wake.notify_one();
        Ok(())
    }

    pub(super) fn shut_down(&self) {
        let now = self.clock.now();
        locked(&self.endpoint).shutdown(now);
        self.wake.notify_one();
    }

    fn receive(&self, frame: &[u8]) {
        tracing::debug!(frame = %String::from_utf8_lossy(frame), "received");
        let now = self.clock.now();
        let mut endpoint = locked(&self.endpoint);
        if let Err(error) = endpoint.receive(session::StreamId::DUPLEX, frame, now) {
            tracing::debug!(%error, "a frame was not taken");
        }
    }

    fn lose(&self) {
        let now = self.clock.now();
        let mut endpoint = locked(&self.endpoint);
        endpoint.closed(session::StreamId::DUPLEX, session::Closed::Lost, now);
    }

    /// Returns whether the connection is over.
    fn collect(&self, output: &mut VecDeque<Vec<u8>>) -> bool {
        let mut closes = false;
        while output.len() < 16 {
            let mut frame = Vec::new();
            let transmit = locked(&self.endpoint).poll_transmit(&mut frame);
            match transmit {
                Some(session::Transmit::Frame { .. }) => {
                    tracing::debug!(frame = %String::from_utf8_lossy(&frame), "sent");
                    output.push_back(frame);
                }
                Some(session::Transmit::Close { .. }) => closes = true,
                Some(_) => {}
                None => break,
            }
        }
        closes
    }

    fn handle_events(self: &Arc<Self>) {
        loop {
            let Some(event) = locked(&self.endpoint).poll_event() else {
                return;
            };
            self.handle_event(event);
        }
    }

    fn handle_event(self: &Arc<Self>, event: session::ClientEvent) {
        match event {
            session::ClientEvent::Agreed(agreed, _) => {
                self.phase.send_replace(Phase::Open(SessionInfo {
                    revision: agreed.revision,
                    capabilities: agreed.capabilities,
                    info: agreed.info,
                    instructions: agreed.instructions,
                }));
            }
            session::ClientEvent::Failed(error) => self.fail(ClientError::Negotiation(error)),
            session::ClientEvent::Listening(key, _) => {
                let acknowledged = locked(&self.listens).remove(&key);
                if let Some(acknowledged) = acknowledged {
                    // The caller may have stopped waiting.
                    let _ = acknowledged.send(());
                }
            }
            session::ClientEvent::Done(key, outcome) => {
                locked(&self.listens).remove(&key);
                let waiting = locked(&self.waiting).remove(&key);
                if let Some(waiting) = waiting {
                    // The caller may have stopped waiting.
                    let _ = waiting.done.send(outcome);
                }
            }
            session::ClientEvent::Progress(key, progress) => {
                let waiting = locked(&self.waiting);
                let handler = waiting
                    .get(&key)
                    .and_then(|waiting| waiting.progress.clone());
                drop(waiting);
                if let Some(handler) = handler {
                    handler(progress);
                }
            }
            session::ClientEvent::Ask { key, ask, .. } => self.ask(key, ask),
            session::ClientEvent::AskCancelled(key) => {
                let answering = locked(&self.answering).remove(&key);
                if let Some(answering) = answering {
                    answering.abort();
                }
            }
            session::ClientEvent::Log(_, log) => self.handlers.log(LogMessage {
                level: log.level,
                logger: log.logger,
                data: log.data,
            }),
            session::ClientEvent::Changed(_, change) => self.handlers.change(match change {
                session::Change::Tools => ClientChange::Tools,
                session::Change::Prompts => ClientChange::Prompts,
                session::Change::Resources => ClientChange::Resources,
                session::Change::Resource(uri) => ClientChange::Resource(uri),
                _ => return,
            }),
            session::ClientEvent::Violation(violation) => {
                tracing::debug!(%violation, "the server broke a rule");
            }
            session::ClientEvent::Closed => {
                self.fail(ClientError::Lost);
                locked(&self.waiting).clear();
                let answering = std::mem::take(&mut *locked(&self.answering));
                answering.into_values().for_each(|task| task.abort());
            }
            _ => {}
        }
    }

    fn fail(&self, error: ClientError) {
        self.phase.send_if_modified(|phase| {
            let first = matches!(phase, Phase::Negotiating);
            if first {
                *phase = Phase::Failed(error);
            }
            first
        });
    }

    fn ask(self: &Arc<Self>, key: session::AskKey, asked: session::Asked) {
        let (link, revision) = (Arc::downgrade(self), asked.revision());
        let answer = self
            .handlers
            .answer(asked.method(), asked.params(), revision);
        // Held until the task is known, which may end at once.
        let mut answering = locked(&self.answering);
        let task = tokio::spawn(async move {
            let answer = answer.await;
            if let Some(link) = link.upgrade() {
                link.answer(key, answer);
            }
        });
        answering.insert(key, task.abort_handle());
    }

    fn answer(&self, key: session::AskKey, answer: Result<JsonObject, PeerError>) {
        locked(&self.answering).remove(&key);
        let now = self.clock.now();
        let sent = locked(&self.endpoint).answer(key, answer.map(session::RawResult::from), now);
        if let Err(error) = sent {
            tracing::debug!(%error, "an answer was not sent");
        }
        self.wake.notify_one();
    }
}

/// Moves frames until the connection is over, or nobody holds the client any more.
async fn run(
    link: Weak<ClientLink>,
    wake: Arc<Notify>,
    mut frames: mpsc::Receiver<Vec<u8>>,
    peer: mpsc::Sender<Vec<u8>>,
) {
    let mut output = VecDeque::new();
    let mut closes = false;
    loop {
        let Some(strong) = link.upgrade() else {
            return;
        };
        strong.handle_events();
        closes |= strong.collect(&mut output);
        if closes && output.is_empty() {
            strong.handle_events();
            return;
        }
        let (ready, timeout) = {
            let endpoint = locked(&strong.endpoint);
            (endpoint.wants_input(), endpoint.poll_timeout())
        };
        let wait = timeout.map(|at| at.after(strong.clock.now()));
        let timer = tokio::time::sleep(wait.unwrap_or(Duration::from_secs(3600)));
        // The weak link is what is kept while nothing happens: dropping the last client ends the connection.
        drop(strong);
        let event = tokio::select! {
            permit = peer.reserve(), if !output.is_empty() => match permit {
                Ok(permit) => {
                    if let Some(frame) = output.pop_front() {
                        permit.send(frame);
                    }
                    Event::Nothing
                }
                Err(_) => Event::Lost,
            },
            frame = frames.recv(), if ready => frame.map_or(Event::Lost, Event::Frame),
            () = wake.notified() => Event::Nothing,
            () = timer => Event::Timeout,
        };
        let Some(strong) = link.upgrade() else {
            return;
        };
        match event {
            Event::Nothing => {}
            Event::Frame(frame) => strong.receive(&frame),
            Event::Lost => {
                output.clear();
                strong.lose();
                strong.handle_events();
                return;
            }
            Event::Timeout => {
                let now = strong.clock.now();
                locked(&strong.endpoint).handle_timeout(now);
            }
        }
    }
}

enum Event {
    Nothing,
    Frame(Vec<u8>),
    Lost,
    Timeout,
}
