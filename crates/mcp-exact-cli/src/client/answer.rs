//! Responses to a server's input requests: form fields, URLs to visit, and sampling.
//!
//! Values come from the arguments of the command or from the terminal. If neither provides a required value, the
//! request is declined.

use std::collections::HashMap;
use std::io::{self, BufRead, IsTerminal};

use anyhow::{anyhow, bail};
use mcp_exact::{
    Content, Form, FormAnswer, JsonObject, SampleReply, SampleRequest, Visit, VisitAnswer,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::names::{suggest, truncate_name};
use crate::output::{Painter, Style};
use crate::terminal::{print_to_stderr, stderr};
use crate::text::{Text, Untrusted, text};

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
            server: server.to_owned(),
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
                    print_to_stderr(&"  declined".into());
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
        print_to_stderr(&text!(
            "  It wants you to visit a page of {}:\n\n{}\n",
            painter.paint(Style::Bold, Untrusted(visit.host())),
            Untrusted(visit.url())
        ));
        for warning in visit.warnings() {
            let warning = warning.to_string();
            let warning = text!("  Careful: {}.", Untrusted(&warning));
            print_to_stderr(&painter.paint(Style::Red, warning));
        }
        let question =
            "  Agree only if you know why, and open the page in your browser then. Agree? [y/N] ";
        match prompt_user(&question.into()).await.as_deref() {
            Some("y" | "Y" | "yes") => VisitAnswer::Accept,
            Some(_) => VisitAnswer::Decline,
            None => VisitAnswer::Cancel,
        }
    }

    /// Prints the message of an input request.
    fn print_question(&self, message: &str) {
        let heading = text!("{} asks", Untrusted(&self.server));
        let heading = Painter::stderr().paint(Style::Bold, heading);
        print_to_stderr(&text!("{}: {}", heading, Untrusted(message).indented()));
    }

    /// Returns the value of a field from the command line, or prompts for the value until the user enters a valid one.
    async fn read_field(&self, name: &str, field: &Value, is_required: bool) -> Field {
        if let Some(assigned_values) = self.assigned_values.get(name) {
            return match parse_value(field, assigned_values) {
                Ok(value) => Field::Value(value),
                Err(error) => {
                    let error = error.to_string();
                    print_to_stderr(&text!("  {}: {}", Untrusted(name), Untrusted(&error)));
                    Field::Decline
                }
            };
        }
        let title = field["title"].as_str().unwrap_or(name);
        let mut question = text!("  {}", Untrusted(title));
        if let Some(description) = field["description"].as_str() {
            question.push(&text!(" ({})", Untrusted(description)));
        }
        let choices = allowed_values(field);
        if !choices.is_empty() {
            question.push(&text!(" [{}]", Untrusted(&choices.join(" | "))));
        } else if let Some(kind) = field["type"].as_str() {
            question.push(&text!(" [{}]", Untrusted(kind)));
        }
        let default = field.get("default");
        if let Some(default) = default {
            question.push(&text!(" default {}", Untrusted(&default.to_string())));
        }
        question.push(&": ".into());
        loop {
            let Some(text) = prompt_user(&question).await else {
                return match (default, is_required) {
                    (Some(default), _) => Field::Value(default.clone()),
                    (None, false) => Field::Skip,
                    (None, true) => {
                        let name = Untrusted(name);
                        print_to_stderr(&text!(
                            "  {} is required; --answer {}=VALUE answers it",
                            name,
                            name
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
                        print_to_stderr(&"    it is required; end of input declines".into());
                        continue;
                    }
                }
            }
            match parse_value(field, &text) {
                Ok(value) => return Field::Value(value),
                Err(error) => print_to_stderr(&text!("    {}", Untrusted(&error.to_string()))),
            }
        }
    }

    /// Responds to a sampling request with the value of `--answer sampling=TEXT`, or with text that the user enters.
    pub async fn answer_sampling(&self, request: SampleRequest) -> SampleReply {
        let _turn = self.terminal.lock().await;
        let heading = text!("{} asks a model", Untrusted(&self.server));
        let heading = Painter::stderr().paint(Style::Bold, heading);
        let question = request.text();
        print_to_stderr(&text!("{}: {}", heading, Untrusted(&question).indented()));
        match self.assigned_values.get("sampling").cloned() {
            Some(text) => SampleReply::message("person", Content::text(text)),
            None => {
                match prompt_user(&"  Answer as the model (end of input refuses): ".into()).await {
                    Some(text) => SampleReply::message("person", Content::text(text)),
                    None => {
                        print_to_stderr(&"  refused; --answer sampling=TEXT answers it".into());
                        SampleReply::refuse("the user refused the request")
                    }
                }
            }
        }
    }
}

/// Prompts the user for a line; returns `None` at the end of input, or if standard input is not a terminal.
async fn prompt_user(question: &Text) -> Option<String> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let _ = stderr().text(question);
    // The writer is dropped with this future, when the question is cancelled: the thread then leaves the next line to others.
    let (cancelled, _question) = io::pipe().ok()?;
    let line = tokio::task::spawn_blocking(move || {
        if !wait_for_line(&io::stdin(), &cancelled) {
            return None;
        }
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        matches!(read, Ok(1..)).then_some(line)
    });
    let line = line.await.ok()??;
    Some(line.trim().to_owned())
}

