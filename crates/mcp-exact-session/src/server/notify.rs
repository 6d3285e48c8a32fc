//! Notifications that a server sends: progress, log messages, changes, and others.
//!
//! A raw notification is checked by the same rules as the typed function of its method. The module `rules` decides whether a
//! client may receive a notification.

use std::sync::Arc;

use mcp_exact_wire::{EncodeParams, Json, JsonObject, JsonRef, Notification};

use super::ServerEndpoint;
use super::incoming::{ClientContext, Scope};
use crate::builtin_notifications::{MESSAGE, PROGRESS, decode_log_message, progress_params};
use crate::canonical;
use crate::change::{Change, Progress};
use crate::core::Frame;
use crate::error::SendError;
use crate::filter::Filter;
use crate::log::Level;
use crate::message::{self, Call};
use crate::meta;
use crate::outcome::{SendOutcome, encode_params};
use crate::rules::{self, Handler, MessageKind, NotificationTarget};
use crate::stream::{Binding, RequestKey, StreamId};

/// Stream and recipient of a message of the server.
pub(super) struct Destination {
    /// Client that receives the message.
    pub(super) client: Arc<ClientContext>,
    /// Stream that carries the message.
    pub(super) stream: StreamId,
    /// Request in flight to which the message belongs.
    request: Option<RequestKey>,
    /// Filter of the subscription, if the request is a subscription.
    subscription: Option<Filter>,
    /// True if the request is not a subscription, or is an acknowledged subscription.
    is_acknowledged: bool,
}

