//! Line framing, as stdio has it: one message a line, no line break inside (`basic/transports`).
//!
//! Takes bytes as they arrive and gives lines; ends a line for what leaves. Does no IO, and keeps at most one line and
//! what was pushed behind it.

/// The first line of a buffer, without its end, and how many bytes it takes with its end; `None` without one.
pub fn split_line(buffer: &[u8]) -> Option<(&[u8], usize)> {
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    Some((trim_return(&buffer[..end]), end + 1))
}

/// Ends the frame that `poll_transmit` has appended to a buffer.
///
/// The frame holds no line break: where open JSON had one between its tokens, it left the machine as a space.
pub fn end_line(buffer: &mut Vec<u8>) {
    buffer.push(b'\n');
}

fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What [`Lines::next_line`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line that is not empty, without its end.
    Frame(&'a [u8]),
    /// A line longer than the bound was left out.
    TooLong,
}

/// Gathers bytes and gives lines. Empty lines are passed over.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
    longest: usize,
    skipping: bool,
}

impl Lines {
    /// For lines of at most so many bytes: [`Limits::message_bytes`](crate::Limits::message_bytes).
    pub fn new(longest: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            longest,
            skipping: false,
        }
    }

    /// Adds bytes as they have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line; `None` until more bytes are pushed.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            let fresh = &self.buffer[self.scanned..];
            let Some(end) = fresh.iter().position(|byte| *byte == b'\n') else {
                return self.unfinished();
            };
            let line = self.start..self.scanned + end;
            self.start = line.end + 1;
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.longest {
                return Some(Line::TooLong);
            }
            if !self.buffer[line.clone()].trim_ascii().is_empty() {
                return Some(Line::Frame(trim_return(&self.buffer[line])));
            }
        }
    }

    /// What is left at the end of input: a last line without an end.
    pub fn rest(&mut self) -> Option<&[u8]> {
        let rest = self.start..self.buffer.len();
        self.start = rest.end;
        self.scanned = rest.end;
        let whole = !std::mem::take(&mut self.skipping) && rest.len() <= self.longest;
        let line = trim_return(&self.buffer[rest]);
        (whole && !line.trim_ascii().is_empty()).then_some(line)
    }

    /// A line whose end is not there yet. What is too long already is not kept.
    fn unfinished(&mut self) -> Option<Line<'_>> {
        self.scanned = self.buffer.len();
        if self.skipping {
            self.start = self.scanned;
            return None;
        }
        if self.scanned - self.start <= self.longest {
            return None;
        }
        self.skipping = true;
        self.start = self.scanned;
        Some(Line::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(longest: usize, pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(longest);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece.as_bytes());
            while let Some(line) = lines.next_line() {
                found.push(match line {
                    Line::Frame(line) => String::from_utf8_lossy(line).into_owned(),
                    Line::TooLong => "<too long>".into(),
                });
            }
        }
        found.extend(
            lines
                .rest()
                .map(|rest| String::from_utf8_lossy(rest).into_owned()),
        );
        found
    }

    #[test]
    fn lines_come_whole_however_they_arrive() {
        let text = "{\"a\":1}\r\n\n  \n{}\n{\"b\":\"\u{e9}\"}\nrest";
        let whole = lines(100, &[text]);
        assert_eq!(whole, ["{\"a\":1}", "{}", "{\"b\":\"\u{e9}\"}", "rest"]);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(lines(100, &[&text[..at], &text[at..]]), whole);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_left_out() {
        assert_eq!(lines(3, &["12345678\nabc\n"]), ["<too long>", "abc"]);
        assert_eq!(
            lines(3, &["1234", "5678", "9\nabc\n"]),
            ["<too long>", "abc"]
        );
        assert_eq!(lines(3, &["1234", "56"]), ["<too long>"]);
    }

    #[test]
    fn std_no_newline_pure_functions_agree() {
        let mut buffer = b"{}".to_vec();
        end_line(&mut buffer);
        assert_eq!(split_line(&buffer), Some((&b"{}"[..], 3)));
        assert_eq!(split_line(b"{}"), None);
    }
}
