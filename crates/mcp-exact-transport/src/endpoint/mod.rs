//! Endpoints shared between the tasks that serve them. This module alone calls the session API.
//!
//! A call locks the endpoint, then passes its events to the handler, one at a time and in order, then notifies the
//! driver of possible output. The module performs no IO.

// Each transport uses only a part of the module.
#![cfg_attr(
    not(all(feature = "http-client", feature = "http-server")),
    allow(dead_code, unused_imports)
)]

#[cfg(feature = "client")]
mod client;
#[cfg(all(test, any(feature = "tokio", feature = "blocking")))]
pub(crate) mod fake;
mod message;
mod readers;
mod request;
mod server;
#[cfg(feature = "client")]
mod waiters;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_exact_session::frame::Oversized;
use mcp_exact_session::{
    Outcome, Progress, ReceiveError, RequestKey, RequestTimeout, Side, StreamEnd, StreamId, Time,
    Transmit,
};

#[cfg(feature = "client")]
pub(crate) use client::{
    ClientConnection, ClientDispatch, DisconnectGuard, EventFilter, repeat_lost,
};
#[cfg(feature = "client")]
pub use client::{ClientHandle, ClientHandler, ConnectError};
pub(crate) use message::is_request;
#[cfg(feature = "http-client")]
pub(crate) use message::request_method;
#[cfg(feature = "http-server")]
pub(crate) use message::{is_batch, is_for_request_in_flight, request_id};
pub(crate) use readers::Readers;
pub use request::{PendingRequest, ProgressCallback};
pub(crate) use server::{BLOCK_IDS, ServerDispatch, ServerEndpoint, resume_server};
pub use server::{RequestContext, ServerHandle, ServerHandler};

use crate::clock;
use crate::metrics::{ConnectionUsage, MeasuredEndpoint, MeteredConnection};
use crate::transport::Received;
pub(crate) use request::Repeatable;
use request::Slot;

/// Interface that both endpoints of the session crate share.
pub(crate) trait Endpoint: Send + Sized + 'static {
    /// Event for the application.
    type Event: Send;
    /// Information about a frame that accompanies its bytes.
    type Context: Clone + Send;
    /// State of the connection or of its streams that the role adds.
    type Role: Send;
    /// Side of the endpoint.
    const SIDE: Side;

    /// Handles a received frame.
    fn receive(
        &mut self,
        on: StreamId,
        frame: &[u8],
        context: Self::Context,
        now: Time,
    ) -> Result<(), ReceiveError>;
    /// Handles a message above the size limit.
    fn receive_oversized(
        &mut self,
        on: StreamId,
        message: &Oversized<'_>,
        context: Self::Context,
        now: Time,
    ) -> Result<(), ReceiveError>;
    /// Returns true once the endpoint accepts no input.
    fn is_closed(&self) -> bool;
    /// Records that a stream has ended.
    fn closed(&mut self, stream: StreamId, how: StreamEnd, now: Time);
    /// Returns true if the endpoint accepts frames.
    fn wants_input(&self) -> bool;
    /// Removes and returns the next event.
    fn poll_event(&mut self) -> Option<Self::Event>;
    /// Removes and returns the next output; the bytes of a frame are appended to `out`.
    fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit>;
    /// Returns the time at which `handle_timeout` must be called.
    fn poll_timeout(&self) -> Option<Time>;
    /// Handles expired timeouts.
    fn handle_timeout(&mut self, now: Time);
    /// Ends the session locally.
    fn shutdown(&mut self, now: Time);
    /// Returns the resource usage for the metrics of connections.
    fn connection_usage(&self) -> ConnectionUsage;
    /// Counts an event in the metrics.
    fn count(event: &Self::Event, metrics: &MeteredConnection);
    /// Sends a ping whose answer is not awaited. Returns false if no peer is connected, or the revision has no pings.
    fn ping(&mut self, timeout: Duration, now: Time) -> bool;
    /// Separates the outcomes and progress of this endpoint's requests from other events.
    fn sort(event: Self::Event) -> SortedEvent<Self::Event>;
    /// Returns true if the session of the endpoint was lost, and a new session may follow.
    fn has_lost_session(_: &Self::Role) -> bool {
        false
    }
    /// Applies an event to the state of the role.
    fn update_role(role: &mut Self::Role, event: &Self::Event);
    /// Wakes the connections that have output; called after every call of the endpoint.
    fn settle(&mut self, _: &mut Self::Role, _: Time) {}
}

/// Creates the timeout of a request without progress.
fn idle_timeout(timeout: Duration) -> RequestTimeout {
    RequestTimeout {
        idle: timeout,
        reset_on_progress: false,
        total: timeout,
    }
}

/// Event, or its effect on a request of this endpoint.
pub(crate) enum SortedEvent<E> {
    /// A request of this endpoint has ended.
    Done(RequestKey, Outcome),
    /// Progress of a request of this endpoint was received.
    Progress(RequestKey, Progress),
    /// Any other event.
    Other(E),
}

