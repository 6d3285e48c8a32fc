//! Features that the example server offers: an echo, a slow tool, a tool that sends requests to the client, a resource and a
//! prompt.
//!
//! Replies use the member names of the specification, which are the same in every revision for these features.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcp_exact_session::{
    IncomingRequest, InputRequest, Json, Level, Outcome, PeerError, Progress, RawResult, Reply,
    RequestKey, Scope, ServerEvent,
};
use mcp_exact_transport::{ConnectionHandler, RequestContext, ServerHandle};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

/// Number of steps of the slow tool.
const PROGRESS_STEPS: u32 = 20;
/// Time between two steps of the slow tool.
const STEP_INTERVAL: Duration = Duration::from_millis(50);

/// Handler of the events of all sessions, with a list of the running slow calls, so that they can be cancelled.
#[derive(Default)]
pub struct Handler {
    /// Slow calls that have not ended.
    running: Mutex<Vec<Running>>,
}

/// Slow call that runs in a separate task.
struct Running {
    /// Handle of the session of the call.
    server: ServerHandle,
    /// Key of the request, for progress and the reply.
    key: RequestKey,
    /// Handle that aborts the task.
    task: AbortHandle,
}

impl ConnectionHandler for Handler {
    fn handle(&self, server: &ServerHandle, event: ServerEvent<RequestContext>) {
        match event {
            ServerEvent::Request(request) => self.serve(server, &request),
            ServerEvent::Cancelled { key, .. } => {
                self.end(|running| running.server.is_same(server) && running.key == key);
            }
            ServerEvent::Closed => self.end(|running| running.server.is_same(server)),
            _ => {}
        }
    }
}

impl Handler {
    /// Replies to a request; for a call of the slow tool, starts a task that replies later.
    fn serve(&self, server: &ServerHandle, request: &IncomingRequest<RequestContext>) {
        let reply = match answer(request) {
            Ok(Some(reply)) => reply,
            Ok(None) => return self.start(server, request.key),
            Err(error) => Reply::Error(error),
        };
        if let Err(error) = server.reply(request.key, reply) {
            let error = PeerError::internal(error.to_string());
            let _ = server.reply(request.key, error);
        }
    }

    /// Starts a task that handles the call `key` of the slow tool.
    fn start(&self, server: &ServerHandle, key: RequestKey) {
        let task = tokio::spawn(slow(server.clone(), key));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|running| !running.task.is_finished());
        running.push(Running {
            server: server.clone(),
            key,
            task: task.abort_handle(),
        });
    }

    /// Stops the slow calls for which `is_over` returns true.
    fn end(&self, is_over: impl Fn(&Running) -> bool) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|running| {
            let is_over = is_over(running);
            if is_over {
                running.task.abort();
            }
            !is_over
        });
    }
}

/// Handles the call `key` of the slow tool: reports progress twenty times, writes a log message, and replies.
///
/// Errors are ignored, because they occur only if the session has ended.
async fn slow(server: ServerHandle, key: RequestKey) {
    for step in 1..=PROGRESS_STEPS {
        tokio::time::sleep(STEP_INTERVAL).await;
        let progress = Progress::new(f64::from(step)).with_total(f64::from(PROGRESS_STEPS));
        let _ = server.progress(key, &progress.with_message("Working"));
    }
    let steps = Json::string(&format!("{PROGRESS_STEPS} steps"));
    let _ = server.log(Scope::During(key), Level::Info, Some("slow"), steps);
    let _ = server.reply(key, result_of(text("Done")));
}

