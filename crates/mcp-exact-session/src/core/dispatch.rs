//! Message handling that both roles share: parsing, dispatch, acceptance or refusal, and exactly one answer.
//!
//! A role implements the required functions of [`Endpoint`]. The provided functions do not compare methods or
//! revisions; only the module `rules` does.

use mcp_exact_convert::{Repair, RepairRule, Tolerance};
use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{
    ErrorMessage, Message, MessageError, MessageErrorKind, Nullable, RequestId, ResultMessage,
    WithId,
};

use super::batches::{BatchId, FinishedBatch};
use super::rate::RateDecision;
use super::{Core, Frame, PendingRequest, Role};
use crate::error::{PeerError, Violation};
use crate::limits::Limit;
use crate::message::{self, Call, ParsedFrame, ParsedItem, Untyped, parse_wire_id};
use crate::outcome::{Outcome, RawResult, SendOutcome};
use crate::oversized::OversizedHead;
use crate::refusal::Refusal;
use crate::stream::{Binding, RequestKey, StreamId};
use crate::tolerance;

/// Stream and batch in which a message arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Stream on which the message has arrived.
    pub(crate) stream: StreamId,
    /// Batch that contains the message, if any.
    pub(crate) batch: Option<BatchId>,
}

impl Arrival {
    /// Creates the arrival of a message that belongs to no batch.
    pub(crate) fn unbatched(stream: StreamId) -> Self {
        Self {
            stream,
            batch: None,
        }
    }
}

/// Endpoint of either role: client or server.
pub(crate) trait Endpoint: Sized {
    /// Client or server.
    type Role: Role;
    /// Information of the transport about a frame.
    type Context;

    /// Returns the state that both roles share.
    fn core(&mut self) -> &mut Core<Self::Role>;
    /// Returns the state that both roles share.
    fn core_ref(&self) -> &Core<Self::Role>;

    /// Returns the negotiated revision; `None` before the negotiation.
    fn spec(&self) -> Option<&'static RevisionSpec>;

    /// Returns true if the local peer may send answers: from 2026-07-28 on, a client may not.
    fn may_answer(&self) -> bool;

    /// Returns true if the revision allows errors without id.
    fn allows_error_without_id(&self) -> bool;

    /// Returns true if an array of one answer may count as that answer, in place of a batch. A server refuses it: its
    /// clients know whether their revision has batches.
    fn takes_array_of_one(&self) -> bool {
        false
    }

    /// Creates the frame of an answer to a message that was received on a stream.
    fn answer_frame(&mut self, stream: StreamId, bytes: Vec<u8>) -> Frame;

    /// Handles a request: delivers, answers or refuses the request.
    fn dispatch_request(
        &mut self,
        arrival: Arrival,
        id: RequestId,
        call: Call,
        context: &Self::Context,
    );

    /// Handles a notification.
    ///
    /// # Errors
    /// The reason for which the notification is dropped.
    fn dispatch_notification(
        &mut self,
        arrival: Arrival,
        call: Call,
        context: &Self::Context,
    ) -> Result<(), Refusal>;

    /// Handles the answer to a request of the local peer.
    fn handle_answer(
        &mut self,
        request: PendingRequest<<Self::Role as Role>::Purpose>,
        outcome: Outcome,
    );

    /// Handles an error response without id, or with the id of no request.
    fn handle_unaddressed_error(&mut self, _: Arrival, id: Option<&RequestId>, error: PeerError) {
        self.core().push_violation(match id {
            Some(id) => Violation::UnexpectedResponse(Some(id.clone())),
            None => Violation::ErrorWithoutId(error),
        });
    }

    /// Handles the answer to a request that has ended, which is usually ignored.
    fn handle_late_answer(&mut self, _: &RequestId, _: &Outcome) {}

    /// Closes the endpoint and drops queued output.
    fn abort(&mut self);

    /// Parses and handles a frame.
    fn dispatch_frame(&mut self, stream: StreamId, frame: &[u8], context: &Self::Context) {
        let (limits, policy) = (&self.core_ref().limits, self.core_ref().tolerance);
        let (parsed, repairs) = tolerance::parse(frame, limits, policy);
        self.core().push_repairs("", repairs);
        let arrival = Arrival::unbatched(stream);
        if tolerance::end_by_unreadable_answer(self, arrival, frame, &parsed) {
            return;
        }
        if let ParsedFrame::Single(Err(error)) = &parsed {
            self.core().note_malformed(frame);
            if let (MessageErrorKind::InvalidResponse, Some(id)) = (error.kind(), error.id()) {
                let begin = format!("; it begins {}", tolerance::beginning(frame));
                self.end_by_invalid_response(arrival, &id.clone(), error.clone(), &begin);
                return self.abort_if_exhausted();
            }
        }
        self.dispatch_parsed(stream, parsed, context);
    }

