//! Features of the example server: an echo, a slow tool, a tool that sends requests to the client, a resource and a prompt.
//!
//! Replies use the member names of the specification, which are the same in every revision for these features.

use std::time::{Duration, Instant};

use mcp_exact_session::{
    IncomingRequest, InputRequest, Json, Level, Outcome, PeerError, Progress, RawResult, Reply,
    RequestKey, Scope, ServerEndpoint, Time,
};
use serde_json::{Value, json};

use crate::print_error;

/// Number of steps of the slow tool.
const PROGRESS_STEPS: u32 = 20;
/// Time between two steps of the slow tool.
const STEP_INTERVAL: Duration = Duration::from_millis(50);

/// Running call of the slow tool: its progress, and the time of its next step.
pub struct SlowCall {
    /// Key for the reply to the call.
    pub key: RequestKey,
    /// Time at which the next step is due.
    pub next_step_at: Instant,
    /// Number of completed steps.
    step: u32,
}

/// Returns the reply to a request; `None` if the reply is sent later.
pub fn reply_to_request(
    request: &IncomingRequest<()>,
    slow: &mut Vec<SlowCall>,
) -> Result<Option<Reply>, PeerError> {
    // The parameters have to fit the revision that the client speaks.
    request.typed()?;
    let params: Value = match request.params() {
        Some(params) => params
            .parse()
            .map_err(|e| PeerError::internal(e.to_string()))?,
        None => Value::Null,
    };
    let schema = |properties: Value| json!({ "type": "object", "properties": properties });
    let result = match request.method() {
        "tools/list" => json!({ "tools": [
            { "name": "echo", "description": "Says it again",
              "inputSchema": schema(json!({ "text": { "type": "string" } })) },
            { "name": "slow", "description": "Takes its time and says how far it is",
              "inputSchema": schema(json!({})) },
            { "name": "ask", "description": "Asks the client something",
              "inputSchema": schema(json!({})) },
        ] }),
        "tools/call" => match params["name"].as_str() {
            Some("echo") => text_result(params["arguments"]["text"].as_str().unwrap_or("")),
            Some("slow") => {
                let (key, next) = (request.key, Instant::now() + STEP_INTERVAL);
                slow.push(SlowCall {
                    key,
                    step: 0,
                    next_step_at: next,
                });
                return Ok(None);
            }
            Some("ask") => return Ok(Some(require_input(request))),
            _ => return Err(PeerError::invalid_params("unknown tool")),
        },
        "resources/list" => json!({ "resources": [
            { "name": "greeting", "uri": "example:greeting", "mimeType": "text/plain" },
        ] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" if params["uri"] == "example:greeting" => json!({ "contents": [
            { "uri": "example:greeting", "mimeType": "text/plain", "text": "Hello" },
        ] }),
        "resources/read" => return Err(PeerError::new(-32002, "Resource not found")),
        "prompts/list" => json!({ "prompts": [
            { "name": "greet", "arguments": [{ "name": "whom", "required": true }] },
        ] }),
        "prompts/get" if params["name"] == "greet" => {
            let whom = params["arguments"]["whom"].as_str().unwrap_or("you");
            let content = json!({ "type": "text", "text": format!("Say hello to {whom}") });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        "prompts/get" => return Err(PeerError::invalid_params("unknown prompt")),
        other => return Err(PeerError::method_not_found(other)),
    };
    Ok(Some(to_result(result)))
}

/// Creates a tool result with one text block.
fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Converts a JSON object to a reply.
fn to_result(result: Value) -> Reply {
    RawResult::from_typed(&Json::from(result)).map_or_else(
        |error| Reply::Error(PeerError::internal(error.to_string())),
        Reply::Result,
    )
}

/// Returns a reply with one input request for every kind of input that the client supports.
///
/// The endpoint delivers the same request again with the responses.
fn require_input(request: &IncomingRequest<()>) -> Reply {
    if !request.responses.is_empty() {
        let answers: Vec<String> = request.responses.iter().map(describe_answer).collect();
        return to_result(text_result(&answers.join("\n")));
    }
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Say something" } });
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let questions = [
        ("roots", "roots/list", json!(null)),
        (
            "sampling",
            "sampling/createMessage",
            json!({ "messages": [message], "maxTokens": 100 }),
        ),
        (
            "elicitation",
            "elicitation/create",
            json!({ "message": "What is your name?", "requestedSchema": form }),
        ),
    ];
    let requests: Vec<_> = questions
        .into_iter()
        .filter(|(capability, ..)| is_declared(request, capability))
        .map(|(capability, method, params)| {
            let params = Json::from(params).try_into().ok();
            (capability.to_owned(), InputRequest::new(method, params))
        })
        .collect();
    if requests.is_empty() {
        to_result(text_result("This client cannot be asked anything"))
    } else {
        Reply::InputRequired {
            requests,
            state: None,
        }
    }
}

/// Returns true if the client has declared the capability; for elicitation, form mode is required.
fn is_declared(request: &IncomingRequest<()>, capability: &str) -> bool {
    let declared = request.client().capabilities.get(capability);
    let modes: Option<Value> = declared.and_then(|declared| declared.text().parse().ok());
    modes.is_some_and(|modes| modes["url"].is_null() || !modes["form"].is_null())
}

/// Describes the answer of the client to a request: the URI of its first root, the sampled text, or the entered value.
fn describe_answer((question, answer): (&str, &Outcome)) -> String {
    let Outcome::Result(result) = answer else {
        return format!("{question}: {answer:?}");
    };
    let result: Value = result.object().parse().unwrap_or_default();
    match question {
        "roots" => format!("root {}", result["roots"][0]["uri"]),
        // From 2025-11-25 on there may be several blocks.
        "sampling" => format!("sampled {}", result["content"]),
        _ => format!("{}: {}", result["action"], result["content"]),
    }
}

/// Runs one step of a slow call; returns false when the call has ended.
pub fn run_slow_step(server: &mut ServerEndpoint<()>, slow: &mut SlowCall, now: Time) -> bool {
    if slow.next_step_at > Instant::now() {
        return true;
    }
    slow.step += 1;
    slow.next_step_at += STEP_INTERVAL;
    let progress = Progress::new(f64::from(slow.step)).with_total(f64::from(PROGRESS_STEPS));
    if let Err(error) = server.send_progress(slow.key, &progress.with_message("Working")) {
        print_error(&error);
    }
    if slow.step < PROGRESS_STEPS {
        return true;
    }
    let steps = Json::string(&format!("{PROGRESS_STEPS} steps"));
    if let Err(error) = server.send_log(Scope::During(slow.key), Level::Info, Some("slow"), steps) {
        print_error(&error);
    }
    if let Err(error) = server.reply(slow.key, to_result(text_result("Done")), now) {
        print_error(&error);
    }
    false
}
