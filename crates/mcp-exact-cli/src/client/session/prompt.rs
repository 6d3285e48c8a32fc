//! Prompt of a session, with history and completion.

use std::path::PathBuf;
use std::sync::mpsc as blocking;
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::line::split;
use super::run::{Answer, Session};
use crate::Outcome;
use crate::client::add_hint;
use crate::client::data_folder::data_folder;
use crate::output::private;
use crate::text::is_plain;

/// Time that the server has to complete a value.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of lines that are kept between sessions.
const MAX_HISTORY: usize = 1000;

/// Words of a session that are no tools.
const WORDS: [&str; 10] = [
    "call",
    "complete",
    "help",
    "prompt",
    "prompts",
    "quit",
    "read",
    "resources",
    "templates",
    "tools",
];

/// Name that can be completed, with the arguments of a tool or prompt and their known values.
#[derive(Debug, Clone)]
struct Name {
    name: String,
    arguments: Vec<(String, Vec<String>)>,
}

/// Names of a server.
#[derive(Debug, Clone, Default)]
struct Names {
    tools: Vec<Name>,
    prompts: Vec<Name>,
    resources: Vec<Name>,
}

/// Question for values of an argument of a prompt: the name of the prompt, the argument, and the beginning of the value.
struct Question {
    prompt: String,
    argument: String,
    value: String,
    answer: blocking::Sender<Vec<String>>,
}

/// Completion of a line by the names of a server, and by the server itself.
struct SessionHelper {
    names: Names,
    /// Questions to the server; `None` if it completes nothing.
    questions: Option<mpsc::Sender<Question>>,
}

impl Helper for SessionHelper {}
impl Highlighter for SessionHelper {}
impl Validator for SessionHelper {}
impl Hinter for SessionHelper {
    type Hint = String;
}

impl Completer for SessionHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |place| place + 1);
        let words = split(&before[..start]).unwrap_or_default();
        let word = &before[start..];
        let found = self.candidates(&words, word).into_iter();
        let found = found.filter(|candidate| candidate.starts_with(word) && is_plain(candidate));
        // A whole word is followed by the next one.
        let pair = |text: String| Pair {
            display: text.clone(),
            replacement: if text.contains('=') { text } else { text + " " },
        };
        Ok((start, found.map(pair).collect()))
    }
}

impl SessionHelper {
    /// Returns what may stand in the place of a word, after other words.
    fn candidates(&self, words: &[String], word: &str) -> Vec<String> {
        let names = |list: &[Name]| list.iter().map(|entry| entry.name.clone()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => {
                let mut all: Vec<String> = names(&self.names.tools);
                all.extend(WORDS.map(str::to_owned));
                all
            }
            ["call"] => names(&self.names.tools),
            ["read"] => names(&self.names.resources),
            ["prompt"] => names(&self.names.prompts),
            ["prompt", name, given @ ..] => {
                self.assignments(&self.names.prompts, name, given, word, true)
            }
            ["call", name, given @ ..] | [name, given @ ..] => {
                self.assignments(&self.names.tools, name, given, word, false)
            }
        }
    }

    /// Returns the arguments that are not given yet, or the values of the one that is being written.
    fn assignments(
        &self,
        list: &[Name],
        name: &str,
        given: &[&str],
        word: &str,
        is_prompt: bool,
    ) -> Vec<String> {
        let Some(entry) = list.iter().find(|entry| entry.name == name) else {
            return Vec::new();
        };
        if let Some((argument, value)) = word.split_once('=') {
            let known = entry.arguments.iter().find(|(known, _)| known == argument);
            let mut values = known.map_or_else(Vec::new, |(_, values)| values.clone());
            if is_prompt {
                values.extend(self.ask(name, argument, value));
            }
            let values = values
                .into_iter()
                .filter(|value| !value.contains(char::is_whitespace));
            return values.map(|value| format!("{argument}={value}")).collect();
        }
        let is_given = |name: &str| {
            given
                .iter()
                .any(|word| word.split('=').next() == Some(name))
        };
        let names = entry.arguments.iter().map(|(name, _)| name);
        let names = names.filter(|name| !is_given(name));
        names.map(|name| format!("{name}=")).collect()
    }

    /// Asks the server for values of an argument of a prompt.
    fn ask(&self, prompt: &str, argument: &str, value: &str) -> Vec<String> {
        let (answer, answered) = blocking::channel();
        let question = Question {
            prompt: prompt.to_owned(),
            argument: argument.to_owned(),
            value: value.to_owned(),
            answer,
        };
        let asked = self
            .questions
            .as_ref()
            .map(|questions| questions.blocking_send(question));
        if !matches!(asked, Some(Ok(()))) {
            return Vec::new();
        }
        answered
            .recv_timeout(COMPLETION_TIMEOUT)
            .unwrap_or_default()
    }
}

/// Editor of lines with history and completion.
type LineEditor = Editor<SessionHelper, FileHistory>;

