//! `mcp-exact call`: calls a tool and prints its result.

use std::ffi::OsString;
use std::io::{self, Write};

use anyhow::{Context, anyhow};
use clap::Args;
use mcp_exact::{Client, ClientError, Definition, JsonObject, Progress, RawJson};
use mcp_exact_revisions::method;
use serde_json::Value;

use super::{BYTE_ORDER_MARK, Settings, add_hint, answer, run_with_server};
use crate::Outcome;
use crate::names::suggest;
use crate::output::{Painter, Style};
use crate::terminal::{print_to_stderr, stderr, stdout};
use crate::text::{Text, Untrusted, text};

/// The arguments of `mcp-exact call`.
#[derive(Args)]
#[command(after_help = "\
Example: mcp-exact call add a=1 b=2 -- node server.js

Values are read by the schema of the tool: numbers and booleans where it says so, lists as JSON or with commas.

Exit code: 0 the tool has done its work, 1 the tool says that it failed, 2 wrong usage, or the server refuses or cannot be \
reached.")]
pub struct Arguments {
    /// The name of the tool.
    #[arg(value_name = "TOOL")]
    tool: String,
    /// Arguments of the tool.
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from standard input.
    #[arg(long, value_name = "JSON", conflicts_with = "values")]
    arguments: Option<String>,
    /// Print the whole result as JSON.
    #[arg(long)]
    json: bool,
    /// Send arguments that the schema of the tool does not have.
    #[arg(long)]
    any_argument: bool,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(value_name = "COMMAND|URL", required = true, last = true)]
    server: Vec<OsString>,
}

/// Calls the tool.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    run_with_server(&arguments.settings, async {
        let connect = arguments.settings.connect(&arguments.server)?;
        let client = connect.await.map_err(add_hint)?;
        let values = match &arguments.arguments {
            Some(text) => read_object(text).await?,
            None => {
                let tools = client.tools().all().await.map_err(add_hint)?;
                let Some(tool) = tools.iter().find(|tool| tool.name() == arguments.tool) else {
                    return Err(suggest_tool(&client, &arguments.tool, &tools, ""));
                };
                let schema = tool.input_schema().map(|schema| schema.parse::<Value>());
                let schema = schema.transpose()?.unwrap_or_default();
                answer::parse_assignments(&schema, &arguments.values, arguments.any_argument)?
            }
        };
        let result = call(&client, &arguments.settings, &arguments.tool, values).await?;
        client.close();
        if arguments.json {
            stdout().pretty_json(&result)?
        } else {
            print_result(&result)?
        }
        Ok(if result["isError"] == true {
            Outcome::Invalid
        } else {
            Outcome::Valid
        })
    })
}

/// Calls a tool, and shows its progress.
pub async fn call(
    client: &Client,
    settings: &Settings,
    tool: &str,
    arguments: JsonObject,
) -> anyhow::Result<Value> {
    let params = JsonObject::from_iter([
        ("name", RawJson::string(tool)),
        ("arguments", arguments.into()),
    ]);
    let request = client.request(method::TOOLS_CALL, Some(params));
    let request = request
        .idle_timeout(settings.request_timeout())
        .on_progress(show_progress);
    let result = request.await.map_err(add_hint);
    clear_progress_bar();
    Ok(result?.parse()?)
}

/// Returns the error for a tool that the server does not list, with similar names, or that its entry switches off.
pub fn suggest_tool(
    client: &Client,
    name: &str,
    tools: &[Definition],
    hint: &str,
) -> anyhow::Error {
    if let Some(key) = client.tool_filter().key_against(name) {
        let (tool, key) = (name.to_owned(), key.to_owned());
        return add_hint(ClientError::ToolOff { tool, key });
    }
    let mut problem = format!("the server has no tool `{name}`{hint}");
    let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
    suggest(&mut problem, name, names.iter().map(String::as_str));
    anyhow!(problem)
}

/// Parses the JSON object of `--arguments`; `-` reads the text from standard input. A thread waits for the input, so that signals
/// end the command meanwhile, and messages of the server are answered.
async fn read_object(text: &str) -> anyhow::Result<JsonObject> {
    let text = match text {
        "-" => {
            let read = tokio::task::spawn_blocking(|| io::read_to_string(io::stdin()));
            let text = read.await?.context("cannot read standard input")?;
            text.trim_start_matches(BYTE_ORDER_MARK).to_owned()
        }
        text => text.to_owned(),
    };
    let value: Value = serde_json::from_str(&text).context("the arguments are no JSON")?;
    JsonObject::try_from(value).map_err(|_| anyhow!("the arguments must be a JSON object"))
}

