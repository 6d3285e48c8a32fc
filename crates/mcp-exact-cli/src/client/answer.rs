//! Responses to a server's input requests: form fields, URLs to visit, and sampling.
//!
//! Values come from the arguments of the command or from the terminal. If neither provides a required value, the
//! request is declined.

use std::collections::HashMap;
use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{anyhow, bail};
use mcp_exact::{
    Content, Form, FormAnswer, JsonObject, SampleReply, SampleRequest, Visit, VisitAnswer,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::parse_assignment;
use crate::output::{Painter, Style, without_control_characters};
use crate::terminal::stderr;

/// Responder to input requests: takes values from the command line, and asks the user on the terminal for all other
/// values.
pub struct Answers {
    /// URL or command of the requesting server, for display.
    server: String,
    /// Values of `--answer`, by field name.
    assigned_values: HashMap<String, String>,
    /// Lock that is held while the user responds to a request on the terminal.
    terminal: Mutex<()>,
}

/// Result of determining the value of a form field.
enum Field {
    /// The field has this value.
    Value(Value),
    /// The optional field has no value and is omitted.
    Skip,
    /// The form must be declined, because a required or assigned value is missing or invalid.
    Decline,
}

impl Answers {
    /// Creates the responder for a server from assignments of the form `NAME=VALUE`.
    pub fn new(server: &str, assigned_values: &[String]) -> anyhow::Result<Self> {
        let assigned_values = assigned_values.iter().map(|text| {
            let (name, value) = parse_assignment(text)?;
            Ok((name.to_owned(), value.to_owned()))
        });
        Ok(Self {
            server: without_control_characters(server),
            assigned_values: assigned_values.collect::<anyhow::Result<_>>()?,
            terminal: Mutex::new(()),
        })
    }

    /// Responds to a form: determines a value for each field, or declines the form.
    pub async fn answer_form(&self, form: Form) -> FormAnswer {
        let _turn = self.terminal.lock().await;
        self.print_question(&form.message());
        let schema = form
            .schema()
            .and_then(|schema| schema.parse::<Value>().ok());
        let schema = schema.unwrap_or_default();
        let mut values = Map::new();
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            match self.read_field(name, field, is_required).await {
                Field::Value(value) => drop(values.insert(name.clone(), value)),
                Field::Skip => {}
                Field::Decline => {
                    print_line_to_terminal("  declined");
                    return form.decline();
                }
            }
        }
        form.accept(&Value::Object(values))
    }

    /// Displays the complete URL that the server wants the user to visit, and asks for consent. The URL is not opened
    /// automatically.
    pub async fn answer_visit(&self, visit: Visit) -> VisitAnswer {
        let _turn = self.terminal.lock().await;
        self.print_question(visit.message());
        let painter = Painter::stderr();
        let host = painter.paint(Style::Bold, visit.host());
        print_line_to_terminal(&format!(
            "  It wants you to visit a page of {host}:\n\n{}\n",
            visit.url()
        ));
        for warning in visit.warnings() {
            print_line_to_terminal(&painter.paint(Style::Red, &format!("  Careful: {warning}.")));
        }
        let question =
            "  Agree only if you know why, and open the page in your browser then. Agree? [y/N] ";
        match prompt_user(question).await.as_deref() {
            Some("y" | "Y" | "yes") => VisitAnswer::Accept,
            Some(_) => VisitAnswer::Decline,
            None => VisitAnswer::Cancel,
        }
    }

    /// Prints the message of an input request.
    fn print_question(&self, message: &str) {
        let heading = Painter::stderr().paint(Style::Bold, &format!("{} asks", self.server));
        print_line_to_terminal(&format!(
            "{heading}: {}",
            without_control_characters(message)
        ));
    }

    /// Returns the value of a field from the command line, or prompts for the value until the user enters a valid one.
    async fn read_field(&self, name: &str, field: &Value, is_required: bool) -> Field {
        if let Some(assigned_values) = self.assigned_values.get(name) {
            return match parse_value(field, assigned_values) {
                Ok(value) => Field::Value(value),
                Err(error) => {
                    print_line_to_terminal(&format!("  {name}: {error}"));
                    Field::Decline
                }
            };
        }
        let title = field["title"].as_str().unwrap_or(name);
        let mut question = format!("  {}", without_control_characters(title));
        if let Some(description) = field["description"].as_str() {
            question.push_str(&format!(" ({})", without_control_characters(description)));
        }
        let choices = allowed_values(field);
        if !choices.is_empty() {
            question.push_str(&format!(" [{}]", choices.join(" | ")));
        } else if let Some(kind) = field["type"].as_str() {
            question.push_str(&format!(" [{kind}]"));
        }
        let default = field.get("default");
        if let Some(default) = default {
            question.push_str(&format!(" default {default}"));
        }
        question.push_str(": ");
        loop {
            let Some(text) = prompt_user(&question).await else {
                return match (default, is_required) {
                    (Some(default), _) => Field::Value(default.clone()),
                    (None, false) => Field::Skip,
                    (None, true) => {
                        print_line_to_terminal(&format!(
                            "  {name} is required; --answer {name}=VALUE answers it"
                        ));
                        Field::Decline
                    }
                };
            };
            if text.is_empty() {
                match (default, is_required) {
                    (Some(default), _) => return Field::Value(default.clone()),
                    (None, false) => return Field::Skip,
                    (None, true) => {
                        print_line_to_terminal("    it is required; end of input declines");
                        continue;
                    }
                }
            }
            match parse_value(field, &text) {
                Ok(value) => return Field::Value(value),
                Err(error) => print_line_to_terminal(&format!("    {error}")),
            }
        }
    }

    /// Responds to a sampling request with the value of `--answer sampling=TEXT`, or with text that the user enters.
    pub async fn answer_sampling(&self, request: SampleRequest) -> SampleReply {
        let _turn = self.terminal.lock().await;
        let heading = format!("{} asks a model", self.server);
        let heading = Painter::stderr().paint(Style::Bold, &heading);
        print_line_to_terminal(&format!(
            "{heading}: {}",
            without_control_characters(&request.text())
        ));
        match self.assigned_values.get("sampling").cloned() {
            Some(text) => SampleReply::message("person", Content::text(text)),
            None => match prompt_user("  Answer as the model (end of input refuses): ").await {
                Some(text) => SampleReply::message("person", Content::text(text)),
                None => {
                    print_line_to_terminal("  refused; --answer sampling=TEXT answers it");
                    SampleReply::refuse("the user refused the request")
                }
            },
        }
    }
}