    /// Handles a parsed frame by its kind: a message, a malformed message, a batch, or a message above a limit.
    fn dispatch_parsed(&mut self, stream: StreamId, parsed: ParsedFrame, context: &Self::Context) {
        let arrival = Arrival::unbatched(stream);
        let parsed = self.unwrap_only_answer(parsed);
        match parsed {
            ParsedFrame::Single(Ok(message)) => self.dispatch_message(arrival, message, context),
            ParsedFrame::Single(Err(error)) => self.dispatch_malformed(arrival, error),
            ParsedFrame::Batch(items) => self.dispatch_batch(stream, items, context),
            ParsedFrame::OverLimit(limit, head) => {
                self.dispatch_oversized(arrival, limit, head, None);
            }
        }
        self.abort_if_exhausted();
    }

    /// Takes the only answer of an array for that answer, in a revision without batches.
    fn unwrap_only_answer(&mut self, parsed: ParsedFrame) -> ParsedFrame {
        if self.core_ref().tolerance == Tolerance::Strict || !self.takes_array_of_one() {
            return parsed;
        }
        let (parsed, is_repaired) = tolerance::only_answer(parsed);
        if is_repaired {
            let repair = Repair::of_envelope(RepairRule::ArrayOfOne, "");
            self.core().push_repairs("", vec![repair]);
        }
        parsed
    }

    /// Reports a document that is no message.
    fn push_invalid_message(&mut self, error: MessageError) {
        self.core().push_violation(Violation::InvalidMessage(error));
    }

    /// Closes the endpoint if the reserve for refusals is exhausted, because the peer does not read its input.
    fn abort_if_exhausted(&mut self) {
        if std::mem::take(&mut self.core().is_reserve_exhausted) {
            self.core()
                .push_violation(Violation::Limit(Limit::ReservedBytes));
            self.abort();
        }
    }

    /// Handles the head of a message that exceeds a limit: refuses a request, or ends the local request that a response answers.
    fn dispatch_oversized(
        &mut self,
        arrival: Arrival,
        limit: Limit,
        head: OversizedHead,
        size: Option<u64>,
    ) {
        let refusal = Refusal::Limit(limit);
        let error = self.core_ref().over_limit(limit, size);
        match head {
            OversizedHead::Request(id) => self.refuse_request(arrival, &id, &refusal, false),
            OversizedHead::Response(id) => {
                self.core().push_violation(Violation::Limit(limit));
                self.discard_response(arrival, &id, error, &refusal);
            }
            OversizedHead::Batch(heads)
                if !heads.is_empty() && !self.is_post_of_peer(arrival.stream) =>
            {
                self.core().push_violation(Violation::Limit(limit));
                self.discard_batch(arrival.stream, &heads, &refusal);
            }
            OversizedHead::Batch(_) | OversizedHead::Unknown => {
                self.refuse_unaddressed(arrival, &refusal);
            }
        }
    }

    /// Ends the local peer's request whose response exceeds a limit.
    fn discard_response(
        &mut self,
        arrival: Arrival,
        id: &RequestId,
        error: PeerError,
        refusal: &Refusal,
    ) {
        self.dispatch_response(id, Outcome::Error(error));
        self.end_post(arrival, refusal.status(false));
    }

    /// Refuses each request of a batch that exceeds a limit, so that no caller waits for an answer.
    ///
    /// In revisions with batches, the refusals are sent as one array.
    fn discard_batch(&mut self, stream: StreamId, heads: &[OversizedHead], refusal: &Refusal) {
        let has_batches = self.spec().is_some_and(RevisionSpec::has_batches);
        let batch = has_batches.then(|| self.core().batches.begin(stream));
        let arrival = Arrival { stream, batch };
        for head in heads {
            match head {
                OversizedHead::Request(id) => self.refuse_silently(arrival, id, refusal, false),
                OversizedHead::Response(id) => {
                    let error = self.core_ref().over_limit(Limit::MessageBytes, None);
                    self.discard_response(arrival, id, error, refusal);
                }
                OversizedHead::Batch(_) | OversizedHead::Unknown => {}
            }
        }
        if let Some(batch) = batch {
            let finished = self.core().batches.mark_dispatched(batch);
            self.finish_batch(finished);
        }
    }