/// Waits until a line of the terminal can be read; returns false if the other end of the pipe is closed before.
#[cfg(unix)]
fn wait_for_line(terminal: &impl std::os::fd::AsFd, cancelled: &io::PipeReader) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        let mut both = [
            PollFd::new(terminal, PollFlags::IN),
            PollFd::new(cancelled, PollFlags::IN),
        ];
        match poll(&mut both, None) {
            Ok(_) => return both[1].revents().is_empty(),
            Err(rustix::io::Errno::INTR) => {}
            // Reading says why.
            Err(_) => return true,
        }
    }
}

/// Does not wait: this system cannot wait for a terminal and a pipe.
#[cfg(not(unix))]
fn wait_for_line(_: &io::Stdin, _: &io::PipeReader) -> bool {
    true
}

/// Returns the allowed values of a field, which are empty if its schema does not restrict them.
pub fn allowed_values(field: &Value) -> Vec<String> {
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
        .map(str::to_owned)
        .collect()
}

/// End of an error about JSON that is none, often because a shell or a prompt has removed its quotes.
const QUOTES: &str = "; put JSON in single quotes: 'NAME={\"a\": 1}'";

/// Parses text as a value of the JSON type that a schema specifies: of a union, the first type that takes it, and text last.
pub fn parse_value(field: &Value, text: &str) -> anyhow::Result<Value> {
    let variants = field["anyOf"].as_array().or(field["oneOf"].as_array());
    if let Some(variants) = variants.filter(|_| field.get("type").is_none()) {
        let is_null = |variant: &&Value| variant["type"] == "null";
        let is_text = |variant: &&Value| variant["type"] == "string";
        if text == "null" && variants.iter().any(|variant| is_null(&variant)) {
            return Ok(Value::Null);
        }
        let (texts, others): (Vec<&Value>, Vec<&Value>) = variants
            .iter()
            .filter(|variant| !is_null(variant))
            .partition(is_text);
        let mut parsed = others
            .iter()
            .chain(&texts)
            .map(|variant| parse_value(variant, text));
        let first = parsed.next().unwrap_or_else(|| Ok(Value::from(text)));
        return match first {
            Ok(value) => Ok(value),
            Err(error) => parsed.find_map(Result::ok).ok_or(error),
        };
    }
    let may_be_null = field["type"]
        .as_array()
        .is_some_and(|kinds| kinds.contains(&"null".into()));
    if may_be_null && text == "null" {
        return Ok(Value::Null);
    }
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
            _ => Err(anyhow!("`{text}` is not a whole number")),
        },
        "number" => match parsed() {
            Ok(value) if value.is_number() => Ok(value),
            _ => Err(anyhow!("`{text}` is not a number")),
        },
        "array" => match parsed() {
            Ok(value) if value.is_array() => Ok(value),
            _ if text.is_empty() => Ok(Value::Array(Vec::new())),
            Err(error) if text.starts_with('[') => Err(anyhow!(
                "`{}` is not a JSON list ({error}){QUOTES}",
                truncate_name(text)
            )),
            _ => text
                .split(',')
                .map(|item| match field.get("items") {
                    Some(items) => parse_value(items, item.trim()),
                    None => Ok(Value::from(item.trim())),
                })
                .collect(),
        },
        "object" => match parsed() {
            Ok(value) if value.is_object() => Ok(value),
            Err(error) if text.starts_with('{') => Err(anyhow!(
                "`{}` is not a JSON object ({error}){QUOTES}",
                truncate_name(text)
            )),
            _ => Err(anyhow!(
                "`{}` is not a JSON object{QUOTES}",
                truncate_name(text)
            )),
        },
        // Without a type, valid JSON is used as JSON.
        _ => Ok(parsed().unwrap_or_else(|_| Value::from(text))),
    }
}

/// Splits an assignment `NAME=VALUE` into name and value.
pub fn parse_assignment(text: &str) -> anyhow::Result<(&str, &str)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, value)),
        _ => bail!("`{text}` is not an assignment; write `name=value`"),
    }
}

