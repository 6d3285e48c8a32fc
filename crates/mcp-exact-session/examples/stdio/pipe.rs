//! Pipe functions for both examples: reading a pipe in a thread, and collecting the output of an endpoint.

use std::io::Read;
use std::sync::mpsc;
use std::thread;

use mcp_exact_session::Transmit;
use mcp_exact_session::frame::end_line;

/// Reads a pipe in a thread; returns a channel with the bytes, which closes at the end of the pipe.
pub fn spawn_reader(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (to, bytes) = mpsc::sync_channel(16);
    thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    bytes
}

/// Returns all queued messages, one per line; `poll` is the endpoint's `poll_transmit`.
pub fn queued_lines(mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(transmit) = poll(&mut out) {
        if matches!(transmit, Transmit::Frame { .. }) {
            end_line(&mut out);
        }
    }
    out
}
