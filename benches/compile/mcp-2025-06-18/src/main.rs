//! Reads a message of a client from standard input and prints its method; uses the typed messages of one revision.

use std::io::Read;

use mcp::{ClientNotification, ClientRequest, Message, NotificationMethod, RequestMethod};
use mcp_2025_06_18 as mcp;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let message: mcp::ClientMessage = mcp::decode_message(&bytes, &|_| None)?;
    let method = match &message {
        Message::Request(request) => by_request(&request.request),
        Message::Notification(notification) => by_notification(notification),
        Message::Result(_) | Message::Error(_) => "none",
    };
    println!("{method}");
    Ok(())
}

/// Returns the method of a request.
fn by_request(request: &ClientRequest) -> &str {
    match request {
        ClientRequest::Initialize(_) => mcp::InitializeRequest::METHOD,
        ClientRequest::Ping(_) => mcp::PingRequest::METHOD,
        ClientRequest::ListResources(_) => mcp::ListResourcesRequest::METHOD,
        ClientRequest::ListResourceTemplates(_) => mcp::ListResourceTemplatesRequest::METHOD,
        ClientRequest::ReadResource(_) => mcp::ReadResourceRequest::METHOD,
        ClientRequest::Subscribe(_) => mcp::SubscribeRequest::METHOD,
        ClientRequest::Unsubscribe(_) => mcp::UnsubscribeRequest::METHOD,
        ClientRequest::ListPrompts(_) => mcp::ListPromptsRequest::METHOD,
        ClientRequest::GetPrompt(_) => mcp::GetPromptRequest::METHOD,
        ClientRequest::ListTools(_) => mcp::ListToolsRequest::METHOD,
        ClientRequest::CallTool(_) => mcp::CallToolRequest::METHOD,
        ClientRequest::SetLevel(_) => mcp::SetLevelRequest::METHOD,
        ClientRequest::Complete(_) => mcp::CompleteRequest::METHOD,
        ClientRequest::Unrecognized(unknown) => unknown.tag(),
    }
}

/// Returns the method of a notification.
fn by_notification(notification: &ClientNotification) -> &str {
    match notification {
        ClientNotification::Cancelled(_) => mcp::CancelledNotification::METHOD,
        ClientNotification::Initialized(_) => mcp::InitializedNotification::METHOD,
        ClientNotification::Progress(_) => mcp::ProgressNotification::METHOD,
        ClientNotification::RootsListChanged(_) => mcp::RootsListChangedNotification::METHOD,
        ClientNotification::Unrecognized(unknown) => unknown.tag(),
    }
}