/// Notification of the driver of an endpoint about changes.
pub(crate) trait Signal<E: Endpoint>: Send + Sync {
    /// Notifies the driver of possible output. `deadline` is the time of the endpoint's next timer.
    fn changed(&self, shared: &Arc<Shared<E>>, deadline: Option<Time>);
}

/// Receiver of the events of an endpoint that do not belong to its own requests.
pub(crate) trait Dispatch<E: Endpoint>: Send + Sync {
    /// Handles an event; `epoch` is the number of the session to which it belongs.
    fn dispatch(&self, shared: &Arc<Shared<E>>, epoch: u64, event: E::Event);
}

/// Origin of the messages of an endpoint.
pub(crate) enum Origin {
    /// Connection over a transport of this name, which has an entry in the metrics.
    Transport(&'static str),
    /// Session of an HTTP server, with its id, or requests without a session.
    #[cfg_attr(not(feature = "http-server"), allow(dead_code))]
    HttpSession(Option<Arc<str>>),
}

/// Endpoint that several tasks share.
pub(crate) struct Shared<E: Endpoint> {
    state: Mutex<State<E>>,
    /// Receiver of the events.
    handler: Arc<dyn Dispatch<E>>,
    /// Notification of the driver.
    signal: Arc<dyn Signal<E>>,
    /// Id of the session, on an HTTP server with session ids.
    session_id: Option<Arc<str>>,
}

/// State of a shared endpoint, behind its lock.
pub(crate) struct State<E: Endpoint> {
    pub(crate) endpoint: E,
    /// State of the connection or of its streams that the role adds.
    pub(crate) role: E::Role,
    /// Requests of this endpoint that wait for their outcomes.
    slots: HashMap<RequestKey, Arc<Slot>>,
    /// Requests of a lost session that wait for the next session.
    lost: Vec<Arc<Slot>>,
    /// Number of the session.
    epoch: u64,
    /// True while a thread passes events to the handler.
    is_dispatching: bool,
    /// Entry in the metrics of connections; `None` for sessions of an HTTP server, which has separate metrics.
    pub(crate) metrics: Option<MeteredConnection>,
}

impl<E: Endpoint> State<E> {
    /// Removes and returns the next output of the endpoint, and counts its bytes.
    pub(crate) fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = out.len();
        let transmit = self.endpoint.poll_transmit(out)?;
        if let Some(metrics) = &self.metrics {
            metrics.count_sent(out.len() - before);
        }
        Some(transmit)
    }

    /// Returns the number of the endpoint's session among all sessions of its handle.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Replaces an endpoint that has ended.
    pub(crate) fn replace(&mut self, endpoint: E) {
        self.endpoint = endpoint;
        self.epoch += 1;
    }

    /// Wakes the connections that have output.
    fn settle(&mut self, now: Time) {
        self.endpoint.settle(&mut self.role, now);
    }

    /// Returns the next event for the handler. Outcomes of awaited requests are delivered to their waiters immediately.
    fn next(&mut self) -> Option<OutsideWork<E::Event>> {
        loop {
            let event = self.endpoint.poll_event()?;
            if let Some(metrics) = &self.metrics {
                E::count(&event, metrics);
            }
            match E::sort(event) {
                SortedEvent::Done(key, outcome) => {
                    let Some(slot) = self.slots.remove(&key) else {
                        continue;
                    };
                    let is_lost = outcome == Outcome::Lost && E::has_lost_session(&self.role);
                    if is_lost && slot.is_repeatable() {
                        self.lost.push(slot)
                    } else {
                        slot.complete(outcome)
                    }
                }
                SortedEvent::Progress(key, progress) => {
                    if let Some(slot) = self.slots.get(&key) {
                        return Some(OutsideWork::Progress(Arc::clone(slot), progress));
                    }
                }
                SortedEvent::Other(event) => {
                    E::update_role(&mut self.role, &event);
                    return Some(OutsideWork::Event(event));
                }
            }
        }
    }

    /// Registers a request whose outcome is awaited.
    fn expect(&mut self, key: RequestKey, progress: Option<ProgressCallback>) -> Arc<Slot> {
        let slot = Arc::new(Slot::new(progress));
        slot.set_key_and_epoch(key, self.epoch);
        self.slots.insert(key, Arc::clone(&slot));
        slot
    }

    /// Ends the requests that wait for a new session, because no new session follows.
    pub(crate) fn give_up_lost(&mut self) {
        for slot in self.lost.drain(..) {
            slot.complete(Outcome::Lost);
        }
    }

    /// Sends the requests that wait for a new session again.
    pub(crate) fn repeat_lost(
        &mut self,
        mut send: impl FnMut(&mut E, Repeatable) -> Option<RequestKey>,
    ) {
        for slot in std::mem::take(&mut self.lost) {
            let repeatable = slot.take_repeatable();
            match repeatable.and_then(|request| send(&mut self.endpoint, request)) {
                Some(key) => {
                    slot.set_key_and_epoch(key, self.epoch);
                    self.slots.insert(key, slot);
                }
                None => slot.complete(Outcome::Lost),
            }
        }
    }
}

