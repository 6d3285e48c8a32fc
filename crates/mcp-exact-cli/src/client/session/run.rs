//! Work of a session: one line after another with one client.

use std::io::{self, BufRead as _, Write as _};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use mcp_exact::{Client, Definition, JsonObject};
use mcp_exact_revisions::MethodId;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::answer::{parse_assignment, parse_assignments};
use super::super::call::{self, print_result, suggest_tool};
use super::super::prompt::{print_messages, suggest_prompt};
use super::super::read::{is_binary, suggest_resource};
use super::super::{BYTE_ORDER_MARK, Settings, add_hint};
use super::line::{self, LINES, Line};
use crate::Outcome;
use crate::jsonl::decode_utf8;
use crate::output::{Painter, Style, format_table};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Untrusted, text};

/// Options of a session.
#[derive(Args)]
pub struct Options {
    /// Print one JSON object for each line: its number, and the result or the error.
    #[arg(long)]
    pub json: bool,
    /// End a script at the first line that fails.
    #[arg(long)]
    pub stop_on_error: bool,
    /// Send arguments that the schema of a tool does not have.
    #[arg(long)]
    pub any_argument: bool,
    #[command(flatten)]
    pub settings: Settings,
}

/// Session with a connected server.
pub struct Session<'a> {
    pub client: &'a Client,
    options: &'a Options,
    /// Tools of the server, read at the first call, and again for an unknown name.
    tools: Vec<Definition>,
}

/// What a line has given.
pub enum Answer {
    /// The result of a tool.
    Tool(Value),
    /// The contents of a resource.
    Contents(String),
    /// The messages of a prompt.
    Messages(Vec<Value>),
    /// Values for an argument.
    Completions(Vec<String>),
    /// Rows of a list: name and description.
    List(Vec<Value>),
    /// The result of any request.
    Result(Value),
    /// Nothing to print.
    Nothing,
    /// The end of the session.
    End,
}

impl<'a> Session<'a> {
    pub fn new(client: &'a Client, options: &'a Options) -> Self {
        Self {
            client,
            options,
            tools: Vec::new(),
        }
    }

    /// Runs the lines of standard input. A line that fails ends the session only with `--stop-on-error`.
    pub async fn run_script(&mut self) -> anyhow::Result<Outcome> {
        let mut lines = script_lines();
        let mut outcome = Outcome::Valid;
        let mut number = 0_usize;
        while let Some(line) = lines.recv().await {
            number += 1;
            let mut bytes = line.context("cannot read standard input")?;
            if number == 1 && bytes.starts_with(BYTE_ORDER_MARK.as_bytes()) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            let ran = match decode_utf8(&bytes) {
                Ok(text) => self.run_line(text).await,
                Err(problem) => Err(anyhow!("the line is {problem}")),
            };
            let has_failed = match ran {
                Ok(Answer::End) => break,
                Ok(answer) => {
                    let has_failed = answer.has_failed();
                    self.print(number, answer)?;
                    has_failed
                }
                Err(error) => {
                    self.print_error(number, &error)?;
                    true
                }
            };
            if has_failed {
                outcome = Outcome::Invalid;
                if self.options.stop_on_error {
                    break;
                }
            }
        }
        Ok(outcome)
    }

    /// Runs a line, and returns what it gives.
    pub async fn run_line(&mut self, line: &str) -> anyhow::Result<Answer> {
        match line::parse(line)? {
            Line::Nothing => Ok(Answer::Nothing),
            Line::Quit => Ok(Answer::End),
            Line::Help => {
                print_to_stderr(&LINES.into());
                Ok(Answer::Nothing)
            }
            Line::Call(tool, values) => self.call(&tool, &values).await,
            Line::CallWith(tool, arguments) => {
                let Ok(arguments) = JsonObject::try_from(arguments) else {
                    bail!("the arguments must be a JSON object");
                };
                let settings = &self.options.settings;
                let result = call::call(self.client, settings, &tool, arguments).await?;
                Ok(Answer::Tool(result))
            }
            Line::Read(uri) => match self.client.read(&uri).await {
                Ok(contents) if contents.items().iter().any(is_binary) => bail!(
                    "the contents are binary; `mcp-exact read` writes them to a file, and {{\"method\": \"resources/read\", \"params\": \
                     {{\"uri\": …}}}} prints them as JSON"
                ),
                Ok(contents) => Ok(Answer::Contents(contents.text())),
                Err(error) => Err(suggest_resource(self.client, &uri, error).await),
            },
            Line::Prompt(name, values) => {
                let values = values.iter().map(|text| parse_assignment(text));
                let values: Vec<(&str, &str)> = values.collect::<anyhow::Result<_>>()?;
                match self.client.prompt(&name, values.clone()).await {
                    Ok(prompt) => {
                        let messages = prompt.items().iter().map(JsonObject::parse);
                        Ok(Answer::Messages(messages.collect::<Result<_, _>>()?))
                    }
                    Err(error) => Err(suggest_prompt(self.client, &name, &values, error).await),
                }
            }
            Line::Complete {
                is_prompt,
                of,
                name,
                value,
            } => {
                let completions = if is_prompt {
                    self.client.complete_prompt(&of, &name, &value).await
                } else {
                    self.client.complete_template(&of, &name, &value).await
                };
                let completions = completions.map_err(add_hint)?;
                Ok(Answer::Completions(completions.values))
            }
            Line::List(method) => self.list(method).await,
            Line::Request(method, params) => {
                let params = params.map(JsonObject::try_from).transpose();
                let params = params.map_err(|_| anyhow::anyhow!("`params` is not an object"))?;
                let result = self
                    .client
                    .request(&method, params)
                    .await
                    .map_err(add_hint)?;
                Ok(Answer::Result(result.parse()?))
            }
        }
    }

