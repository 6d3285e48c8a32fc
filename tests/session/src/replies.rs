//! Replies that tests of several subjects share.
//!
//! The functions create replies and do not send them.

use crate::*;

/// Returns a tool result without content.
pub fn content() -> Reply {
    Reply::Result(result(json!({ "content": [] })))
}

/// Returns an empty list of tools.
pub fn tools() -> Reply {
    Reply::Result(result(json!({ "tools": [] })))
}

/// Creates an elicitation request with an empty form.
pub fn elicit() -> InputRequest {
    let schema = json!({ "type": "object", "properties": {} });
    InputRequest::new(
        "elicitation/create",
        Some(object(json!({ "message": "m", "requestedSchema": schema }))),
    )
}

/// Creates a reply that requires input: one elicitation per name, and a request state if given.
pub fn questions(names: &[&str], state: Option<&str>) -> Reply {
    let asks = names.iter().map(|name| ((*name).to_owned(), elicit()));
    Reply::InputRequired {
        requests: asks.collect(),
        state: state.map(str::to_owned),
    }
}