impl<E: Endpoint> Shared<E> {
    pub(crate) fn new(
        endpoint: E,
        role: E::Role,
        handler: Arc<dyn Dispatch<E>>,
        signal: Arc<dyn Signal<E>>,
        origin: Origin,
    ) -> Arc<Self> {
        let (transport, session_id) = match origin {
            Origin::Transport(name) => (Some(name), None),
            Origin::HttpSession(id) => (None, id),
        };
        let state = State {
            endpoint,
            role,
            slots: HashMap::new(),
            lost: Vec::new(),
            epoch: 0,
            is_dispatching: false,
            metrics: None,
        };
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            handler,
            signal,
            session_id,
        });
        if let Some(transport) = transport {
            let endpoint: Weak<Self> = Arc::downgrade(&shared);
            let metrics = MeteredConnection::new(E::SIDE, transport, endpoint);
            shared.lock().metrics = Some(metrics);
        }
        shared
    }

    pub(crate) fn session_id(&self) -> Option<&Arc<str>> {
        self.session_id.as_ref()
    }

    /// Locks the state, even if a thread has panicked while it held the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with the endpoint, then the handler with the events of this call, then notifies the driver.
    pub(crate) fn call<R>(self: &Arc<Self>, f: impl FnOnce(&mut State<E>, Time) -> R) -> R {
        let mut state = self.lock();
        let now = clock::now();
        let result = f(&mut state, now);
        state.settle(now);
        let state = self.dispatch(state);
        let deadline = state.endpoint.poll_timeout();
        drop(state);
        self.signal.changed(self, deadline);
        result
    }

    /// Notifies the driver of possible output.
    pub(crate) fn wake(self: &Arc<Self>) {
        let deadline = self.lock().endpoint.poll_timeout();
        self.signal.changed(self, deadline);
    }

    /// Passes a message to the endpoint, and its events to the handler.
    ///
    /// The driver calls this method and is therefore not notified of output. The second value is true if the endpoint
    /// accepts another message.
    pub(crate) fn receive(
        self: &Arc<Self>,
        on: StreamId,
        received: Received<'_>,
        context: E::Context,
    ) -> (Result<(), ReceiveError>, bool) {
        self.receive_by(|state, now| {
            let endpoint = &mut state.endpoint;
            let (result, bytes) = match received {
                Received::Frame(frame) => (endpoint.receive(on, frame, context, now), frame.len()),
                Received::Oversized(message) => {
                    let bytes = message.head.len() + message.tail.len();
                    let result = endpoint.receive_oversized(on, &message, context, now);
                    (result, bytes)
                }
            };
            if let (Some(metrics), true) = (&state.metrics, result != Err(ReceiveError::Full)) {
                metrics.count_received(bytes);
            }
            result
        })
    }

    /// Calls a function that passes input to the endpoint, and then passes the events to the handler like
    /// [`receive`](Self::receive).
    pub(crate) fn receive_by(
        self: &Arc<Self>,
        receive: impl FnOnce(&mut State<E>, Time) -> Result<(), ReceiveError>,
    ) -> (Result<(), ReceiveError>, bool) {
        let mut state = self.lock();
        let now = clock::now();
        let result = receive(&mut state, now);
        state.settle(now);
        let state = self.dispatch(state);
        (result, state.endpoint.wants_input())
    }

    /// Passes events to the handler.
    ///
    /// Only one thread does so at a time, so that the events stay in order.
    fn dispatch<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State<E>>,
    ) -> MutexGuard<'a, State<E>> {
        loop {
            if state.is_dispatching {
                return state;
            }
            let Some(next) = state.next() else {
                return state;
            };
            state.is_dispatching = true;
            let epoch = state.epoch;
            drop(state);
            let turn = HandlerTurn(self);
            match next {
                OutsideWork::Event(event) => self.handler.dispatch(self, epoch, event),
                OutsideWork::Progress(slot, progress) => slot.progress(&progress),
            }
            state = turn.end();
        }
    }
}

impl<E: Endpoint> MeasuredEndpoint for Shared<E> {
    fn connection_usage(&self) -> Option<ConnectionUsage> {
        let state = self.lock();
        let is_open = !state.endpoint.is_closed();
        is_open.then(|| state.endpoint.connection_usage())
    }
}

/// Work that must be done without the lock.
enum OutsideWork<E> {
    /// The handler must handle an event.
    Event(E),
    /// The progress callback of a request must be called.
    Progress(Arc<Slot>, Progress),
}

/// Exclusive right to pass events to the handler, which is released on drop, even after a panic.
struct HandlerTurn<'a, E: Endpoint>(&'a Shared<E>);

impl<'a, E: Endpoint> HandlerTurn<'a, E> {
    /// Releases the right and returns the locked state.
    fn end(self) -> MutexGuard<'a, State<E>> {
        let shared = self.0;
        std::mem::forget(self);
        let mut state = shared.lock();
        state.is_dispatching = false;
        state
    }
}

impl<E: Endpoint> Drop for HandlerTurn<'_, E> {
    fn drop(&mut self) {
        self.0.lock().is_dispatching = false;
    }
}
