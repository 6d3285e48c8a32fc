//! Endpoints shared between the tasks that serve them. This module alone calls the session API.
//!
//! A call locks the endpoint, then passes the resulting events to the handler, one at a time and in order, and then
//! notifies the driver of possible output. The module performs no IO.

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
mod observation;
mod readers;
mod request;
mod server;
#[cfg(feature = "tokio")]
mod tasks;
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
#[cfg(feature = "http-server")]
pub(crate) use message::{is_batch, is_for_request_in_flight, request_id};
pub(crate) use readers::Readers;
pub use request::{PendingRequest, ProgressCallback};
#[cfg(feature = "http-server")]
pub(crate) use server::address_of_client;
pub(crate) use server::{BLOCK_IDS, ServerDispatch, ServerEndpoint, resume_server};
pub use server::{ConnectionHandler, RequestContext, ServerHandle, ServerHandler};
#[cfg(feature = "tokio")]
pub use tasks::{RequestTask, RequestTasks};

use crate::clock;
use crate::metrics::{ConnectionUsage, MeasuredEndpoint, MeteredConnection};
#[cfg(feature = "operations")]
use crate::operations::{Operations, ReceivedOperations};
use crate::transport::Received;
use observation::Observed;
#[cfg(feature = "operations")]
use observation::begin_operations;
pub(crate) use request::Repeatable;
use request::Slot;

/// Common interface of the client endpoint and the server endpoint of the session crate.
pub(crate) trait Endpoint: Send + Sized + 'static {
    /// Event for the application.
    type Event: Send;
    /// Information about a received frame that is not part of its bytes, such as the HTTP request.
    type Context: Clone + Send;
    /// State that the transport stores with the endpoint: `ClientConnection` for a client, `Readers` for a server.
    type Role: Send;
    /// Role of the endpoint in the connection: client or server.
    const SIDE: Side;

    /// Handles a received frame.
    fn receive(
        &mut self,
        on: StreamId,
        frame: &[u8],
        context: Self::Context,
        now: Time,
    ) -> Result<(), ReceiveError>;
    /// Handles a received message above the size limit, of which only the beginning and the end are known.
    fn receive_oversized(
        &mut self,
        on: StreamId,
        message: &Oversized<'_>,
        context: Self::Context,
        now: Time,
    ) -> Result<(), ReceiveError>;
    /// Returns true once the session of the endpoint has ended and the endpoint accepts no further input.
    fn is_closed(&self) -> bool;
    /// Records that a stream has ended; `how` states whether it ended normally or its connection was lost.
    fn closed(&mut self, stream: StreamId, how: StreamEnd, now: Time);
    /// Returns true if the endpoint currently accepts frames; false while its queues are full.
    fn wants_input(&self) -> bool;
    /// Removes and returns the next event.
    fn poll_event(&mut self) -> Option<Self::Event>;
    /// Removes and returns the next output; appends the bytes of a message to `out`.
    fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit>;
    /// Returns the time at which `handle_timeout` must be called.
    fn poll_timeout(&self) -> Option<Time>;
    /// Handles expired timeouts.
    fn handle_timeout(&mut self, now: Time);
    /// Ends the session locally.
    fn shutdown(&mut self, now: Time);
    /// Returns the resource usage for the metrics of connections.
    fn connection_usage(&self) -> ConnectionUsage;
    /// Adds an event to the counters of `metrics`.
    fn count(event: &Self::Event, metrics: &MeteredConnection);
    /// Sets the observer of the messages that the endpoint sends.
    #[cfg(feature = "operations")]
    fn set_observer(&mut self, observer: Arc<Operations>);
    /// Returns the negotiated revision.
    #[cfg(feature = "operations")]
    fn revision(&self) -> Option<&'static str>;
    /// Returns true if a received request with this id waits for its answer.
    #[cfg(feature = "operations")]
    fn is_in_flight(&self, id: &mcp_exact_wire::RequestId) -> bool;
    /// Returns the information of the transport in the context of a frame.
    #[cfg(feature = "operations")]
    fn request_context(_: &Self::Context) -> Option<&RequestContext> {
        None
    }
    /// Sends a ping whose answer is not awaited. Returns false if no peer is connected, or the revision has no pings.
    fn ping(&mut self, timeout: Duration, now: Time) -> bool;
    /// Classifies an event: outcome or progress of a request that this endpoint has sent, or any other event.
    fn sort(event: Self::Event) -> SortedEvent<Self::Event>;
    /// Returns true if the server has ended the session of a client, and a new session may follow.
    fn has_lost_session(_: &Self::Role) -> bool {
        false
    }
    /// Returns true if the event says that the server has ended the session of a client.
    fn ends_session(_: &Self::Event) -> bool {
        false
    }
    /// Updates `role` after an event.
    fn update_role(role: &mut Self::Role, event: &Self::Event);
    /// Wakes the connections whose streams have output; called after every call of the endpoint.
    fn settle(&mut self, _: &mut Self::Role, _: Time) {}
}