    /// Counts a message for its rate limit, and handles the message by its kind: request, notification or response.
    fn dispatch_message(
        &mut self,
        arrival: Arrival,
        message: Message<Untyped>,
        context: &Self::Context,
    ) {
        match message {
            Message::Request(WithId { id, request: call }) => {
                match self
                    .count_message(|core| (&mut core.request_rate, core.limits.requests_per_second))
                {
                    RateDecision::Accept => self.dispatch_request(arrival, id, call, context),
                    decision => self.refuse_by_rate(arrival, &id, decision),
                }
            }
            Message::Notification(call) => {
                let dispatched = self.dispatch_notification(arrival, call, context);
                match dispatched {
                    Ok(()) => self.accept_message(arrival),
                    Err(refusal) => self.drop_notification(arrival, &refusal),
                }
            }
            Message::Result(ResultMessage { id, result, .. }) => {
                let result = RawResult::received(result);
                self.dispatch_response(&id, Outcome::Result(result));
                self.accept_message(arrival);
            }
            Message::Error(ErrorMessage { id, error, .. }) => {
                let id = id.as_ref().and_then(Nullable::as_value);
                match id.filter(|id| self.is_sent_id(id)) {
                    Some(id) => self.dispatch_response(id, Outcome::Error(error.into())),
                    None => self.handle_unaddressed_error(arrival, id, error.into()),
                }
                self.accept_message(arrival);
            }
        }
    }

    /// Counts a message for a rate limit; `select` returns the rate and its maximum per second.
    fn count_message(
        &mut self,
        select: impl FnOnce(&mut Core<Self::Role>) -> (&mut super::Rate, u32),
    ) -> RateDecision {
        let now = self.core_ref().now;
        let (rate, per_second) = select(self.core());
        rate.decide(now, per_second)
    }

    /// Refuses a request above the rate limit; the application is notified once per second.
    fn refuse_by_rate(&mut self, arrival: Arrival, id: &RequestId, decision: RateDecision) {
        let refusal = Refusal::Limit(Limit::Requests);
        if decision == RateDecision::RefuseFirst {
            self.core()
                .push_violation(Violation::Limit(Limit::Requests));
        }
        self.refuse_silently(arrival, id, &refusal, false);
    }

    /// Counts a notification for the rate limit.
    ///
    /// # Errors
    /// [`Refusal::Limit`] if the limit of this second is exceeded; the application is notified once per second.
    fn count_notification(&mut self) -> Result<(), Refusal> {
        let limits = |core: &Core<Self::Role>| core.limits.notifications_per_second;
        match self.count_message(|core| {
            let per_second = limits(core);
            (&mut core.notification_rate, per_second)
        }) {
            RateDecision::Accept => Ok(()),
            RateDecision::RefuseFirst => {
                self.core()
                    .push_violation(Violation::Limit(Limit::Notifications));
                Err(Refusal::Limit(Limit::Notifications))
            }
            RateDecision::Refuse => Err(Refusal::Limit(Limit::Notifications)),
        }
    }

    /// Accepts a message without an answer; over HTTP the status is 202 (`basic/transports`, "Sending Messages").
    fn accept_message(&mut self, arrival: Arrival) {
        self.end_post(arrival, 202);
    }

    /// Drops a notification and reports the violation.
    fn drop_notification(&mut self, arrival: Arrival, refusal: &Refusal) {
        let rate = matches!(refusal, Refusal::Limit(Limit::Notifications));
        if let Some(violation) = refusal.violation().filter(|_| !rate) {
            self.core().push_violation(violation);
        }
        self.end_post(arrival, refusal.notification_status());
    }

    /// Ends a POST without an answer; the POST of a batch ends once the entire batch was dispatched.
    fn end_post(&mut self, arrival: Arrival, status: u16) {
        match arrival.batch {
            Some(batch) => self.core().batches.raise_status(batch, status),
            None if self.is_post_of_peer(arrival.stream) => {
                self.core().streams.push_status(arrival.stream, status);
            }
            None => {}
        }
    }

    /// Returns true for the stream of a POST that the local peer answers.
    fn is_post_of_peer(&self, stream: StreamId) -> bool {
        Self::Role::ANSWERS_POSTS && self.core_ref().streams.is_post(stream)
    }

