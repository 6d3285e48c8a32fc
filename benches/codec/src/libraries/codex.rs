//! Library codex-mcp-types: decodes an envelope that contains a `serde_json::Value`, and converts the value to the type
//! of the method; encodes in the reverse order. The library has no batches.

use mcp::{
    ClientRequest, JSONRPCMessage, ModelContextProtocolNotification, ModelContextProtocolRequest,
    RequestId,
};
use mcp_types as mcp;
use serde_json::Value;

use crate::contestant::{Library, Role};
use crate::entry::{Entry, Side};

/// Library codex-mcp-types.
pub struct Codex;

/// Decoded message of either peer.
pub enum Decoded {
    ClientRequest(RequestId, ClientRequest),
    ServerNotification(mcp::ServerNotification),
    ServerRequest(RequestId, &'static str, Params),
    ClientNotification(&'static str, Params),
    Result(RequestId, Outcome),
    Error(mcp::JSONRPCError),
}

impl Library for Codex {
    const NAME: &'static str = "codex-mcp-types";
    const ROLE: Role = Role::Peer;
    type Decoded<'e> = Decoded;

    fn decode(entry: &Entry) -> Result<Decoded, String> {
        if entry.batch {
            return Err("has no batches".to_owned());
        }
        decode(entry).map_err(|error| error.to_string())
    }

    fn encode(decoded: &Decoded, out: &mut Vec<u8>) {
        // Writing to a `Vec` does not fail, and decoded values can be encoded.
        let _ = message(decoded).and_then(|message| serde_json::to_writer(out, &message));
    }
}

/// Decodes the message of an entry into typed params or a typed result.
fn decode(entry: &Entry) -> Result<Decoded, serde_json::Error> {
    let message = serde_json::from_slice::<JSONRPCMessage>(&entry.bytes)?;
    Ok(match (message, entry.side) {
        (JSONRPCMessage::Request(request), Side::Client) => {
            Decoded::ClientRequest(request.id.clone(), ClientRequest::try_from(request)?)
        }
        (JSONRPCMessage::Request(request), Side::Server) => {
            let (method, params) =
                Params::decode(&request.method, request.params.unwrap_or_default())?;
            Decoded::ServerRequest(request.id, method, params)
        }
        (JSONRPCMessage::Notification(notification), Side::Client) => {
            let (method, params) = Params::decode(
                &notification.method,
                notification.params.unwrap_or_default(),
            )?;
            Decoded::ClientNotification(method, params)
        }
        (JSONRPCMessage::Notification(notification), Side::Server) => {
            Decoded::ServerNotification(mcp::ServerNotification::try_from(notification)?)
        }
        (JSONRPCMessage::Response(response), _) => {
            let method = entry.answers.unwrap_or_default();
            let (_, outcome) = Outcome::decode(method, response.result)?;
            Decoded::Result(response.id, outcome)
        }
        (JSONRPCMessage::Error(error), _) => Decoded::Error(error),
    })
}

/// Converts a decoded message to an envelope with untyped params or an untyped result.
fn message(decoded: &Decoded) -> Result<JSONRPCMessage, serde_json::Error> {
    Ok(match decoded {
        Decoded::ClientRequest(id, typed) => {
            let (method, params) = parts(serde_json::to_value(typed)?);
            request(id, method, params)
        }
        Decoded::ServerRequest(id, method, params) => {
            request(id, (*method).to_owned(), params.encode()?)
        }
        Decoded::ServerNotification(typed) => {
            let (method, params) = parts(serde_json::to_value(typed)?);
            notification(method, params)
        }
        Decoded::ClientNotification(method, params) => {
            notification((*method).to_owned(), params.encode()?)
        }
        Decoded::Result(id, outcome) => JSONRPCMessage::Response(mcp::JSONRPCResponse {
            id: id.clone(),
            jsonrpc: mcp::JSONRPC_VERSION.to_owned(),
            result: outcome.encode()?,
        }),
        Decoded::Error(error) => JSONRPCMessage::Error(error.clone()),
    })
}

/// Splits a serialized `ClientRequest` or `ServerNotification` into its method and its params.
fn parts(mut tagged: Value) -> (String, Value) {
    let params = tagged
        .get_mut("params")
        .map(Value::take)
        .unwrap_or_default();
    match tagged.get_mut("method").map(Value::take) {
        Some(Value::String(method)) => (method, params),
        _ => (String::new(), params),
    }
}

/// Returns the envelope of a request.
fn request(id: &RequestId, method: String, params: Value) -> JSONRPCMessage {
    JSONRPCMessage::Request(mcp::JSONRPCRequest {
        id: id.clone(),
        jsonrpc: mcp::JSONRPC_VERSION.to_owned(),
        method,
        params: (!params.is_null()).then_some(params),
    })
}

/// Returns the envelope of a notification.
fn notification(method: String, params: Value) -> JSONRPCMessage {
    JSONRPCMessage::Notification(mcp::JSONRPCNotification {
        jsonrpc: mcp::JSONRPC_VERSION.to_owned(),
        method,
        params: (!params.is_null()).then_some(params),
    })
}

/// Defines an enum with one variant per method, for messages for which the library has no enum.
macro_rules! by_method {
    ($(#[$doc:meta])* $name:ident, $($of:ident :: $part:ident as $variant:ident,)*) => {
        $(#[$doc])*
        #[allow(clippy::enum_variant_names, clippy::large_enum_variant)]
        pub enum $name {
            $($variant(by_method!(@type $of $part $variant)),)*
        }

        impl $name {
            /// Decodes a value as the type of a method; returns the method and the decoded value.
            fn decode(method: &str, value: Value) -> Result<(&'static str, Self), serde_json::Error> {
                match method {
                    $(by_method!(@method $of $variant) => Ok((
                        by_method!(@method $of $variant),
                        Self::$variant(serde_json::from_value(value)?),
                    )),)*
                    _ => Err(serde::de::Error::custom("unknown method")),
                }
            }

            /// Encodes the decoded value.
            fn encode(&self) -> Result<Value, serde_json::Error> {
                match self {
                    $(Self::$variant(value) => serde_json::to_value(value),)*
                }
            }
        }
    };
    (@type Request $part:ident $variant:ident) => { <mcp::$variant as ModelContextProtocolRequest>::$part };
    (@type Notification $part:ident $variant:ident) => { <mcp::$variant as ModelContextProtocolNotification>::$part };
    (@method Request $variant:ident) => { <mcp::$variant as ModelContextProtocolRequest>::METHOD };
    (@method Notification $variant:ident) => { <mcp::$variant as ModelContextProtocolNotification>::METHOD };
}

by_method! {
    /// Params of server requests and client notifications, by method.
    Params,
    Request::Params as PingRequest,
    Request::Params as CreateMessageRequest,
    Request::Params as ListRootsRequest,
    Request::Params as ElicitRequest,
    Notification::Params as CancelledNotification,
    Notification::Params as InitializedNotification,
    Notification::Params as ProgressNotification,
    Notification::Params as RootsListChangedNotification,
}

by_method! {
    /// Results of clients and servers, by method.
    Outcome,
    Request::Result as InitializeRequest,
    Request::Result as PingRequest,
    Request::Result as ListResourcesRequest,
    Request::Result as ListResourceTemplatesRequest,
    Request::Result as ReadResourceRequest,
    Request::Result as ListPromptsRequest,
    Request::Result as GetPromptRequest,
    Request::Result as ListToolsRequest,
    Request::Result as CallToolRequest,
    Request::Result as CompleteRequest,
    Request::Result as CreateMessageRequest,
    Request::Result as ListRootsRequest,
    Request::Result as ElicitRequest,
}
