//! Reads a message of a client from standard input and prints its method; uses the message types of rmcp without its
//! default features.

use std::io::Read;

use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let message: ClientJsonRpcMessage = serde_json::from_slice(&bytes)?;
    let method = match &message {
        JsonRpcMessage::Request(request) => request.request.method(),
        JsonRpcMessage::Notification(it) => match &it.notification {
            ClientNotification::CancelledNotification(_) => "notifications/cancelled",
            ClientNotification::ProgressNotification(_) => "notifications/progress",
            ClientNotification::InitializedNotification(_) => "notifications/initialized",
            ClientNotification::RootsListChangedNotification(_) => {
                "notifications/roots/list_changed"
            }
            ClientNotification::CustomNotification(custom) => &custom.method,
            _ => "unknown",
        },
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => "none",
    };
    println!("{method}");
    Ok(())
}
