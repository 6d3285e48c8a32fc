//! A client that uses rmcp: `client MODE COMMAND…` starts a server over stdio, `client MODE --http URL` connects to a
//! server over HTTP. MODE is `auto` (probe, then handshake if the probe fails), `legacy` (handshake only) or
//! `2026-07-28` (without handshake). The client runs the steps that README.md describes, and prints their outcomes.

// rmcp discourages sampling and roots; servers and clients of older revisions have them.
#![allow(deprecated)]

use std::fmt::Display;
use std::process::ExitCode;
use std::time::Duration;

use futures::StreamExt;
use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ContentBlock,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, GetPromptRequestParams,
    Implementation, ListRootsResult, PingRequest, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, Request, ResourceContents, Root, SamplingMessage,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;

/// Time limit of one step; the test runner has a longer time limit for the whole program.
const DEADLINE: Duration = Duration::from_secs(20);
/// URI of the client's only root.
const ROOT_URI: &str = "file:///interop/root";
/// Answer to every sampling request.
const SAMPLED_TEXT: &str = "sampled by the peer";

/// Error of a step.
type Failure = Box<dyn std::error::Error>;
/// Running rmcp client.
type Session = RunningService<RoleClient, Peer>;

/// Client handler that supports roots, sampling and elicitation.
#[derive(Default)]
struct Peer {
    /// Dispatcher of progress notifications to the calls with their tokens.
    progress: ProgressDispatcher,
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_roots()
            .enable_sampling()
            .enable_elicitation()
            .build();
        ClientConfig::new(capabilities, Implementation::new("interop-peer", "1.0.0"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(ROOT_URI)]))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let message = SamplingMessage::assistant_text(SAMPLED_TEXT);
        Ok(CreateMessageResult::new(message, "none".to_owned()))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let mut result = ElicitResult::new(ElicitationAction::Accept);
        let params = json!(params);
        result.content = Some(json!({ "word": params["message"] }));
        Ok(result)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.handle_notification(params).await;
    }
}

/// Runner of named steps: prints one JSON line for each step. A failed step is printed and does not end the program.
#[derive(Default)]
struct Steps {
    /// True if a step has failed.
    failed: bool,
}

impl Steps {
    /// Runs a step with a time limit and prints its outcome; returns the result of the step, or null if it has failed.
    async fn run(
        &mut self,
        name: &str,
        step: impl Future<Output = Result<Value, Failure>>,
    ) -> Value {
        let outcome = match tokio::time::timeout(DEADLINE, step).await {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(_) => Err("the step took too long".to_owned()),
        };
        match outcome {
            Ok(detail) => {
                self.report(name, true, &detail);
                detail
            }
            Err(error) => {
                self.report(name, false, &json!(error));
                Value::Null
            }
        }
    }

    /// Prints the outcome of a step as one JSON line.
    fn report(&mut self, name: &str, ok: bool, detail: &Value) {
        self.failed |= !ok;
        println!("{}", json!({ "step": name, "ok": ok, "detail": detail }));
    }
}

/// Returns an error with the message unless the condition is true.
fn expect(condition: bool, message: impl Display) -> Result<(), Failure> {
    if condition {
        Ok(())
    } else {
        Err(message.to_string().into())
    }
}

/// Calls a tool; returns the text of its first content block.
async fn call(session: &Session, name: &'static str, arguments: Value) -> Result<String, Failure> {
    let params = CallToolRequestParams::new(name)
        .with_arguments(arguments.as_object().cloned().unwrap_or_default());
    let result = session.call_tool(params).await?;
    expect(result.is_error != Some(true), "the tool failed")?;
    match result.content.first() {
        Some(ContentBlock::Text(text)) => Ok(text.text.clone()),
        other => Err(format!("no text came back: {other:?}").into()),
    }
}

/// Sends `ping`.
async fn ping(session: &Session) -> Result<Value, Failure> {
    session
        .send_request(ClientRequest::PingRequest(PingRequest::default()))
        .await?;
    Ok(json!("answered"))
}

/// Lists the tools, and checks that `echo`, `slow` and `ask` exist.
async fn list_tools(session: &Session) -> Result<Value, Failure> {
    let tools = session.list_all_tools().await?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    for name in ["echo", "slow", "ask"] {
        expect(
            names.contains(&name),
            format!("a tool is missing: {names:?}"),
        )?;
    }
    Ok(json!(names))
}