/// Prints the content blocks of a tool result, or the structured content if there are no blocks.
pub fn print_result(result: &Value) -> anyhow::Result<()> {
    let painter = Painter::stdout();
    if result["isError"] == true {
        print_to_stderr(&Painter::stderr().paint(Style::Red, "the tool failed"));
    }
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    for block in &blocks {
        // The text of a tool is what the user has asked for.
        match block_text(block) {
            Some(text) => writeln!(stdout().document(), "{text}")?,
            None => stdout().line(&format_block(block, painter))?,
        }
    }
    match result.get("structuredContent") {
        Some(structured) if blocks.is_empty() => stdout().pretty_json(structured)?,
        _ => {}
    }
    Ok(())
}

/// Returns the text of a content block: of a text block, or of the resource in it.
fn block_text(block: &Value) -> Option<&str> {
    match block["type"].as_str()? {
        "text" => block["text"].as_str(),
        "resource" => block["resource"]["text"].as_str(),
        _ => None,
    }
}

/// Formats a content block: its text, of which each line but the first is indented, or a description such as type and size.
pub fn format_block(block: &Value, painter: Painter) -> Text {
    if let Some(text) = block_text(block) {
        return Untrusted(text).indented();
    }
    let word = |name: &str| Untrusted(block[name].as_str().unwrap_or_default());
    let faint = |words: Text| painter.paint(Style::Faint, words);
    let size = |name: &str| block[name].as_str().map_or(0, |data| data.len() / 4 * 3);
    match block["type"].as_str() {
        Some("image" | "audio") => faint(text!(
            "[{} {}, about {} bytes; --json prints it]",
            word("type"),
            word("mimeType"),
            size("data")
        )),
        Some("resource_link") => faint(text!("[resource {} {}]", word("uri"), word("name"))),
        Some("resource") => {
            let uri = block["resource"]["uri"].as_str().unwrap_or_default();
            faint(text!("[resource {}]", Untrusted(uri)))
        }
        _ => text!("{}", Untrusted(&block.to_string())),
    }
}

/// Shows the progress of a call: as a bar on a terminal, and elsewhere as lines.
pub fn show_progress(progress: Progress) {
    /// Width of the progress bar, in characters.
    const WIDTH: usize = 24;
    if !stderr().is_terminal() {
        let total = progress
            .total
            .map_or_else(String::new, |total| format!(" of {total}"));
        let message = progress
            .message
            .map_or_else(String::new, |message| format!(": {message}"));
        return print_to_stderr(&text!(
            "progress: {}{}{}",
            progress.done,
            Untrusted(&total),
            Untrusted(&message)
        ));
    }
    let words = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (progress.done / total).clamp(0.0, 1.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a share of a few characters"
            )]
            let filled = (share * WIDTH as f64).round() as usize;
            text!(
                "[{}{}] {:3.0} %",
                Untrusted(&"#".repeat(filled)),
                Untrusted(&".".repeat(WIDTH - filled)),
                share * 100.0
            )
        }
        None => text!("{} …", progress.done),
    };
    let message = progress.message.unwrap_or_default();
    let message = message.replace(['\n', '\r', '\t'], " ");
    let line = text!("{} {}", words, Untrusted(&message));
    let mut stderr = stderr();
    let _ = stderr.clear_line();
    // One row: of a longer line, only the last row could be cleared.
    let line = clip(line.as_str(), stderr.columns().saturating_sub(1));
    let _ = stderr.text(&text!("{}", Untrusted(&line)));
}

/// Shortens a line to a number of columns, of which characters of East Asian scripts and pictures take two.
fn clip(line: &str, columns: usize) -> String {
    let width = |c: char| if c < '\u{1100}' { 1 } else { 2 };
    if line.chars().map(width).sum::<usize>() <= columns {
        return line.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| {
        let rest = left.checked_sub(width(*c));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let mut clipped: String = line.chars().take_while(fits).collect();
    clipped.push('…');
    clipped
}

/// Removes the progress bar from the terminal.
pub fn clear_progress_bar() {
    let _ = stderr().clear_line();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of progress is one row of the terminal: what was wrapped could not be removed.
    #[test]
    fn long_lines_are_clipped() {
        for (line, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本", 4, "日本"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a", 0, "…"),
        ] {
            assert_eq!(clip(line, columns), expected, "{line} {columns}");
        }
    }
}
