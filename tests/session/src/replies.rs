//! Replies that tests of several subjects give.
//!
//! Takes what differs, gives replies; sends nothing.

use crate::*;

/// The reply to a call of a tool, without content.
pub fn content() -> Reply {
    Reply::Result(result(json!({ "content": [] })))
}

/// The reply to a request for tools, without any.
pub fn tools() -> Reply {
    Reply::Result(result(json!({ "tools": [] })))
}