/// Calls `echo` with non-ASCII text, and checks that the result is the same text.
async fn echo(session: &Session) -> Result<Value, Failure> {
    let text = "Grüße, 世界";
    let answer = call(session, "echo", json!({ "text": text })).await?;
    expect(answer == text, "another text came back")?;
    Ok(json!(answer))
}

/// Lists the resources; returns their URIs.
async fn list_resources(session: &Session) -> Result<Value, Failure> {
    let resources = session.list_all_resources().await?;
    expect(!resources.is_empty(), "no resource")?;
    let uris: Vec<_> = resources.into_iter().map(|resource| resource.uri).collect();
    Ok(json!(uris))
}

/// Reads the resources with these URIs, and checks the URIs of their contents.
async fn read_resources(session: &Session, uris: &Value) -> Result<Value, Failure> {
    let uris = uris.as_array().cloned().unwrap_or_default();
    for uri in uris.iter().filter_map(Value::as_str) {
        let params = ReadResourceRequestParams::new(uri);
        let result = session.read_resource(params).await?;
        let read = match result.contents.first() {
            Some(ResourceContents::TextResourceContents { uri, .. }) => uri,
            Some(ResourceContents::BlobResourceContents { uri, .. }) => uri,
            other => return Err(format!("no contents: {other:?}").into()),
        };
        expect(
            read == uri,
            format!("the contents of another resource: {read}"),
        )?;
    }
    Ok(json!(format!("{} read", uris.len())))
}

/// Lists the resource templates; returns their URI templates.
async fn list_templates(session: &Session) -> Result<Value, Failure> {
    let templates = session.list_all_resource_templates().await?;
    let templates: Vec<_> = templates
        .into_iter()
        .map(|template| template.uri_template)
        .collect();
    Ok(json!(templates))
}

/// Lists the prompts; returns the complete list.
async fn list_prompts(session: &Session) -> Result<Value, Failure> {
    let prompts = session.list_all_prompts().await?;
    expect(!prompts.is_empty(), "no prompt")?;
    Ok(json!(prompts))
}

/// Gets each prompt with its required arguments, and checks that it has messages.
async fn get_prompts(session: &Session, prompts: &Value) -> Result<Value, Failure> {
    let prompts = prompts.as_array().cloned().unwrap_or_default();
    for prompt in &prompts {
        let declared = prompt["arguments"].as_array().cloned().unwrap_or_default();
        let required = declared
            .iter()
            .filter(|argument| argument["required"] == true);
        let names = required.filter_map(|argument| argument["name"].as_str());
        let arguments = names.map(|name| (name.to_owned(), json!("you"))).collect();
        let name = prompt["name"].as_str().unwrap_or_default();
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let result = session.get_prompt(params).await?;
        expect(!result.messages.is_empty(), format!("no message: {name}"))?;
    }
    Ok(json!(format!("{} read", prompts.len())))
}

/// Creates a call of the tool `slow`.
fn slow_call() -> ClientRequest {
    ClientRequest::CallToolRequest(Request::new(CallToolRequestParams::new("slow")))
}

/// Calls `slow` and counts the progress notifications until the response; the last notification may be missing, because
/// the SDK delivers notifications concurrently.
async fn progress(session: &Session) -> Result<Value, Failure> {
    let options = PeerRequestOptions::no_options();
    let handle = session
        .send_cancellable_request(slow_call(), options)
        .await?;
    let mut arriving = session
        .service()
        .progress
        .subscribe(handle.progress_token.clone())
        .await;
    let mut values = Vec::new();
    let answer = handle.await_response();
    tokio::pin!(answer);
    loop {
        tokio::select! {
            biased;
            Some(arrived) = arriving.next() => values.push(arrived.progress),
            answer = &mut answer => {
                answer?;
                break;
            }
        }
    }
    expect(!values.is_empty(), "no progress arrived")?;
    expect(
        values.is_sorted_by(|a, b| a < b),
        format!("progress does not increase: {values:?}"),
    )?;
    Ok(json!(format!("{} notifications", values.len())))
}

/// Cancels a call of `slow` after its first progress notification, and checks that the session continues. The SDK does
/// not report late responses.
async fn cancel(session: &Session) -> Result<Value, Failure> {
    let options = PeerRequestOptions::no_options();
    let handle = session
        .send_cancellable_request(slow_call(), options)
        .await?;
    let mut arriving = session
        .service()
        .progress
        .subscribe(handle.progress_token.clone())
        .await;
    expect(arriving.next().await.is_some(), "no progress arrived")?;
    handle.cancel(Some("enough".to_owned())).await?;
    call(session, "echo", json!({ "text": "still here" })).await?;
    Ok(json!({ "answered": null }))
}