/// Runs the lines that a person writes, until the end of input.
pub async fn run(session: &mut Session<'_>) -> anyhow::Result<Outcome> {
    let capabilities = session.client.capabilities();
    let completes = capabilities.get("completions").is_some();
    let (sender, mut questions) = mpsc::channel::<Question>(1);
    let helper = SessionHelper {
        names: read_names(session).await,
        questions: completes.then_some(sender),
    };
    let mut editor = Some(create_editor(helper)?);
    loop {
        let (sender, read) = oneshot::channel();
        let Some(mut taken) = editor.take() else {
            break;
        };
        // The editor waits for keys in a thread of its own, so that the connection goes on.
        std::thread::spawn(move || {
            let line = taken.readline("> ");
            let _ = sender.send((taken, line));
        });
        let (returned, line) = wait_for_line(session, read, &mut questions).await?;
        editor = Some(returned);
        let line = match line {
            Ok(line) => line,
            // Ctrl-C forgets the line, Ctrl-D ends the session.
            Err(ReadlineError::Interrupted) => continue,
            Err(_) => break,
        };
        if let Some(editor) = &mut editor
            && !line.trim().is_empty()
        {
            let _ = editor.add_history_entry(&line);
            keep_history(editor);
        }
        match session.run_line(&line).await {
            Ok(Answer::End) => break,
            Ok(answer) => session.print(0, answer)?,
            Err(error) => session.print_error(0, &error)?,
        }
    }
    Ok(Outcome::Valid)
}

/// What the thread of the editor returns.
type ReadLine = (LineEditor, rustyline::Result<String>);

/// Waits for a line; meanwhile, asks the server for completions.
async fn wait_for_line(
    session: &Session<'_>,
    mut read: oneshot::Receiver<ReadLine>,
    questions: &mut mpsc::Receiver<Question>,
) -> anyhow::Result<ReadLine> {
    loop {
        tokio::select! {
            line = &mut read => return Ok(line?),
            Some(question) = questions.recv() => {
                let Question { prompt, argument, value, answer } = question;
                let completing = session.client.complete_prompt(&prompt, &argument, &value);
                // The line is not run before.
                let completed = completing.timeout(COMPLETION_TIMEOUT).await;
                let values = completed.map(|completed| completed.values);
                // The editor may have gone on.
                let _ = answer.send(values.unwrap_or_default());
            }
        }
    }
}

/// Creates the editor, with the lines of earlier sessions.
fn create_editor(helper: SessionHelper) -> anyhow::Result<LineEditor> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(MAX_HISTORY)?
        .history_ignore_dups(true)?
        .bracketed_paste(false)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(helper));
    if let Some(path) = history_path() {
        // There is none before the first session.
        let _ = editor.load_history(&path);
    }
    Ok(editor)
}

/// Returns the file of the lines of earlier sessions.
fn history_path() -> Option<PathBuf> {
    data_folder().map(|folder| folder.join("session-history"))
}

/// Keeps the lines for later sessions; only the user can read them.
fn keep_history(editor: &mut LineEditor) {
    let Some(path) = history_path() else { return };
    let folder = path.parent().map(std::fs::create_dir_all);
    let mut options = std::fs::OpenOptions::new();
    let created = private(options.append(true).create(true)).open(&path);
    if folder.is_some_and(|created| created.is_ok()) && created.is_ok() {
        // Without the file, the next session has no history.
        let _ = editor.append_history(&path);
    }
}

/// Reads the names of the server that lines can have; a list that cannot be read has none.
async fn read_names(session: &Session<'_>) -> Names {
    let client = session.client;
    let capabilities = client.capabilities();
    let has = |name: &str| capabilities.get(name).is_some();
    let mut names = Names::default();
    if has("tools") {
        for tool in client
            .tools()
            .all()
            .await
            .map_err(add_hint)
            .unwrap_or_default()
        {
            let schema = tool
                .input_schema()
                .and_then(|schema| schema.parse::<Value>().ok());
            let schema = schema.unwrap_or_default();
            let properties = schema["properties"].as_object().into_iter().flatten();
            let arguments = properties.map(|(name, field)| (name.clone(), known_values(field)));
            names.tools.push(Name {
                name: tool.name(),
                arguments: arguments.collect(),
            });
        }
    }
    if has("prompts") {
        for prompt in client.prompts().all().await.unwrap_or_default() {
            let object: Value = prompt.object().parse().unwrap_or_default();
            let arguments = object["arguments"].as_array().into_iter().flatten();
            let arguments = arguments.filter_map(|argument| argument["name"].as_str());
            names.prompts.push(Name {
                name: prompt.name(),
                arguments: arguments
                    .map(|name| (name.to_owned(), Vec::new()))
                    .collect(),
            });
        }
    }
    if has("resources") {
        for resource in client.resources().all().await.unwrap_or_default() {
            names.resources.push(Name {
                name: resource.uri().unwrap_or_default(),
                arguments: Vec::new(),
            });
        }
    }
    names
}

/// Returns the values that a schema allows, if they are few.
fn known_values(field: &Value) -> Vec<String> {
    if field["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    crate::client::answer::allowed_values(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tools are completed at the beginning of a line, then their arguments that are missing, and values that are known.
    #[test]
    fn words_are_completed_by_place() {
        let tool = Name {
            name: "echo".to_owned(),
            arguments: vec![
                ("message".to_owned(), Vec::new()),
                (
                    "loud".to_owned(),
                    vec!["true".to_owned(), "false".to_owned()],
                ),
            ],
        };
        let helper = SessionHelper {
            names: Names {
                tools: vec![tool],
                ..Names::default()
            },
            questions: None,
        };
        let complete = |line: &str| {
            let history = FileHistory::new();
            let found = helper.complete(line, line.len(), &Context::new(&history));
            let (start, found) = found.expect("candidates");
            let found: Vec<String> = found.into_iter().map(|pair| pair.replacement).collect();
            (start, found.join(" "))
        };
        assert_eq!(complete("ec"), (0, "echo ".to_owned()));
        assert_eq!(complete("echo "), (5, "message= loud=".to_owned()));
        assert_eq!(
            complete("call echo loud=true m"),
            (20, "message=".to_owned())
        );
        assert_eq!(complete("echo loud=t"), (5, "loud=true".to_owned()));
        assert_eq!(complete("other x"), (6, String::new()));
    }
}
