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

/// A question to the user, with an empty form.
pub fn elicit() -> InputRequest {
    let schema = json!({ "type": "object", "properties": {} });
    InputRequest::new(
        "elicitation/create",
        Some(object(json!({ "message": "m", "requestedSchema": schema }))),
    )
}

/// The reply that asks the user once for each of these names, with a state where there is one.
pub fn questions(names: &[&str], state: Option<&str>) -> Reply {
    let asks = names.iter().map(|name| ((*name).to_owned(), elicit()));
    Reply::InputRequired {
        requests: asks.collect(),
        state: state.map(str::to_owned),
    }
}