/// Prints a line to standard error, which is normally the terminal.
pub(super) fn print_line_to_terminal(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// Prompts the user for a line; returns `None` at the end of input, or if standard input is not a terminal.
async fn prompt_user(question: &str) -> Option<String> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let mut stderr = stderr();
    let _ = stderr
        .write_all(question.as_bytes())
        .and_then(|()| stderr.flush());
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        matches!(read, Ok(1..)).then_some(line)
    });
    let line = line.await.ok()??;
    Some(line.trim().to_owned())
}

/// Returns the allowed values of a field, which are empty if its schema does not restrict them.
fn allowed_values(field: &Value) -> Vec<String> {
    let field = match field.get("items") {
        Some(items) => items,
        None => field,
    };
    let plain_values = field["enum"].as_array().into_iter().flatten();
    let titled = field["oneOf"].as_array().or(field["anyOf"].as_array());
    let titled = titled.into_iter().flatten().map(|choice| &choice["const"]);
    plain_values
        .chain(titled)
        .filter_map(Value::as_str)
        .map(without_control_characters)
        .collect()
}

/// Parses text as a value of the JSON type that a schema specifies.
pub fn parse_value(field: &Value, text: &str) -> anyhow::Result<Value> {
    let kind = match &field["type"] {
        Value::String(kind) => kind.as_str(),
        // The variants of a nullable type include null.
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null")
            .unwrap_or("string"),
        _ => "",
    };
    let parsed = || serde_json::from_str::<Value>(text);
    match kind {
        "string" => Ok(Value::from(text)),
        "boolean" => match text {
            "true" | "yes" | "y" => Ok(Value::Bool(true)),
            "false" | "no" | "n" => Ok(Value::Bool(false)),
            _ => Err(anyhow!("`{text}` is neither true nor false")),
        },
        "integer" => match parsed() {
            Ok(value) if value.is_i64() || value.is_u64() => Ok(value),
            _ => Err(anyhow!("`{text}` is no whole number")),
        },
        "number" => match parsed() {
            Ok(value) if value.is_number() => Ok(value),
            _ => Err(anyhow!("`{text}` is no number")),
        },
        "array" => match parsed() {
            Ok(value) if value.is_array() => Ok(value),
            _ => Ok(text
                .split(',')
                .map(|item| Value::from(item.trim()))
                .collect()),
        },
        "object" => match parsed() {
            Ok(value) if value.is_object() => Ok(value),
            _ => Err(anyhow!("`{text}` is no JSON object")),
        },
        // Without a type, valid JSON is used as JSON.
        _ => Ok(parsed().unwrap_or_else(|_| Value::from(text))),
    }
}

