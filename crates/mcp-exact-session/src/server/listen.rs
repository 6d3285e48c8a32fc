//! Subscriptions, as a server sees them (2026-07-28: `basic/patterns/subscriptions`).
//!
//! Takes requests to listen; acknowledges them, tells their clients of changes, ends them. What is kept lives as long as the
//! request.

use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, JsonRef, ObjectRef, RequestId};

use super::ServerEndpoint;
use super::incoming::{Caller, FrameContext, ServerEvent};
use super::receive::Received;
use super::request_meta::Resumed;
use crate::capability;
use crate::config::{Extension, ServerConfig};
use crate::error::PeerError;
use crate::limits::Limit;
use crate::message::Call;
use crate::meta;
use crate::outbox::Address;
use crate::types::{Binding, Change, RequestKey, Sent, StreamId};

/// What a client listens to (`basic/patterns/subscriptions`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Changes of the resources with these URIs.
    pub uris: Vec<String>,
    /// What extensions add: a listener is told of it by [`ServerEndpoint::notify`] during its request.
    pub more: JsonObject,
}

impl Filter {
    pub(crate) fn of(notifications: ObjectRef<'_>) -> Option<Self> {
        let flag = |name: &str| match notifications.find(name) {
            None => Some(false),
            Some(value) => value.decode_as().ok(),
        };
        let uris = notifications.find("resourceSubscriptions");
        let uris = uris.map(JsonRef::decode_as).transpose().ok()?;
        Some(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: uris.unwrap_or_default(),
            more: notifications
                .iter()
                .filter(|(name, _)| !FILTERS.contains(&&**name))
                .map(|(name, value)| (name, value.to_json()))
                .collect(),
        })
    }

    pub(crate) fn object(&self) -> JsonObject {
        let mut object = JsonObject::new();
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (name, _) in flags.into_iter().filter(|(_, wanted)| *wanted) {
            object.insert(name, true);
        }
        if !self.uris.is_empty() {
            object.insert("resourceSubscriptions", Json::from_encode(&self.uris));
        }
        for (name, value) in self.more.iter() {
            object.insert(&name, value.parse().unwrap_or(Json::null()));
        }
        object
    }

    /// What a server with these capabilities honours of it.
    fn honoured(mut self, config: &ServerConfig) -> Self {
        let declared = |path: &[&str]| capability::declared(&config.capabilities, path);
        self.tools &= declared(&["tools", "listChanged"]);
        self.prompts &= declared(&["prompts", "listChanged"]);
        self.resources &= declared(&["resources", "listChanged"]);
        if !declared(&["resources", "subscribe"]) {
            self.uris.clear();
        }
        let ours = |name: &str| extension_of(config, name).is_some();
        let kept = self.more.iter().filter(|(name, _)| ours(name));
        self.more = kept
            .map(|(name, value)| (name, value.parse().unwrap_or(Json::null())))
            .collect();
        self
    }

    /// How much memory it takes, about.
    pub(crate) fn size(&self) -> usize {
        let uris = self.uris.iter().map(|uri| size_of::<String>() + uri.len());
        uris.sum::<usize>() + self.more.text().len()
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
        }
    }
}

/// The request of a session that subscribes to a resource.
pub(super) const SUBSCRIBE: &str = "resources/subscribe";

/// Members of a filter that the core defines.
const FILTERS: [&str; 4] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
];

/// The extension that a member of a filter belongs to.
fn extension_of<'c>(config: &'c ServerConfig, member: &str) -> Option<&'c Extension> {
    let mut all = config.extensions.negotiated.iter();
    all.find(|extension| extension.filters.iter().any(|known| known == member))
}

/// A request that is answered by notifications until it ends.
#[derive(Debug)]
pub(super) struct Listening {
    filter: Filter,
}

impl<C> ServerEndpoint<C> {
    /// `subscriptions/listen`: acknowledged first, then answered by notifications until it ends.
    pub(super) fn listen(
        &mut self,
        request: Received,
        caller: Arc<Caller>,
        with: &Arc<FrameContext<C>>,
    ) {
        let (on, id) = (request.on, request.id.clone());
        let wanted = request.call.param("notifications");
        let Some(filter) = wanted.and_then(JsonRef::object).and_then(Filter::of) else {
            let error = PeerError::invalid_params("`notifications` has to be a filter");
            return self.refuse(on, None, &id, &error);
        };
        let filter = filter.honoured(&self.config);
        let theirs = &caller.agreed.capabilities;
        let lacking = filter
            .more
            .iter()
            .filter_map(|(name, _)| extension_of(&self.config, &name))
            .find(|extension| !extension.declared(theirs));
        if let Some(extension) = lacking {
            let error = PeerError::missing_extension(&extension.id);
            return self.refuse(on, None, &id, &error);
        }
        if let Err(error) = self.may_listen(filter.size()) {
            return self.refuse(on, None, &id, &error);
        }
        let meta = subscription(&id);
        let request = Received {
            batch: None,
            ..request
        };
        // The program has nothing to reply to; it is told of the filter instead.
        let key = self.keep(request, caller, with, Resumed::default()).key;
        let params = JsonObject::from_iter([
            ("_meta", Json::from(meta)),
            ("notifications", filter.object().into()),
        ]);
        let call = Call::new("notifications/subscriptions/acknowledged", Some(params));
        self.say(Address::on(on).about(key), call);
        if let Some(serving) = self.served.get_mut(key) {
            let filter = filter.clone();
            serving.rest.listening = Some(Listening { filter });
        }
        self.events
            .push_back(ServerEvent::Subscribed { key, filter });
    }

