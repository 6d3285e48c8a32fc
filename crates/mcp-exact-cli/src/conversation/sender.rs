//! Determines the sender of a message in a recording without senders: from the method of the message, and from the
//! request that the message answers or names.

use std::collections::HashSet;

use mcp_exact_revisions::MethodId;
use mcp_exact_wire::Kind;

use super::Conversation;
use crate::message::Direction;
use crate::value::Value;

impl Conversation {
    /// Returns the sender of a message, which the method or the answered request determines.
    pub fn find_sender(&self, value: Value<'_>) -> Direction {
        match value.kind() {
            Kind::Array => {
                let items = value.items();
                let first = items.first().map(Value::of);
                self.find_sender_of_single(first.unwrap_or_default())
            }
            _ => self.find_sender_of_single(value),
        }
    }

    /// Returns the method of the unanswered request that a response answers, if there is one; `from` has sent the response.
    pub fn method_of_answered(&self, from: Direction, id: Value<'_>) -> Option<&str> {
        let pending = self.pending.get(&(from.peer(), id.key()))?;
        Some(&pending.method)
    }

    /// Returns the sender of a message that is no batch.
    fn find_sender_of_single(&self, message: Value<'_>) -> Direction {
        let Some(method) = message.get("method").as_str() else {
            let id = message.get("id").key();
            let asked = [Direction::Client, Direction::Server];
            let asked = asked
                .into_iter()
                .find(|side| self.pending.contains_key(&(*side, id.clone())));
            return asked.unwrap_or(Direction::Client).peer();
        };
        let method = &*method;
        if let Some(side) = self.find_sender_of_shared_method(method, message.get("params")) {
            return side;
        }
        let sides = mcp_exact_revisions::all().iter().flat_map(|spec| {
            let sends = |side: Direction| {
                let methods = spec.methods(side.into());
                methods.has_request(method) || methods.has_notification(method)
            };
            [Direction::Client, Direction::Server]
                .into_iter()
                .filter(move |side| sends(*side))
        });
        let sides: HashSet<Direction> = sides.collect();
        match (
            sides.contains(&Direction::Client),
            sides.contains(&Direction::Server),
        ) {
            (false, true) => Direction::Server,
            _ => Direction::Client,
        }
    }

    /// Returns the sender of a notification whose method both sides send, which the request that the notification names
    /// determines.
    fn find_sender_of_shared_method(&self, method: &str, params: Value<'_>) -> Option<Direction> {
        let both = [Direction::Client, Direction::Server];
        match MethodId::from_name(method) {
            MethodId::NotificationsProgress => {
                let token = params.get("progressToken").key();
                let asked = both
                    .into_iter()
                    .find(|side| self.tokens.contains_key(&(*side, token.clone())));
                Some(asked.unwrap_or(Direction::Client).peer())
            }
            MethodId::NotificationsCancelled => {
                let id = params.get("requestId").key();
                both.into_iter()
                    .find(|side| self.pending.contains_key(&(*side, id.clone())))
            }
            _ => None,
        }
    }
}
