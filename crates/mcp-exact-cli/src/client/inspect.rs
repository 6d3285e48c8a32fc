//! `mcp-exact inspect`: prints the identity, tools, resources and prompts of a server, as tables or JSON.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::Args;
use mcp_exact::{Client, ClientError, Definition, JsonObject, List};
use mcp_exact_revisions::{Lifecycle, method};
use serde_json::{Value, json};

use super::tap::SentLists;
use super::{Settings, add_hint, run_with_server};
use crate::Outcome;
use crate::output::{Painter, Style, format_table};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Text, Untrusted, text};

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
        if arguments.json {
            arguments.settings.sent_lists.keep();
        }
        let connect = arguments.settings.connect(&arguments.server)?;
        let client = connect.await.map_err(add_hint)?;
        let description = ServerDescription::request_from(&client).await;
        client.close();
        for (method, reason) in &description.failed {
            let word = Painter::stderr().paint(Style::Red, "not shown");
            let reason = Untrusted(reason).indented();
            print_to_stderr(&text!("{}: `{}` failed: {}", word, *method, reason));
        }
        if arguments.json {
            stdout().pretty_json(&description.to_json(&arguments.settings.sent_lists)?)?;
        } else {
            stdout().text(&description.to_text())?;
        }
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
        // A server that declares nothing may have forgotten to declare its tools.
        let may_have_tools =
            has("tools") || !["prompts", "resources", "extensions"].into_iter().any(has);
        let revision = client.revision().to_string();
        let mut failed = Vec::new();
        Self {
            lifecycle: mcp_exact_revisions::find(&revision).map(|spec| spec.lifecycle()),
            revision,
            info: client.server_info(),
            instructions: client.instructions(),
            tools: list_all(
                may_have_tools,
                method::TOOLS_LIST,
                client.tools(),
                &mut failed,
            )
            .await,
            resources: list_all(
                has("resources"),
                method::RESOURCES_LIST,
                client.resources(),
                &mut failed,
            )
            .await,
            templates: list_all(
                has("resources"),
                method::RESOURCES_TEMPLATES_LIST,
                client.resource_templates(),
                &mut failed,
            )
            .await,
            prompts: list_all(
                has("prompts"),
                method::PROMPTS_LIST,
                client.prompts(),
                &mut failed,
            )
            .await,
            capabilities,
            failed,
        }
    }

    /// Returns the description as JSON.
    fn to_json(&self, sent: &SentLists) -> anyhow::Result<Value> {
        let list = |member: &str, list: &[Definition]| -> anyhow::Result<Vec<Value>> {
            let parsed = list.iter().map(|definition| {
                let mut entry = definition.object().parse()?;
                sent.complete(member, &mut entry);
                Ok(entry)
            });
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
            "tools": list("tools", &self.tools)?,
            "resources": list("resources", &self.resources)?,
            "resourceTemplates": list("resourceTemplates", &self.templates)?,
            "prompts": list("prompts", &self.prompts)?,
            "failed": failed,
        }))
    }

    /// Returns the description as tables.
    fn to_text(&self) -> Text {
        let painter = Painter::stdout();
        let info: Value = self
            .info
            .as_ref()
            .and_then(|info| info.parse().ok())
            .unwrap_or_default();
        let word = |name: &str| Untrusted(info[name].as_str().unwrap_or("?"));
        let mut text = text!(
            "{} {}\nrevision {}, {}\n",
            painter.paint(Style::Bold, word("name")),
            word("version"),
            Untrusted(&self.revision),
            self.lifecycle.map_or("unknown lifecycle", lifecycle_name),
        );
        let capabilities: Value = self.capabilities.parse().unwrap_or_default();
        text.push(&text!(
            "capabilities: {}\n",
            Untrusted(&format_capabilities(&capabilities))
        ));
        if let Some(instructions) = &self.instructions {
            let instructions = Untrusted(instructions).indented();
            text.push(&text!("instructions: {}\n", instructions));
        }
        let mut part = |title: &'static str, heading: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                let title = painter.paint(Style::Bold, text!("{} ({})", title, rows.len()));
                let table = format_table(heading, &rows, Painter(false));
                text.push(&text!("\n{}\n{}", title, table));
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

/// Returns all entries of a list, or no entries if the server cannot have it or does not implement its method. A failure is added to `failed`, so that the other lists are shown.
async fn list_all(
    is_possible: bool,
    method: &'static str,
    list: List,
    failed: &mut Vec<(&'static str, String)>,
) -> Vec<Definition> {
    if !is_possible {
        return Vec::new();
    }
    match list.all().await {
        Ok(all) => all,
        Err(error) => {
            note_failure(Err(error), method, failed);
            Vec::new()
        }
    }
}

/// Adds the failure of a list, unless the server does not implement its method.
fn note_failure(
    read: Result<(), ClientError>,
    method: &'static str,
    failed: &mut Vec<(&'static str, String)>,
) {
    /// JSON-RPC error code of an unknown method.
    const METHOD_NOT_FOUND: i64 = -32601;
    match read {
        Ok(()) => {}
        Err(ClientError::Server(error)) if error.code() == Some(METHOD_NOT_FOUND) => {}
        Err(error) => failed.push((method, add_hint(error).to_string())),
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
            [] => name.clone(),
            inner => format!("{name} ({})", inner.join(", ")),
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