    /// Calls a tool with assignments, which its schema types.
    async fn call(&mut self, name: &str, values: &[String]) -> anyhow::Result<Answer> {
        let has_tool = |tools: &[Definition]| tools.iter().any(|tool| tool.name() == name);
        if !has_tool(&self.tools) {
            self.tools = self.client.tools().all().await.map_err(add_hint)?;
        }
        let Some(tool) = self.tools.iter().find(|tool| tool.name() == name) else {
            return Err(suggest_tool(
                self.client,
                name,
                &self.tools,
                ", and no line begins so (`help` lists them)",
            ));
        };
        let schema = tool.input_schema().map(|schema| schema.parse::<Value>());
        let schema = schema.transpose()?.unwrap_or_default();
        let arguments = parse_assignments(&schema, values, self.options.any_argument)?;
        let settings = &self.options.settings;
        let result = call::call(self.client, settings, name, arguments).await?;
        Ok(Answer::Tool(result))
    }

    /// Returns a list of the server.
    async fn list(&self, method: &str) -> anyhow::Result<Answer> {
        let list = match MethodId::from_name(method) {
            MethodId::ToolsList => self.client.tools(),
            MethodId::ResourcesList => self.client.resources(),
            MethodId::PromptsList => self.client.prompts(),
            _ => self.client.resource_templates(),
        };
        let entries = list.all().await.map_err(add_hint)?;
        let entries = entries.iter().map(|entry| entry.object().parse());
        Ok(Answer::List(entries.collect::<Result<_, _>>()?))
    }

    /// Prints what a line has given: as text, or with `--json` as one object.
    pub fn print(&self, number: usize, answer: Answer) -> anyhow::Result<()> {
        if self.options.json {
            if let Some(result) = answer.into_json() {
                stdout().json(&json!({"line": number, "result": result}))?;
            }
            return Ok(());
        }
        match answer {
            Answer::Tool(result) => print_result(&result)?,
            Answer::Contents(contents) => writeln!(stdout().document(), "{contents}")?,
            Answer::Messages(messages) => print_messages(&messages)?,
            Answer::Completions(values) => {
                for value in values {
                    stdout().line(&text!("{}", Untrusted(&value)))?;
                }
            }
            Answer::List(entries) => {
                let word =
                    |entry: &Value, name: &str| entry[name].as_str().unwrap_or("").to_owned();
                let rows = entries.iter().map(|entry| {
                    let uri = word(entry, "uri") + &word(entry, "uriTemplate");
                    let name = if uri.is_empty() {
                        word(entry, "name")
                    } else {
                        uri
                    };
                    vec![name, word(entry, "description")]
                });
                let rows: Vec<Vec<String>> = rows.collect();
                stdout().text(&format_table(
                    &["name", "description"],
                    &rows,
                    Painter::stdout(),
                ))?;
            }
            Answer::Result(result) => stdout().pretty_json(&result)?,
            Answer::Nothing | Answer::End => {}
        }
        Ok(())
    }

    /// Prints the error of a line.
    pub fn print_error(&self, number: usize, error: &anyhow::Error) -> anyhow::Result<()> {
        let words = format!("{error:#}");
        if self.options.json {
            return Ok(stdout().json(&json!({"line": number, "error": words}))?);
        }
        let word = Painter::stderr().paint(Style::Red, "error");
        let line = match number {
            0 => text!("{}: {}", word, Untrusted(&words).indented()),
            number => text!(
                "{} in line {}: {}",
                word,
                number,
                Untrusted(&words).indented()
            ),
        };
        print_to_stderr(&line);
        Ok(())
    }
}

/// Returns the lines of standard input, which a thread reads; they end with the input, or with the error of reading it.
fn script_lines() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                break;
            }
        }
    });
    lines
}

impl Answer {
    /// Returns true if the tool says that it failed.
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Tool(result) if result["isError"] == true)
    }

    /// Returns the answer as JSON; `None` if there is nothing to print.
    fn into_json(self) -> Option<Value> {
        match self {
            Self::Tool(result) | Self::Result(result) => Some(result),
            Self::Contents(contents) => Some(json!({ "text": contents })),
            Self::Messages(messages) => Some(json!({ "messages": messages })),
            Self::Completions(values) => Some(json!({ "values": values })),
            Self::List(entries) => Some(entries.into()),
            Self::Nothing | Self::End => None,
        }
    }
}
