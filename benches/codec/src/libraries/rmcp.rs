//! Library rmcp, the official SDK, which has one set of types for all revisions and no batches. A result is decoded as
//! the first result type that matches. Messages are decoded as the transports of the library decode them: by
//! `serde_json::from_slice` into the messages of one direction.

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};

use super::result_type;
use crate::contestant::{Library, Role, other_variant};
use crate::entry::{Entry, Side};

/// Library rmcp.
pub struct Rmcp;

/// Decoded message.
pub enum Decoded {
    Client(ClientJsonRpcMessage),
    Server(ServerJsonRpcMessage),
}

impl Library for Rmcp {
    const NAME: &'static str = "rmcp";
    const ROLE: Role = Role::Peer;
    type Decoded<'e> = Decoded;

    fn decode(entry: &Entry) -> Result<Decoded, String> {
        if entry.batch {
            return Err("has no batches".to_owned());
        }
        match entry.side {
            Side::Client => serde_json::from_slice(&entry.bytes).map(Decoded::Client),
            Side::Server => serde_json::from_slice(&entry.bytes).map(Decoded::Server),
        }
        .map_err(|error| error.to_string())
    }

    fn mistake(decoded: &Decoded, entry: &Entry) -> Option<String> {
        match decoded {
            Decoded::Client(message) => in_message(message, entry),
            Decoded::Server(message) => in_message(message, entry),
        }
    }

    fn encode(decoded: &Decoded, out: &mut Vec<u8>) {
        // Writing to a `Vec` does not fail.
        let _ = match decoded {
            Decoded::Client(message) => serde_json::to_writer(out, message),
            Decoded::Server(message) => serde_json::to_writer(out, message),
        };
    }
}

/// Returns the reason why a decoded message does not match the entry: a message of a known method that was decoded as a
/// custom message, or a result of another type.
fn in_message<Q, S, N>(message: &JsonRpcMessage<Q, S, N>, entry: &Entry) -> Option<String>
where
    Q: std::fmt::Debug,
    S: std::fmt::Debug,
    N: std::fmt::Debug,
{
    let custom = |value: &dyn std::fmt::Debug, name: &str| match other_variant(value, name) {
        Some(_) => None,
        None => Some(format!("taken for {name}")),
    };
    match message {
        JsonRpcMessage::Request(request) => custom(&request.request, "CustomRequest"),
        JsonRpcMessage::Notification(it) => custom(&it.notification, "CustomNotification"),
        JsonRpcMessage::Response(response) => entry
            .answers
            .and_then(|method| other_variant(&response.result, result_type(method))),
        JsonRpcMessage::Error(_) => None,
    }
}
