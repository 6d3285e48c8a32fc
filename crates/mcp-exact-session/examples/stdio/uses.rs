//! Calls that the example client makes, and its answers to requests of the server.
//!
//! Takes the lists of the server; fails if an answer does not show that the step has worked.

use mcp_exact_session::{Json, Outcome, PeerError, RawResult, ServerRequest, code};
use serde_json::{Map, Value, json};

use crate::peer::{Failed, Peer};
use crate::say;

const WORD: &str = "hello";
const ROOT: &str = "file:///tmp/example";
const SAMPLED: &str = "a sampled message";

/// Calls a tool. One that takes its time is called again and cancelled; of one that has asked something, the answer shows
/// that it has understood.
pub fn use_tool(peer: &mut Peer, tool: &Value) -> Result<(), Failed> {
    let params = json!({ "name": tool["name"], "arguments": sample(&tool["inputSchema"]) });
    let ended = peer.call("tools/call", params.clone(), false)?;
    let Outcome::Result(result) = ended.outcome else {
        return Err(format!("tools/call {params}: {:?}", ended.outcome).into());
    };
    let result: Value = result.object().parse()?;
    let told = result["content"].to_string();
    say(&format!("tools/call {params}: {told}"))?;
    if tool["name"] == "echo" && !told.contains(WORD) {
        return Err(format!("tools/call echo: no {WORD} came back").into());
    }
    if !ended.progress.is_empty() {
        // The machine only lets values through that grow.
        say(&format!("progress: {:?}", ended.progress))?;
        match peer.call("tools/call", params, true)?.outcome {
            Outcome::Cancelled => say("cancel: cancelled at the first progress")?,
            other => return Err(format!("cancel: {other:?}").into()),
        }
    }
    if !ended.asked.is_empty() {
        say(&format!("ask: {}", ended.asked.join(", ")))?;
    }
    let answers = [("roots/list", ROOT), ("sampling/createMessage", SAMPLED)];
    for (method, answer) in answers {
        if ended.asked.iter().any(|asked| asked == method) {
            if !told.contains(answer) {
                return Err(format!("{method}: the tool does not know the answer: {told}").into());
            }
            say(&format!("{method}: the tool knows the answer"))?;
        }
    }
    Ok(())
}

pub fn use_resources(peer: &mut Peer) -> Result<(), Failed> {
    for resource in peer.list("resources/list", "resources")? {
        let params = json!({ "uri": resource["uri"] });
        let read = peer.request("resources/read", params)?;
        say(&format!("resources/read: {}", read["contents"]))?;
    }
    match peer.list("resources/templates/list", "resourceTemplates") {
        // The capability does not say whether there are templates.
        Err(error) if is_unknown_method(&error) => Ok(()),
        listed => listed.map(drop),
    }
}

fn is_unknown_method(error: &Failed) -> bool {
    let error = error.downcast_ref::<PeerError>();
    error.and_then(PeerError::code) == Some(code::METHOD_NOT_FOUND)
}

pub fn use_prompts(peer: &mut Peer) -> Result<(), Failed> {
    for prompt in peer.list("prompts/list", "prompts")? {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        let names = arguments.filter_map(|argument| argument["name"].as_str());
        let arguments: Map<_, _> = names.map(|name| (name.into(), WORD.into())).collect();
        let params = json!({ "name": prompt["name"], "arguments": arguments });
        let got = peer.request("prompts/get", params)?;
        say(&format!("prompts/get: {}", got["messages"]))?;
    }
    Ok(())
}

/// A value for every property of a schema.
fn sample(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => schema["enum"].get(0).cloned().unwrap_or(json!(WORD)),
    };
    properties
        .map(|(name, schema)| (name.clone(), value(schema)))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns the answer of this client to a request of the server.
pub fn answer(ask: &ServerRequest) -> Result<RawResult, PeerError> {
    let answer = match ask.method() {
        "roots/list" => json!({ "roots": [{ "uri": ROOT, "name": "example" }] }),
        "sampling/createMessage" => json!({ "role": "assistant", "model": "example",
            "content": { "type": "text", "text": SAMPLED } }),
        "elicitation/create" => {
            let form = ask
                .params()
                .and_then(|params| params.get("requestedSchema"));
            let form = form.map(|form| form.text().parse::<Value>());
            let form = form.transpose().ok().flatten().unwrap_or_default();
            json!({ "action": "accept", "content": sample(&form) })
        }
        other => return Err(PeerError::method_not_found(other)),
    };
    RawResult::of(&Json::from(answer)).map_err(|error| PeerError::internal(error.to_string()))
}
