//! `mcp-exact inspect`: prints the identity, tools, resources and prompts of a server, as tables or JSON.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use mcp_exact::{Client, ClientError, Definition, JsonObject, List};
use mcp_exact_revisions::Lifecycle;
use serde_json::{Value, json};

use super::{Settings, add_hint, run_with_server};
use crate::Outcome;
use crate::output::{Painter, Style, format_table, without_control_characters};
use crate::terminal::{stderr, stdout};

/// The arguments of `mcp-exact inspect`.
#[derive(Args)]
#[command(after_help = "\
Exit code: 0 the server answered, 2 it could not be reached or does not speak the protocol.")]
pub struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The URL of the server, or the command that starts it with its arguments. Options go before it.
    #[arg(
        value_name = "COMMAND|URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    server: Vec<OsString>,
}

/// Prints the identity, tools, resources and prompts of the server.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    run_with_server(&arguments.settings, async {
        let connect = arguments.settings.connect(&arguments.server)?;
        let client = connect.await.map_err(add_hint)?;
        let description = ServerDescription::request_from(&client).await;
        let text = if arguments.json {
            serde_json::to_string_pretty(&description.to_json()?)? + "\n"
        } else {
            description.to_text()
        };
        client.close();
        for (method, reason) in &description.failed {
            let word = Painter::stderr().paint(Style::Red, "not shown");
            let reason = without_control_characters(reason);
            let _ = writeln!(stderr(), "{word}: `{method}` failed: {reason}");
        }
        stdout().lock().write_all(text.as_bytes())?;
        Ok(Outcome::Valid)
    })
}

/// Identity, capabilities, tools, resources and prompts of a server.
struct ServerDescription {
    /// Negotiated revision.
    revision: String,
    /// Lifecycle of the revision, if the revision is known.
    lifecycle: Option<Lifecycle>,
    /// `Implementation` object of the server, if the server has sent one.
    info: Option<JsonObject>,
    /// Declared capabilities of the server.
    capabilities: JsonObject,
    /// Instructions of the server for the model, if any.
    instructions: Option<String>,
    /// Entries of `tools/list`.
    tools: Vec<Definition>,
    /// Entries of `resources/list`.
    resources: Vec<Definition>,
    /// Entries of `resources/templates/list`.
    templates: Vec<Definition>,
    /// Entries of `prompts/list`.
    prompts: Vec<Definition>,
    /// Methods of the lists that could not be read, with the reason.
    failed: Vec<(&'static str, String)>,
}

impl ServerDescription {
    /// Requests the lists of a connected server, and combines them with the negotiated data.
    async fn request_from(client: &Client) -> Self {
        let capabilities = client.capabilities();
        let has = |name: &str| capabilities.get(name).is_some();
        let revision = client.revision().to_string();
        let mut failed = Vec::new();
        Self {
            lifecycle: mcp_exact_revisions::find(&revision).map(|spec| spec.lifecycle()),
            revision,
            info: client.server_info(),
            instructions: client.instructions(),
            tools: list_all(has("tools"), "tools/list", client.tools(), &mut failed).await,
            resources: list_all(
                has("resources"),
                "resources/list",
                client.resources(),
                &mut failed,
            )
            .await,
            templates: list_all(
                has("resources"),
                "resources/templates/list",
                client.resource_templates(),
                &mut failed,
            )
            .await,
            prompts: list_all(
                has("prompts"),
                "prompts/list",
                client.prompts(),
                &mut failed,
            )
            .await,
            capabilities,
            failed,
        }
    }

    /// Returns the description as JSON.
    fn to_json(&self) -> anyhow::Result<Value> {
        let objects = |list: &[Definition]| -> anyhow::Result<Vec<Value>> {
            let parsed = list
                .iter()
                .map(|definition| Ok(definition.object().parse()?));
            parsed.collect()
        };
        let failed = self.failed.iter().map(|(method, reason)| (*method, reason));
        let failed: BTreeMap<_, _> = failed.collect();
        Ok(json!({
            "revision": self.revision,
            "lifecycle": self.lifecycle.map(lifecycle_name),
            "serverInfo": self.info.as_ref().map(JsonObject::parse::<Value>).transpose()?,
            "capabilities": self.capabilities.parse::<Value>()?,
            "instructions": self.instructions,
            "tools": objects(&self.tools)?,
            "resources": objects(&self.resources)?,
            "resourceTemplates": objects(&self.templates)?,
            "prompts": objects(&self.prompts)?,
            "failed": failed,
        }))
    }

