//! Reads a message of a client from standard input and prints its method: typed messages of the revision that the
//! first argument names. Uses every revision that there is.

use std::io::Read;

/// A function that decodes by one crate and gives the method.
macro_rules! revision {
    ($name:ident, $revision:ident) => {
        fn $name(bytes: &[u8]) -> Result<String, Box<dyn std::error::Error>> {
            use mcp::{
                ClientNotification, ClientRequest, Message, NotificationMethod, RequestMethod,
            };
            use $revision as mcp;

            let message: mcp::ClientMessage = mcp::decode_message(bytes, &|_| None)?;
            let method = match &message {
                Message::Request(request) => match &request.request {
                    ClientRequest::Initialize(_) => mcp::InitializeRequest::METHOD,
                    ClientRequest::Ping(_) => mcp::PingRequest::METHOD,
                    ClientRequest::ListResources(_) => mcp::ListResourcesRequest::METHOD,
                    ClientRequest::ListResourceTemplates(_) => {
                        mcp::ListResourceTemplatesRequest::METHOD
                    }
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
                },
                Message::Notification(notification) => match notification {
                    ClientNotification::Cancelled(_) => mcp::CancelledNotification::METHOD,
                    ClientNotification::Initialized(_) => mcp::InitializedNotification::METHOD,
                    ClientNotification::Progress(_) => mcp::ProgressNotification::METHOD,
                    ClientNotification::RootsListChanged(_) => {
                        mcp::RootsListChangedNotification::METHOD
                    }
                    ClientNotification::Unrecognized(unknown) => unknown.tag(),
                },
                Message::Result(_) | Message::Error(_) => "none",
            };
            Ok(method.to_owned())
        }
    };
}

revision!(by_2024_11_05, mcp_2024_11_05);
revision!(by_2025_03_26, mcp_2025_03_26);
revision!(by_2025_06_18, mcp_2025_06_18);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let method = match std::env::args().nth(1).as_deref() {
        Some("2024-11-05") => by_2024_11_05(&bytes)?,
        Some("2025-03-26") => by_2025_03_26(&bytes)?,
        _ => by_2025_06_18(&bytes)?,
    };
    println!("{method}");
    Ok(())
}
