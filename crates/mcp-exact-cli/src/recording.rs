//! Recordings of conversations: one message per line, with its sender.
//!
//! A line is `{"from": "client" | "server", "message": …}`, with `"text"` instead of `message` for text that is not
//! JSON. A line may also be the message itself; the sender is then determined from the method.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::message::Direction;

/// Line of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Sender of the message, if the line states it.
    pub from: Option<Direction>,
    /// Text of the message.
    pub text: String,
}

/// Line of a recording as it is written.
#[derive(Serialize)]
struct WrittenLine<'a> {
    /// Sender of the message.
    from: Direction,
    /// The message, if it is JSON text without line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a RawValue>,
    /// Text of the message, if it cannot be written as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
}

/// Line of a recording that states the sender, as it is read.
#[derive(Deserialize)]
struct RecordedLine<'a> {
    /// Sender of the message.
    from: Direction,
    /// The message, if it is JSON text.
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    /// Text of the message, if the message is not JSON.
    text: Option<String>,
}

impl Entry {
    /// Parses a line; a line that states no sender is itself the message.
    pub fn read(line: &[u8]) -> Self {
        let text = String::from_utf8_lossy(line);
        Self::of_line(&text).unwrap_or_else(|| Self {
            from: None,
            text: text.into_owned(),
        })
    }

    /// Parses a line that states the sender; `None` for another one.
    fn of_line(line: &str) -> Option<Self> {
        let read: RecordedLine<'_> = serde_json::from_str(line).ok()?;
        let message = read.message.map(|message| message.get().to_owned());
        Some(Self {
            from: Some(read.from),
            text: message.or(read.text)?,
        })
    }
}

/// Returns what to do with a file that is a recording and was taken for one document: its lines are messages by themselves, or
/// state their senders; `None` for any other file.
pub fn advise(name: &str, bytes: &[u8]) -> Option<String> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut lines = lines.by_ref().filter(|line| !line.is_empty());
    let (first, second) = (lines.next()?, lines.next());
    let is_object = |line: &[u8]| {
        let raw = serde_json::from_slice::<&RawValue>(line);
        raw.is_ok_and(|raw| raw.get().starts_with('{'))
    };
    let is_recording = match second {
        Some(second) => is_object(first) && second.starts_with(b"{"),
        None => Entry::of_line(&String::from_utf8_lossy(first)).is_some(),
    };
    is_recording.then(|| {
        format!("{name} looks like a recording, which has a message on each line; read it with --log {name}")
    })
}

/// Writes a message and its sender as one line.
pub fn write(out: &mut dyn Write, from: Direction, message: &[u8]) -> io::Result<()> {
    // A raw value keeps white space including line breaks, which would end the line.
    let json = serde_json::from_slice::<&RawValue>(message).ok();
    let json = json.filter(|_| !message.contains(&b'\n') && !message.contains(&b'\r'));
    let line = WrittenLine {
        from,
        message: json,
        text: match json {
            Some(_) => None,
            None => Some(String::from_utf8_lossy(message)),
        },
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of messages are a recording; a document of one or many lines is none.
    #[test]
    fn recordings_are_recognised() {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let stated = format!(r#"{{"from":"client","message":{message}}}"#);
        for recording in [format!("{message}\n\n{message}\n"), format!("{stated}\n")] {
            assert!(advise("a", recording.as_bytes()).is_some(), "{recording}");
        }
        for document in [message, "{\n\"a\": 1\n}\n", "", "[1]\n[2]\n", "x\n{}"] {
            assert_eq!(advise("a", document.as_bytes()), None, "{document}");
        }
    }

    /// Reading a written line returns the same sender and text, even if the text is not JSON or contains line breaks.
    #[test]
    fn recorded_lines_round_trip() {
        for text in ["{\"id\": 1e400}", "not JSON", "{\n}", "\"\\u0000\""] {
            let mut line = Vec::new();
            write(&mut line, Direction::Server, text.as_bytes()).expect("memory takes it");
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let entry = Entry::read(line.trim_ascii());
            assert_eq!((entry.from, &*entry.text), (Some(Direction::Server), text));
        }
        let entry = Entry::read(b"{\"method\":\"ping\"}");
        assert_eq!((entry.from, &*entry.text), (None, "{\"method\":\"ping\"}"));
    }
}