/// Parses assignments `NAME=VALUE` to an object; the schema of each property determines the type of its value. Names that the
/// schema does not have are refused unless `is_any_allowed` is true.
pub fn parse_assignments(
    schema: &Value,
    assignments: &[String],
    is_any_allowed: bool,
) -> anyhow::Result<JsonObject> {
    let mut object = Map::new();
    for text in assignments {
        let (name, value) = parse_assignment(text)?;
        if !is_any_allowed {
            check_name(schema, name)?;
        }
        let field = &schema["properties"][name];
        let value = parse_value(field, value).map_err(|error| anyhow!("{name}: {error}"))?;
        if object.insert(name.to_owned(), value).is_some() {
            bail!(
                "`{name}` is given twice; a list is one value: `{name}=a,b` or `{name}=[\"a\",\"b\"]`"
            );
        }
    }
    JsonObject::try_from(Value::Object(object)).map_err(|_| anyhow!("this is not an object"))
}

/// Returns an error with similar names if a schema does not have a property.
fn check_name(schema: &Value, name: &str) -> anyhow::Result<()> {
    let is_open = match &schema["additionalProperties"] {
        Value::Bool(is_open) => *is_open,
        other => !other.is_null(),
    };
    // A schema without properties says nothing about their names.
    let Some(properties) = schema["properties"].as_object() else {
        return Ok(());
    };
    if properties.contains_key(name) || is_open || schema.get("patternProperties").is_some() {
        return Ok(());
    }
    let known = properties.keys().map(String::as_str);
    let mut problem = format!("there is no argument `{name}`, and --any-argument is not given");
    suggest(&mut problem, name, known);
    bail!(problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A question that is cancelled leaves the line that comes later to whoever reads next.
    #[cfg(unix)]
    #[test]
    fn cancelled_questions_take_no_line() {
        use std::io::Write as _;
        let (terminal, mut user) = io::pipe().expect("a pipe");
        let (cancelled, question) = io::pipe().expect("a pipe");
        let waiting = std::thread::spawn(move || {
            let is_there = wait_for_line(&terminal, &cancelled);
            (is_there, terminal)
        });
        drop(question);
        let (is_there, terminal) = waiting.join().expect("no panic");
        assert!(!is_there);
        user.write_all(b"next\n").expect("written");
        let (waiting, _question) = io::pipe().expect("a pipe");
        assert!(wait_for_line(&terminal, &waiting));
    }

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
        let numbers = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(check(numbers.clone(), "1, 2"), Some(json!([1, 2])));
        assert_eq!(check(numbers.clone(), "1,x"), None);
        assert_eq!(check(numbers.clone(), ""), Some(json!([])));
        let union = json!({"anyOf": [{"type": "null"}, numbers]});
        assert_eq!(check(union.clone(), "1,2"), Some(json!([1, 2])));
        assert_eq!(check(union, "null"), Some(json!(null)));
        let nullable = json!({"type": ["array", "null"], "items": {"type": "boolean"}});
        assert_eq!(
            check(nullable.clone(), "yes,no"),
            Some(json!([true, false]))
        );
        assert_eq!(check(nullable, "null"), Some(json!(null)));
        let either = json!({"oneOf": [{"type": "string"}, {"type": "number"}]});
        assert_eq!(check(either.clone(), "1"), Some(json!(1)));
        assert_eq!(check(either, "x"), Some(json!("x")));
        assert_eq!(
            check(json!({"type": "object"}), "{\"a\":1}"),
            Some(json!({"a": 1}))
        );
        let objects = json!({"type": "array", "items": {"type": "object"}});
        for text in ["[{a:b}]", "[{a:b"] {
            let error = parse_value(&objects, text).expect_err(text).to_string();
            assert!(error.contains("is not a JSON list"), "{error}");
            assert!(error.contains("in single quotes"), "{error}");
        }
        assert_eq!(check(json!({}), "[1]"), Some(json!([1])));
        assert_eq!(check(json!({}), "word"), Some(json!("word")));
    }

    /// An argument that is given twice is refused, because only one of the values could be sent.
    #[test]
    fn repeated_assignments_are_refused() {
        let given = ["a=1", "b=2", "a=3"].map(str::to_owned);
        let error = parse_assignments(&json!({}), &given, true).expect_err("it is given twice");
        assert_eq!(
            error.to_string(),
            r#"`a` is given twice; a list is one value: `a=a,b` or `a=["a","b"]`"#
        );
        assert!(parse_assignments(&json!({}), &given[..2], true).is_ok());
    }

    /// An argument that the schema does not have is refused, with similar names.
    #[test]
    fn unknown_arguments_are_refused() {
        let schema = json!({"type": "object", "properties": {"message": {"type": "string"}}});
        let given = ["mesage=x".to_owned()];
        let error = parse_assignments(&schema, &given, false).expect_err("it is unknown");
        assert_eq!(
            error.to_string(),
            "there is no argument `mesage`, and --any-argument is not given; did you mean `message`?"
        );
        assert!(parse_assignments(&schema, &given, true).is_ok());
        let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
        assert!(parse_assignments(&open, &given, false).is_ok());
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
