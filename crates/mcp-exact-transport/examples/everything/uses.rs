//! Calls of the example client, and the answers of the client to requests of the server.
//!
//! A call fails if the response does not have the expected content.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_exact_session::{
    CallOptions, ClientEvent, ClientSettings, Json, Level, Outcome, PeerError, Progress, RawResult,
    ServerRequest, code,
};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::{ClientHandle, PendingRequest, ProgressCallback};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::say;

/// Error of a step of this example.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Argument of the echo tool.
const ECHO_TEXT: &str = "hello";
/// URI of the root that this client provides.
const ROOT_URI: &str = "file:///tmp/example";
/// Text with which this client answers sampling requests.
const SAMPLED_TEXT: &str = "a sampled message";

/// Connected client, with the methods of the requests that the server has sent to the client.
pub struct Session {
    pub client: ClientHandle,
    /// Methods of the requests that the server has sent.
    asked: Arc<Mutex<Vec<String>>>,
}

/// Outcome of a request, with the progress and the server requests that preceded it.
pub struct RequestOutcome {
    /// Outcome that the client endpoint has reported.
    pub outcome: Outcome,
    /// Values of the progress notifications, in order.
    progress: Vec<f64>,
    /// Methods of the requests that the server sent while this request was pending.
    asked: Vec<String>,
}

impl Session {
    /// Connects a client to the server; also returns the task that drives the connection.
    pub fn connect(
        endpoint: HttpEndpoint,
        settings: Arc<ClientSettings>,
    ) -> (Self, JoinHandle<()>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let handler = {
            let asked = Arc::clone(&asked);
            move |client: &ClientHandle, event: ClientEvent| handle(client, event, &asked)
        };
        let (client, driver) = endpoint.connect(settings, None, Arc::new(handler));
        (Self { client, asked }, driver)
    }

