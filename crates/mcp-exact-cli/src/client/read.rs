//! `mcp-exact read`: reads a resource of a server.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use mcp_exact::{JsonObject, RawJson};
use serde_json::Value;

use super::{Settings, add_hint, print_line, run_with_server};
use crate::Outcome;
use crate::output::{without_control_characters, write};
use crate::terminal::stdout;

/// The arguments of `mcp-exact read`.
#[derive(Args)]
#[command(after_help = "\
Text and binary contents go to standard output as they are; binary ones are kept from a terminal.

Exit code: 0 it is read, 2 wrong usage, or the server refuses or cannot be reached.")]
pub struct Arguments {
    /// The URI of the resource.
    #[arg(value_name = "URI")]
    uri: String,
    /// Write the contents to a file; `-` is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Print the whole result as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(value_name = "COMMAND|URL", required = true, last = true)]
    server: Vec<OsString>,
}

/// Reads the resource.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    run_with_server(&arguments.settings, async {
        let connect = arguments.settings.connect(&arguments.server)?;
        let client = connect.await.map_err(add_hint)?;
        if arguments.json {
            let params = JsonObject::from_iter([("uri", RawJson::string(&arguments.uri))]);
            let result = client.request("resources/read", Some(params));
            let result: Value = result.await.map_err(add_hint)?.parse()?;
            client.close();
            print_line(&serde_json::to_string_pretty(&result)?)?;
            return Ok(Outcome::Valid);
        }
        let contents = client.read(&arguments.uri).await.map_err(add_hint)?;
        client.close();
        let is_terminal = arguments.output.as_os_str() == "-" && stdout().is_terminal();
        match contents.blob() {
            Some(_) if is_terminal => {
                bail!("the contents are binary; write them to a file with --output")
            }
            Some(bytes) => write(&arguments.output, &bytes)?,
            None => {
                let text = contents.text();
                let text = if is_terminal {
                    without_control_characters(&text)
                } else {
                    text
                };
                let end = if is_terminal && !text.ends_with('\n') {
                    "\n"
                } else {
                    ""
                };
                write(&arguments.output, format!("{text}{end}").as_bytes())?;
            }
        }
        Ok(Outcome::Valid)
    })
}
