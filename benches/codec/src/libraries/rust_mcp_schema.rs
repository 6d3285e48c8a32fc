//! Library rust-mcp-schema, which has types of one revision at a time. A result is decoded as the first result type
//! that matches, or otherwise as a custom result.

use rust_mcp_schema::mcp_2025_06_18::schema_utils::{
    ClientMessage, ClientMessages, NotificationFromClient, NotificationFromServer,
    RequestFromClient, RequestFromServer, ResultFromClient, ResultFromServer, ServerMessage,
    ServerMessages,
};

use super::result_type;
use crate::contestant::{Library, Role, other_variant};
use crate::entry::{Entry, Side};

/// Library rust-mcp-schema.
pub struct RustMcpSchema;

/// Decoded message or batch.
#[allow(clippy::large_enum_variant)]
pub enum Decoded {
    Client(ClientMessage),
    Server(ServerMessage),
    ClientBatch(ClientMessages),
    ServerBatch(ServerMessages),
}

impl Library for RustMcpSchema {
    const NAME: &'static str = "rust-mcp-schema";
    const ROLE: Role = Role::Peer;
    type Decoded<'e> = Decoded;

    fn decode(entry: &Entry) -> Result<Decoded, String> {
        // The same calls as in the library's `FromStr`.
        let bytes = &entry.bytes;
        match (entry.batch, entry.side) {
            (false, Side::Client) => serde_json::from_slice(bytes).map(Decoded::Client),
            (false, Side::Server) => serde_json::from_slice(bytes).map(Decoded::Server),
            (true, Side::Client) => serde_json::from_slice(bytes).map(Decoded::ClientBatch),
            (true, Side::Server) => serde_json::from_slice(bytes).map(Decoded::ServerBatch),
        }
        .map_err(|error| error.to_string())
    }

    fn mistake(decoded: &Decoded, entry: &Entry) -> Option<String> {
        match decoded {
            Decoded::Client(message) => by_client(message, entry),
            Decoded::Server(message) => by_server(message, entry),
            Decoded::ClientBatch(ClientMessages::Batch(all)) => {
                all.iter().find_map(|message| by_client(message, entry))
            }
            Decoded::ServerBatch(ServerMessages::Batch(all)) => {
                all.iter().find_map(|message| by_server(message, entry))
            }
            _ => Some("taken for a single message".to_owned()),
        }
    }

    fn encode(decoded: &Decoded, out: &mut Vec<u8>) {
        // Writing to a `Vec` does not fail.
        let _ = match decoded {
            Decoded::Client(message) => serde_json::to_writer(out, message),
            Decoded::Server(message) => serde_json::to_writer(out, message),
            Decoded::ClientBatch(messages) => serde_json::to_writer(out, messages),
            Decoded::ServerBatch(messages) => serde_json::to_writer(out, messages),
        };
    }
}

/// Returns the reason that is reported for a message of a known method that was decoded as a custom message.
fn custom() -> Option<String> {
    Some("taken for a custom value".to_owned())
}

/// Returns the reason why a decoded message of the client does not match the entry; `None` if the message matches.
fn by_client(message: &ClientMessage, entry: &Entry) -> Option<String> {
    match message {
        ClientMessage::Request(it) => match &it.request {
            RequestFromClient::ClientRequest(_) => None,
            RequestFromClient::CustomRequest(_) => custom(),
        },
        ClientMessage::Notification(it) => match &it.notification {
            NotificationFromClient::ClientNotification(_) => None,
            NotificationFromClient::CustomNotification(_) => custom(),
        },
        ClientMessage::Response(it) => match &it.result {
            ResultFromClient::ClientResult(result) => other_result(result, entry),
            ResultFromClient::CustomResult(_) => custom(),
        },
        ClientMessage::Error(_) => None,
    }
}

/// Returns the reason why a decoded message of the server does not match the entry; `None` if the message matches.
fn by_server(message: &ServerMessage, entry: &Entry) -> Option<String> {
    match message {
        ServerMessage::Request(it) => match &it.request {
            RequestFromServer::ServerRequest(_) => None,
            RequestFromServer::CustomRequest(_) => custom(),
        },
        ServerMessage::Notification(it) => match &it.notification {
            NotificationFromServer::ServerNotification(_) => None,
            NotificationFromServer::CustomNotification(_) => custom(),
        },
        ServerMessage::Response(it) => match &it.result {
            ResultFromServer::ServerResult(result) => other_result(result, entry),
            ResultFromServer::CustomResult(_) => custom(),
        },
        ServerMessage::Error(_) => None,
    }
}

/// Returns the reason why a decoded result does not match the entry; `None` if the result has the expected type.
fn other_result(result: &dyn std::fmt::Debug, entry: &Entry) -> Option<String> {
    // The library's variant for empty results is the general variant.
    match result_type(entry.answers?) {
        "EmptyResult" => other_variant(result, "Result"),
        name => other_variant(result, name),
    }
}
