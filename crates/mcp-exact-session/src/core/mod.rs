//! State and logic that client and server share: streams, requests in both directions, batches, events, rate limits, and
//! dispatch.
//!
//! [`Core`] contains the state, and [`Endpoint`] handles messages. The roles in `client/` and `server/` add their
//! lifecycle and the handling of each message; this module does not depend on methods or revisions.

pub(crate) mod batches;
mod dispatch;
pub(crate) mod events;
pub(crate) mod in_flight;
mod ordered;
pub(crate) mod pending;
pub(crate) mod rate;
pub(crate) mod streams;

use std::fmt;
use std::sync::Arc;

pub(crate) use batches::Batches;
pub(crate) use dispatch::{Arrival, Endpoint};
pub(crate) use events::EventQueue;
pub(crate) use in_flight::{InFlightRequest, InFlightRequests};
pub(crate) use ordered::OrderedMap;
pub(crate) use pending::{NewRequest, PendingRequest, PendingRequests, ProgressTarget};
use rate::Rate;
pub(crate) use streams::{Frame, QueueError, Streams};

use mcp_exact_convert::{Repair, Tolerance};

use crate::Time;
use crate::elicitation::Elicitations;
use crate::error::{PeerError, ReceiveError, Violation};
use crate::heap_size::HeapSize;
use crate::limits::{Limit, Limits};
use crate::message_observer::MessageObserver;
use crate::outcome::{Outcome, SendOutcome};
use crate::stream::{Binding, RequestKey, StreamId, Transmit};
use crate::tolerance::Repairs;
use crate::usage::Usage;

/// Behaviour that a role (client or server) adds to the core.
pub(crate) trait Role: fmt::Debug {
    /// True if the role answers POSTs of the remote peer, as a server does.
    const ANSWERS_POSTS: bool;
    /// Name of the remote peer in errors.
    const PEER: &str;
    /// Event for the local application.
    type Event: HeapSize + From<Violation> + From<Repairs> + fmt::Debug;
    /// Purpose of a request of the local peer.
    type Purpose: fmt::Debug;
    /// State that the role stores with a request of the remote peer.
    type RequestState: fmt::Debug;
}

/// State of an endpoint that does not depend on its role.
#[derive(Debug)]
pub(crate) struct Core<R: Role> {
    /// Kind of transport that carries the messages.
    pub(crate) binding: Binding,
    /// Limits, which all endpoints of a server may share.
    pub(crate) limits: Arc<Limits>,
    /// Policy for what the remote peer sends.
    pub(crate) tolerance: Tolerance,
    /// Latest timestamp that the application has supplied.
    pub(crate) now: Time,
    /// Number of the last assigned request key.
    last_key: u64,
    /// Streams with their queued output.
    pub(crate) streams: Streams,
    /// Requests of the local peer.
    pub(crate) pending: PendingRequests<R::Purpose>,
    /// Requests of the remote peer.
    pub(crate) in_flight: InFlightRequests<R::RequestState>,
    /// Batches with unanswered requests.
    pub(crate) batches: Batches,
    /// Events for the application.
    pub(crate) events: EventQueue<R::Event>,
    /// URL elicitations that are not completed.
    pub(crate) elicitations: Elicitations,
    /// Rate of the received requests.
    request_rate: Rate,
    /// Rate of the received notifications.
    notification_rate: Rate,
    /// True if the reserve for refusals is exhausted: the peer does not read its input.
    is_reserve_exhausted: bool,
    /// Beginning of the first received text that was no message, for errors about a missing answer.
    pub(crate) first_malformed: Option<String>,
    /// Observer of the messages that the endpoint sends.
    observer: Option<Arc<dyn MessageObserver>>,
}

impl<R: Role> Core<R> {
    /// Creates a core whose wire ids start after `last_id`; `elicitation_bytes` limits the ids of elicitations.
    pub(crate) fn new(
        binding: Binding,
        limits: Arc<Limits>,
        last_id: u64,
        elicitation_bytes: usize,
        now: Time,
    ) -> Self {
        Self {
            binding,
            now,
            last_key: 0,
            streams: match binding {
                Binding::Duplex => Streams::with_duplex_stream(),
                Binding::StreamableHttp | Binding::HttpSse => Streams::default(),
            },
            pending: PendingRequests::with_last_id(last_id),
            in_flight: InFlightRequests::new(limits.remembered_ids),
            batches: Batches::default(),
            events: EventQueue::new(),
            elicitations: Elicitations::new(limits.remembered_ids, elicitation_bytes),
            request_rate: Rate::default(),
            notification_rate: Rate::default(),
            is_reserve_exhausted: false,
            first_malformed: None,
            observer: None,
            tolerance: Tolerance::default(),
            limits,
        }
    }

    /// Resets the session, except the streams for which `keeps` returns true; keys, wire ids and stream numbers continue, because
    /// they must not be reused.
    pub(crate) fn reset_session(&mut self, keeps: impl Fn(StreamId) -> bool) {
        self.streams.clear_except(keeps);
        if self.binding == Binding::Duplex {
            self.streams
                .insert_stream(StreamId::DUPLEX, crate::stream::StreamKind::Duplex);
        }
        self.elicitations.restore(Some(Vec::new()));
        self.is_reserve_exhausted = false;
    }