    /// Returns the description as tables.
    fn to_text(&self) -> String {
        let painter = Painter::stdout();
        let info: Value = self
            .info
            .as_ref()
            .and_then(|info| info.parse().ok())
            .unwrap_or_default();
        let word = |name: &str| without_control_characters(info[name].as_str().unwrap_or("?"));
        let mut text = format!(
            "{} {}\nrevision {}, {}\n",
            painter.paint(Style::Bold, &word("name")),
            word("version"),
            self.revision,
            self.lifecycle.map_or("unknown lifecycle", lifecycle_name),
        );
        let capabilities: Value = self.capabilities.parse().unwrap_or_default();
        text.push_str(&format!(
            "capabilities: {}\n",
            format_capabilities(&capabilities)
        ));
        if let Some(instructions) = &self.instructions {
            text.push_str(&format!(
                "instructions: {}\n",
                without_control_characters(instructions)
            ));
        }
        let mut part = |title: &str, heading: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                let title = painter.paint(Style::Bold, &format!("{title} ({})", rows.len()));
                text.push_str(&format!(
                    "\n{title}\n{}",
                    format_table(heading, &rows, Painter(false))
                ));
            }
        };
        let words = |definition: &Definition| {
            let title = definition.title().unwrap_or_default();
            definition.description().unwrap_or(title)
        };
        let rows = self
            .tools
            .iter()
            .map(|tool| vec![tool.name(), format_parameters(tool), words(tool)]);
        part(
            "Tools",
            &["name", "arguments", "description"],
            rows.collect(),
        );
        let rows = |list: &[Definition]| -> Vec<Vec<String>> {
            let row = |found: &Definition| {
                vec![found.uri().unwrap_or_default(), found.name(), words(found)]
            };
            list.iter().map(row).collect()
        };
        part(
            "Resources",
            &["uri", "name", "description"],
            rows(&self.resources),
        );
        part(
            "Resource templates",
            &["uri template", "name", "description"],
            rows(&self.templates),
        );
        let rows = self.prompts.iter();
        let rows = rows.map(|prompt| {
            vec![
                prompt.name(),
                format_prompt_arguments(prompt),
                words(prompt),
            ]
        });
        part(
            "Prompts",
            &["name", "arguments", "description"],
            rows.collect(),
        );
        text
    }
}

/// Returns all entries of a list, or no entries if its capability is not declared or the server does not implement the
/// list method. A failure is added to `failed`, so that the other lists are shown.
async fn list_all(
    is_declared: bool,
    method: &'static str,
    list: List,
    failed: &mut Vec<(&'static str, String)>,
) -> Vec<Definition> {
    /// JSON-RPC error code of an unknown method.
    const METHOD_NOT_FOUND: i64 = -32601;
    if !is_declared {
        return Vec::new();
    }
    match list.all().await {
        Ok(all) => all,
        Err(ClientError::Server(error)) if error.code() == Some(METHOD_NOT_FOUND) => Vec::new(),
        Err(error) => {
            failed.push((method, add_hint(error).to_string()));
            Vec::new()
        }
    }
}

/// Returns the name of a lifecycle for the output.
fn lifecycle_name(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Initialize => "initialize handshake",
        Lifecycle::Discover => "discover, no handshake",
    }
}

/// Formats the capabilities as a list of names, each with the names of its members in parentheses.
fn format_capabilities(capabilities: &Value) -> String {
    let words = |(name, value): (&String, &Value)| {
        let inner: Vec<&str> = value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| **value != Value::Bool(false))
            .map(|(name, _)| name.as_str())
            .collect();
        match inner.as_slice() {
            [] => without_control_characters(name),
            inner => format!(
                "{} ({})",
                without_control_characters(name),
                without_control_characters(&inner.join(", "))
            ),
        }
    };
    let all: Vec<String> = capabilities
        .as_object()
        .into_iter()
        .flatten()
        .map(words)
        .collect();
    match all.as_slice() {
        [] => "none".to_owned(),
        all => all.join(", "),
    }
}

/// Formats the parameters of a tool as a list of names; optional parameters have a question mark.
fn format_parameters(tool: &Definition) -> String {
    let schema = tool
        .input_schema()
        .and_then(|schema| schema.parse::<Value>().ok());
    let schema = schema.unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let names = properties.map(|(name, _)| {
        let is_required = required.iter().any(|required| required == name);
        format!("{name}{}", if is_required { "" } else { "?" })
    });
    names.collect::<Vec<_>>().join(", ")
}

/// Formats the arguments of a prompt as a list of names; optional arguments have a question mark.
fn format_prompt_arguments(prompt: &Definition) -> String {
    let prompt: Value = prompt.object().parse().unwrap_or_default();
    let arguments = prompt["arguments"].as_array().into_iter().flatten();
    let names = arguments.map(|argument| {
        let name = argument["name"].as_str().unwrap_or_default();
        format!(
            "{name}{}",
            if argument["required"] == true {
                ""
            } else {
                "?"
            }
        )
    });
    names.collect::<Vec<_>>().join(", ")
}
