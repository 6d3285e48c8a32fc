//! An agent, a chat model that uses the tools of the servers of an `mcp.json` file: `cargo run --example agent -- mcp.json "Hello!"`.
//!
//! Implement [`ChatModel`] with the client library of any provider. The stand-in of this example calls the first tool.

#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a terminal")]

use std::io::BufRead as _;
use std::time::Duration;

use mcp_exact::{Form, FormAnswer, Host, HostTool, HostTools, Reconnect, Result, ToolOutput};
use serde_json::{Value, json};

/// Maximum number of rounds between the model and its tools.
const MAX_ROUNDS: usize = 10;
/// Maximum time of one call of a tool.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of characters of a result that the model reads.
const MAX_RESULT: usize = 16 << 10;

/// Message of the conversation: of the user, or a call that the model has asked for with its result.
pub(crate) enum Message {
    User(String),
    Tool(ToolCall, String),
}

pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

pub(crate) enum Turn {
    Say(String),
    Call(Vec<ToolCall>),
}

/// A chat model that can call tools.
pub(crate) trait ChatModel {
    /// Continues the conversation. Each tool has a name, a description and the JSON Schema of its arguments.
    async fn turn(&self, conversation: &[Message], tools: &[Value]) -> Result<Turn>;
}

/// Stand-in for a model: calls the first tool once, and says what it has returned.
struct FirstTool;

impl ChatModel for FirstTool {
    async fn turn(&self, conversation: &[Message], tools: &[Value]) -> Result<Turn> {
        match (conversation.last(), tools.first()) {
            (Some(Message::Tool(call, result)), _) => {
                Ok(Turn::Say(format!("{} says: {result}", call.name)))
            }
            (_, Some(tool)) => Ok(Turn::Call(vec![ToolCall {
                name: tool["name"].as_str().unwrap_or_default().to_owned(),
                arguments: json!({}),
            }])),
            (Some(Message::User(text)), None) => Ok(Turn::Say(format!("no tool for {text:?}"))),
            (None, None) => Ok(Turn::Say("Hello!".to_owned())),
        }
    }
}

#[tokio::main]
async fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "mcp.json".to_owned());
    let question = arguments.next().unwrap_or_else(|| "Hello!".to_owned());
    let host = Host::builder()
        .config_file(file)?
        .reconnect(Reconnect::new())
        .configure(|server, connect| {
            let server = server.to_owned();
            connect
                .on_elicit(|form| async move { ask_person(&form) })
                .on_connection_event(move |event| eprintln!("{server}: {event:?}"))
        })
        .start()
        .await;
    for (server, error) in host.failures() {
        eprintln!("{server} is not used: {error}");
    }
    let answer = chat(&host, &FirstTool, question).await;
    // The servers end by themselves; the end of the program would kill them.
    host.close();
    host.closed().await;
    println!("{}", answer?);
    Ok(())
}

/// Lets the model and the tools work until the model has an answer.
pub(crate) async fn chat(host: &Host, model: &impl ChatModel, question: String) -> Result<String> {
    let mut conversation = vec![Message::User(question)];
    for _ in 0..MAX_ROUNDS {
        // Lists are cached as long as the servers allow; a server that is back may have other tools.
        let tools = host.tools().await;
        let described: Vec<Value> = tools.for_model().map(describe).collect();
        match model.turn(&conversation, &described).await? {
            Turn::Say(text) => return Ok(text),
            Turn::Call(calls) => {
                for call in calls {
                    let result = run(host, &tools, &call).await;
                    conversation.push(Message::Tool(call, result));
                }
            }
        }
    }
    Ok(format!("no answer after {MAX_ROUNDS} rounds"))
}

/// Describes a tool to the model.
fn describe(tool: &HostTool) -> Value {
    let schema = tool.definition.input_schema();
    let schema: Option<Value> = schema.and_then(|schema| schema.parse().ok());
    json!({
        "name": tool.name(),
        "description": tool.definition.description(),
        "parameters": schema,
    })
}

/// Calls a tool that the model may call. An error is a result for the model too: it may try something else, or tell the user.
async fn run(host: &Host, tools: &HostTools, call: &ToolCall) -> String {
    let tool = match tools.for_model_call(&call.name) {
        Ok(tool) => tool.name(),
        Err(error) => return format!("error: {error}"),
    };
    let called = tokio::time::timeout(CALL_LIMIT, host.call(tool, &call.arguments)).await;
    let text = match called {
        Ok(Ok(output)) => result_text(&output),
        Ok(Err(error)) => format!("error: {error}"),
        Err(_) => format!("error: no result after {} s", CALL_LIMIT.as_secs()),
    };
    text.chars().take(MAX_RESULT).collect()
}

/// Returns what the model reads of a result.
fn result_text(output: &ToolOutput) -> String {
    let status = ["", "the tool failed: "][usize::from(output.is_error())];
    format!("{status}{}", output.for_model())
}

/// Shows a question of a server to the person at the terminal, who answers with JSON or with nothing.
fn ask_person(form: &Form) -> FormAnswer {
    let schema = form.schema().unwrap_or_default();
    eprintln!("{}\n{schema}\nJSON, or nothing to decline:", form.message());
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).is_err() {
        return form.cancel();
    }
    match serde_json::from_str::<Value>(&line) {
        Ok(values) => form.accept(&values),
        Err(_) => form.decline(),
    }
}
