//! What a server says without being asked: progress, logs, changes, other notifications, and requests of its own.
//!
//! Takes what the program wants to say; checks that the client may be told so, by revision, capability and state.

use std::sync::Arc;

use mcp_exact_wire::{EncodeParams, Json, JsonObject, Notification};

use super::ServerEndpoint;
use super::incoming::{Caller, Scope};
use crate::capability;
use crate::elicitation::COMPLETE;
use crate::error::SendError;

use crate::builtin_notifications;
use crate::log::Level;
use crate::message::{self, Call};
use crate::outbox::Address;
use crate::revision::Lifecycle;
use crate::types::{Binding, Change, Progress, RequestKey, Sent, StreamId, StreamKind, params_of};

impl<C> ServerEndpoint<C> {
    /// Says how far a request has come; nothing leaves when its sender did not ask for it.
    ///
    /// # Errors
    /// [`SendError::Progress`] when it does not increase.
    pub fn progress(&mut self, of: RequestKey, progress: &Progress) -> Result<Sent, SendError> {
        let full = self.outbox.full(&self.config.limits).is_some();
        let Some(serving) = self.served.get_mut(of) else {
            return self.gone(of);
        };
        let Some(token) = serving.rest.token.clone() else {
            return Ok(Sent::Suppressed);
        };
        let done = progress.done;
        if serving.rest.progress.is_some_and(|last| done <= last) {
            return Err(SendError::Progress);
        }
        let rules = serving.rest.caller.rules;
        let call =
            builtin_notifications::progress(rules, &token, progress).ok_or(SendError::Progress)?;
        if full {
            return Ok(Sent::Dropped);
        }
        serving.rest.progress = Some(done);
        let address = Address::on(serving.stream).about(of);
        Ok(self.say(address, call))
    }

    /// Logs something: to whoever has sent a request, or to the client as such.
    ///
    /// Up to 2025-11-25 at the level that the client has chosen; from 2026-07-28 on at the level that the request has asked
    /// for, and never outside of one.
    ///
    /// # Errors
    /// [`SendError`] when the server has not declared `logging`, or there is nobody to say it to.
    pub fn log(
        &mut self,
        scope: Scope,
        level: Level,
        logger: Option<&str>,
        data: impl Into<Json>,
    ) -> Result<Sent, SendError> {
        let Some((caller, _)) = self.listening(scope)? else {
            return Ok(Sent::Suppressed);
        };
        let wanted = match caller.rules.lifecycle() {
            Lifecycle::Discover => caller.level,
            Lifecycle::Initialize => Some(self.level.unwrap_or(self.config.log_level)),
        };
        if wanted.is_none_or(|wanted| level < wanted) {
            return Ok(Sent::Suppressed);
        }
        let mut params =
            JsonObject::from_iter([("level", Json::string(level.name())), ("data", data.into())]);
        if let Some(logger) = logger {
            params.insert("logger", Json::string(logger));
        }
        self.notify(scope, "notifications/message", Some(params))
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`SendError`] when the revision has no such notification of a server, the server has not declared what it needs,
    /// or there is nobody to say it to.
    pub fn notify(
        &mut self,
        scope: Scope,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<Sent, SendError> {
        let Some((caller, address)) = self.listening(scope)? else {
            return Ok(Sent::Suppressed);
        };
        let vendor =
            caller.rules.client.notification(method) || caller.rules.client.request(method);
        let modern = caller.rules.lifecycle() == Lifecycle::Discover;
        let extension = self.config.extensions.of_notification(method);
        if let Some(extension) = extension.filter(|_| modern)
            && !extension.declared(&caller.agreed.capabilities)
        {
            return Err(SendError::Capability {
                method: method.to_owned(),
                capability: extension.capability(),
            });
        }
        let ours = modern && extension.is_some();
        let ours = ours
            || self
                .config
                .extensions
                .notifications
                .iter()
                .any(|known| known == method);
        if !caller.rules.server.notification(method) && (vendor || !ours) {
            return Err(SendError::Method {
                method: method.to_owned(),
                revision: caller.rules.revision,
            });
        }
        if let Some(lacking) = capability::of_notification(method, &self.config.capabilities) {
            return Err(SendError::Capability {
                method: method.to_owned(),
                capability: lacking.capability,
            });
        }
        // Before `initialized` a server sends nothing but logs (`basic/lifecycle`, "Initialization").
        let early = caller.rules.lifecycle() == Lifecycle::Initialize && !self.state.is_operating();
        if early && scope == Scope::Peer && method != "notifications/message" {
            return Err(SendError::NotReady);
        }
        if self.outbox.full(&self.config.limits).is_some() {
            return Ok(Sent::Dropped);
        }
        if method == COMPLETE && !self.elicited.complete(params.as_ref()) {
            return Err(SendError::Params {
                method: method.to_owned(),
                reason: "`elicitationId` has to be one that this client was asked with".to_owned(),
            });
        }
        let params = self.tagged(scope, params);
        Ok(self.say(address, Call::new(method, params)))
    }

    /// Sends a notification of a generated type, of the revision that is spoken.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub fn notify_typed<N: Notification>(
        &mut self,
        scope: Scope,
        params: &N::Params,
    ) -> Result<Sent, SendError>
    where
        N::Params: EncodeParams,
    {
        let params = params_of(N::METHOD, params)?;
        self.notify(scope, N::METHOD, params)
    }

