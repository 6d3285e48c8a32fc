//! Constructors of replies that several test modules use.
//!
//! The functions create replies and do not send them.

use crate::*;

/// Returns a tool result without content.
pub fn empty_content() -> Reply {
    Reply::Result(to_result(json!({ "content": [] })))
}

/// Returns a `tools/list` result with no tools.
pub fn empty_tool_list() -> Reply {
    Reply::Result(to_result(json!({ "tools": [] })))
}

/// Creates an elicitation request with an empty form.
pub fn elicitation_request() -> InputRequest {
    let schema = json!({ "type": "object", "properties": {} });
    InputRequest::new(
        "elicitation/create",
        Some(to_object(
            json!({ "message": "m", "requestedSchema": schema }),
        )),
    )
}

/// Creates a reply that requires one elicitation per name, with the request state `state` if it is given.
pub fn elicitations_by_name(names: &[&str], state: Option<&str>) -> Reply {
    let asks = names
        .iter()
        .map(|name| ((*name).to_owned(), elicitation_request()));
    Reply::InputRequired {
        requests: asks.collect(),
        state: state.map(str::to_owned),
    }
}