/// Creates a request timeout that progress notifications do not extend.
fn idle_timeout(timeout: Duration) -> RequestTimeout {
    RequestTimeout {
        idle: timeout,
        reset_on_progress: false,
        total: timeout,
    }
}

/// Event, classified as the outcome or the progress of a request that this endpoint has sent, or as any other event.
pub(crate) enum SortedEvent<E> {
    /// A request of this endpoint has ended.
    Done(RequestKey, Outcome),
    /// Progress of a request of this endpoint was received.
    Progress(RequestKey, Progress),
    /// The remote peer has not processed a request of this endpoint, which may be sent again in the next session.
    #[cfg_attr(not(feature = "client"), allow(dead_code))]
    NotProcessed(RequestKey, Repeatable),
    /// Any other event.
    Other(E),
}

/// Notification of the driver of an endpoint about possible output and the next deadline.
pub(crate) trait Signal<E: Endpoint>: Send + Sync {
    /// Notifies the driver of possible output. `deadline` is the time of the endpoint's next timer.
    fn changed(&self, shared: &Arc<Shared<E>>, deadline: Option<Time>);
}

/// Receiver of the events of an endpoint, except outcomes and progress of requests that the endpoint has sent.
pub(crate) trait Dispatch<E: Endpoint>: Send + Sync {
    /// Handles an event; `epoch` is the number of the session to which the event belongs.
    fn dispatch(&self, shared: &Arc<Shared<E>>, epoch: u64, event: E::Event);
}

/// Transport or HTTP session to which an endpoint belongs.
pub(crate) enum Origin {
    /// Connection over a transport of this name, which has an entry in the metrics.
    Transport(&'static str),
    /// Connection of a client over HTTP to a server with this host and port.
    #[cfg_attr(
        not(all(feature = "http-client", feature = "operations")),
        allow(dead_code)
    )]
    HttpServer(String, u16),
    /// Session of an HTTP server with its id, or a request without a session (`None`).
    #[cfg_attr(not(feature = "http-server"), allow(dead_code))]
    HttpSession(Option<Arc<str>>),
}

/// Endpoint that several tasks share, with its lock, its event receiver and the notification of its driver.
pub(crate) struct Shared<E: Endpoint> {
    /// Endpoint and transport state, behind the lock.
    state: Mutex<State<E>>,
    /// Receiver of the events of the endpoint.
    handler: Arc<dyn Dispatch<E>>,
    /// Notification of the driver about possible output.
    signal: Arc<dyn Signal<E>>,
    /// Id of the session, on an HTTP server with session ids.
    session_id: Option<Arc<str>>,
    /// Operations of the connection; `None` for a request without a session that nobody observes.
    #[cfg(feature = "operations")]
    operations: Option<Arc<Operations>>,
}

/// State of a shared endpoint, behind its lock.
pub(crate) struct State<E: Endpoint> {
    /// Endpoint of the session crate.
    pub(crate) endpoint: E,
    /// State that the transport stores with the endpoint.
    pub(crate) role: E::Role,
    /// Requests of this endpoint that wait for their outcomes.
    slots: HashMap<RequestKey, Arc<Slot>>,
    /// Requests of a lost session that wait for the next session, each with the time since which it waits.
    lost: Vec<(Arc<Slot>, Time)>,
    /// Number of the session, from 0 on; increases when a new session replaces a lost session.
    epoch: u64,
    /// True while a thread passes events to the handler.
    is_dispatching: bool,
    /// Entry in the metrics of connections; `None` on an HTTP server, which has separate metrics.
    pub(crate) metrics: Option<MeteredConnection>,
    /// Operations of the connection.
    #[cfg(feature = "operations")]
    operations: Option<Arc<Operations>>,
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

