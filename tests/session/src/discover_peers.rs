//! Shared parts of the tests of [`DISCOVER_REVISION`], in which each request names its revision: servers and clients of
//! this revision, requests of every method, and results.
//!
//! The name of a function states if its server supports other revisions as well.

use crate::*;

/// Creates a server that declares all capabilities and supports only [`DISCOVER_REVISION`].
///
/// # Panics
///
/// If the revision is not compiled in.
pub fn server() -> CheckedServer {
    CheckedServer::with_session(
        server_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({}),
    )
}

/// Creates a server that declares all capabilities and supports every revision.
///
/// # Panics
///
/// Never, because every revision is compiled in.
pub fn server_of_all_revisions() -> RawServer {
    RawServer::new(server_config(&revisions_newest_first()))
}

/// Returns the capabilities of a server that answers every request of [`request_of_every_method`].
pub fn all_capabilities() -> Value {
    json!({ "tools": {}, "prompts": {}, "resources": {}, "completions": {} })
}

/// Creates a client that has negotiated with a server that declares [`all_capabilities`].
///
/// # Panics
/// If the client does not become ready.
pub fn client() -> CheckedClient {
    CheckedClient::connected(
        client_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        all_capabilities(),
    )
}

/// Creates a request of a client that declares the capabilities `capabilities`.
pub fn request(id: impl Into<Value>, method: &str, params: Value, capabilities: Value) -> Value {
    request_of_revision(DISCOVER_REVISION, id, method, params, capabilities)
}

/// Answers the client's request `to` with the result `body`; returns the messages that the client sends.
pub fn answer_request(client: &mut CheckedClient, to: &Value, body: Value) -> Vec<Value> {
    client.send(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": body }))
}

/// Returns the name, valid params and a valid result of each request method.
pub fn request_of_every_method() -> Vec<(&'static str, Value, Value)> {
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
