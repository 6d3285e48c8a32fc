//! A client without a runtime: starts the server that its arguments name, uses everything that the server offers, and prints
//! a line a step; the last line is the revision that was negotiated. Fails when a step fails.
//!
//! `stdio_client [--offer REVISION,…] COMMAND…`

#[path = "stdio/peer.rs"]
mod peer;
#[path = "stdio/pipe.rs"]
mod pipe;

use std::io::Write;
use std::process::ExitCode;
use std::{env, io};

use mcp_exact_session::{
    Asked, ClientConfig, Era, Identity, Json, Offer, Outcome, PeerError, RawResult, code, era,
};
use serde_json::{Map, Value, json};

use peer::{Failed, Peer};

const WORD: &str = "hello";
const ROOT: &str = "file:///tmp/example";
const SAMPLED: &str = "a sampled message";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let mut command: Vec<String> = env::args().skip(1).collect();
    let mut config = ClientConfig::new(Identity::new("stdio_client", env!("CARGO_PKG_VERSION")));
    if command.first().is_some_and(|first| first == "--offer") {
        let offer = command.get(1).ok_or("--offer REVISION,…")?;
        config.offer = Offer::of(offer.split(','))?;
        command.drain(..2);
    }
    config.capabilities = r#"{"roots":{},"sampling":{},"elicitation":{}}"#.parse()?;
    let mut peer = Peer::start(config, command)?;
    let agreed = peer.agreed()?;
    say(&format!("connect: {agreed}"))?;
    let offers = |name: &str| agreed.capabilities.get(name).is_some();
    if era(agreed.revision.as_str()) == Some(Era::Handshake) {
        peer.request("ping", Value::Null)?;
        say("ping: answered")?;
    }
    if offers("tools") {
        for tool in peer.list("tools/list", "tools")? {
            use_tool(&mut peer, &tool)?;
        }
    }
    if offers("resources") {
        use_resources(&mut peer)?;
    }
    if offers("prompts") {
        use_prompts(&mut peer)?;
    }
    peer.stop()?;
    say(&format!("negotiated {}", agreed.revision))
}

/// Calls a tool. One that takes its time is called again and cancelled; of one that has asked something, the answer shows
/// that it has understood.
fn use_tool(peer: &mut Peer, tool: &Value) -> Result<(), Failed> {
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

fn use_resources(peer: &mut Peer) -> Result<(), Failed> {
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

fn use_prompts(peer: &mut Peer) -> Result<(), Failed> {
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

/// What this client answers when it is asked.
fn answer(ask: &Asked) -> Result<RawResult, PeerError> {
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

fn say(line: &str) -> Result<(), Failed> {
    Ok(writeln!(io::stdout(), "{line}")?)
}
