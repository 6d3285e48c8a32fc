//! A server that uses rmcp, for both lifecycles: `server` runs over stdio, `server --http` over HTTP. The server has
//! the features that README.md describes.

// rmcp discourages sampling and roots; servers and clients of older revisions have them.
#![allow(deprecated)]

mod listen;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    CreateMessageRequestParams, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, InputRequest, InputRequests, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, Role, SamplingMessage, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};

/// Number of progress notifications of the tool `slow`.
const PROGRESS_STEPS: u32 = 20;
/// Pause before each progress notification.
const STEP_INTERVAL: Duration = Duration::from_millis(50);
/// Reconnection time that event streams suggest to clients.
const RETRY: Duration = Duration::from_millis(100);
/// `requestState` in the results of the tool `ask`.
const REQUEST_STATE: &str = "asked, and waiting";
/// URI of the text resource.
const GREETING_URI: &str = "interop://greeting";
/// URI of the binary resource.
const BYTES_URI: &str = "interop://bytes";

/// Server handler with the features that README.md describes.
#[derive(Clone)]
struct Peer;

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let object = json!({ "type": "object" });
        let text = json!({
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        });
        parse_params(json!({ "tools": [
            { "name": "echo", "inputSchema": text },
            { "name": "slow", "inputSchema": object },
            { "name": "ask", "inputSchema": object },
        ] }))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match params.name.as_ref() {
            "echo" => {
                let arguments = params.arguments.unwrap_or_default();
                let text = arguments.get("text").and_then(Value::as_str);
                let missing = || ErrorData::invalid_params("`text` is missing", None);
                Ok(text_result(text.ok_or_else(missing)?))
            }
            "slow" => slow(&context).await,
            "ask" => ask(params, &context).await,
            name => Err(ErrorData::invalid_params(
                format!("unknown tool: {name}"),
                None,
            )),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        parse_params(json!({ "resources": [
            { "uri": GREETING_URI, "name": "greeting" },
            { "uri": BYTES_URI, "name": "bytes" },
        ] }))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = match params.uri.as_str() {
            GREETING_URI => ResourceContents::text("hello", GREETING_URI),
            BYTES_URI => ResourceContents::blob("+/8=", BYTES_URI),
            uri => {
                let message = format!("unknown resource: {uri}");
                return Err(ErrorData::resource_not_found(message, None));
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({ "uriTemplate": "interop://item/{id}", "name": "item" });
        parse_params(json!({ "resourceTemplates": [template] }))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{ "name": "name", "required": true }]);
        parse_params(json!({ "prompts": [{ "name": "greet", "arguments": arguments }] }))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = params.arguments.unwrap_or_default();
        let name = arguments.get("name").and_then(Value::as_str);
        let missing = || ErrorData::invalid_params("`name` is missing", None);
        let text = format!("Greet {}.", name.ok_or_else(missing)?);
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

/// Creates a type of the SDK from JSON, because the constructors of these types differ between versions of the SDK.
fn parse_params<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Returns a result with one text block.
fn text_result(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Implements the tool `slow`, which reports progress until it is finished or cancelled.
async fn slow(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let token = context.meta.get_progress_token();
    for step in 1..=PROGRESS_STEPS {
        tokio::select! {
            () = tokio::time::sleep(STEP_INTERVAL) => {}
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None));
            }
        }
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
            let progress = progress.with_total(f64::from(PROGRESS_STEPS));
            let sent = context.peer.notify_progress(progress).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
    }
    Ok(text_result("done"))
}

/// Implements the tool `ask`, which requires input from the client: by requests of the server in a session, or in a
/// result of 2026-07-28, whose retry contains the input responses.
async fn ask(
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let capabilities = context.client_capabilities().unwrap_or_default();
    let (roots, sampling) = (
        capabilities.roots.is_some(),
        capabilities.sampling.is_some(),
    );
    let question =
        || CreateMessageRequestParams::new(vec![SamplingMessage::user_text("Well?")], 16);
    let handshake = context
        .protocol_version()
        .is_some_and(|version| version.has_initialize());
    let internal = |error: String| ErrorData::internal_error(error, None);
    let mut answers = Vec::new();
    if handshake {
        if roots {
            let answer = context.peer.list_roots().await;
            let answer = answer.map_err(|error| internal(error.to_string()))?;
            answers.push(
                answer
                    .roots
                    .first()
                    .map_or(String::new(), |root| root.uri.clone()),
            );
        }
        if sampling {
            let answer = context.peer.create_message(question()).await;
            let answer = answer.map_err(|error| internal(error.to_string()))?;
            answers.push(json!(answer.message.content).to_string());
        }
    } else if let (None, true) = (&params.input_responses, roots || sampling) {
        let mut requests = InputRequests::new();
        if roots {
            requests.insert("roots".into(), InputRequest::ListRoots(Default::default()));
        }
        if sampling {
            let question = InputRequest::CreateMessage(rmcp::model::Request::new(question()));
            requests.insert("sampling".into(), question);
        }
        return Ok(InputRequiredResult::new(Some(requests), Some(REQUEST_STATE.into())).into());
    } else if roots || sampling {
        if params.request_state.as_deref() != Some(REQUEST_STATE) {
            return Err(internal(format!(
                "another state came back: {:?}",
                params.request_state
            )));
        }
        let given = params.input_responses.unwrap_or_default();
        answers.extend(given.values().map(Value::to_string));
    }
    Ok(text_result(&answers.join("\n")))
}

/// Runs the server over HTTP on a free port.
async fn serve_http() -> Result<(), Box<dyn std::error::Error>> {
    // rmcp forgets a request once its answer was sent, to a connection or to none; after three seconds, which are its default,
    // a client would come too late.
    let mut manager = LocalSessionManager::default();
    manager.session_config.sse_retry = Some(RETRY);
    let manager = Arc::new(manager);
    let config = StreamableHttpServerConfig::default().with_sse_retry(Some(RETRY));
    let service = StreamableHttpService::new(|| Ok(Peer), manager, config);
    listen::serve(service).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        None => {
            let service = Peer.serve(rmcp::transport::stdio()).await?;
            service.waiting().await?;
            Ok(())
        }
        Some("--http") => serve_http().await,
        Some(other) => Err(format!("{other} is no transport; use --http or nothing").into()),
    }
}