/// Parses assignments `NAME=VALUE` to an object; the schema of each property determines the type of its value.
pub fn parse_assignments(schema: &Value, assignments: &[String]) -> anyhow::Result<JsonObject> {
    let mut object = Map::new();
    for text in assignments {
        let (name, value) = parse_assignment(text)?;
        let field = &schema["properties"][name];
        let value = parse_value(field, value).map_err(|error| anyhow!("{name}: {error}"))?;
        if object.insert(name.to_owned(), value).is_some() {
            bail!(
                "`{name}` is given twice; a list is one value: `{name}=a,b` or `{name}=[\"a\",\"b\"]`"
            );
        }
    }
    JsonObject::try_from(Value::Object(object)).map_err(|_| anyhow!("this is no object"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The type in the schema determines the value of a text; without a type, valid JSON is parsed as JSON.
    #[test]
    fn text_is_parsed_by_schema() {
        let check = |field: Value, text: &str| parse_value(&field, text).ok();
        assert_eq!(check(json!({"type": "string"}), "5"), Some(json!("5")));
        assert_eq!(check(json!({"type": "integer"}), "5"), Some(json!(5)));
        assert_eq!(check(json!({"type": "integer"}), "5.5"), None);
        assert_eq!(
            check(json!({"type": ["null", "number"]}), "5.5"),
            Some(json!(5.5))
        );
        assert_eq!(check(json!({"type": "boolean"}), "maybe"), None);
        assert_eq!(
            check(json!({"type": "array"}), "a, b"),
            Some(json!(["a", "b"]))
        );
        assert_eq!(
            check(json!({"type": "object"}), "{\"a\":1}"),
            Some(json!({"a": 1}))
        );
        assert_eq!(check(json!({}), "[1]"), Some(json!([1])));
        assert_eq!(check(json!({}), "word"), Some(json!("word")));
    }

    /// An argument that is given twice is refused, because only one of the values could be sent.
    #[test]
    fn repeated_assignments_are_refused() {
        let given = ["a=1", "b=2", "a=3"].map(str::to_owned);
        let error = parse_assignments(&json!({}), &given).expect_err("it is given twice");
        assert_eq!(
            error.to_string(),
            r#"`a` is given twice; a list is one value: `a=a,b` or `a=["a","b"]`"#
        );
        assert!(parse_assignments(&json!({}), &given[..2]).is_ok());
    }

    /// The allowed values are found in each form of enumeration: `enum`, `oneOf`, and `anyOf` of array items.
    #[test]
    fn every_enum_form_lists_values() {
        for field in [
            json!({"enum": ["a", "b"]}),
            json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
            json!({"items": {"anyOf": [{"const": "a"}, {"const": "b"}]}}),
        ] {
            assert_eq!(allowed_values(&field), ["a", "b"]);
        }
    }
}
