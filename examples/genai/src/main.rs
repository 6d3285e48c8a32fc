//! An agent: a chat model of any provider, by the crate [genai](https://docs.rs/genai), with the tools of the servers of an
//! `mcp.json` file. `OPENAI_API_KEY=… cargo run -- mcp.json gpt-5-mini "What is in my notes?"`.

#[cfg(test)]
mod tests;

use std::time::Duration;

use genai::Client;
use genai::chat::{ChatMessage, ChatRequest, Tool, ToolCall, ToolResponse};
use mcp_exact::{Host, HostTool, Reconnect, Result};

/// Maximum number of rounds between the model and its tools.
const MAX_ROUNDS: usize = 10;
/// Maximum time of one call of a tool.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of characters of a result that the model reads.
const MAX_RESULT: usize = 16 << 10;

#[tokio::main]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, model, question] = &arguments[..] else {
        return Err(mcp_exact::Error::msg(
            "usage: genai-agent mcp.json MODEL QUESTION",
        ));
    };
    let host = Host::builder()
        .config_file(file)?
        .reconnect(Reconnect::new())
        .start()
        .await;
    for (server, error) in host.failures() {
        eprintln!("{server} is not used: {error}");
    }
    // The name of the model selects the provider, whose key is a variable of the environment.
    let client = Client::new()?;
    let answer = answer(&client, model, &host, question).await;
    // The servers end by themselves; the end of the program would kill them.
    host.close();
    host.closed().await;
    println!("{}", answer?);
    Ok(())
}

/// Lets the model and the tools work until the model has an answer.
async fn answer(client: &Client, model: &str, host: &Host, question: &str) -> Result<String> {
    let mut request = ChatRequest::new(vec![ChatMessage::user(question)]);
    for _ in 0..MAX_ROUNDS {
        // Lists are cached as long as the servers allow; a server that is back may have other tools.
        let listed = host.tools().await;
        request.tools = Some(listed.for_model().map(describe).collect());
        let response = client.exec_chat(model, request.clone(), None).await?;
        let calls: Vec<ToolCall> = response.tool_calls().into_iter().cloned().collect();
        let Some(turn) = response.clone().into_assistant_message_for_tool_use() else {
            return Ok(response.into_texts().join("\n"));
        };
        request = request.append_message(turn);
        for call in &calls {
            // A model can name tools that it was not given.
            let text = match listed.for_model_call(&call.fn_name) {
                Ok(_) => run(host, call).await,
                Err(error) => format!("error: {error}"),
            };
            request = request.append_message(ToolResponse::from_tool_call(call, text));
        }
    }
    Ok(format!("no answer after {MAX_ROUNDS} rounds"))
}

/// Describes a tool to the model.
fn describe(tool: &HostTool) -> Tool {
    let mut described = Tool::new(tool.name());
    if let Some(description) = tool.definition.description() {
        described = described.with_description(description);
    }
    let schema = tool.definition.input_schema();
    match schema.and_then(|schema| schema.parse().ok()) {
        Some(schema) => described.with_schema(schema),
        None => described,
    }
}

/// Calls a tool. An error is a result for the model too: it may try something else, or tell the user.
async fn run(host: &Host, call: &ToolCall) -> String {
    let calling = host.call(&call.fn_name, &call.fn_arguments);
    let text = match tokio::time::timeout(CALL_LIMIT, calling).await {
        Ok(Ok(output)) => {
            let status = ["", "the tool failed: "][usize::from(output.is_error())];
            format!("{status}{}", output.for_model())
        }
        Ok(Err(error)) => format!("error: {error}"),
        Err(_) => format!("error: no result after {} s", CALL_LIMIT.as_secs()),
    };
    text.chars().take(MAX_RESULT).collect()
}