    /// Advances the clock, which never decreases.
    pub(crate) fn advance_clock(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Returns a new request key.
    pub(crate) fn new_key(&mut self) -> RequestKey {
        self.last_key += 1;
        RequestKey(self.last_key)
    }

    /// Queues an event for the application.
    pub(crate) fn push_event(&mut self, event: R::Event) {
        self.events.push(event);
    }

    /// Queues a violation by the remote peer as an event for the application.
    pub(crate) fn push_violation(&mut self, violation: Violation) {
        self.events.push(violation.into());
    }

    /// Returns the local error for an answer of the remote peer that exceeds a limit, with the size of its message.
    pub(crate) fn over_limit(&self, limit: Limit, size: Option<u64>) -> PeerError {
        let peer = R::PEER;
        let text = match (limit, size) {
            (Limit::MessageBytes, size) => {
                let most = self.limits.message_bytes;
                let size =
                    size.map_or_else(|| "more".to_owned(), |size| format!("{size} bytes, more"));
                format!(
                    "the answer of the {peer} has {size} than the {most} bytes that this side allows a message"
                )
            }
            (Limit::MessageBudget, size) => {
                let most = self.limits.message_budget.bytes();
                let size = size.map_or_else(String::new, |size| format!(" of {size} bytes"));
                format!(
                    "there is no room for the answer{size} of the {peer}: this side allows {most} bytes of messages that arrive \
                     at the same time"
                )
            }
            (limit, _) => {
                format!("the answer of the {peer} exceeds the limit `{limit}` of this side")
            }
        };
        PeerError::local_limit(limit, text)
    }

    /// Keeps the beginning of the first received text that was no message.
    pub(crate) fn note_malformed(&mut self, frame: &[u8]) {
        if self.first_malformed.is_none() {
            let text = String::from_utf8_lossy(&frame[..frame.len().min(1 << 10)]);
            self.first_malformed = Some(crate::http::shorten(&text));
        }
    }

    /// Queues the repairs of a message as an event for the application.
    pub(crate) fn push_repairs(&mut self, method: &str, repairs: Vec<Repair>) {
        if !repairs.is_empty() {
            let method = method.to_owned();
            self.events.push(Repairs { method, repairs }.into());
        }
    }

    /// Sets the observer of the messages that the endpoint sends; the observer receives the queued messages at once.
    pub(crate) fn set_observer(&mut self, observer: Arc<dyn MessageObserver>) {
        self.streams.for_each_frame(|frame| {
            observer.handle_outgoing(&mut frame.bytes, frame.local_request);
        });
        self.observer = Some(observer);
    }

    /// Passes a frame to the observer before it is queued.
    pub(crate) fn observe(&self, frame: &mut Frame) {
        if let Some(observer) = &self.observer {
            observer.handle_outgoing(&mut frame.bytes, frame.local_request);
        }
    }

    /// Reports the end of a request to the observer.
    pub(crate) fn observe_end(&self, request: RequestKey, outcome: &Outcome) {
        if let Some(observer) = &self.observer {
            observer.handle_end(request, outcome);
        }
    }

    /// Queues a frame; a frame for a closed stream is suppressed.
    pub(crate) fn queue_frame(&mut self, mut frame: Frame) -> SendOutcome {
        self.observe(&mut frame);
        match self.streams.push(frame, &self.limits) {
            Ok(()) => SendOutcome::Queued,
            Err(QueueError::Closed) => SendOutcome::Suppressed,
            Err(QueueError::ReserveExhausted) => {
                self.is_reserve_exhausted = true;
                SendOutcome::Dropped
            }
        }
    }

    /// Checks that the endpoint accepts a frame on this stream.
    pub(crate) fn check_input(&self, stream: StreamId) -> Result<(), ReceiveError> {
        if !self.streams.is_open(stream) {
            return Err(ReceiveError::UnknownStream);
        }
        match self.events.reached_limit(&self.limits) {
            Some(_) => Err(ReceiveError::Full),
            None => Ok(()),
        }
    }

    /// Returns the limit because of which a request of `size` bytes must be refused; `stream` carries the answer.
    pub(crate) fn reached_request_limit(&self, stream: StreamId, size: usize) -> Option<Limit> {
        let limits = &self.limits;
        if self.in_flight.len() >= limits.in_flight {
            return Some(Limit::InFlight);
        }
        if self.in_flight.bytes() + size > limits.in_flight_bytes {
            return Some(Limit::InFlightBytes);
        }
        self.reached_message_limit(stream)
    }

    /// Returns the limit because of which a message must be refused.
    pub(crate) fn reached_message_limit(&self, stream: StreamId) -> Option<Limit> {
        let limits = &self.limits;
        let output = || self.streams.reached_limit(stream, limits);
        let batches =
            || (self.batches.bytes() >= limits.queued_bytes).then_some(Limit::QueuedBytes);
        self.events
            .reached_limit(limits)
            .or_else(output)
            .or_else(batches)
    }

    /// Removes and returns the oldest output of all attached streams; the bytes of a frame are appended to `out`.
    pub(crate) fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let (transmit, bytes) = self.streams.pop()?;
        if out.is_empty() {
            *out = bytes
        } else {
            out.extend_from_slice(&bytes)
        }
        Some(transmit)
    }

    /// Returns the resource usage that client and server endpoints share.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            in_flight: self.in_flight.len(),
            in_flight_bytes: self.in_flight.bytes(),
            batches: self.batches.len(),
            batch_bytes: self.batches.bytes(),
            pending: self.pending.len(),
            streams: self.streams.len(),
            queued: self.streams.queued_count(),
            queued_bytes: self.streams.queued_bytes(),
            events: self.events.len(),
            events_bytes: self.events.bytes(),
            elicitations: self.elicitations.len(),
            remembered_ids: self.in_flight.remembered_count(),
            ..Usage::default()
        }
    }
}
