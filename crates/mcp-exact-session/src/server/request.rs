//! Requests of a server's own: questions outside of a reply, and pings (up to 2025-11-25).
//!
//! Takes what the program wants to know; checks that the client may be asked, by revision, capability, state and bounds,
//! before anything leaves. From 2026-07-28 on a server sends no requests: [`Reply::InputRequired`](crate::Reply::InputRequired) asks there.

use mcp_exact_wire::{EncodeParams, JsonObject, Request};

use super::answer::fits;
use super::incoming::Scope;
use super::{Purpose, ServerEndpoint};
use crate::Time;
use crate::client::CallOptions;
use crate::error::SendError;
use crate::limits::{Limit, RequestTimeout};
use crate::pending::NewRequest;
use crate::types::{RequestKey, params_of};

impl<C> ServerEndpoint<C> {
    /// Sends a request of this side, such as `roots/list`; [`ServerEvent::Completed`](crate::ServerEvent::Completed) follows, exactly
    /// once. During a request it goes where the answer of that one will go (`basic/transports`, "Sending Messages").
    ///
    /// Before `initialized` it waits (`basic/lifecycle`, "Initialization"). To ask in the middle of a request, and clients of
    /// every revision alike, reply with [`Reply::InputRequired`](crate::Reply::InputRequired).
    ///
    /// # Errors
    /// [`SendError`]; nothing has left then.
    pub fn request(
        &mut self,
        scope: Scope,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError> {
        self.advance(now);
        let (caller, address) = self.addressed(scope)?;
        let rules = caller.rules;
        let ours = self.config.extensions.requests.iter();
        let vendor = ours.clone().any(|known| known == method) && !rules.client.request(method);
        // Extensions add no requests of servers where there are none.
        let asks = rules.server.request("ping");
        if !asks || !(rules.server.request(method) || vendor) {
            return Err(SendError::Method {
                method: method.to_owned(),
                revision: rules.revision,
            });
        }
        fits(&caller, method, params.as_ref())?;
        if !self.streams.contains_key(&address.on) {
            return Err(SendError::NoStream);
        }
        if self.sent.len() >= self.config.limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        if let Some(limit) = self.outbox.full(&self.config.limits) {
            return Err(SendError::Limit(limit));
        }
        self.elicited.note(method, params.as_ref());
        let key = self.key();
        let opening = NewRequest {
            key,
            method: method.to_owned(),
            stream: address.on,
            timeout: options.timeout.unwrap_or(self.config.request_timeout),
            progress: options.progress,
            purpose: Purpose::Program,
        };
        self.send_request(opening, params, address);
        Ok(key)
    }

    /// Sends a request of a generated type, of the revision that is spoken.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn request_typed<Q: Request>(
        &mut self,
        scope: Scope,
        params: &Q::Params,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError>
    where
        Q::Params: EncodeParams,
    {
        let params = params_of(Q::METHOD, params)?;
        self.request(scope, Q::METHOD, params, options, now)
    }

    /// Asks whether the client is there (up to 2025-11-25).
    ///
    /// # Errors
    /// [`SendError`] when nobody can be asked.
    pub fn ping(&mut self, timeout: RequestTimeout, now: Time) -> Result<RequestKey, SendError> {
        let options = CallOptions {
            timeout: Some(timeout),
            ..CallOptions::default()
        };
        self.request(Scope::Peer, "ping", None, options, now)
    }

    /// Cancels a request of this side; [`Outcome::Cancelled`](crate::Outcome::Cancelled) follows.
    pub fn cancel(&mut self, key: RequestKey, reason: &str, now: Time) {
        self.advance(now);
        let id = self.sent.id_of(key);
        let own = |id: &u64| {
            let request = self.sent.get(*id);
            request.is_some_and(|request| matches!(request.purpose, Purpose::Program))
        };
        let Some(id) = id.filter(own) else {
            return;
        };
        if let Some(request) = self.sent.take(id) {
            self.tell_cancelled(id, &request, reason);
            self.request_ended(request, crate::Outcome::Cancelled);
        }
    }
}
