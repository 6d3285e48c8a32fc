//! Reads a message of a client from standard input and prints its method; uses rust-mcp-schema with one revision.

use std::io::Read;
use std::str::FromStr;

use rust_mcp_schema::mcp_2025_06_18::schema_utils::{ClientMessage, NotificationFromClient};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let message = ClientMessage::from_str(&text).map_err(|error| error.message)?;
    let method = match &message {
        ClientMessage::Request(request) => request.request.method(),
        ClientMessage::Notification(notification) => by_notification(&notification.notification),
        ClientMessage::Response(_) | ClientMessage::Error(_) => "none",
    };
    println!("{method}");
    Ok(())
}

/// Returns the method of a notification.
fn by_notification(notification: &NotificationFromClient) -> &str {
    match notification {
        NotificationFromClient::ClientNotification(known) => known.method(),
        NotificationFromClient::CustomNotification(_) => "unknown",
    }
}