/// Calls `ask`, and checks that the result contains an answer that this client gives to server requests.
async fn ask(session: &Session) -> Result<Value, Failure> {
    let text = call(session, "ask", json!({})).await?;
    let answered = text.contains(ROOT_URI) || text.contains(SAMPLED_TEXT);
    expect(answered, format!("no answer of this program in {text}"))?;
    Ok(json!(text))
}

/// Requests a completion, and checks the returned values.
async fn complete(session: &Session) -> Result<Value, Failure> {
    let values = session
        .complete_prompt_simple("greet", "name", "Wor")
        .await?;
    expect(
        values == ["Wor!"],
        format!("other values came back: {values:?}"),
    )?;
    Ok(json!(values))
}

/// Calls `interview`, and checks that the result contains the questions and this client's answers.
async fn interview(session: &Session) -> Result<Value, Failure> {
    let text = call(session, "interview", json!({})).await?;
    let answers: Vec<_> = text.lines().collect();
    expect(
        answers == ["First?", SAMPLED_TEXT, "Second?"],
        format!("other answers came back: {text}"),
    )?;
    Ok(json!(text))
}

/// Runs all steps between the connection and the shutdown.
async fn take_steps(steps: &mut Steps, session: &Session, revision: &ProtocolVersion) {
    if revision.has_initialize() {
        steps.run("ping", ping(session)).await;
    }
    let tools = steps.run("tools/list", list_tools(session)).await;
    steps.run("tools/call", echo(session)).await;
    let uris = steps.run("resources/list", list_resources(session)).await;
    steps
        .run("resources/read", read_resources(session, &uris))
        .await;
    steps
        .run("resources/templates/list", list_templates(session))
        .await;
    let prompts = steps.run("prompts/list", list_prompts(session)).await;
    steps
        .run("prompts/get", get_prompts(session, &prompts))
        .await;
    steps.run("progress", progress(session)).await;
    steps.run("cancel", cancel(session)).await;
    let asked = steps.run("ask", ask(session)).await;
    let text = asked.as_str().unwrap_or_default();
    for (step, answer) in [("roots/list", ROOT_URI), ("sampling/createMessage", SAMPLED_TEXT)] {
        if text.contains(answer) {
            steps.report(step, true, &json!(answer));
        }
    }
    let offers = |name: &str| {
        let tools = tools.as_array();
        tools.is_some_and(|tools| tools.iter().any(|tool| tool == name))
    };
    if offers("note") {
        steps.run("completion/complete", complete(session)).await;
    }
    if offers("interview") {
        steps.run("elicitation/create", interview(session)).await;
    }
}

/// Connects to a server process or a URL in the given mode.
async fn connect(mode: &str, target: &[String]) -> Result<Session, Failure> {
    let newest = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode {
        "legacy" => ClientLifecycleMode::Initialize,
        "auto" => ClientLifecycleMode::Auto {
            preferred_versions: newest,
            legacy_version: None,
        },
        _ => ClientLifecycleMode::Discover {
            preferred_versions: newest,
        },
    };
    let peer = Peer::default();
    match target {
        [option, url] if option == "--http" => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            Ok(peer.serve_with_lifecycle(transport, lifecycle).await?)
        }
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments);
            let transport = TokioChildProcess::new(command)?;
            Ok(peer.serve_with_lifecycle(transport, lifecycle).await?)
        }
        [] => Err("name a command, or --http and a URL".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mode, target) = arguments
        .split_first()
        .expect("a mode, then a command or --http and a URL");
    let mut steps = Steps::default();
    let mut revision = None;
    match connect(mode, target).await {
        Ok(session) => {
            let server = session.peer_info().expect("the session is open");
            let negotiated = server.protocol_version.clone();
            let name = server.server_info.as_ref().map(|info| info.name.clone());
            steps.report("connect", true, &json!(name));
            take_steps(&mut steps, &session, &negotiated).await;
            revision = Some(negotiated);
            let closed = async { Ok(json!(format!("{:?}", session.cancel().await?))) };
            steps.run("shutdown", closed).await;
        }
        Err(error) => steps.report("connect", false, &json!(error.to_string())),
    }
    println!("{}", json!({ "revision": revision }));
    if steps.failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