    /// Returns the number of the current session, which increases when a new session replaces a lost session.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Replaces an endpoint that has ended, and increments the session number.
    pub(crate) fn replace(&mut self, endpoint: E) {
        self.endpoint = endpoint;
        #[cfg(feature = "operations")]
        if let Some(operations) = &self.operations {
            self.endpoint.set_observer(Arc::clone(operations));
        }
        self.epoch += 1;
    }

    /// Ends the operations of received requests that the endpoint has refused without naming them. What is refused in a batch is
    /// answered with the batch.
    #[cfg(feature = "operations")]
    fn end_refused(&self, requests: &[mcp_exact_wire::RequestId]) {
        let mut ids = requests.iter();
        if let Some(operations) = &self.operations
            && !ids.any(|id| self.endpoint.is_in_flight(id))
        {
            operations.end_refused(requests);
        }
    }

    /// Wakes the connections whose streams have output.
    fn settle(&mut self, now: Time) {
        self.endpoint.settle(&mut self.role, now);
    }

    /// Returns the next event or progress that must be handled without the lock; delivers the outcomes of requests to
    /// their futures.
    fn next(&mut self) -> Option<OutsideWork<E::Event>> {
        loop {
            let event = self.endpoint.poll_event()?;
            if let Some(metrics) = &self.metrics {
                E::count(&event, metrics);
            }
            match E::sort(event) {
                SortedEvent::Done(key, outcome) => {
                    #[cfg(feature = "operations")]
                    if let Some(operations) = &self.operations {
                        operations.handle_outcome(key, &outcome);
                    }
                    let Some(slot) = self.slots.remove(&key) else {
                        continue;
                    };
                    let is_lost = outcome == Outcome::Lost && slot.has_lost_session();
                    if is_lost && slot.is_repeatable() {
                        self.lost.push((slot, clock::now()))
                    } else {
                        slot.complete(outcome)
                    }
                }
                SortedEvent::Progress(key, progress) => {
                    if let Some(slot) = self.slots.get(&key) {
                        return Some(OutsideWork::Progress(Arc::clone(slot), progress));
                    }
                }
                SortedEvent::NotProcessed(key, request) => {
                    if let Some(slot) = self.slots.get(&key)
                        && slot.has_lost_session()
                    {
                        // The server has not executed it, unless it is executed in the next session.
                        slot.set_unsent(true);
                        slot.set_repeatable(request);
                    }
                }
                SortedEvent::Other(event) => {
                    #[cfg(feature = "operations")]
                    if let (Some(operations), true) = (&self.operations, self.endpoint.is_closed())
                    {
                        operations.end_session();
                    }
                    E::update_role(&mut self.role, &event);
                    if E::ends_session(&event) && E::has_lost_session(&self.role) {
                        self.slots.values().for_each(|slot| slot.lose_session());
                    }
                    return Some(OutsideWork::Event(event));
                }
            }
        }
    }

    /// Registers a request that was sent, and returns the slot that will receive its outcome.
    fn expect(&mut self, key: RequestKey, progress: Option<ProgressCallback>) -> Arc<Slot> {
        let slot = Arc::new(Slot::new(progress));
        slot.set_key_and_epoch(key, self.epoch);
        self.slots.insert(key, Arc::clone(&slot));
        slot
    }

    /// Returns the number of requests that wait for a new session.
    #[cfg(feature = "client")]
    fn waiting_count(&self) -> usize {
        self.lost.len()
    }

    /// Records for a request that has failed whether it certainly did not reach the server.
    #[cfg(feature = "http-client")]
    pub(crate) fn set_unsent(&self, key: RequestKey, is_unsent: bool) {
        if let Some(slot) = self.slots.get(&key) {
            slot.set_unsent(is_unsent);
        }
    }

    /// Keeps a request until a new session is negotiated.
    #[cfg(feature = "client")]
    fn keep_lost(&mut self, slot: Arc<Slot>) {
        self.lost.push((slot, clock::now()));
    }

    /// Cancels a request that waits for a new session.
    #[cfg(feature = "client")]
    fn cancel_lost(&mut self, cancelled: &Arc<Slot>) {
        let is_cancelled = |(slot, _): &(Arc<Slot>, Time)| Arc::ptr_eq(slot, cancelled);
        if let Some(at) = self.lost.iter().position(is_cancelled) {
            self.lost.remove(at).0.complete(Outcome::Cancelled);
        }
    }

    /// Completes the requests that wait for a new session with [`Outcome::Lost`], because no new session follows.
    pub(crate) fn give_up_lost(&mut self) {
        for (slot, _) in self.lost.drain(..) {
            slot.complete(Outcome::Lost);
        }
    }