    /// Announces a change to everybody who wants to know: subscribers of a resource, listeners, and a client of a session
    /// whose server has declared `listChanged`. Gives how many messages leave.
    pub fn publish(&mut self, change: &Change) -> usize {
        let mut count = self.publish_to_listeners(change);
        let wanted = match change {
            Change::Resource(uri) => self.subscriptions.contains(uri),
            _ => true,
        };
        if wanted && self.state.is_operating() {
            let params = match change {
                Change::Resource(uri) => Some(JsonObject::from_iter([("uri", Json::string(uri))])),
                _ => None,
            };
            let sent = self.notify(Scope::Peer, change.method(), params);
            count += usize::from(sent == Ok(Sent::Queued));
        }
        count
    }

    /// What is said to a listener names its subscription (2026-07-28, `basic/patterns/subscriptions`).
    fn tagged(&self, scope: Scope, params: Option<JsonObject>) -> Option<JsonObject> {
        let Scope::During(key) = scope else {
            return params;
        };
        let serving = self.served.get(key);
        let Some(serving) = serving.filter(|serving| serving.rest.listening.is_some()) else {
            return params;
        };
        let mut params = params.unwrap_or_default();
        let meta = params.get("_meta");
        let meta = meta.and_then(|meta| JsonObject::try_from(meta).ok());
        let mut meta = meta.unwrap_or_default();
        meta.insert(crate::meta::SUBSCRIPTION_ID, Json::from_encode(&serving.id));
        params.insert("_meta", meta);
        Some(params)
    }

    pub(super) fn say(&mut self, address: Address, call: Call) -> Sent {
        if !self.streams.contains_key(&address.on) {
            return Sent::Suppressed;
        }
        self.outbox.frame(address, message::notification(call));
        Sent::Queued
    }

    /// What became of a message about a request that is not being served any more.
    fn gone(&self, key: RequestKey) -> Result<Sent, SendError> {
        match self.served.was_cancelled(key) {
            true => Ok(Sent::Suppressed),
            false => Err(SendError::UnknownRequest),
        }
    }

    /// Whom a message is for; `None` when its request was cancelled.
    fn listening(&self, scope: Scope) -> Result<Option<(Arc<Caller>, Address)>, SendError> {
        match (self.addressed(scope), scope) {
            (Err(SendError::UnknownRequest), Scope::During(key)) => self.gone(key).map(|_| None),
            (addressed, _) => addressed.map(Some),
        }
    }

    /// Whom a message is for, and where it goes.
    pub(super) fn addressed(&self, scope: Scope) -> Result<(Arc<Caller>, Address), SendError> {
        match scope {
            Scope::During(key) => {
                let serving = self.served.get(key).ok_or(SendError::UnknownRequest)?;
                let address = Address::on(serving.stream).about(key);
                Ok((Arc::clone(&serving.rest.caller), address))
            }
            Scope::Peer => {
                if matches!(self.state, super::State::Closed) {
                    return Err(SendError::Closed);
                }
                let caller = self.state.caller().ok_or(SendError::NotReady)?;
                let on = self.standalone().ok_or(SendError::NoStream)?;
                Ok((Arc::clone(caller), Address::on(on)))
            }
        }
    }

    /// The one stream for what belongs to no request: each message goes to one stream only.
    pub(super) fn standalone(&self) -> Option<StreamId> {
        if self.binding == Binding::Duplex {
            return self
                .streams
                .contains_key(&StreamId::DUPLEX)
                .then_some(StreamId::DUPLEX);
        }
        let mut streams = self.streams.iter();
        let found = streams.find(|(_, kind)| **kind == StreamKind::Standalone);
        found.map(|(stream, _)| *stream)
    }
}