    /// Sends a request and returns its result; prints and returns an error if there is no result.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, AnyError> {
        let error = match self.call_with(method, params, || {}).await?.outcome {
            Outcome::Result(result) => return Ok(result.object().parse()?),
            Outcome::Error(error) => error.into(),
            other => AnyError::from(format!("{other:?}")),
        };
        say(&format!("{method}: {error}"))?;
        Err(error)
    }

    /// Returns the entries of all pages of the list `method`, whose result has the entries in `member`.
    pub async fn list(&self, method: &str, member: &str) -> Result<Vec<Value>, AnyError> {
        let (mut items, mut params) = (Vec::new(), Value::Null);
        loop {
            let mut page = self.request(method, params).await?;
            if let Value::Array(more) = page[member].take() {
                items.extend(more);
            }
            match page["nextCursor"].take() {
                Value::Null => break,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
        say(&format!("{method}: {} of them", items.len()))?;
        Ok(items)
    }

    /// Sends a request and waits for its outcome; `first` is called at the first progress notification.
    pub async fn call_with(
        &self,
        method: &str,
        params: Value,
        first: impl FnOnce(),
    ) -> Result<RequestOutcome, AnyError> {
        self.run(method, params, |_| first()).await
    }

    /// Sends a request, cancels the request at its first progress notification, and returns the outcome.
    async fn cancelled(&self, method: &str, params: Value) -> Result<RequestOutcome, AnyError> {
        let cancel = |call: &mut PendingRequest| call.cancel("no longer wanted");
        self.run(method, params, cancel).await
    }

    /// Sends a request and waits for its outcome; `first` is called at the first progress notification and can cancel
    /// the request.
    async fn run(
        &self,
        method: &str,
        params: Value,
        first: impl FnOnce(&mut PendingRequest),
    ) -> Result<RequestOutcome, AnyError> {
        let is_call = method == "tools/call";
        let options = CallOptions {
            progress: is_call,
            log_level: is_call.then_some(Level::Debug),
            ..CallOptions::default()
        };
        let (values, begun) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let callback = {
            let (values, begun) = (Arc::clone(&values), Arc::clone(&begun));
            move |progress: &Progress| {
                lock(&values).push(progress.done);
                begun.notify_one();
            }
        };
        lock(&self.asked).clear();
        let params = Json::from(params).try_into().ok();
        let callback = is_call.then(|| Box::new(callback) as ProgressCallback);
        let mut call = self.client.request(method, params, options, callback)?;
        let outcome = tokio::select! {
            biased;
            () = begun.notified() => {
                first(&mut call);
                call.await
            }
            outcome = &mut call => outcome,
        };
        let progress = std::mem::take(&mut *lock(&values));
        let asked = std::mem::take(&mut *lock(&self.asked));
        Ok(RequestOutcome {
            outcome,
            progress,
            asked,
        })
    }
}

/// Locks a mutex, even if a thread has panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers requests of the server, stores their methods in `asked`, and prints log messages of the server.
fn handle(client: &ClientHandle, event: ClientEvent, asked: &Mutex<Vec<String>>) {
    match event {
        ClientEvent::Request { key, request, .. } => {
            lock(asked).push(request.method().to_owned());
            let _ = client.answer(key, answer(&request));
        }
        ClientEvent::Log { message, .. } => {
            let _ = say(&format!("  log, {}: {}", message.level, message.data));
        }
        ClientEvent::Violation(violation) => {
            let _ = say(&format!("  violation: {violation}"));
        }
        ClientEvent::SessionLost => {
            let _ = say("  the server has ended the session");
        }
        _ => {}
    }
}

/// Calls a tool. A tool that reports progress is called again and cancelled; the result of a tool that sends input
/// requests must contain the answers.
pub async fn use_tool(session: &Session, tool: &Value) -> Result<(), AnyError> {
    let params = json!({ "name": tool["name"], "arguments": sample(&tool["inputSchema"]) });
    let ended = session
        .call_with("tools/call", params.clone(), || {})
        .await?;
    let Outcome::Result(result) = ended.outcome else {
        return Err(format!("tools/call {params}: {:?}", ended.outcome).into());
    };
    let result: Value = result.object().parse()?;
    let content = result["content"].to_string();
    say(&format!("tools/call {params}: {}", shorten(&content)))?;
    if tool["name"] == "echo" && !content.contains(ECHO_TEXT) {
        return Err(format!("tools/call echo: no {ECHO_TEXT} came back").into());
    }
    if !ended.progress.is_empty() {
        // The endpoint passes on increasing values only.
        say(&format!("progress: {:?}", ended.progress))?;
        match session.cancelled("tools/call", params).await?.outcome {
            Outcome::Cancelled => say("cancel: cancelled at the first progress")?,
            other => return Err(format!("cancel: {other:?}").into()),
        }
    }
    if !ended.asked.is_empty() {
        say(&format!("ask: {}", ended.asked.join(", ")))?;
    }
    for (method, answer) in [
        ("roots/list", ROOT_URI),
        ("sampling/createMessage", SAMPLED_TEXT),
    ] {
        if tool["name"] == "ask" && ended.asked.iter().any(|asked| asked == method) {
            if !content.contains(answer) {
                return Err(format!("{method}: the tool has no such answer: {content}").into());
            }
            say(&format!("{method}: the tool has the answer"))?;
        }
    }
    Ok(())
}

/// Lists the resources and templates, and reads the resources.
pub async fn use_resources(session: &Session) -> Result<(), AnyError> {
    for resource in session.list("resources/list", "resources").await? {
        let params = json!({ "uri": resource["uri"] });
        let read = session.request("resources/read", params).await?;
        let contents = read["contents"].to_string();
        say(&format!("resources/read: {}", shorten(&contents)))?;
    }
    let templates = session.list("resources/templates/list", "resourceTemplates");
    match templates.await {
        // The capability does not say whether there are templates.
        Err(error) if is_unknown_method(&error) => Ok(()),
        listed => listed.map(drop),
    }
}

/// Returns true if the error is JSON-RPC error -32601 (method not found).
fn is_unknown_method(error: &AnyError) -> bool {
    let error = error.downcast_ref::<PeerError>();
    error.and_then(PeerError::code) == Some(code::METHOD_NOT_FOUND)
}

/// Gets each prompt. If `completes` is true, the values of the arguments come from `completion/complete`.
pub async fn use_prompts(session: &Session, completes: bool) -> Result<(), AnyError> {
    for prompt in session.list("prompts/list", "prompts").await? {
        let arguments = prompt["arguments"].as_array().into_iter().flatten();
        let mut values = Map::new();
        for name in arguments.filter_map(|argument| argument["name"].as_str()) {
            let value = if completes {
                complete(session, &prompt["name"], name).await?
            } else {
                ECHO_TEXT.into()
            };
            values.insert(name.into(), value);
        }
        let params = json!({ "name": prompt["name"], "arguments": values });
        let got = session.request("prompts/get", params).await?;
        say(&format!(
            "prompts/get: {}",
            shorten(&got["messages"].to_string())
        ))?;
    }
    Ok(())
}

/// Returns the first value that the server proposes for an argument of a prompt, or the text `1` if the server proposes
/// none.
async fn complete(session: &Session, prompt: &Value, name: &str) -> Result<Value, AnyError> {
    let params = json!({
        "ref": { "type": "ref/prompt", "name": prompt },
        "argument": { "name": name, "value": "" },
    });
    let completed = session.request("completion/complete", params).await?;
    let value = completed["completion"]["values"].get(0).cloned();
    // A text that is a number too.
    let value = value.unwrap_or_else(|| "1".into());
    say(&format!("completion/complete: {name} is {value}"))?;
    Ok(value)
}

/// Returns at most the first 500 characters of a text.
fn shorten(text: &str) -> String {
    text.chars().take(500).collect()
}

/// Returns an object with a value for each property of a JSON Schema.
fn sample(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => schema["enum"].get(0).cloned().unwrap_or(json!(ECHO_TEXT)),
    };
    properties
        .map(|(name, schema)| {
            let default = schema.get("default").cloned();
            (name.clone(), default.unwrap_or_else(|| value(schema)))
        })
        .collect::<Map<_, _>>()
        .into()
}

/// Returns the answer to a request of the server.
fn answer(request: &ServerRequest) -> Result<RawResult, PeerError> {
    let answer = match request.method() {
        "roots/list" => json!({ "roots": [{ "uri": ROOT_URI, "name": "example" }] }),
        "sampling/createMessage" => json!({ "role": "assistant", "model": "example",
            "content": { "type": "text", "text": SAMPLED_TEXT } }),
        "elicitation/create" => {
            let params = request.params();
            let form = params.and_then(|params| params.get("requestedSchema"));
            let form = form.map(|form| form.text().parse::<Value>());
            let form = form.transpose().ok().flatten().unwrap_or_default();
            json!({ "action": "accept", "content": sample(&form) })
        }
        other => return Err(PeerError::method_not_found(other)),
    };
    RawResult::from_typed(&Json::from(answer))
        .map_err(|error| PeerError::internal(error.to_string()))
}
