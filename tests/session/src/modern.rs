//! Shared parts of tests of [`NEW`], whose requests carry their revision: a server and a client of it alone, requests of
//! every method, and answers.
//!
//! Takes and returns values. Servers that speak other revisions as well have a name that says so.

use crate::*;

/// A server that declares everything.
///
/// # Panics
/// When the revision is not compiled in.
pub fn server() -> CheckedServer {
    CheckedServer::ready(server_config(&[NEW]), NEW, json!({}))
}

/// A server that declares everything and speaks every revision.
///
/// # Panics
/// Never: every revision is known.
pub fn server_of_all() -> RawServer {
    RawServer::new(server_config(&newest_first()))
}

/// The capabilities of a server that answers every request of [`methods`].
pub fn everything() -> Value {
    json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} })
}

/// A client that is ready, at a server with these capabilities.
///
/// # Panics
/// When it does not become ready.
pub fn client() -> CheckedClient {
    CheckedClient::ready(client_config(&[NEW]), NEW, everything())
}

/// A request of a client with these capabilities.
pub fn request(id: impl Into<Value>, method: &str, params: Value, capabilities: Value) -> Value {
    request_at(NEW, id, method, params, capabilities)
}

/// Answers a message of a client with a result, and returns what leaves.
pub fn answer(client: &mut CheckedClient, to: &Value, body: Value) -> Vec<Value> {
    client.send(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": body }))
}

/// Requests of every method, and bodies of good results.
pub fn methods() -> Vec<(&'static str, Value, Value)> {
    let argument = json!({ "name": "a", "value": "" });
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": argument });
    vec![
        ("tools/list", json!({}), json!({ "tools": [] })),
        (
            "tools/call",
            json!({ "name": "x" }),
            json!({ "content": [] }),
        ),
        ("prompts/list", json!({}), json!({ "prompts": [] })),
        (
            "prompts/get",
            json!({ "name": "x" }),
            json!({ "messages": [] }),
        ),
        ("resources/list", json!({}), json!({ "resources": [] })),
        (
            "resources/templates/list",
            json!({}),
            json!({ "resourceTemplates": [] }),
        ),
        (
            "resources/read",
            json!({ "uri": "a:b" }),
            json!({ "contents": [] }),
        ),
        (
            "completion/complete",
            complete,
            json!({ "completion": { "values": [] } }),
        ),
    ]
}