    /// Completes the requests that wait for an answer with [`Outcome::Lost`], because nobody receives answers any more.
    #[cfg(feature = "client")]
    pub(crate) fn lose_pending(&mut self) {
        for (key, slot) in self.slots.drain() {
            #[cfg(feature = "operations")]
            if let Some(operations) = &self.operations {
                operations.handle_outcome(key, &Outcome::Lost);
            }
            #[cfg(not(feature = "operations"))]
            let _ = key;
            slot.complete(Outcome::Lost);
        }
    }

    /// Sends the requests that wait for a new session again.
    pub(crate) fn repeat_lost(
        &mut self,
        mut send: impl FnMut(&mut E, Repeatable) -> Option<RequestKey>,
    ) {
        for (slot, _) in std::mem::take(&mut self.lost) {
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
        #[cfg_attr(not(feature = "operations"), allow(unused_mut))] mut endpoint: E,
        role: E::Role,
        handler: Arc<dyn Dispatch<E>>,
        signal: Arc<dyn Signal<E>>,
        origin: Origin,
    ) -> Arc<Self> {
        #[cfg(feature = "operations")]
        let operations = begin_operations(&mut endpoint, &origin);
        let (transport, session_id) = match origin {
            Origin::Transport(name) => (Some(name), None),
            Origin::HttpServer(..) => (Some("http"), None),
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
            #[cfg(feature = "operations")]
            operations: operations.clone(),
        };
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            handler,
            signal,
            session_id,
            #[cfg(feature = "operations")]
            operations,
        });
        if let Some(transport) = transport {
            let endpoint: Weak<Self> = Arc::downgrade(&shared);
            let metrics = MeteredConnection::new(E::SIDE, transport, endpoint);
            shared.lock().metrics = Some(metrics);
        }
        shared
    }

    /// Returns the id of the HTTP session, if any.
    pub(crate) fn session_id(&self) -> Option<&Arc<str>> {
        self.session_id.as_ref()
    }

    /// Locks the state, even if a thread has panicked while it held the lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `f` with the locked state and the current time, passes the resulting events to the handler, and notifies
    /// the driver.
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

    /// Passes a message to the endpoint, and the resulting events to the handler.
    ///
    /// The driver calls this method and is therefore not notified of output. The second value is true if the endpoint
    /// accepts another message.
    pub(crate) fn receive(
        self: &Arc<Self>,
        on: StreamId,
        received: Received<'_>,
        context: E::Context,
    ) -> (Result<(), ReceiveError>, bool) {
        let observed = match received {
            Received::Frame(frame) => self.observe(frame, &context),
            Received::Oversized(_) => Observed::default(),
        };
        self.receive_by(observed, |state, now| {
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

    /// Calls `receive`, which passes input to the endpoint, and passes the resulting events to the handler. `observed` are
    /// the operations of the input.
    ///
    /// The driver is not notified of output. The second value is true if the endpoint accepts another message.
    pub(crate) fn receive_by(
        self: &Arc<Self>,
        observed: Observed,
        receive: impl FnOnce(&mut State<E>, Time) -> Result<(), ReceiveError>,
    ) -> (Result<(), ReceiveError>, bool) {
        #[cfg(feature = "operations")]
        let mut observed = observed;
        #[cfg(feature = "operations")]
        let requests = observed.as_mut().map(ReceivedOperations::take_requests);
        let receive = || {
            let mut state = self.lock();
            let now = clock::now();
            let result = receive(&mut state, now);
            #[cfg(feature = "operations")]
            state.end_refused(&requests.unwrap_or_default());
            state.settle(now);
            let state = self.dispatch(state);
            (result, state.endpoint.wants_input())
        };
        #[cfg(feature = "operations")]
        if let Some(observed) = observed {
            return observed.run(receive);
        }
        #[cfg(not(feature = "operations"))]
        let Observed {} = observed;
        receive()
    }

    /// Passes the queued events to the handler, unless another thread already does.
    ///
    /// Only one thread at a time passes events, so that the handler receives the events in order.
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

/// Call of application code, for which the lock of the endpoint must be released.
enum OutsideWork<E> {
    /// An event for the handler.
    Event(E),
    /// Progress of a request, for its progress callback.
    Progress(Arc<Slot>, Progress),
}

/// Exclusive right of a thread to pass events to the handler; released on drop, even after a panic.
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
