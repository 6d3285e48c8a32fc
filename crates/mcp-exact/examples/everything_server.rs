//! Server with an example of every feature, over Streamable HTTP: tools with every kind of content, progress, logs,
//! input requests, resources, prompts and changes at run time.
//!
//! `everything_server [PORT]` listens on 127.0.0.1, on a free port without an argument or with 0, and prints its URL on
//! standard error. The server has the tools, resources and prompts that the official conformance suite uses
//! (`cargo xtask conformance`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{
    Completions, Content, Contents, Cx, Elicited, Error, InputRequestError, InputRequestErrorKind,
    IntoServer, Partial, PeerError, Prompt, PromptResult, Result, Role, Sample, Server, State,
    Tool, server,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

/// PNG image of one red pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\xdac\xf8\xcf\xc0\
\0\0\x03\x01\x01\0\xf7\x03AC\0\0\0\0IEND\xaeB`\x82";
/// WAV sound of four silent samples.
const WAV: &[u8] = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x04\0\0\0\
\x80\x80\x80\x80";
/// Pause between two notifications of a tool.
const NOTIFICATION_INTERVAL: Duration = Duration::from_millis(50);

/// Form that asks for a name.
#[derive(Deserialize, JsonSchema)]
struct NameForm {
    name: String,
}

/// Form that asks for a colour.
#[derive(Deserialize, JsonSchema)]
struct ColourForm {
    color: String,
}

/// Form that asks for a confirmation.
#[derive(Deserialize, JsonSchema)]
struct ConfirmForm {
    ok: bool,
}

/// Form that asks for a confirmation, with the field name of the suite's task scenarios.
#[derive(Deserialize, JsonSchema)]
struct ConsentForm {
    confirm: bool,
}

/// Form that asks for the topic of a prompt.
#[derive(Deserialize, JsonSchema)]
struct TopicForm {
    context: String,
}

/// Form that asks for an account.
#[derive(Deserialize, Serialize, JsonSchema)]
struct AccountForm {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

/// Form with a default for every kind of field.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(default)]
struct ProfileForm {
    name: String,
    age: i32,
    score: f64,
    status: Status,
    verified: bool,
}

impl Default for ProfileForm {
    fn default() -> Self {
        Self {
            name: "John Doe".to_owned(),
            age: 30,
            score: 95.5,
            status: Status::Active,
            verified: true,
        }
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

/// Form with every kind of enum.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EnumForm {
    untitled_single: UntitledEnum,
    titled_single: TitledEnum,
    legacy_enum: LegacyEnum,
    untitled_multi: Vec<UntitledEnum>,
    titled_multi: Vec<TitledEnum>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UntitledEnum {
    Option1,
    Option2,
    Option3,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum TitledEnum {
    #[schemars(title = "First Option")]
    Value1,
    #[schemars(title = "Second Option")]
    Value2,
    #[schemars(title = "Third Option")]
    Value3,
}

/// Enum with titles in `enumNames`, the form of revisions before 2025-11-25.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
enum LegacyEnum {
    Opt1,
    Opt2,
    Opt3,
}

/// The running server, for tools that change its tools and prompts.
type RunningServer = Arc<OnceLock<Server>>;

/// Returns the running server.
fn running_server(server: &RunningServer) -> Result<&Server> {
    server
        .get()
        .ok_or_else(|| Error::msg("the server has not started; call the tool again"))
}

/// Returns the action of the user and the submitted data as text.
fn describe_answer<T: Serialize>(answer: &Elicited<T>) -> Result<String> {
    Ok(match answer {
        Elicited::Accepted(data) => {
            let data = serde_json::to_string(data).map_err(Error::from)?;
            format!("action=accept, content={data}")
        }
        Elicited::Declined => "action=decline, content={}".to_owned(),
        Elicited::Cancelled => "action=cancel, content={}".to_owned(),
    })
}

/// Returns the answer; `None` if the client does not support the input request.
fn answer_if_supported<T>(answer: Result<T, InputRequestError>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if matches!(error.kind(), InputRequestErrorKind::Unsupported { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Server with an example of every feature.
struct EverythingServer;

#[server(
    name = "everything",
    version = "1.0.0",
    title = "Everything",
    instructions = "Call any tool: each one shows a feature of the protocol.",
    parts(questions, rounds, long, data)
)]
impl EverythingServer {
    /// Returns a text.
    #[tool(read_only)]
    async fn test_simple_text() -> &'static str {
        "This is a simple text response for testing."
    }

    /// Returns an image.
    #[tool(read_only)]
    async fn test_image_content() -> Content {
        Content::image(PNG, "image/png")
    }

    /// Returns a sound.
    #[tool(read_only)]
    async fn test_audio_content() -> Content {
        Content::audio(WAV, "audio/wav")
    }

    /// Returns an embedded resource.
    #[tool(read_only)]
    async fn test_embedded_resource() -> Content {
        Content::embedded_text(
            "test://embedded-resource",
            "This is an embedded resource content.",
        )
        .embedded_type("text/plain")
    }

    /// Returns a text, an image and a resource.
    #[tool(read_only)]
    async fn test_multiple_content_types() -> Vec<Content> {
        vec![
            Content::text("Multiple content types test:"),
            Content::image(PNG, "image/png"),
            Content::embedded_text(
                "test://mixed-content-resource",
                r#"{"test":"data","value":123}"#,
            )
            .embedded_type("application/json"),
        ]
    }

    /// Sends three log messages before it returns.
    #[tool(read_only)]
    async fn test_tool_with_logging(cx: &Cx) -> Result<&'static str> {
        cx.info("Tool execution started")?;
        sleep(NOTIFICATION_INTERVAL).await;
        cx.info("Tool processing data")?;
        sleep(NOTIFICATION_INTERVAL).await;
        cx.info("Tool execution completed")?;
        Ok("Sent three log messages.")
    }

    /// Sends one log message.
    #[tool(read_only)]
    async fn test_logging_tool(cx: &Cx) -> Result<&'static str> {
        cx.info("A log message")?;
        Ok("Sent a log message.")
    }

    /// Reports progress before it returns.
    #[tool(read_only)]
    async fn test_tool_with_progress(cx: &Cx) -> Result<&'static str> {
        for done in [0, 50, 100] {
            cx.progress(done, 100)?;
            sleep(NOTIFICATION_INTERVAL).await;
        }
        Ok("Reported progress three times.")
    }

    /// Returns an error.
    #[tool(read_only)]
    async fn test_error_handling() -> Result<String> {
        Err(Error::msg(
            "This tool intentionally returns an error for testing",
        ))
    }

    /// Runs so long that the response becomes an event stream, which can be resumed.
    #[tool(read_only)]
    async fn test_reconnection(cx: &Cx) -> Result<&'static str> {
        cx.info("Before the pause")?;
        sleep(10 * NOTIFICATION_INTERVAL).await;
        Ok("The call has survived.")
    }

    /// Takes an argument that clients mirror into a header.
    #[tool(read_only)]
    async fn test_header_mirroring(
        /// Region to search.
        #[schemars(extend("x-mcp-header" = "Region"))]
        region: String,
    ) -> String {
        format!("Region: {region}")
    }

    /// Adds a tool, or removes it if it exists.
    #[tool]
    async fn test_trigger_tool_change(State(server): State<RunningServer>) -> Result<&'static str> {
        let tools = running_server(&server)?.tools();
        if tools.remove("test_changing_tool") {
            return Ok("Removed a tool.");
        }
        let tool = Tool::new("test_changing_tool").description("Comes and goes.");
        tools
            .insert(tool, || async { "Still there." })
            .map_err(Error::from)?;
        Ok("Added a tool.")
    }

    /// Adds a prompt, or removes it if it exists.
    #[tool]
    async fn test_trigger_prompt_change(
        State(server): State<RunningServer>,
    ) -> Result<&'static str> {
        let prompts = running_server(&server)?.prompts();
        if prompts.remove("test_changing_prompt") {
            return Ok("Removed a prompt.");
        }
        let prompt = Prompt::new("test_changing_prompt").description("Comes and goes.");
        prompts
            .insert(prompt, || async { "Still there." })
            .map_err(Error::from)?;
        Ok("Added a prompt.")
    }
}

/// Tools that send input requests: elicitation, sampling and roots.
#[server(part = questions)]
impl EverythingServer {
    /// Sends a sampling request to the client.
    #[tool]
    async fn test_sampling(
        /// The prompt to send to the model.
        prompt: String,
        cx: &Cx,
    ) -> Result<String> {
        let sampled = cx.sample(&Sample::new(prompt, 100)).await?;
        Ok(format!("LLM response: {}", sampled.text()))
    }

    /// Sends a sampling request, which fails for a client without the capability.
    #[tool]
    async fn test_missing_capability(cx: &Cx) -> Result<String> {
        let sampled = cx.sample(&Sample::new("Say something.", 100)).await?;
        Ok(sampled.text())
    }

    /// Asks the user for a name and an address.
    #[tool]
    async fn test_elicitation(
        /// The message to show the user.
        message: String,
        cx: &Cx,
    ) -> Result<String> {
        let answer = cx.elicit::<AccountForm>(message).await?;
        Ok(format!("User response: {}", describe_answer(&answer)?))
    }

    /// Reports progress, then asks the user.
    #[tool]
    async fn test_streaming_elicitation(cx: &Cx) -> Result<String> {
        cx.progress(1, 2)?;
        let answer = cx.elicit::<ConfirmForm>("Continue?").await?;
        let sure = answer.accepted_with(|form| form.ok);
        Ok(format!("Continued: {sure}"))
    }

    /// Asks the user with a form whose fields have defaults.
    #[tool]
    async fn test_elicitation_sep1034_defaults(cx: &Cx) -> Result<String> {
        let answer = cx.elicit::<ProfileForm>("Who are you?").await?;
        Ok(format!(
            "Elicitation completed: {}",
            describe_answer(&answer)?
        ))
    }

    /// Asks the user with a form of enums.
    #[tool]
    async fn test_elicitation_sep1330_enums(cx: &Cx) -> Result<String> {
        let answer = cx.elicit::<EnumForm>("What do you choose?").await?;
        Ok(format!(
            "Elicitation completed: {}",
            describe_answer(&answer)?
        ))
    }
}

/// Tools that set the keys of their input requests in `inputRequests` (from 2026-07-28 on).
#[server(part = rounds)]
impl EverythingServer {
    /// Asks for a name.
    #[tool]
    async fn test_input_required_result_elicitation(cx: &Cx) -> Result<String> {
        let answer = cx.elicit::<NameForm>("What is your name?").key("user_name");
        let name = answer.await?.accepted().map(|form| form.name);
        Ok(format!("Hello, {}!", name.as_deref().unwrap_or("stranger")))
    }

    /// Sends a sampling request to the client.
    #[tool]
    async fn test_input_required_result_sampling(cx: &Cx) -> Result<String> {
        let sample = Sample::new("What is the capital of France?", 100);
        Ok(cx.sample(&sample).key("capital_question").await?.text())
    }

    /// Requests the roots of the client.
    #[tool]
    async fn test_input_required_result_list_roots(cx: &Cx) -> Result<String> {
        let roots = cx.roots().key("client_roots").await?;
        let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
        Ok(format!("Roots: {}", uris.join(", ")))
    }

    /// Asks for a confirmation; the sealed `requestState` contains the results of earlier steps.
    #[tool]
    async fn test_input_required_result_request_state(cx: &Cx) -> Result<String> {
        let answer = cx.elicit::<ConfirmForm>("Please confirm").key("confirm");
        let sure = answer.await?.accepted_with(|form| form.ok);
        Ok(format!("state-ok, confirmed: {sure}"))
    }

    /// Sends three requests at once.
    #[tool]
    async fn test_input_required_result_multiple_inputs(cx: &Cx) -> Result<String> {
        let greeting = Sample::new("Generate a greeting", 50);
        let (name, greeting, roots) = tokio::join!(
            cx.elicit::<NameForm>("What is your name?").key("user_name"),
            cx.sample(&greeting).key("greeting"),
            cx.roots().key("client_roots"),
        );
        let name = name?.accepted().map(|form| form.name).unwrap_or_default();
        Ok(format!(
            "{} {name}, you have {} roots.",
            greeting?.text(),
            roots?.len()
        ))
    }

    /// Asks for a name, then for a colour.
    #[tool]
    async fn test_input_required_result_multi_round(cx: &Cx) -> Result<String> {
        let name = cx
            .elicit::<NameForm>("Step 1: What is your name?")
            .key("step1")
            .await?;
        let colour = cx
            .elicit::<ColourForm>("Step 2: What is your favorite color?")
            .key("step2")
            .await?;
        let name = name.accepted().map(|form| form.name).unwrap_or_default();
        let colour = colour.accepted().map(|form| form.color).unwrap_or_default();
        Ok(format!("{name} likes {colour}."))
    }

    /// Asks for a confirmation; a modified `requestState` is rejected.
    #[tool]
    async fn test_input_required_result_tampered_state(cx: &Cx) -> Result<String> {
        let answer = cx.elicit::<ConfirmForm>("Please confirm").key("confirm");
        let sure = answer.await?.accepted_with(|form| form.ok);
        Ok(format!("Confirmed: {sure}"))
    }

    /// Asks the user and the model, depending on the client's capabilities.
    #[tool]
    async fn test_input_required_result_capabilities(cx: &Cx) -> Result<String> {
        let sample = Sample::new("Generate a greeting", 50);
        let (name, greeting) = tokio::join!(
            cx.elicit::<NameForm>("What is your name?").key("user_name"),
            cx.sample(&sample).key("greeting"),
        );
        let name = answer_if_supported(name)?.and_then(Elicited::accepted);
        let greeting = answer_if_supported(greeting)?;
        let parts = [
            name.map(|form| form.name),
            greeting.map(|sampled| sampled.text()),
        ];
        Ok(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// Asks the user for the topic of the prompt.
    #[prompt]
    async fn test_input_required_result_prompt(cx: &Cx) -> Result<PromptResult> {
        let answer = cx
            .elicit::<TopicForm>("What context should the prompt use?")
            .key("user_context");
        let topic = answer.await?.accepted().map(|form| form.context);
        Ok(PromptResult::user(format!(
            "Use this context: {}",
            topic.as_deref().unwrap_or("none")
        )))
    }
}

/// Tools that run as tasks (extension `io.modelcontextprotocol/tasks`), and a tool that does not.
#[server(part = long)]
impl EverythingServer {
    /// Returns a greeting immediately.
    #[tool(read_only)]
    async fn greet(name: String) -> String {
        format!("Hello, {name}!")
    }

    /// Returns after the given time.
    #[tool(read_only, task)]
    async fn slow_compute(seconds: u32, label: Option<String>) -> String {
        sleep(Duration::from_secs(seconds.into())).await;
        format!("Computed {}.", label.as_deref().unwrap_or("nothing"))
    }

    /// Fails, and requires to run as a task.
    #[tool(read_only, task, task_required)]
    async fn failing_job() -> Result<String> {
        sleep(10 * NOTIFICATION_INTERVAL).await;
        Err(Error::msg("the job failed, as it always does"))
    }

    /// Ends with a JSON-RPC error.
    #[tool(read_only, task)]
    async fn protocol_error_job() -> Result<String, PeerError> {
        sleep(NOTIFICATION_INTERVAL).await;
        Err(PeerError::internal("the job broke down, as it always does"))
    }

    /// Asks for a confirmation before it continues.
    #[tool(task)]
    async fn confirm_delete(filename: String, cx: &Cx) -> Result<String> {
        let answer = cx
            .elicit::<ConsentForm>(format!("Delete {filename}?"))
            .await?;
        Ok(if answer.accepted_with(|form| form.confirm) {
            format!("Deleted {filename}.")
        } else {
            format!("Kept {filename}.")
        })
    }

    /// Sends two requests at once.
    #[tool(task)]
    async fn multi_input(cx: &Cx) -> Result<String> {
        let (name, sure) = tokio::join!(
            cx.elicit::<NameForm>("What is your name?"),
            cx.elicit::<ConsentForm>("Are you sure?"),
        );
        let name = name?.accepted().map(|form| form.name).unwrap_or_default();
        Ok(format!(
            "{name}: {}",
            sure?.accepted_with(|form| form.confirm)
        ))
    }

    /// Asks for a name, then continues as a task.
    #[tool(task_required)]
    async fn test_tool_with_task(cx: &Cx) -> Result<String> {
        let answer = cx
            .elicit::<NameForm>("What is your name?")
            .key("user_name")
            .await?;
        let name = answer.accepted().map(|form| form.name).unwrap_or_default();
        cx.become_task().await?;
        sleep(NOTIFICATION_INTERVAL).await;
        Ok(format!("Hello, {name}!"))
    }
}

/// Resources, prompts and completions.
#[server(part = data)]
impl EverythingServer {
    /// A resource of text.
    #[resource("test://static-text", mime_type = "text/plain")]
    async fn static_text() -> &'static str {
        "This is the content of the static text resource."
    }

    /// A resource of bytes.
    #[resource("test://static-binary", mime_type = "image/png")]
    async fn static_binary() -> Vec<u8> {
        PNG.to_vec()
    }

    /// A resource to subscribe to.
    #[resource("test://watched-resource", mime_type = "text/plain")]
    async fn watched_resource() -> &'static str {
        "Subscribe to me."
    }

    /// A family of resources.
    #[resource("test://template/{id}/data", mime_type = "application/json")]
    async fn template_data(id: String) -> Contents {
        let data = serde_json::json!({
            "id": id,
            "templateTest": true,
            "data": format!("Data for ID: {id}"),
        });
        Contents::text(data.to_string())
    }

    /// A prompt without arguments.
    #[prompt]
    async fn test_simple_prompt() -> &'static str {
        "This is a simple prompt for testing."
    }

    /// A prompt with arguments.
    #[prompt]
    async fn test_prompt_with_arguments(
        /// First test argument
        arg1: String,
        /// Second test argument
        arg2: String,
    ) -> String {
        format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
    }

    /// Suggests values of the first argument.
    #[complete(prompt = "test_prompt_with_arguments", argument = "arg1")]
    async fn first_argument(partial: Partial) -> Completions {
        let known = ["paris", "park", "party", "test"];
        Completions::new(
            known
                .into_iter()
                .filter(|value| value.starts_with(&partial.value)),
        )
    }

    /// A prompt with a resource in it.
    #[prompt]
    async fn test_prompt_with_embedded_resource(
        /// URI of the resource to embed
        #[serde(rename = "resourceUri")]
        resource_uri: String,
    ) -> PromptResult {
        let resource =
            Content::embedded_text(&resource_uri, "Embedded resource content for testing.")
                .embedded_type("text/plain");
        PromptResult::new()
            .message(Role::User, resource)
            .message(Role::User, "Please process the embedded resource above.")
    }

    /// A prompt with an image in it.
    #[prompt]
    async fn test_prompt_with_image() -> PromptResult {
        PromptResult::new()
            .message(Role::User, Content::image(PNG, "image/png"))
            .message(Role::User, "Please analyze the image above.")
    }
}

/// Returns a tool whose input schema uses keywords of JSON Schema 2020-12.
fn schema_tool() -> Tool {
    let schema = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new("json_schema_2020_12_tool")
        .description("Tool with JSON Schema 2020-12 features")
        .input_schema(schema)
}

/// Completes on Ctrl-C.
async fn wait_for_interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[tokio::main]
#[allow(clippy::print_stderr, reason = "the URL is the output of the program")]
async fn main() -> Result {
    let port: u16 = match std::env::args().nth(1) {
        Some(port) => port.parse().map_err(|_| {
            Error::msg(format!(
                "{port:?} is not a port; give a number from 0 to 65535"
            ))
        })?,
        None => 0,
    };
    let running = RunningServer::default();
    let server =
        EverythingServer
            .into_builder()
            .state(Arc::clone(&running))
            .skills(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/skills"))
            .tool(
                schema_tool(),
                |arguments: mcp_exact::JsonObject| async move {
                    format!("Arguments: {}", arguments.text())
                },
            )
            .build()?;
    let service = server.http(HttpServerOptions::default());
    running.get_or_init(|| server);
    let listener = HttpListener::bind(("127.0.0.1", port)).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    listener.serve(service, wait_for_interrupt()).await?;
    Ok(())
}