    /// Handles a malformed message, which is answered if its id can be read.
    fn dispatch_malformed(&mut self, arrival: Arrival, error: MessageError) {
        let kind = error.kind();
        let answered = error.code().is_some();
        let id = error.id().cloned();
        match (kind, id) {
            (MessageErrorKind::InvalidResponse, Some(id)) => {
                self.end_by_invalid_response(arrival, &id, error, "");
            }
            (_, Some(id)) if answered => self.refuse_request(arrival, &id, &error.into(), false),
            _ if answered && arrival.batch.is_none() => {
                self.refuse_unaddressed(arrival, &error.into())
            }
            _ => {
                let status = Refusal::from(error.clone()).status(false);
                self.core().push_violation(Violation::InvalidMessage(error));
                self.end_post(arrival, status);
            }
        }
    }

    /// Ends the local request whose response is malformed; `begin` says how the response begins.
    fn end_by_invalid_response(
        &mut self,
        arrival: Arrival,
        id: &RequestId,
        error: MessageError,
        begin: &str,
    ) {
        let refusal = Refusal::from(error.clone());
        self.core().push_violation(Violation::InvalidMessage(error));
        let told = refusal.error();
        // The code of an invalid request would blame the caller.
        let mut error = PeerError::local(format!("{}{begin}", told.message()));
        if let Some(data) = told.data() {
            error = error.with_data(data.clone());
        }
        self.discard_response(arrival, id, error, &refusal);
    }

    /// Handles a batch, which only 2025-03-26 allows (`basic`, "Batching").
    fn dispatch_batch(
        &mut self,
        stream: StreamId,
        items: Vec<ParsedItem>,
        context: &Self::Context,
    ) {
        let spec = self.spec();
        if items.is_empty() || !spec.is_some_and(RevisionSpec::has_batches) {
            return self.refuse_batch(stream, &items);
        }
        let batch = self.core().batches.begin(stream);
        let arrival = Arrival {
            stream,
            batch: Some(batch),
        };
        for item in items {
            match item {
                Ok(Ok(message)) => self.dispatch_message(arrival, message, context),
                Ok(Err(error)) => self.dispatch_malformed(arrival, error),
                Err((limit, head)) => self.dispatch_oversized(arrival, limit, head, None),
            }
        }
        let finished = self.core().batches.mark_dispatched(batch);
        self.finish_batch(finished);
    }

    /// Refuses a batch in a revision without batches: each request is refused separately, so that no caller waits for
    /// an answer.
    fn refuse_batch(&mut self, stream: StreamId, items: &[ParsedItem]) {
        let revision = self.spec().map(RevisionSpec::revision);
        let refusal = if items.is_empty() {
            Refusal::BatchEmpty(revision)
        } else {
            Refusal::BatchUnsupported(revision)
        };
        let requests = items.iter().filter_map(|item| match item {
            Ok(Ok(Message::Request(request))) => Some(&request.id),
            Err((_, OversizedHead::Request(id))) => Some(id),
            _ => None,
        });
        let requests: Vec<RequestId> = requests.cloned().collect();
        let arrival = Arrival::unbatched(stream);
        // A POST can carry only one answer.
        if requests.is_empty() || self.is_post_of_peer(stream) {
            return self.refuse_unaddressed(arrival, &refusal);
        }
        self.core().push_violation(Violation::Batch(revision));
        for id in &requests {
            self.refuse_silently(arrival, id, &refusal, false);
        }
    }

    /// Refuses a request, and reports a violation to the application if the request was not allowed. The HTTP status
    /// depends on `in_session`.
    fn refuse_request(
        &mut self,
        arrival: Arrival,
        id: &RequestId,
        refusal: &Refusal,
        in_session: bool,
    ) {
        if let Some(violation) = refusal.violation().filter(|_| !refusal.is_overload()) {
            self.core().push_violation(violation);
        }
        self.refuse_silently(arrival, id, refusal, in_session);
    }

    /// Refuses a request without reporting a violation to the application. The HTTP status depends on `in_session`.
    fn refuse_silently(
        &mut self,
        arrival: Arrival,
        id: &RequestId,
        refusal: &Refusal,
        in_session: bool,
    ) {
        if self.may_answer() {
            let error = message::write_error(Some(id), &refusal.error());
            self.send_answer(arrival, error, refusal.status(in_session));
        }
    }

    /// Refuses a frame whose id cannot be read, with an error without id in revisions that have such errors.
    fn refuse_unaddressed(&mut self, arrival: Arrival, refusal: &Refusal) {
        if let Some(violation) = refusal.violation() {
            self.core().push_violation(violation);
        }
        let status = refusal.status(false);
        if self.allows_error_without_id() && self.may_answer() {
            self.send_answer(
                arrival,
                message::write_error(None, &refusal.error()),
                status,
            )
        } else {
            self.end_post(arrival, status)
        }
    }

