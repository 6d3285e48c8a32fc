//! Hand-written minimal servers, which show the cost of pipes without parsing.
//!
//! The servers find the id and the text by a search for their names, without a JSON parser.

use std::io::{self, Read, Write};

use memchr::{memchr, memchr_iter, memmem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Maximum number of bytes that one read returns.
const READ: usize = 64 << 10;

/// Answers every complete line of the input; returns the number of consumed bytes.
fn answer(input: &[u8], out: &mut Vec<u8>) -> usize {
    let mut start = 0;
    for end in memchr_iter(b'\n', input) {
        line(&input[start..end], out);
        start = end + 1;
    }
    start
}

/// Answers the request in one line, which is `initialize` or a call.
fn line(line: &[u8], out: &mut Vec<u8>) {
    let Some(id) = value(line, b"\"id\":", b',') else {
        return;
    };
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    match value(line, b"\"text\":\"", b'"') {
        Some(text) => {
            out.extend_from_slice(b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"");
            out.extend_from_slice(text);
            out.extend_from_slice(b"\"}]}}\n");
        }
        None => out.extend_from_slice(
            b",\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\
              \"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}}\n",
        ),
    }
}

/// Returns the bytes between the first `name` and the next byte `end`.
fn value<'a>(line: &'a [u8], name: &[u8], end: u8) -> Option<&'a [u8]> {
    let rest = &line[memmem::find(line, name)? + name.len()..];
    Some(&rest[..memchr(end, rest)?])
}

/// Serves stdio with blocking reads and writes.
pub fn blocking() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut buffer, mut out) = (Vec::new(), Vec::new());
    loop {
        let start = buffer.len();
        buffer.resize(start + READ, 0);
        let count = input.read(&mut buffer[start..])?;
        buffer.truncate(start + count);
        if count == 0 {
            return Ok(());
        }
        let taken = answer(&buffer, &mut out);
        buffer.drain(..taken);
        output.write_all(&out)?;
        output.flush()?;
        out.clear();
    }
}

/// Serves stdio with the standard streams of Tokio, which use threads.
pub async fn tokio() -> io::Result<()> {
    let (mut input, mut output) = (tokio::io::stdin(), tokio::io::stdout());
    let (mut buffer, mut out) = (Vec::with_capacity(READ), Vec::new());
    while input.read_buf(&mut buffer).await? > 0 {
        let taken = answer(&buffer, &mut out);
        buffer.drain(..taken);
        buffer.reserve(READ);
        output.write_all(&out).await?;
        output.flush().await?;
        out.clear();
    }
    Ok(())
}