impl Destination {
    /// Returns the kind of destination that the rules check.
    fn rule_target(&self) -> NotificationTarget<'_> {
        match (self.request, &self.subscription) {
            (None, _) => NotificationTarget::Client,
            (Some(_), _) if !self.is_acknowledged => NotificationTarget::Unacknowledged,
            (Some(_), filter) => NotificationTarget::Request(filter.as_ref()),
        }
    }
}

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Sends progress of a request; nothing is sent if the client did not request progress.
    ///
    /// # Errors
    /// [`SendError::Progress`] if the progress value does not increase, [`SendError::UnknownRequest`] after the answer.
    pub fn send_progress(
        &mut self,
        of: RequestKey,
        progress: &Progress,
    ) -> Result<SendOutcome, SendError> {
        let Some(request) = self.core.in_flight.get(of) else {
            return self.result_without_request(of);
        };
        let Some(token) = &request.progress_token else {
            return Ok(SendOutcome::Suppressed);
        };
        let spec = request.role_state.client.spec;
        let params = progress_params(spec, token, progress).ok_or(SendError::Progress)?;
        self.notify(Scope::During(of), PROGRESS, Some(params))
    }

    /// Sends a log message to the sender of a request, or to the client of the session.
    ///
    /// The minimum level is chosen by the client for its session (up to 2025-11-25) or by each request (from 2026-07-28
    /// on). From 2026-07-28 on, log messages outside of a request are not sent.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the server has not declared `logging`, or no client can receive the message.
    pub fn send_log(
        &mut self,
        scope: Scope,
        level: Level,
        logger: Option<&str>,
        data: impl Into<Json>,
    ) -> Result<SendOutcome, SendError> {
        let mut params =
            JsonObject::from_iter([("level", Json::string(level.name())), ("data", data.into())]);
        if let Some(logger) = logger {
            params.insert("logger", Json::string(logger));
        }
        self.notify(scope, MESSAGE, Some(params))
    }

    /// Returns true if a log message of this level would be sent, so that an application can avoid creating messages
    /// that would not be sent.
    pub fn would_send_log(&self, scope: Scope, level: Level) -> bool {
        let Ok(destination) = self.destination(scope) else {
            return false;
        };
        let client = &destination.client;
        let rules = client.rules_for_client(&self.settings);
        let allowed = rules.check_sent_notification(MESSAGE, None, destination.rule_target());
        allowed.is_ok() && self.wants_log(client, level)
    }

    /// Returns true if the client asks for log messages of this level.
    fn wants_log(&self, client: &ClientContext, level: Level) -> bool {
        let wanted = if client.is_discover() {
            client.log_level
        } else {
            Some(self.chosen_log_level.unwrap_or(self.settings.log_level))
        };
        wanted.is_some_and(|wanted| level >= wanted)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`SendError`] if the revision has no such notification of a server, the server has not declared the needed capability, the
    /// notification is not allowed in this scope, or no client can receive it.
    pub fn notify(
        &mut self,
        scope: Scope,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<SendOutcome, SendError> {
        let destination = match (self.destination(scope), scope) {
            (Err(SendError::UnknownRequest), Scope::During(key)) => {
                return self.result_without_request(key);
            }
            (destination, _) => destination?,
        };
        let rules = destination.client.rules_for_client(&self.settings);
        let target = destination.rule_target();
        let handler = rules.check_sent_notification(method, params.as_ref(), target)?;
        // Before `notifications/initialized` a server sends nothing but logs (`basic/lifecycle`, "Initialization").
        let early = !destination.client.is_discover() && !self.state.is_operating();
        if early && scope == Scope::Peer && !self.may_notify_early(method) {
            return Err(SendError::NotReady);
        }
        if !self.has_recipient(handler, scope, &destination.client, params.as_ref())? {
            return Ok(SendOutcome::Suppressed);
        }
        if self.is_output_full(destination.stream) {
            return Ok(SendOutcome::Dropped);
        }
        self.record_notification(handler, scope, method, params.as_ref())?;
        let params = self.with_subscription(&destination, params);
        Ok(self.send_notification(&destination, Call::new(method, params)))
    }

    /// Sends a notification of a generated type; the type must belong to the client's revision.
    ///
    /// # Errors
    ///
    /// The errors of [`notify`](Self::notify).
    pub fn notify_typed<N: Notification>(
        &mut self,
        scope: Scope,
        params: &N::Params,
    ) -> Result<SendOutcome, SendError>
    where
        N::Params: EncodeParams,
    {
        let params = encode_params(N::METHOD, params)?;
        self.notify(scope, N::METHOD, params)
    }

    /// Announces a change to every interested client; returns the number of messages that are sent.
    ///
    /// Interested clients are subscribers of a resource, clients with a matching `subscriptions/listen`, and the client
    /// of a session whose server has declared `listChanged`. While a Streamable HTTP session has no standalone stream,
    /// changes are kept, without duplicates, until the next standalone stream opens.
    pub fn publish(&mut self, change: &Change) -> usize {
        self.publish_to_subscriptions(change) + self.publish_to_session(change)
    }

    /// Announces a change to the client of the session; returns the number of messages that are sent.
    fn publish_to_session(&mut self, change: &Change) -> usize {
        let wanted = match change {
            Change::Resource(uri) => self.subscriptions.contains(uri),
            Change::Tools | Change::Prompts | Change::Resources => true,
        };
        if !wanted || !self.state.is_operating() {
            return 0;
        }
        let method = rules::change_method(change.kind());
        match self.notify(Scope::Peer, method, change.params()) {
            Ok(SendOutcome::Queued) => 1,
            Err(SendError::NoStream) if self.may_announce(change) => {
                self.subscriptions.keep_change(change);
                0
            }
            _ => 0,
        }
    }

    /// Returns true if the session's client may be notified of a change.
    fn may_announce(&self, change: &Change) -> bool {
        let params = change.params();
        let announced = self.state.client().map(|client| {
            let rules = client.rules_for_client(&self.settings);
            rules.check_sent_notification(
                rules::change_method(change.kind()),
                params.as_ref(),
                NotificationTarget::Client,
            )
        });
        self.core.binding == Binding::StreamableHttp && announced.is_some_and(|rule| rule.is_ok())
    }

    /// Sends the changes that waited for a standalone stream on this stream.
    pub(super) fn send_waiting_changes(&mut self, stream: StreamId) {
        if self.core.streams.standalone() != Some(stream) {
            return;
        }
        for change in self.subscriptions.take_waiting_changes() {
            // A subscription that has ended in the meantime is not notified.
            self.publish_to_session(&change);
        }
    }

    /// Returns false if no client subscribes to the notification.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the parameters violate the rules of the typed function of the method.
    fn has_recipient(
        &self,
        handler: Handler,
        scope: Scope,
        client: &ClientContext,
        params: Option<&JsonObject>,
    ) -> Result<bool, SendError> {
        match (handler, scope) {
            (Handler::Log, _) => {
                let log = decode_log_message(params)
                    .ok_or_else(|| invalid_params(MESSAGE, "level and data"))?;
                Ok(self.wants_log(client, log.level))
            }
            (Handler::Progress, Scope::Peer) => Err(SendError::Placement {
                method: PROGRESS.to_owned(),
            }),
            (Handler::Progress, Scope::During(key)) => {
                let request = self.core.in_flight.get(key);
                let request = request.ok_or(SendError::UnknownRequest)?;
                let Some(token) = &request.progress_token else {
                    return Ok(false);
                };
                let [named, done] = params.map_or([None; 2], |params| {
                    params.view().find_each(["progressToken", "progress"])
                });
                if !named.is_some_and(|named| canonical::is_equal(named, token.view())) {
                    return Err(invalid_params(
                        PROGRESS,
                        "the progress token of the request",
                    ));
                }
                let done: Option<f64> = done.and_then(to_f64);
                match (done, request.last_progress) {
                    (None, _) => Err(invalid_params(PROGRESS, "a number as progress")),
                    (Some(done), Some(last)) if done <= last => Err(SendError::Progress),
                    _ => Ok(true),
                }
            }
            _ => Ok(true),
        }
    }

    /// Records the progress value or the completed elicitation of a notification that is sent.
    fn record_notification(
        &mut self,
        handler: Handler,
        scope: Scope,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<(), SendError> {
        match (handler, scope) {
            (Handler::Progress, Scope::During(key)) => {
                let done = params.and_then(|params| to_f64(params.view().find("progress")?));
                if let Some(request) = self.core.in_flight.get_mut(key) {
                    request.last_progress = done;
                }
                Ok(())
            }
            (Handler::ElicitationComplete, _) => {
                if self.core.elicitations.complete(params) {
                    Ok(())
                } else {
                    Err(invalid_params(
                        method,
                        "the `elicitationId` of an elicitation of this client",
                    ))
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the output queue has reached a limit.
    fn is_output_full(&self, stream: StreamId) -> bool {
        let (streams, limits) = (&self.core.streams, &self.core.limits);
        streams.reached_application_limit(limits).is_some()
            || streams.reached_limit(stream, limits).is_some()
    }

    /// Returns true if a notification may be sent before `notifications/initialized`.
    fn may_notify_early(&self, method: &str) -> bool {
        let side = mcp_exact_revisions::Side::Server;
        rules::row_before_negotiation(MessageKind::Notification, side, method).is_some()
    }

    /// Adds the subscription id to the params of a notification for a subscription (2026-07-28,
    /// `basic/patterns/subscriptions`).
    fn with_subscription(
        &self,
        destination: &Destination,
        params: Option<JsonObject>,
    ) -> Option<JsonObject> {
        let (Some(key), Some(_)) = (destination.request, &destination.subscription) else {
            return params;
        };
        let Some(request) = self.core.in_flight.get(key) else {
            return params;
        };
        let mut params = params.unwrap_or_default();
        let named = params.view().find("_meta").and_then(JsonRef::object);
        let mut named = named.unwrap_or_default().to_object();
        named.insert(meta::SUBSCRIPTION_ID, Json::from_encode(&request.id));
        params.insert("_meta", named);
        Some(params)
    }

    /// Queues a notification for its destination.
    pub(super) fn send_notification(
        &mut self,
        destination: &Destination,
        call: Call,
    ) -> SendOutcome {
        let mut frame = Frame::new(destination.stream, message::write_notification(call));
        frame.incoming_request = destination.request;
        self.core.queue_frame(frame)
    }

    /// Returns the result of sending a message about a request that is not in flight: suppressed if the request was
    /// cancelled, otherwise an error.
    fn result_without_request(&self, key: RequestKey) -> Result<SendOutcome, SendError> {
        if self.core.in_flight.was_cancelled(key) {
            Ok(SendOutcome::Suppressed)
        } else {
            Err(SendError::UnknownRequest)
        }
    }

    /// Returns the recipient and the stream of a message.
    pub(super) fn destination(&self, scope: Scope) -> Result<Destination, SendError> {
        match scope {
            Scope::During(key) => {
                let request = self.core.in_flight.get(key);
                let request = request.ok_or(SendError::UnknownRequest)?;
                Ok(Destination {
                    client: Arc::clone(&request.role_state.client),
                    stream: request.stream,
                    request: Some(key),
                    subscription: request.role_state.subscription.clone(),
                    is_acknowledged: request.role_state.subscription.is_none()
                        || request.role_state.is_acknowledged,
                })
            }
            Scope::Peer => {
                if self.is_closed() {
                    return Err(SendError::Closed);
                }
                let client = self.state.client().ok_or(SendError::NotReady)?;
                let stream = self.standalone_stream().ok_or(SendError::NoStream)?;
                Ok(Destination {
                    client: Arc::clone(client),
                    stream,
                    request: None,
                    subscription: None,
                    is_acknowledged: true,
                })
            }
        }
    }

    /// Returns the stream for messages that belong to no request: the newest standalone stream, because each message is sent on
    /// only one stream.
    fn standalone_stream(&self) -> Option<StreamId> {
        let streams = &self.core.streams;
        match self.core.binding {
            Binding::Duplex => Some(StreamId::DUPLEX).filter(|stream| streams.is_open(*stream)),
            Binding::StreamableHttp | Binding::HttpSse => streams.standalone(),
        }
    }
}

/// Returns the value of a JSON number; `None` for other values.
fn to_f64(value: JsonRef<'_>) -> Option<f64> {
    let number: mcp_exact_wire::Number = value.decode_as().ok()?;
    Some(number.as_f64())
}

/// Creates the error for params that lack a needed member.
fn invalid_params(method: &str, needed: &str) -> SendError {
    SendError::Params {
        method: method.to_owned(),
        reason: format!("it needs {needed}"),
    }
}
