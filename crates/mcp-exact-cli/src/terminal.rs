//! Standard output and standard error, which take [`Text`], JSON and documents, and nothing else.
//!
//! All output of the program leaves here, and nothing of a server, a file or a log can change a terminal: a [`Text`] has it
//! escaped, JSON escapes what it may, and documents (what `read`, `convert` or a tool gives) are escaped on terminals and left
//! as they are in files and pipes. A test checks that no other file writes to the standard streams.

use std::io::{self, IsTerminal, Stderr, Stdout, StdoutLock, Write};

use serde::Serialize;

use crate::text::{Text, escape_json, escape_lines};

/// Standard stream of this process.
#[derive(Debug)]
pub struct Stream<W: Write> {
    inner: W,
    is_terminal: bool,
}

/// Returns standard output.
pub fn stdout() -> Stream<Stdout> {
    let inner = io::stdout();
    Stream::new(inner.is_terminal(), inner)
}

/// Returns standard error.
pub fn stderr() -> Stream<Stderr> {
    let inner = io::stderr();
    Stream::new(inner.is_terminal(), inner)
}

/// Returns standard output for the bytes of a protocol, which nobody reads at a terminal.
pub fn raw_stdout() -> Stdout {
    io::stdout()
}

/// Prints a line to standard error; failures are ignored.
pub fn print_to_stderr(line: &Text) {
    let _ = stderr().line(line);
}

impl<W: Write> Stream<W> {
    fn new(is_terminal: bool, inner: W) -> Self {
        Self { inner, is_terminal }
    }

    /// Returns true if the stream is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a text.
    pub fn text(&mut self, text: &Text) -> io::Result<()> {
        self.inner.write_all(text.as_str().as_bytes())?;
        self.inner.flush()
    }

    /// Writes a line.
    pub fn line(&mut self, line: &Text) -> io::Result<()> {
        let mut whole = line.clone();
        whole.push_line(&Text::default());
        self.text(&whole)
    }

    /// Writes a value as one line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.json_text(&serde_json::to_string(value)?)
    }

    /// Writes a value as JSON of several lines.
    pub fn pretty_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.json_text(&serde_json::to_string_pretty(value)?)
    }

    fn json_text(&mut self, json: &str) -> io::Result<()> {
        let mut text = escape_json(json).into_owned();
        text.push('\n');
        self.inner.write_all(text.as_bytes())?;
        self.inner.flush()
    }

    /// Returns a writer of what others have written.
    pub fn document(self) -> Document<W> {
        Document {
            stream: self,
            pending: Vec::new(),
        }
    }

    /// Removes the text of the current line from a terminal, and places the cursor at its beginning.
    pub fn clear_line(&mut self) -> io::Result<()> {
        if self.is_terminal {
            self.inner.write_all(b"\r\x1b[2K")?;
            self.inner.flush()?;
        }
        Ok(())
    }
}

impl Stream<Stderr> {
    /// Returns the number of columns of the terminal; 80 if it is not known.
    #[cfg(feature = "client")]
    pub fn columns(&self) -> usize {
        #[cfg(unix)]
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map(|size| size.ws_col.into());
        #[cfg(not(unix))]
        let columns = Err::<usize, ()>(());
        columns.ok().filter(|columns| *columns > 0).unwrap_or(80)
    }
}

impl Stream<Stdout> {
    /// Locks the stream.
    pub fn lock(self) -> Stream<StdoutLock<'static>> {
        Stream::new(self.is_terminal, io::stdout().lock())
    }
}

/// Writer of documents of others: on a terminal, all control characters but line breaks and tabs are escaped; files and pipes
/// receive the bytes unchanged.
#[derive(Debug)]
pub struct Document<W: Write> {
    stream: Stream<W>,
    /// Last bytes that were written if the next ones may complete them.
    pending: Vec<u8>,
}

impl<W: Write> Document<W> {
    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        let shown = escape_lines(&String::from_utf8_lossy(bytes));
        self.stream.inner.write_all(shown.as_bytes())
    }
}

