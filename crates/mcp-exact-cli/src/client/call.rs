//! `mcp-exact call`: calls a tool and prints its result.

use std::ffi::OsString;
use std::io::{self, Read, Write};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use mcp_exact::{JsonObject, Progress, RawJson};
use serde_json::Value;

use super::{Settings, add_hint, answer, print_line, run_with_server};
use crate::Outcome;
use crate::names::suggest;
use crate::output::{Painter, Style, without_control_characters};
use crate::terminal::stderr;

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
            Some(text) => parse_object(text)?,
            None => {
                let tools = client.tools().all().await.map_err(add_hint)?;
                let Some(tool) = tools.iter().find(|tool| tool.name() == arguments.tool) else {
                    let mut problem = format!("the server has no tool `{}`", arguments.tool);
                    let names: Vec<String> = tools
                        .iter()
                        .map(|tool| without_control_characters(&tool.name()))
                        .collect();
                    suggest(
                        &mut problem,
                        &arguments.tool,
                        names.iter().map(String::as_str),
                    );
                    bail!(problem);
                };
                let schema = tool.input_schema().map(|schema| schema.parse::<Value>());
                let schema = schema.transpose()?.unwrap_or_default();
                answer::parse_assignments(&schema, &arguments.values)?
            }
        };
        let params = JsonObject::from_iter([
            ("name", RawJson::string(&arguments.tool)),
            ("arguments", values.into()),
        ]);
        let request = client.request("tools/call", Some(params));
        let request = request
            .idle_timeout(arguments.settings.request_timeout())
            .on_progress(draw_progress_bar);
        let result = request.await.map_err(add_hint);
        clear_progress_bar();
        let result: Value = result?.parse()?;
        client.close();
        if arguments.json {
            print_line(&serde_json::to_string_pretty(&result)?)?
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

/// Parses the JSON object of `--arguments`; `-` reads the text from standard input.
fn parse_object(text: &str) -> anyhow::Result<JsonObject> {
    let text = match text {
        "-" => {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            text
        }
        text => text.to_owned(),
    };
    let value: Value = serde_json::from_str(&text).context("the arguments are no JSON")?;
    JsonObject::try_from(value).map_err(|_| anyhow!("the arguments have to be a JSON object"))
}

/// Prints the content blocks of a tool result, or the structured content if there are no blocks.
fn print_result(result: &Value) -> anyhow::Result<()> {
    let painter = Painter::stdout();
    if result["isError"] == true {
        let _ = writeln!(
            stderr(),
            "{}",
            Painter::stderr().paint(Style::Red, "the tool failed")
        );
    }
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    for block in &blocks {
        print_line(&format_block(block, painter))?;
    }
    match result.get("structuredContent") {
        Some(structured) if blocks.is_empty() => {
            print_line(&serde_json::to_string_pretty(structured)?)?
        }
        _ => {}
    }
    Ok(())
}

/// Formats a content block as text: its text, or a description such as type and size.
pub fn format_block(block: &Value, painter: Painter) -> String {
    let word = |name: &str| without_control_characters(block[name].as_str().unwrap_or_default());
    let faint = |words: String| painter.paint(Style::Faint, &words);
    let size = |name: &str| block[name].as_str().map_or(0, |data| data.len() / 4 * 3);
    match block["type"].as_str() {
        Some("text") => word("text"),
        Some(kind @ ("image" | "audio")) => faint(format!(
            "[{kind} {}, about {} bytes; --json prints it]",
            word("mimeType"),
            size("data")
        )),
        Some("resource_link") => faint(format!("[resource {} {}]", word("uri"), word("name"))),
        Some("resource") => match block["resource"]["text"].as_str() {
            Some(text) => without_control_characters(text),
            None => faint(format!(
                "[resource {}]",
                without_control_characters(block["resource"]["uri"].as_str().unwrap_or_default())
            )),
        },
        _ => block.to_string(),
    }
}

/// Draws the progress of a call on the terminal; does nothing if standard error is not a terminal.
pub fn draw_progress_bar(progress: Progress) {
    /// Width of the progress bar, in characters.
    const WIDTH: usize = 24;
    if !stderr().is_terminal() {
        return;
    }
    let message = progress
        .message
        .map(|message| without_control_characters(&message))
        .unwrap_or_default();
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
            format!(
                "[{}{}] {:3.0} %",
                "#".repeat(filled),
                ".".repeat(WIDTH - filled),
                share * 100.0
            )
        }
        None => format!("{} …", progress.done),
    };
    let mut stderr = stderr();
    let _ = stderr.clear_line();
    let _ = write!(stderr, "{words} {message}");
    let _ = stderr.flush();
}

/// Removes the progress bar from the terminal.
pub fn clear_progress_bar() {
    let _ = stderr().clear_line();
}
