//! Standard output and standard error, on which text of servers, files and logs cannot change a terminal.
//!
//! All text of the program leaves here. On a terminal, control characters, C1 codes and characters that reorder text are
//! shown as escapes such as `\u{1b}`; only colours pass. Files and pipes receive the bytes unchanged. A test checks that no
//! other file writes to the standard streams.

use std::io::{self, IsTerminal, Stderr, StderrLock, Stdout, StdoutLock, Write};

/// Maximum length of the parameters of a colour sequence.
const MAX_PARAMETERS: usize = 12;

/// Standard stream of this process.
#[derive(Debug)]
pub struct Stream<W: Write> {
    inner: W,
    is_terminal: bool,
    /// Last bytes that were written if they are the beginning of a character or of a colour sequence.
    pending: Vec<u8>,
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

impl<W: Write> Stream<W> {
    fn new(is_terminal: bool, inner: W) -> Self {
        Self {
            inner,
            is_terminal,
            pending: Vec::new(),
        }
    }

    /// Returns true if the stream is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Removes the text of the current line from a terminal, and places the cursor at its beginning.
    pub fn clear_line(&mut self) -> io::Result<()> {
        if self.is_terminal {
            self.inner.write_all(b"\r\x1b[2K")?;
        }
        Ok(())
    }

    /// Writes what is left of an incomplete character or sequence.
    fn finish(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.pending);
        self.inner
            .write_all(escape(&String::from_utf8_lossy(&rest)).as_bytes())
    }
}

impl Stream<Stdout> {
    /// Locks the stream.
    pub fn lock(self) -> Stream<StdoutLock<'static>> {
        Stream::new(self.is_terminal, io::stdout().lock())
    }
}

impl Stream<Stderr> {
    /// Locks the stream.
    pub fn lock(self) -> Stream<StderrLock<'static>> {
        Stream::new(self.is_terminal, io::stderr().lock())
    }
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.inner.write(bytes);
        }
        let mut text = std::mem::take(&mut self.pending);
        text.extend_from_slice(bytes);
        self.pending = text.split_off(complete_length(&text));
        self.inner
            .write_all(escape(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Stream<W> {
    fn drop(&mut self) {
        if !self.pending.is_empty() {
            // Nobody is left to be told of a failure.
            let _ = self.finish();
        }
    }
}

/// Returns the length of the text before a character or colour sequence that the next bytes may complete.
fn complete_length(text: &[u8]) -> usize {
    let is_beginning = |rest: &[u8]| match rest {
        [0x1b] => true,
        [0x1b, b'[', parameters @ ..] => {
            parameters.len() <= MAX_PARAMETERS && parameters.iter().all(is_parameter)
        }
        rest => std::str::from_utf8(rest)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none()),
    };
    let first = text.len().saturating_sub(MAX_PARAMETERS + 2);
    (first..text.len())
        .find(|at| is_beginning(&text[*at..]))
        .unwrap_or(text.len())
}

/// Returns true for the digits and separators of a colour sequence.
fn is_parameter(byte: &u8) -> bool {
    byte.is_ascii_digit() || *byte == b';'
}

/// Shows characters that could change a terminal, or the order of its text, as escapes; keeps colours, tabs and line breaks.
pub fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some(colour) = colour_sequence(rest) {
            shown.push_str(colour);
            rest = &rest[colour.len()..];
            continue;
        }
        match letter {
            '\n' | '\t' => shown.push(letter),
            // A line break of Windows.
            '\r' if rest.starts_with("\r\n") => {}
            letter if letter.is_control() || reorders(letter) => {
                shown.extend(letter.escape_unicode());
            }
            letter => shown.push(letter),
        }
        rest = &rest[letter.len_utf8()..];
    }
    shown
}

/// Returns the colour sequence at the beginning of a text, which the program or a server writes; concealed text is no colour.
fn colour_sequence(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.bytes().take_while(is_parameter).count();
    let is_shown = parameters[..length].split(';').all(|code| {
        let code = code.parse().unwrap_or(0);
        matches!(code, 0..=4 | 22..=24 | 30..=37 | 39 | 90..=97)
    });
    let is_colour = length <= MAX_PARAMETERS && parameters[length..].starts_with('m');
    (is_colour && is_shown).then(|| &text[..length + 3])
}

/// Returns true for characters that change the direction of text or separate lines (Unicode, UAX 9 and 14).
fn reorders(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a terminal receives when a text is written in pieces of `size` bytes.
    fn written(text: &[u8], size: usize) -> String {
        let mut inner = Vec::new();
        let mut stream = Stream::new(true, &mut inner);
        for piece in text.chunks(size) {
            stream.write_all(piece).expect("memory");
        }
        drop(stream);
        String::from_utf8(inner).expect("text")
    }

    /// Whatever the sizes of writes, nothing but colours, tabs and line breaks is left of control characters.
    #[test]
    fn terminals_receive_no_control_characters() {
        let hostile = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{8}a\rb\r\nc\u{202e}d\u{1b}[8mx\u{1b}[31mré\u{1b}[0m\t\u{1b}";
        let expected = "\\u{1b}]52;c;aGk=\\u{7}\\u{1b}[2J\\u{9b}31m\\u{7f}\\u{8}a\\u{d}b\nc\\u{202e}d\\u{1b}[8mx\u{1b}[31mré\u{1b}[0m\t\\u{1b}";
        for size in 1..=hostile.len() {
            // A carriage return that ends a piece is shown even if a line feed follows.
            let found = written(hostile.as_bytes(), size).replace("b\\u{d}\n", "b\n");
            assert_eq!(found, expected, "{size}");
        }
        assert_eq!(written(b"a\xff\xc3", 1), "a\u{fffd}\u{fffd}");
    }

    /// Pipes and files receive the bytes as they are.
    #[test]
    fn pipes_receive_bytes() {
        let mut inner = Vec::new();
        let mut stream = Stream::new(false, &mut inner);
        stream.write_all(b"\x1b[2J\xff\r").expect("memory");
        stream.clear_line().expect("memory");
        drop(stream);
        assert_eq!(inner, b"\x1b[2J\xff\r");
    }

    /// No other file of the program writes to the standard streams.
    #[test]
    fn all_text_leaves_here() {
        let mut folders = vec![std::path::PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src"
        ))];
        let mut checked = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                checked += 1;
                let text = std::fs::read_to_string(&path).expect("a source file");
                let is_here = path.ends_with("terminal.rs");
                let has_own = ["io::stdout()", "io::stderr()", "println!(", "eprint!("];
                let found = has_own.iter().find(|call| text.contains(**call));
                assert!(is_here || found.is_none(), "{}: {found:?}", path.display());
            }
        }
        assert!(checked > 40, "{checked} files");
    }
}