impl<W: Write> Write for Document<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.stream.is_terminal {
            return self.stream.inner.write(bytes);
        }
        let mut text = std::mem::take(&mut self.pending);
        text.extend_from_slice(bytes);
        self.pending = text.split_off(complete_length(&text));
        self.show(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.inner.flush()
    }
}

impl<W: Write> Drop for Document<W> {
    fn drop(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        // Nobody is left to be told of a failure.
        let _ = self.show(&rest).and_then(|()| self.flush());
    }
}

/// Returns the length of the text before a character that the next bytes may complete.
fn complete_length(text: &[u8]) -> usize {
    let is_beginning = |rest: &[u8]| {
        rest == b"\r"
            || std::str::from_utf8(rest)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let first = text.len().saturating_sub(3);
    (first..text.len())
        .find(|at| is_beginning(&text[*at..]))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a terminal receives when a document is written in pieces of `size` bytes.
    fn written(text: &[u8], size: usize) -> String {
        let mut inner = Vec::new();
        let mut document = Stream::new(true, &mut inner).document();
        for piece in text.chunks(size) {
            document.write_all(piece).expect("memory");
        }
        drop(document);
        String::from_utf8(inner).expect("text")
    }

    /// Whatever the sizes of writes, nothing but tabs and line breaks is left of control characters.
    #[test]
    fn terminals_receive_no_control_characters() {
        let hostile = "\u{1b}]52;c;aGk=\u{7}\u{9b}31m\u{7f}\u{8}a\rb\r\nc\u{202e}d\u{1b}[31mré\u{1b}[0m\t\u{1b}";
        let expected = "\\u{1b}]52;c;aGk=\\u{7}\\u{9b}31m\\u{7f}\\u{8}a\\u{d}b\nc\\u{202e}d\\u{1b}[31mré\\u{1b}[0m\t\\u{1b}";
        for size in 1..=hostile.len() {
            assert_eq!(written(hostile.as_bytes(), size), expected, "{size}");
        }
        assert_eq!(written(b"a\xff\xc3", 1), "a\u{fffd}\u{fffd}");
    }

    /// Pipes and files receive the bytes as they are.
    #[test]
    fn pipes_receive_bytes() {
        let mut inner = Vec::new();
        let mut stream = Stream::new(false, &mut inner);
        stream.clear_line().expect("memory");
        stream
            .document()
            .write_all(b"\x1b[2J\xff\r")
            .expect("memory");
        assert_eq!(inner, b"\x1b[2J\xff\r");
    }

    /// No other file of the program writes to the standard streams, and few write documents of others there.
    #[test]
    fn all_text_leaves_here() {
        let mut folders = vec![std::path::PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src"
        ))];
        let (mut checked, mut documents) = (0, Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                // The files of new servers are no part of the program.
                if path.extension().is_none_or(|extension| extension != "rs") {
                    continue;
                }
                checked += 1;
                let text = std::fs::read_to_string(&path).expect("a source file");
                if path.ends_with("src/terminal.rs") {
                    continue;
                }
                let ways = ["io::stdout", "io::stderr", "println!(", "print!(", "dbg!("];
                let found = ways.iter().find(|call| text.contains(**call));
                assert!(found.is_none(), "{}: {found:?}", path.display());
                let name = path.file_name().and_then(|name| name.to_str());
                documents.extend(
                    text.contains(".document()")
                        .then(|| name.map(str::to_owned)),
                );
            }
        }
        assert!(checked > 40, "{checked} files");
        documents.sort();
        let documents: Vec<String> = documents.into_iter().flatten().collect();
        // Files of recordings and logs, contents of tools and resources, converted documents, and lines of JSON.
        assert_eq!(documents, DOCUMENTS);
    }

    /// Files that write documents.
    const DOCUMENTS: [&str; 11] = [
        "audit.rs",
        "call.rs",
        "check.rs",
        "convert.rs",
        "jsonl.rs",
        "log.rs",
        "output.rs",
        "proxy.rs",
        "recording.rs",
        "replay.rs",
        "run.rs",
    ];
}