/// Returns the reply to a request; `None` for a call of the slow tool, whose reply is sent later.
fn answer(request: &IncomingRequest<RequestContext>) -> Result<Option<Reply>, PeerError> {
    // The parameters have to fit the revision that the client speaks.
    request.typed()?;
    let params: Value = match request.params() {
        Some(params) => params
            .parse()
            .map_err(|error| PeerError::internal(error.to_string()))?,
        None => Value::Null,
    };
    let result = match request.method() {
        "tools/list" => tools(),
        "tools/call" => match params["name"].as_str() {
            Some("echo") => text(params["arguments"]["text"].as_str().unwrap_or("")),
            Some("slow") => return Ok(None),
            Some("ask") => return Ok(Some(ask(request))),
            _ => return Err(PeerError::invalid_params("unknown tool; see tools/list")),
        },
        "resources/list" => json!({ "resources": [
            { "name": "greeting", "uri": "example:greeting", "mimeType": "text/plain" },
        ] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" if params["uri"] == "example:greeting" => json!({ "contents": [
            { "uri": "example:greeting", "mimeType": "text/plain", "text": "Hello" },
        ] }),
        "resources/read" => return Err(PeerError::new(-32002, "resource not found")),
        "prompts/list" => json!({ "prompts": [
            { "name": "greet", "arguments": [{ "name": "whom", "required": true }] },
        ] }),
        "prompts/get" if params["name"] == "greet" => {
            let whom = params["arguments"]["whom"].as_str().unwrap_or("you");
            let content = json!({ "type": "text", "text": format!("Say hello to {whom}") });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        "prompts/get" => {
            let message = "unknown prompt; see prompts/list";
            return Err(PeerError::invalid_params(message));
        }
        other => return Err(PeerError::method_not_found(other)),
    };
    Ok(Some(result_of(result)))
}

/// Returns the result of `tools/list`.
fn tools() -> Value {
    let schema = |properties: Value| json!({ "type": "object", "properties": properties });
    json!({ "tools": [
        { "name": "echo", "description": "Returns the text",
          "inputSchema": schema(json!({ "text": { "type": "string" } })) },
        { "name": "slow", "description": "Takes a second and reports progress",
          "inputSchema": schema(json!({})) },
        { "name": "ask", "description": "Asks the client",
          "inputSchema": schema(json!({})) },
    ] })
}

/// Creates a tool result with one text content block.
fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Converts a JSON object to a reply.
fn result_of(result: Value) -> Reply {
    RawResult::from_typed(&Json::from(result)).map_or_else(
        |error| Reply::Error(PeerError::internal(error.to_string())),
        Reply::Result,
    )
}

/// Returns a reply with an input request of each kind that the client supports.
///
/// The endpoint delivers the request again with the responses of the client, and the tool result then lists these
/// responses.
fn ask(request: &IncomingRequest<RequestContext>) -> Reply {
    if !request.responses.is_empty() {
        let responses: Vec<String> = request.responses.iter().map(show).collect();
        return result_of(text(&responses.join("\n")));
    }
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Say something" } });
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let sampling = json!({ "messages": [message], "maxTokens": 100 });
    let elicitation = json!({ "message": "What is your name?", "requestedSchema": form });
    let requests: Vec<_> = [
        ("roots", "roots/list", Value::Null),
        ("sampling", "sampling/createMessage", sampling),
        ("elicitation", "elicitation/create", elicitation),
    ]
    .into_iter()
    .filter(|(capability, ..)| is_declared(request, capability))
    .map(|(capability, method, params)| {
        let params = Json::from(params).try_into().ok();
        (capability.to_owned(), InputRequest::new(method, params))
    })
    .collect();
    if requests.is_empty() {
        return result_of(text("This client cannot be asked anything"));
    }
    Reply::InputRequired {
        requests,
        state: None,
    }
}

/// Returns true if the client declares the capability; elicitation must include form mode.
fn is_declared(request: &IncomingRequest<RequestContext>, capability: &str) -> bool {
    let declared = request.client().capabilities.get(capability);
    let modes: Option<Value> = declared.and_then(|declared| declared.text().parse().ok());
    modes.is_some_and(|modes| modes["url"].is_null() || !modes["form"].is_null())
}

/// Returns the id of an input request and the part of the response that a test compares: the first root, the sampled
/// content, or the action and content of a form.
fn show((question, response): (&str, &Outcome)) -> String {
    let Outcome::Result(result) = response else {
        return format!("{question}: {response:?}");
    };
    let result: Value = result.object().parse().unwrap_or_default();
    match question {
        "roots" => format!("root {}", result["roots"][0]["uri"]),
        // From 2025-11-25 on there may be several blocks.
        "sampling" => format!("sampled {}", result["content"]),
        _ => format!("{}: {}", result["action"], result["content"]),
    }
}