    /// Queues an answer that the endpoint has generated, or adds it to the answers of its batch.
    fn send_answer(&mut self, arrival: Arrival, answer: Vec<u8>, status: u16) {
        match arrival.batch {
            Some(batch) => self.core().batches.add_answer(batch, answer),
            None => {
                let frame = self.answer_frame(arrival.stream, answer);
                self.core().queue_frame(frame.status(status).with_reserve());
            }
        }
    }

    /// Ends a request of the remote peer with the answer of the application; `status` is the HTTP status of a response
    /// that consists of this answer alone.
    fn finish_request(
        &mut self,
        key: RequestKey,
        answer: Vec<u8>,
        status: Option<u16>,
    ) -> SendOutcome {
        let Some(request) = self.core().in_flight.take(key) else {
            return SendOutcome::Suppressed;
        };
        if let Some(batch) = request.batch {
            let finished = self.core().batches.record_answer(batch, Some(answer));
            self.finish_batch(finished);
            return SendOutcome::Queued;
        }
        let mut frame = self.answer_frame(request.stream, answer);
        frame.incoming_request = Some(key);
        if status.is_some() {
            frame.http.status = status;
        }
        self.core().queue_frame(frame)
    }

    /// Queues the array of the answers of a finished batch, or ends the POST of the batch if there are no answers.
    fn finish_batch(&mut self, finished: Option<FinishedBatch>) {
        let Some(finished) = finished else {
            return;
        };
        match finished.bytes {
            Some(bytes) => {
                let mut frame = self.answer_frame(finished.stream, bytes);
                frame.uses_reserve = finished.is_generated;
                self.core().queue_frame(frame);
            }
            None => self.end_post(Arrival::unbatched(finished.stream), finished.status),
        }
    }

    /// Ends a request of the peer without an answer: its queued messages are withdrawn.
    fn cancel_in_flight(&mut self, key: RequestKey) -> Option<CancelledRequest<Self::Role>> {
        let core = self.core();
        let request = core.in_flight.take_cancelled(key)?;
        let withdrawn = core.streams.withdraw_frames_of_request(request.stream, key);
        if let Some(batch) = request.batch {
            let finished = core.batches.record_answer(batch, None);
            self.finish_batch(finished);
        }
        Some(CancelledRequest { request, withdrawn })
    }

    /// Ends a request of the local peer by its answer. Late answers are ignored (`basic/utilities/cancellation`).
    fn dispatch_response(&mut self, id: &RequestId, outcome: Outcome) {
        let wire_id = self.wire_id_of(id);
        let core = self.core();
        if wire_id.is_some() && parse_wire_id(id).is_none() {
            core.push_repairs("", vec![tolerance::id_repair(id)]);
        }
        match wire_id.and_then(|id| core.pending.remove_answered(id)) {
            Some(request) => self.handle_answer(request, outcome),
            None if wire_id.is_some_and(|id| core.pending.has_ended(id)) => {
                self.handle_late_answer(id, &outcome);
            }
            None => core.push_violation(Violation::UnexpectedResponse(Some(id.clone()))),
        }
    }

    /// Returns true if a request of the local peer was sent with this id.
    fn is_sent_id(&self, id: &RequestId) -> bool {
        let pending = &self.core_ref().pending;
        let id = self.wire_id_of(id);
        id.is_some_and(|id| pending.by_wire_id(id).is_some() || pending.has_ended(id))
    }

    /// Returns the number that the id of an answer stands for; a text stands for one if a request was sent with it.
    fn wire_id_of(&self, id: &RequestId) -> Option<u64> {
        let core = self.core_ref();
        let is_lenient = core.tolerance == Tolerance::Lenient;
        let of_text = || tolerance::wire_id_of_text(id).filter(|id| core.pending.has_sent(*id));
        parse_wire_id(id).or_else(|| is_lenient.then(of_text).flatten())
    }

    /// Returns true if the endpoint accepts input. A duplex stream is read until it closes, except while too many events wait for
    /// the application.
    fn accepts_input(&self) -> bool {
        let core = self.core_ref();
        let output = match core.binding {
            Binding::Duplex => None,
            Binding::StreamableHttp | Binding::HttpSse => {
                core.streams.reached_total_limit(&core.limits)
            }
        };
        core.events.reached_limit(&core.limits).or(output).is_none()
    }
}

/// Request of the peer that was cancelled.
pub(crate) struct CancelledRequest<R: Role> {
    /// Record of the cancelled request.
    pub(crate) request: super::InFlightRequest<R::RequestState>,
    /// Local requests that belong to the cancelled request and were never sent.
    pub(crate) withdrawn: Vec<RequestKey>,
}
