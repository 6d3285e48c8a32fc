//! Compared libraries, one file each.

pub mod codex;
pub mod head;
pub mod mcp_exact;
pub mod raw;
pub mod rmcp;
pub mod rust_mcp_schema;
pub mod value;

/// Returns the name that most libraries give to the result type of a method.
fn result_type(method: &str) -> &'static str {
    match method {
        "completion/complete" => "CompleteResult",
        "elicitation/create" => "ElicitResult",
        "initialize" => "InitializeResult",
        "prompts/get" => "GetPromptResult",
        "prompts/list" => "ListPromptsResult",
        "resources/list" => "ListResourcesResult",
        "resources/read" => "ReadResourceResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "roots/list" => "ListRootsResult",
        "sampling/createMessage" => "CreateMessageResult",
        "tools/call" => "CallToolResult",
        "tools/list" => "ListToolsResult",
        _ => "EmptyResult",
    }
}
