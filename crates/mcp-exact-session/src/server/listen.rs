//! Server side of subscriptions in the lifecycle without sessions (2026-07-28: `basic/patterns/subscriptions`).
//!
//! A `subscriptions/listen` request is acknowledged, followed by notifications of changes, and ended by its result. A
//! subscription lasts as long as its request.

use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, JsonRef, RequestId};

use super::ServerEndpoint;
use super::incoming::{ClientContext, FrameContext, Scope, ServerEvent};
use super::receive::{ReceivedRequest, RetryInput};
use crate::builtin_notifications::{ACKNOWLEDGED, CancelledParams};
use crate::change::Change;
use crate::core::{Endpoint, Frame};
use crate::filter::Filter;
use crate::heap_size::HeapSize;
use crate::limits::Limit;
use crate::message::{self, Call};
use crate::meta;
use crate::outcome::SendOutcome;
use crate::refusal::Refusal;
use crate::rules::results::{COMPLETE, RESULT_TYPE};
use crate::rules::{Handler, change_method, client_request};
use crate::stream::{Binding, RequestKey};

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Handles `subscriptions/listen`: acknowledges the subscription, which receives notifications until it ends.
    pub(super) fn handle_listen(
        &mut self,
        received: ReceivedRequest,
        client: Arc<ClientContext>,
        context: &Arc<FrameContext<C>>,
    ) {
        let (at, id) = (received.arrival, received.id.clone());
        let filter = match self.honoured_filter(&received.call, &client) {
            Ok(filter) => filter,
            Err(refusal) => return self.refuse_request(at, &id, &refusal, false),
        };
        // The application does not reply to this request, but is notified of the filter.
        let subscription = self.record_request(received, client, context, RetryInput::default());
        let key = subscription.key;
        if let Some(request) = self.core.in_flight.get_mut(key) {
            request.role_state.subscription = Some(filter.clone());
        }
        if !self.settings.application_acknowledges {
            self.acknowledge(key);
        }
        self.core.push_event(ServerEvent::Subscribed {
            key,
            filter,
            request: subscription,
        });
    }

    /// Acknowledges a part of a subscription, as [`acknowledge`](Self::acknowledge) does for the entire subscription: the
    /// acknowledgement "reflects the subset the server agreed to" (section "Acknowledgment"). Only changes of the part are sent.
    pub fn acknowledge_part(&mut self, key: RequestKey, part: Filter) {
        if let Some(request) = self.core.in_flight.get_mut(key)
            && request.role_state.subscription.is_some()
            && !request.role_state.is_acknowledged
        {
            request.role_state.subscription = Some(part);
            self.acknowledge(key);
        }
    }

    /// Acknowledges a subscription, if
    /// [`ServerConfig::application_acknowledges`](crate::ServerConfig::application_acknowledges) is set. Changes are
    /// sent after the acknowledgement. The function has no effect if the request is not a subscription, or was
    /// acknowledged before.
    pub fn acknowledge(&mut self, key: RequestKey) {
        let Some(request) = self.core.in_flight.get_mut(key) else {
            return;
        };
        let Some(filter) = &request.role_state.subscription else {
            return;
        };
        if std::mem::replace(&mut request.role_state.is_acknowledged, true) {
            return;
        }
        let params = JsonObject::from_iter([
            ("_meta", Json::from(subscription_meta(&request.id))),
            ("notifications", filter.to_object().into()),
        ]);
        let call = Call::new(ACKNOWLEDGED, Some(params));
        let frame = Frame::new(request.stream, message::write_notification(call));
        self.core.queue_frame(frame.with_incoming_request(key));
    }

    /// Returns the part of the requested filter that the server supports.
    fn honoured_filter(&self, call: &Call, client: &ClientContext) -> Result<Filter, Refusal> {
        let wanted = call.param("notifications").and_then(JsonRef::object);
        let filter = wanted.and_then(Filter::from_object);
        let filter = filter
            .ok_or_else(|| Refusal::InvalidParams("`notifications` must be a filter".to_owned()))?;
        let filter = filter.restrict_to(&self.settings.capabilities, &self.settings.extensions);
        for (name, _) in filter.extension_members.iter() {
            if let Some(extension) = self.settings.extensions.adding_filter_member(&name)
                && !extension.is_declared(&client.info.capabilities)
            {
                return Err(Refusal::MissingExtension(extension.id.clone()));
            }
        }
        self.check_subscription(filter.heap_size())?;
        Ok(filter)
    }

    /// Sends a change to every subscription whose filter includes the change.
    pub(super) fn publish_to_subscriptions(&mut self, change: &Change) -> usize {
        let keys = self.core.in_flight.keys_where(|request| {
            let subscription = request.role_state.subscription.as_ref();
            subscription.is_some_and(|filter| filter.includes(change))
        });
        let method = change_method(change.kind());

        keys.into_iter()
            .filter(|key| {
                let sent = self.notify(Scope::During(*key), method, change.params());
                sent == Ok(SendOutcome::Queued)
            })
            .count()
    }

    /// Returns the changes that the client subscribes to, in its session and by its subscriptions, for
    /// [`Subscribers`](crate::Subscribers).
    pub fn subscribed_changes(&self) -> Filter {
        let mut interests = Filter::default();
        if self.state.client().is_some() && !self.is_closed() {
            interests.tools = true;
            interests.prompts = true;
            interests.resources = true;
            interests.uris = self.subscriptions.uris().map(str::to_owned).collect();
            interests =
                interests.restrict_to(&self.settings.capabilities, &self.settings.extensions);
        }
        let requests = self.core.in_flight.iter();
        interests
            .merge(requests.filter_map(|(_, request)| request.role_state.subscription.as_ref()));
        interests
    }

    /// Returns the number of the client's subscriptions, and their total size in bytes.
    pub(super) fn subscription_usage(&self) -> (usize, usize) {
        let filters = self.core.in_flight.iter().filter_map(|(_, request)| {
            let filter = request.role_state.subscription.as_ref();
            filter.map(HeapSize::heap_size)
        });
        let resources = (self.subscriptions.len(), self.subscriptions.bytes());
        filters.fold(resources, add_subscription)
    }

    /// Checks that the limits allow one more subscription of this size in bytes.
    ///
    /// A subscription that waits for the reply of the application counts with the size of the whole request, so that
    /// its acceptance cannot exceed the limit.
    pub(super) fn check_subscription(&self, bytes: usize) -> Result<(), Refusal> {
        let waiting = self.core.in_flight.iter().filter_map(|(_, request)| {
            let role = &request.role_state;
            let rule = client_request(&role.received_call.call.method, role.client.spec)?;
            (rule.handler == Handler::Subscribe).then_some(request.size)
        });
        let (count, held) = waiting.fold(self.subscription_usage(), add_subscription);
        let limits = &self.core.limits;
        if count >= limits.subscriptions {
            return Err(Refusal::Limit(Limit::Subscriptions));
        }
        if held + bytes > limits.subscription_bytes {
            return Err(Refusal::Limit(Limit::SubscriptionBytes));
        }
        Ok(())
    }

    /// Ends every subscription: on a duplex stream by `notifications/cancelled` and the result, over HTTP by the result.
    pub fn end_subscriptions(&mut self) {
        for key in self
            .core
            .in_flight
            .keys_where(|request| request.role_state.subscription.is_some())
        {
            self.end_subscription(key);
        }
    }

    /// Ends one subscription. The function has no effect if the request is not a subscription.
    pub fn end_subscription(&mut self, key: RequestKey) {
        let request = self.core.in_flight.get(key);
        let Some(request) = request.filter(|request| request.role_state.subscription.is_some())
        else {
            return;
        };
        let (id, stream) = (request.id.clone(), request.stream);
        let spec = request.role_state.client.spec;
        if self.core.binding == Binding::Duplex {
            let call =
                CancelledParams::to_call(Json::from_encode(&id), "the subscription has ended");
            let frame =
                Frame::new(stream, message::write_notification(call)).with_incoming_request(key);
            self.core.queue_frame(frame.with_reserve());
        }
        let result = JsonObject::from_iter([
            (RESULT_TYPE, Json::string(COMPLETE)),
            ("_meta", subscription_meta(&id).into()),
        ]);
        let bytes = self.result_message(&id, &result, spec);
        self.finish_request(key, bytes, Some(200));
    }
}

/// Adds one subscription of `more` bytes to a number of subscriptions and their size in bytes.
fn add_subscription((count, bytes): (usize, usize), more: usize) -> (usize, usize) {
    (count + 1, bytes + more)
}

/// Returns a `_meta` object with the subscription id.
fn subscription_meta(id: &RequestId) -> JsonObject {
    JsonObject::from_iter([(meta::SUBSCRIPTION_ID, Json::from_encode(id))])
}
