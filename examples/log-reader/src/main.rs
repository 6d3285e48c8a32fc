//! Reads a log of both directions from standard input, one message per line after `>` (client to server) or `<` (server
//! to client), and prints the kind, method and id of each message, the called tools and the types of the returned
//! content. Ends with a list of two tools, as a server would send it.

use std::collections::HashMap;
use std::{error::Error, io::stdin};

use mcp::{Call, ClientRequest, ContentBlock, Message, RequestId, ServerResult};
use mcp_2025_11_25 as mcp;

/// Methods of the requests that one peer has sent, by id; the type of a result depends on the method of its request.
type MethodsById = HashMap<RequestId, String>;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut by_client, mut by_server) = (MethodsById::new(), MethodsById::new());
    for line in stdin().lines() {
        let line = line?;
        if let Some(text) = line.strip_prefix('>') {
            let message: Message<mcp::FromClient> = read(text, &mut by_client, &by_server)?;
            if let Message::Request(ClientRequest::CallTool(call)) = &message {
                println!("  calls {}", call.params.name);
            }
        } else if let Some(text) = line.strip_prefix('<') {
            let message: Message<mcp::FromServer> = read(text, &mut by_server, &by_client)?;
            if let Message::Result(answer) = &message
                && let ServerResult::CallTool(result) = &answer.result
            {
                for block in &result.content {
                    println!("  content {}", block.tag());
                }
            }
        }
    }
    let schema: mcp::ToolInputSchema = serde_json::json!({ "type": "object" }).try_into()?;
    let add = mcp::Tool::new("add", mcp::ToolInputSchema::new());
    let tools = mcp::ListToolsResult::new(vec![mcp::Tool::new("echo", schema), add]);
    println!("{}", mcp::to_string(&tools));
    let result = mcp::CallToolResult::new(vec![ContentBlock::text("done")]);
    println!("{}", mcp::to_string(&result));
    Ok(())
}

/// Decodes one message, prints its kind, method and id, and adds the method of a request to `sent`. `asked` contains
/// the methods of the requests that the receiver of the message has sent.
fn read<D: mcp::Direction>(
    text: &str,
    sent: &mut MethodsById,
    asked: &MethodsById,
) -> Result<Message<D>, mcp::MessageError> {
    let method_of = |id: &RequestId| asked.get(id).map(String::as_str);
    let message: Message<D> = mcp::decode_message(text.trim().as_bytes(), &method_of)?;
    let (kind, method) = (message.kind(), message.method());
    println!("{kind:?} {method:?} {:?}", message.id());
    if let (Message::Request(_), Some(id), Some(method)) = (&message, message.id(), method) {
        sent.insert(id, method.to_owned());
    }
    Ok(message)
}
