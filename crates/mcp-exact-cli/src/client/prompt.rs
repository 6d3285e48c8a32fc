//! `mcp-exact prompt`: gets a prompt of a server and prints its messages.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::Args;
use mcp_exact::{Client, ClientError};
use serde_json::Value;

use super::answer::parse_assignment;
use super::call::format_block;
use super::{Settings, add_hint, run_with_server};
use crate::Outcome;
use crate::names::suggest;
use crate::output::{Painter, Style};
use crate::terminal::stdout;
use crate::text::{Untrusted, text};

/// The arguments of `mcp-exact prompt`.
#[derive(Args)]
#[command(after_help = "\
Exit code: 0 it is printed, 2 wrong usage, or the server refuses or cannot be reached.")]
pub struct Arguments {
    /// The name of the prompt.
    #[arg(value_name = "PROMPT")]
    prompt: String,
    /// Arguments of the prompt.
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
    /// Print the messages as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(value_name = "COMMAND|URL", required = true, last = true)]
    server: Vec<OsString>,
}

/// Gets the prompt.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let values = arguments.values.iter().map(|text| parse_assignment(text));
    let values: Vec<(&str, &str)> = values.collect::<anyhow::Result<_>>()?;
    run_with_server(&arguments.settings, async {
        let connect = arguments.settings.connect(&arguments.server)?;
        let client = connect.await.map_err(add_hint)?;
        let prompt = match client.prompt(&arguments.prompt, values.clone()).await {
            Ok(prompt) => prompt,
            Err(error) => {
                return Err(suggest_prompt(&client, &arguments.prompt, &values, error).await);
            }
        };
        client.close();
        let messages = prompt
            .items()
            .iter()
            .map(|message| message.parse::<Value>());
        let messages: Vec<Value> = messages.collect::<Result<_, _>>()?;
        if arguments.json {
            stdout().pretty_json(&messages)?;
            return Ok(Outcome::Valid);
        }
        let painter = Painter::stdout();
        if let Some(description) = prompt.description() {
            let description = Untrusted(description).indented();
            stdout().line(&painter.paint(Style::Faint, description))?;
        }
        print_messages(&messages)?;
        Ok(Outcome::Valid)
    })
}

/// Prints the messages of a prompt, each with its role.
pub fn print_messages(messages: &[Value]) -> anyhow::Result<()> {
    let painter = Painter::stdout();
    for message in messages {
        let role = Untrusted(message["role"].as_str().unwrap_or_default());
        let block = format_block(&message["content"], painter);
        stdout().line(&text!("{}: {}", painter.paint(Style::Bold, role), block))?;
    }
    Ok(())
}

/// Converts the error of getting a prompt; suggests similar names of prompts and arguments if the server lists others.
pub async fn suggest_prompt(
    client: &Client,
    name: &str,
    values: &[(&str, &str)],
    error: ClientError,
) -> anyhow::Error {
    let is_refused = matches!(error, ClientError::Server(_));
    let mut problem = add_hint(error).to_string();
    if !is_refused {
        return anyhow!(problem);
    }
    let prompts = client.prompts().all().await.unwrap_or_default();
    let names: Vec<String> = prompts.iter().map(|prompt| prompt.name()).collect();
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name() == name) else {
        suggest(&mut problem, name, names.iter().map(String::as_str));
        return anyhow!(problem);
    };
    let prompt: Value = prompt.object().parse().unwrap_or_default();
    let known = prompt["arguments"].as_array().into_iter().flatten();
    let known: Vec<&str> = known
        .filter_map(|argument| argument["name"].as_str())
        .collect();
    let unknown = values
        .iter()
        .find(|(argument, _)| !known.contains(argument));
    if let Some((argument, _)) = unknown {
        problem.push_str(&format!("; the prompt has no argument `{argument}`"));
        suggest(&mut problem, argument, known.iter().copied());
    }
    anyhow!(problem)
}
