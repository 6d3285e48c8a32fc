//! Orphans: requests that wait for their answers although the server does not know their session any more.
//!
//! Over Streamable HTTP every request is a POST of its own. That the server answers one of them with status 404 says nothing
//! about the others: it may have received them before the session ended, and answers them still. They keep waiting, until
//! their own POST is answered or fails or their time is over, while the next session begins. Everything else of the lost
//! session ends with it: what is received for an orphan reaches the application, and nothing is sent for it.

use std::sync::Arc;

use super::ClientEndpoint;
use super::events::ClientEvent;
use super::outbound::{Phase, Purpose};
use super::session::{NegotiatedSession, SessionEnd, State};
use crate::core::OrderedMap;
use crate::core::PendingRequest;
use crate::error::PeerError;
use crate::outcome::Outcome;
use crate::stream::{Binding, RequestKey, StreamId};

/// Sessions of the orphans, by the streams of their POSTs.
pub(super) type Orphans = OrderedMap<StreamId, Arc<NegotiatedSession>>;

impl ClientEndpoint {
    /// Returns true if a stream belongs to a session that the server does not know any more.
    pub fn is_orphaned(&self, stream: StreamId) -> bool {
        self.orphans.get(stream).is_some()
    }

    /// Ends the session because the server does not know it any more. Requests whose POSTs were sent become orphans, and those
    /// that were not sent are reported as not processed.
    pub(super) fn close_lost_session(&mut self) {
        if self.is_closed() {
            return;
        }
        let session = self.state.session().map(Arc::clone);
        let is_http = self.core.binding == Binding::StreamableHttp;
        if let Some(session) = session.filter(|session| is_http && !session.is_discover()) {
            for (key, stream) in self.posted_requests() {
                if self.core.streams.withdraw_request(stream, key) {
                    let request = self.core.pending.remove(key);
                    request.into_iter().for_each(|one| self.return_request(one));
                } else {
                    self.core.pending.set_awaited(key, false);
                    self.orphans.insert(stream, Arc::clone(&session));
                }
            }
        }
        self.close_except_orphans(&Outcome::Lost);
    }

    /// Returns the requests of the application that wait for their answers, except orphans, with the streams of their POSTs.
    fn posted_requests(&self) -> Vec<(RequestKey, StreamId)> {
        let waits = |request: &&PendingRequest<Purpose>| {
            let outbound = request.purpose.outbound();
            outbound.is_some_and(|outbound| matches!(outbound.phase, Phase::Answer))
                && request.wire_id().is_some()
                && !self.is_orphaned(request.stream)
        };
        let waiting = self.core.pending.iter().filter(waits);
        waiting
            .map(|request| (request.key, request.stream))
            .collect()
    }

    /// Ends a request that the server has not processed, so that it may be sent again in the next session.
    pub(super) fn return_request(&mut self, request: PendingRequest<Purpose>) {
        let key = request.key;
        if let Purpose::Application(outbound) = request.purpose {
            let request = Box::new(outbound.into_unprocessed());
            self.core
                .push_event(ClientEvent::NotProcessed { key, request });
            self.complete_request(key, Outcome::Lost);
        }
    }

    /// Handles input on the stream of an orphan by `receive`, as in its session: it answers no other request. Nothing is sent in
    /// answer to it: the server would take it for a message of the next session.
    pub(super) fn receive_for_orphan(
        &mut self,
        stream: StreamId,
        session: Arc<NegotiatedSession>,
        receive: impl FnOnce(&mut Self),
    ) {
        let key = self.request_on(stream);
        let current = std::mem::replace(&mut self.state, State::Operating(session));
        let last_stream = self.core.streams.last_id();
        let malformed = self.core.first_malformed.take();
        let others = self.core.pending.take_awaited();
        if let Some(key) = key {
            self.core.pending.set_awaited(key, true);
        }
        receive(self);
        if let Some(key) = key {
            self.core.pending.set_awaited(key, false);
        }
        self.core.pending.restore_awaited(&others);
        // The error of the next negotiation does not quote what belongs to this session.
        self.core.first_malformed = malformed;
        for answer in last_stream + 1..=self.core.streams.last_id() {
            self.core.streams.remove(StreamId(answer));
        }
        // The endpoint is closed already if it has aborted.
        if !matches!(self.state, State::Ended) {
            self.state = current;
        }
    }

    /// Handles the HTTP error status of an orphan's POST.
    pub(super) fn handle_orphan_status(
        &mut self,
        stream: StreamId,
        end: Option<SessionEnd>,
        error: PeerError,
    ) {
        let Some(request) = self.remove_request_on(stream) else {
            return;
        };
        match end {
            Some(SessionEnd::Certain | SessionEnd::Refused) => self.return_request(request),
            Some(SessionEnd::Unclear) => self.complete_request(request.key, Outcome::Lost),
            None => self.handle_request_end(request, Outcome::Error(error)),
        }
    }

    /// Ends the orphans with an outcome, because the client is closed.
    pub(super) fn end_orphans(&mut self, outcome: &Outcome) {
        let orphans = std::mem::take(&mut self.orphans);
        for (stream, _) in orphans.iter() {
            self.core.streams.remove(stream);
            if let Some(request) = self.remove_request_on(stream) {
                self.complete_request(request.key, outcome.clone());
            }
        }
    }

    /// Forgets the orphans that have ended.
    pub(super) fn forget_ended_orphans(&mut self) {
        let orphans = std::mem::take(&mut self.orphans);
        for (stream, session) in orphans.iter() {
            if self.is_waiting_on(stream) || self.core.streams.contains(stream) {
                self.orphans.insert(stream, Arc::clone(session));
            }
        }
    }
}
