//! What a connection has shown of the server besides the client's own view: the entries of lists as they were sent, what is no
//! message, and the end of its HTTP requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::output::{Painter, Style};
use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, count, text};

/// Maximum number of characters that are shown of a line.
const MAX_SHOWN_CHARS: usize = 80;

/// Members of results that are lists.
const LISTS: [&str; 4] = ["tools", "resources", "resourceTemplates", "prompts"];

/// Entries of lists by their member of the result.
type Lists = BTreeMap<&'static str, Vec<Value>>;

/// Entries of lists, if they are wanted.
#[derive(Debug, Clone, Default)]
pub struct SentLists(Arc<Mutex<Option<Lists>>>);

impl SentLists {
    fn lock(&self) -> MutexGuard<'_, Option<Lists>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the entries of the lists that the server sends from now on.
    pub fn keep(&self) {
        self.lock().get_or_insert_default();
    }

    /// Returns true if entries are kept.
    #[cfg(feature = "http")]
    pub fn is_kept(&self) -> bool {
        self.lock().is_some()
    }

    /// Looks at a message of the server.
    pub fn observe(&self, message: &[u8]) {
        let mut lists = self.lock();
        let Some(lists) = lists.as_mut() else {
            return;
        };
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        let messages = match message {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        for mut message in messages {
            let Some(result) = message.get_mut("result") else {
                continue;
            };
            for name in LISTS {
                if let Some(Value::Array(entries)) = result.get_mut(name) {
                    lists.entry(name).or_default().append(entries);
                }
            }
        }
    }

    /// Adds the members that an entry has as the server has sent it, and not as this program knows it.
    pub fn complete(&self, list: &str, entry: &mut Value) {
        let lists = self.lock();
        let sent = lists.as_ref().and_then(|lists| lists.get(list));
        let keys = ["name", "uri", "uriTemplate"];
        let is_same = |other: &&Value| keys.iter().all(|key| other.get(key) == entry.get(key));
        let Some(Value::Object(sent)) = sent.and_then(|sent| sent.iter().find(is_same)) else {
            return;
        };
        if let Value::Object(entry) = entry {
            for (name, value) in sent {
                if !entry.contains_key(name) {
                    entry.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

/// Lines on the standard output of a server that are no messages.
#[derive(Debug, Clone, Default)]
pub struct OtherOutput(Arc<Mutex<OtherLines>>);

#[derive(Debug, Default)]
struct OtherLines {
    count: usize,
    /// The first of them.
    first: String,
}

impl OtherOutput {
    /// Looks at a line of the server.
    pub fn observe(&self, line: &[u8]) {
        let line = line.trim_ascii();
        // A line that begins as an object is a message, well-formed or not, and a batch is a list.
        let is_list = || serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(line).is_ok();
        if line.is_empty() || line.starts_with(b"{") || (line.starts_with(b"[") && is_list()) {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.count += 1;
        if lines.count == 1 {
            lines.first = String::from_utf8_lossy(line).into_owned();
        }
    }

    /// Prints a note about the lines, if there are any.
    pub fn print(&self) {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.count > 0 {
            print_to_stderr(&text!(
                "{}: the server's standard output has {} besides its messages, where some clients end the connection: `{}`; run \
                 `mcp-exact doctor`",
                Painter::stderr().paint(Style::Yellow, "note"),
                count(lines.count, "line"),
                Untrusted(&lines.first).cut(MAX_SHOWN_CHARS)
            ));
        }
    }
}

/// Connections over HTTP that have not ended.
#[derive(Debug, Clone, Default)]
pub struct OpenConnections(Arc<Mutex<Vec<mpsc::Receiver<()>>>>);

/// Part of a connection over HTTP; while it is held, the connection is open.
#[cfg(feature = "http")]
#[derive(Debug, Clone)]
pub struct Held {
    _sender: mpsc::Sender<()>,
}

impl OpenConnections {
    /// Adds a connection.
    #[cfg(feature = "http")]
    pub fn add(&self) -> Held {
        let (sender, receiver) = mpsc::channel(1);
        let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receivers.push(receiver);
        Held { _sender: sender }
    }

    /// Waits until all connections have ended.
    pub async fn ended(&self) {
        let receivers = {
            let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *receivers)
        };
        for mut receiver in receivers {
            receiver.recv().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Lines that are no messages are counted, and the first is kept.
    #[test]
    fn other_lines_are_counted() {
        let other = OtherOutput::default();
        for line in [
            "{\"a\":1}\r",
            "{ cut",
            "[{}]",
            " \n",
            "",
            "[INFO] up",
            "5",
            "ready",
        ] {
            other.observe(line.as_bytes());
        }
        let lines = other.0.lock().expect("lines");
        assert_eq!((lines.count, lines.first.as_str()), (3, "[INFO] up"));
    }

    /// Members that the newest revision does not have are added; those that this program has read stay.
    #[test]
    fn sent_members_are_added() {
        let lists = SentLists::default();
        let message = json!({"id": 1, "result": {"tools": [{"name": "a", "title": "other", "execution": {"taskSupport": "optional"}}]}});
        lists.observe(message.to_string().as_bytes());
        lists.keep();
        for odd in [
            "[]",
            "[1]",
            "1",
            "{}",
            r#"{"result": []}"#,
            r#"{"result": {"tools": 1}}"#,
        ] {
            lists.observe(odd.as_bytes());
        }
        let mut entry = json!({"name": "a", "title": "A"});
        lists.complete("tools", &mut entry);
        assert_eq!(entry, json!({"name": "a", "title": "A"}));
        lists.observe(message.to_string().as_bytes());
        lists.complete("tools", &mut entry);
        assert_eq!(
            entry,
            json!({"name": "a", "title": "A", "execution": {"taskSupport": "optional"}})
        );
    }
}
