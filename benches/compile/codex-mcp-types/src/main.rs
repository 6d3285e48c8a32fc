//! Reads a message of a client from standard input and prints its method; uses codex-mcp-types, with typed parameters
//! of requests.

use std::io::Read;

use mcp_types::{ClientRequest, JSONRPCMessage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let message: JSONRPCMessage = serde_json::from_slice(&bytes)?;
    let method = match message {
        JSONRPCMessage::Request(request) => {
            let method = request.method.clone();
            let typed = ClientRequest::try_from(request)?;
            // Keeps the typed value alive to here.
            std::hint::black_box(&typed);
            method
        }
        JSONRPCMessage::Notification(notification) => notification.method,
        JSONRPCMessage::Response(_) | JSONRPCMessage::Error(_) => "none".to_owned(),
    };
    println!("{method}");
    Ok(())
}
