//! Steps of the example client: calls of tools, resources and prompts, and answers to requests of the server.
//!
//! A step fails if the response does not have the expected content.

use mcp_exact_session::{Json, Outcome, PeerError, RawResult, ServerRequest, code};
use serde_json::{Map, Value, json};

use crate::peer::{AnyError, Peer};
use crate::print_step;

/// Argument of the echo tool.
const ECHO_TEXT: &str = "hello";
/// URI of the root that this client provides.
const ROOT_URI: &str = "file:///tmp/example";
/// Text with which this client answers sampling requests.
const SAMPLED_TEXT: &str = "a sampled message";

/// Calls a tool. A tool that reports progress is called again and cancelled; the result of a tool that sends input
/// requests must contain the answers.
pub fn use_tool(peer: &mut Peer, tool: &Value) -> Result<(), AnyError> {
    let params =
        json!({ "name": tool["name"], "arguments": sample_arguments(&tool["inputSchema"]) });
    let ended = peer.call_tool("tools/call", params.clone(), false)?;
    let Outcome::Result(result) = ended.outcome else {
        return Err(format!("tools/call {params}: {:?}", ended.outcome).into());
    };
    let result: Value = result.object().parse()?;
    let result_text = result["content"].to_string();
    print_step(&format!("tools/call {params}: {result_text}"))?;
    if tool["name"] == "echo" && !result_text.contains(ECHO_TEXT) {
        return Err(format!("tools/call echo: no {ECHO_TEXT} came back").into());
    }
    if !ended.progress.is_empty() {
        // The endpoint delivers only increasing values.
        print_step(&format!("progress: {:?}", ended.progress))?;
        match peer.call_tool("tools/call", params, true)?.outcome {
            Outcome::Cancelled => print_step("cancel: cancelled at the first progress")?,
            other => return Err(format!("cancel: {other:?}").into()),
        }
    }
    if !ended.server_request_methods.is_empty() {
        print_step(&format!("ask: {}", ended.server_request_methods.join(", ")))?;
    }
    let answers = [
        ("roots/list", ROOT_URI),
        ("sampling/createMessage", SAMPLED_TEXT),
    ];
    for (method, answer) in answers {
        if ended
            .server_request_methods
            .iter()
            .any(|asked| asked == method)
        {
            if !result_text.contains(answer) {
                return Err(
                    format!("{method}: the tool does not know the answer: {result_text}").into(),
                );
            }
            print_step(&format!("{method}: the tool knows the answer"))?;
        }
    }
    Ok(())
}

/// Lists the resources and templates, and reads the resources.
pub fn use_resources(peer: &mut Peer) -> Result<(), AnyError> {
    for resource in peer.list_all("resources/list", "resources")? {
        let params = json!({ "uri": resource["uri"] });
        let read = peer.request("resources/read", params)?;
        print_step(&format!("resources/read: {}", read["contents"]))?;
    }
    match peer.list_all("resources/templates/list", "resourceTemplates") {
        // The capability does not say whether there are templates.
        Err(error) if is_unknown_method(&error) => Ok(()),
        listed => listed.map(drop),
    }
}

/// Returns true if the server has no such method.
fn is_unknown_method(error: &AnyError) -> bool {
    let error = error.downcast_ref::<PeerError>();
    error.and_then(PeerError::code) == Some(code::METHOD_NOT_FOUND)
}

/// Lists the prompts and gets each prompt.
pub fn use_prompts(peer: &mut Peer) -> Result<(), AnyError> {
    for prompt in peer.list_all("prompts/list", "prompts")? {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        let names = arguments.filter_map(|argument| argument["name"].as_str());
        let arguments: Map<_, _> = names.map(|name| (name.into(), ECHO_TEXT.into())).collect();
        let params = json!({ "name": prompt["name"], "arguments": arguments });
        let got = peer.request("prompts/get", params)?;
        print_step(&format!("prompts/get: {}", got["messages"]))?;
    }
    Ok(())
}

/// Returns an object with a value for every property of a schema.
fn sample_arguments(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => schema["enum"].get(0).cloned().unwrap_or(json!(ECHO_TEXT)),
    };
    properties
        .map(|(name, schema)| (name.clone(), value(schema)))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns the answer of this client to a request of the server.
pub fn answer_server_request(ask: &ServerRequest) -> Result<RawResult, PeerError> {
    let answer = match ask.method() {
        "roots/list" => json!({ "roots": [{ "uri": ROOT_URI, "name": "example" }] }),
        "sampling/createMessage" => json!({ "role": "assistant", "model": "example",
            "content": { "type": "text", "text": SAMPLED_TEXT } }),
        "elicitation/create" => {
            let form = ask
                .params()
                .and_then(|params| params.get("requestedSchema"));
            let form = form.map(|form| form.text().parse::<Value>());
            let form = form.transpose().ok().flatten().unwrap_or_default();
            json!({ "action": "accept", "content": sample_arguments(&form) })
        }
        other => return Err(PeerError::method_not_found(other)),
    };
    RawResult::from_typed(&Json::from(answer))
        .map_err(|error| PeerError::internal(error.to_string()))
}
