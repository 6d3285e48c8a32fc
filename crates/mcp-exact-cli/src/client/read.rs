//! `mcp-exact read`: reads a resource of a server.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use mcp_exact::{Client, ClientError, JsonObject, RawJson};
use mcp_exact_revisions::method;
use serde_json::Value;

use super::{Settings, add_hint, run_with_server};
use crate::Outcome;
use crate::names::suggest_similar;
use crate::output::{Painter, Style, is_standard_stream, write};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{count, text};

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
            let result = client.request(method::RESOURCES_READ, Some(params));
            let result: Value = result.await.map_err(add_hint)?.parse()?;
            client.close();
            if is_standard_stream(&arguments.output) {
                stdout().pretty_json(&result)?;
            } else {
                let text = serde_json::to_string_pretty(&result)? + "\n";
                write(&arguments.output, text.as_bytes())?;
            }
            return Ok(Outcome::Valid);
        }
        let contents = match client.read(&arguments.uri).await {
            Ok(contents) => contents,
            Err(error) => return Err(suggest_resource(&client, &arguments.uri, error).await),
        };
        client.close();
        let is_terminal = is_standard_stream(&arguments.output) && stdout().is_terminal();
        let items = contents.items();
        match contents.blob() {
            Some(_) if is_terminal => {
                bail!("the contents are binary; write them to a file with --output")
            }
            Some(bytes) => {
                write(&arguments.output, &bytes)?;
                if items.len() > 1 {
                    print_to_stderr(&text!(
                        "{}: the contents have {} besides these bytes; --json prints all of them",
                        Painter::stderr().paint(Style::Yellow, "note"),
                        count(items.len() - 1, "item")
                    ));
                }
            }
            None if items.iter().any(is_binary) => {
                bail!("the binary contents are not base64; --json prints what the server has sent")
            }
            None => {
                let text = contents.text();
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

/// Returns true if an item of the contents of a resource is binary.
pub fn is_binary(item: &JsonObject) -> bool {
    let blob = item.get("blob");
    blob.is_some_and(|blob| blob.parse::<String>().is_ok())
}

/// Converts the error of reading a resource; suggests similar URIs if the server lists others.
pub async fn suggest_resource(client: &Client, uri: &str, error: ClientError) -> anyhow::Error {
    let is_refused = matches!(error, ClientError::Server(_));
    let mut problem = add_hint(error).to_string();
    if is_refused {
        let resources = client.resources().all().await.unwrap_or_default();
        let uris: Vec<String> = resources
            .iter()
            .filter_map(|resource| resource.uri())
            .collect();
        if !uris.iter().any(|known| known == uri) {
            suggest_similar(&mut problem, uri, uris.iter().map(String::as_str));
        }
    }
    anyhow!(problem)
}