    pub(super) fn publish_to_listeners(&mut self, change: &Change) -> usize {
        let wants = |listening: &Option<Listening>| {
            listening
                .as_ref()
                .is_some_and(|listening| listening.filter.wants(change))
        };
        let listeners = self.served.iter().filter(|(_, s)| wants(&s.rest.listening));
        let listeners: Vec<(RequestKey, StreamId, RequestId)> = listeners
            .map(|(key, serving)| (key, serving.stream, serving.id.clone()))
            .collect();
        let mut count = 0;
        for (key, on, id) in listeners {
            if self.outbox.full(&self.config.limits).is_some() {
                break;
            }
            let mut params = JsonObject::from_iter([("_meta", subscription(&id))]);
            if let Change::Resource(uri) = change {
                params.insert("uri", Json::string(uri));
            }
            let call = Call::new(change.method(), Some(params));
            let sent = self.say(Address::on(on).about(key), call);
            count += usize::from(sent == Sent::Queued);
        }
        count
    }

    /// How much a client listens to already: how many times, and how many bytes that takes.
    pub(super) fn listeners(&self) -> (usize, usize) {
        let listening = self.served.iter().filter_map(|(_, serving)| {
            let listening = serving.rest.listening.as_ref();
            listening.map(|listening| listening.filter.size())
        });
        let there = (self.subscriptions.len(), self.subscriptions.bytes());
        listening.fold(there, more)
    }

    /// Whether a client may listen to one more, of so many bytes. A subscription that the program has not replied to counts
    /// too, with the whole request: its reply is not refused later.
    pub(super) fn may_listen(&self, bytes: usize) -> Result<(), PeerError> {
        let waiting = self.served.iter().filter_map(|(_, serving)| {
            let waits = serving.rest.origin.call.method == SUBSCRIBE;
            waits.then_some(serving.size)
        });
        let (count, held) = waiting.fold(self.listeners(), more);
        let limits = &self.config.limits;
        if count >= limits.subscriptions {
            return Err(PeerError::limit(Limit::Subscriptions));
        }
        if held + bytes > limits.subscription_bytes {
            return Err(PeerError::limit(Limit::SubscriptionBytes));
        }
        Ok(())
    }

    /// Ends every subscription gracefully: on a duplex stream `cancelled` and then the result, over HTTP the result.
    pub(super) fn end_listening(&mut self) {
        let listening = self
            .served
            .iter()
            .filter(|(_, s)| s.rest.listening.is_some());
        let keys: Vec<RequestKey> = listening.map(|(key, _)| key).collect();
        for key in keys {
            self.end_subscription(key);
        }
    }

    /// Ends one subscription gracefully. Nothing happens when the request listens to nothing.
    pub fn end_subscription(&mut self, key: RequestKey) {
        let Some(serving) = self.served.get(key).filter(|s| s.rest.listening.is_some()) else {
            return;
        };
        let (id, on) = (serving.id.clone(), serving.stream);
        let rules = serving.rest.caller.rules;
        if self.binding == Binding::Duplex {
            let id = Json::from_encode(&id);
            let call = crate::builtin_notifications::Cancel::call(id, "the subscription has ended");
            self.say(Address::on(on).about(key), call);
        }
        let result = JsonObject::from_iter([
            ("resultType", Json::string("complete")),
            ("_meta", subscription(&id).into()),
        ]);
        let bytes = self.words(rules).beside(&id, &result, None);
        self.answer(key, bytes, 200);
    }
}

fn more((count, bytes): (usize, usize), of_one: usize) -> (usize, usize) {
    (count + 1, bytes + of_one)
}

/// How many bytes the URI takes that a request subscribes to.
pub(super) fn uri_bytes(params: &JsonObject) -> usize {
    let uri = params.view().find("uri").and_then(JsonRef::as_str);
    uri.map_or(0, |uri| uri.len())
}

fn subscription(id: &RequestId) -> JsonObject {
    JsonObject::from_iter([(meta::SUBSCRIPTION_ID, Json::from_encode(id))])
}
