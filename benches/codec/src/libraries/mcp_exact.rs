//! Library of this repository: decodes messages of one direction into exact types, and results by the method of their
//! requests.

use mcp_2025_03_26 as batching;
use mcp_2025_06_18 as mcp;

use crate::contestant::{Library, Role};
use crate::entry::{Entry, Side};

/// Typed messages of the library of this repository.
pub struct Typed;

/// Decoded message or batch.
pub enum Decoded {
    Client(mcp::ClientMessage),
    Server(mcp::ServerMessage),
    /// Batch of the client (2025-03-26).
    ClientFrame(batching::Frame<batching::FromClient>),
    /// Batch of the server (2025-03-26).
    ServerFrame(batching::Frame<batching::FromServer>),
}

impl Library for Typed {
    const NAME: &'static str = "mcp-exact";
    const ROLE: Role = Role::Ours;
    type Decoded<'e> = Decoded;

    fn decode(entry: &Entry) -> Result<Decoded, String> {
        let bytes = &entry.bytes;
        let answers = |_: &_| entry.answers;
        match (entry.batch, entry.side) {
            (false, Side::Client) => mcp::decode_message(bytes, &answers).map(Decoded::Client),
            (false, Side::Server) => mcp::decode_message(bytes, &answers).map(Decoded::Server),
            (true, Side::Client) => {
                batching::decode_frame(bytes, &answers).map(Decoded::ClientFrame)
            }
            (true, Side::Server) => {
                batching::decode_frame(bytes, &answers).map(Decoded::ServerFrame)
            }
        }
        .map_err(|error| error.to_string())
    }

    fn mistake(decoded: &Decoded, _: &Entry) -> Option<String> {
        match decoded {
            Decoded::ClientFrame(batching::Frame::Batch(messages)) => messages
                .iter()
                .find_map(|message| message.as_ref().err())
                .map(ToString::to_string),
            _ => None,
        }
    }

    fn encode(decoded: &Decoded, out: &mut Vec<u8>) {
        match decoded {
            Decoded::Client(message) => mcp::encode_into(message, out),
            Decoded::Server(message) => mcp::encode_into(message, out),
            Decoded::ClientFrame(frame) => batching::encode_into(frame, out),
            Decoded::ServerFrame(frame) => batching::encode_into(frame, out),
        }
    }
}
