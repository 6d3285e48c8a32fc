//! `mcp-exact prompt`: gets a prompt of a server and prints its messages.

use std::ffi::OsString;

use clap::Args;
use serde_json::Value;

use super::call::format_block;
use super::{Settings, add_hint, parse_assignment, print_line, run_with_server};
use crate::Outcome;
use crate::output::{Painter, Style, without_control_characters};

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
        let prompt = client.prompt(&arguments.prompt, values);
        let prompt = prompt.await.map_err(add_hint)?;
        client.close();
        let messages = prompt
            .items()
            .iter()
            .map(|message| message.parse::<Value>());
        let messages: Vec<Value> = messages.collect::<Result<_, _>>()?;
        if arguments.json {
            print_line(&serde_json::to_string_pretty(&messages)?)?;
            return Ok(Outcome::Valid);
        }
        let painter = Painter::stdout();
        if let Some(description) = prompt.description() {
            print_line(&painter.paint(Style::Faint, &without_control_characters(description)))?;
        }
        for message in &messages {
            let role = without_control_characters(message["role"].as_str().unwrap_or_default());
            let role = painter.paint(Style::Bold, &role);
            print_line(&format!(
                "{role}: {}",
                format_block(&message["content"], painter)
            ))?;
        }
        Ok(Outcome::Valid)
    })
}
