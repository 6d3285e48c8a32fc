//! Clients that use as little CPU time as possible, so that the measurements depend on the server.

pub mod http;
pub mod stdio;

use anyhow::ensure;
use serde_json::Value;

/// Argument of the tool `echo` in every call.
pub const TEXT: &str = "hello, server: say this again";

/// Returns an error unless a message is the response to the call with this id.
pub fn check_answer(message: &[u8], id: u64) -> anyhow::Result<()> {
    let answer: Value = serde_json::from_slice(message)?;
    let text = &answer["result"]["content"][0]["text"];
    ensure!(text == TEXT && answer["id"] == id, "wrong answer: {answer}");
    Ok(())
}
