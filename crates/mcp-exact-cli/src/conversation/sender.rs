//! Determines the sender of a message in a recording without senders: from the method of the message, and from the
//! request that the message answers or names.

use std::collections::HashSet;

use serde_json::Value;

use super::Conversation;
use crate::message::Direction;

impl Conversation {
    /// Returns the sender of a message, which the method or the answered request determines.
    pub(super) fn find_sender(&self, value: &Value) -> Direction {
        let first = match value {
            Value::Array(items) => items.first().unwrap_or(&Value::Null),
            value => value,
        };
        let Some(method) = first.get("method").and_then(Value::as_str) else {
            let id = first.get("id").unwrap_or(&Value::Null).to_string();
            let asked = [Direction::Client, Direction::Server];
            let asked = asked
                .into_iter()
                .find(|side| self.pending.contains_key(&(*side, id.clone())));
            return asked.unwrap_or(Direction::Client).peer();
        };
        if let Some(side) = self.find_sender_of_shared_method(method, &first["params"]) {
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
    fn find_sender_of_shared_method(&self, method: &str, params: &Value) -> Option<Direction> {
        let both = [Direction::Client, Direction::Server];
        match method {
            "notifications/progress" => {
                let token = params["progressToken"].to_string();
                let asked = both
                    .into_iter()
                    .find(|side| self.tokens.contains_key(&(*side, token.clone())));
                Some(asked.unwrap_or(Direction::Client).peer())
            }
            "notifications/cancelled" => {
                let id = params["requestId"].to_string();
                both.into_iter()
                    .find(|side| self.pending.contains_key(&(*side, id.clone())))
            }
            _ => None,
        }
    }
}
