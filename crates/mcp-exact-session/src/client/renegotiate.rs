//! A server that changed: it does not speak the agreed revision any more and says so in an answer (2026-07-28,
//! `basic/versioning`, "Protocol Version Negotiation").
//!
//! Takes the -32022 that ends a request; goes over to a revision that both speak and sends the request once more.

use std::sync::Arc;

use super::call::{Own, ParamsHeader};
use super::negotiate::{Found, NegotiatedSession, State, supported};
use super::{ClientEndpoint, ClientEvent};
use crate::error::PeerError;
use crate::revision::{Lifecycle, Rules};
use crate::types::{Outcome, RequestKey, SessionInfo};

/// A request that waits for another revision to be agreed on.
#[derive(Debug)]
pub(super) struct DeferredRequest {
    pub(super) key: RequestKey,
    method: String,
    own: Own,
    error: PeerError,
}

impl ClientEndpoint {
    /// The server refuses the revision of a request. Gives the error back when there is nothing to try.
    pub(super) fn moved(
        &mut self,
        key: RequestKey,
        method: String,
        mut own: Own,
        error: PeerError,
    ) -> Option<PeerError> {
        let said = supported(&error).unwrap_or_default();
        let spoken = |rules: &&'static Rules| said.iter().any(|id| rules.is(id));
        let modern = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Discover)
            .find(spoken);
        let handshake = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Initialize)
            .find(spoken);
        // Only the first round is what an older revision understands.
        if own.moved || (modern.is_none() && own.more.is_some()) {
            return Some(error);
        }
        own.moved = true;
        let current = self.state.spoken().map(Arc::clone);
        match (current, modern, handshake) {
            (Some(current), Some(rules), _) => {
                let now = self.speaks(&current, rules);
                self.send_round(key, &method, own, &now);
            }
            // Another request has brought the change about already.
            (Some(current), None, Some(_))
                if current.rules.lifecycle() == Lifecycle::Initialize =>
            {
                self.send_again(key, &method, own, &current, error);
            }
            (current, None, Some(rules)) => {
                let parked = DeferredRequest {
                    key,
                    method,
                    own,
                    error,
                };
                self.parked.push(parked);
                if current.is_some() {
                    self.initialize(rules, Found::default());
                }
            }
            _ => return Some(error),
        }
        None
    }

    /// Goes over to another revision of the same era; nothing is done when it is the agreed one.
    fn speaks(
        &mut self,
        current: &Arc<NegotiatedSession>,
        rules: &'static Rules,
    ) -> Arc<NegotiatedSession> {
        if current.rules == rules {
            return Arc::clone(current);
        }
        let agreed = SessionInfo {
            revision: rules.revision,
            ..current.agreed.clone()
        };
        self.agree(NegotiatedSession::new(rules, agreed, &self.config));
        let now = self.state.spoken().map(Arc::clone);
        now.unwrap_or_else(|| Arc::clone(current))
    }

    /// Forgets a request that waits for another revision; whether there was one.
    pub(super) fn unpark(&mut self, key: RequestKey) -> bool {
        let before = self.parked.len();
        self.parked.retain(|parked| parked.key != key);
        self.parked.len() < before
    }

    /// Another revision is agreed on: what has waited for it is sent, where it may be.
    pub(super) fn send_parked(&mut self) {
        let State::Operating(spoken) = &self.state else {
            return;
        };
        let spoken = Arc::clone(spoken);
        for parked in std::mem::take(&mut self.parked) {
            let DeferredRequest {
                key,
                method,
                own,
                error,
            } = parked;
            self.send_again(key, &method, own, &spoken, error);
        }
    }

    fn send_again(
        &mut self,
        key: RequestKey,
        method: &str,
        own: Own,
        spoken: &NegotiatedSession,
        error: PeerError,
    ) {
        let looked = ParamsHeader::at(own.params.as_ref());
        match self.may_send(spoken, method, own.params.as_ref(), &looked) {
            Ok(()) => self.send_round(key, method, own, spoken),
            Err(_) => {
                let outcome = Outcome::Error(error);
                self.events.push_back(ClientEvent::Completed(key, outcome));
            }
        }
    }
}
