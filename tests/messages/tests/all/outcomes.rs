//! Tests of requests with several types of results: the variant of a result is selected only by the constant or the
//! required member that the specification defines.

use mcp_2025_11_25 as tasks;
use mcp_2026_07_28 as rounds;
use mcp_exact_wire::{
    Call, Direction, Message, Request, RequestId, decode_message, from_str, to_string,
};

/// Returns `tools/call` as the method of the answered request, for every id.
fn request_method(_: &RequestId) -> Option<&'static str> {
    Some("tools/call")
}

/// Decodes a result of `tools/call`; returns the JSON pointer of the error if decoding fails.
fn decode_result<D: Direction>(result: &str) -> Result<D::Result, String> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    match decode_message::<D>(text.as_bytes(), &request_method) {
        Ok(Message::Result(message)) => {
            assert_eq!(to_string(&message.result), result, "nothing is lost");
            Ok(message.result)
        }
        Ok(other) => panic!("{text} is {other:?}"),
        Err(error) => Err(error.decode_error().pointer().to_owned()),
    }
}

/// Result of `tools/call` that is a task (2025-11-25).
const TASK: &str =
    r#"{"task":{"createdAt":"a","lastUpdatedAt":"b","status":"working","taskId":"t","ttl":null}}"#;

/// In 2025-11-25 a result with the member `task` is a task, and any other result of `tools/call` is a tool result.
#[test]
fn tool_calls_may_return_tasks() {
    let of = decode_result::<tasks::FromServer>;
    assert!(matches!(of(TASK), Ok(tasks::ServerResult::CreateTask(_))));
    assert!(matches!(
        of(r#"{"content":[]}"#),
        Ok(tasks::ServerResult::CallTool(_))
    ));
    assert_eq!(of(r#"{"tools":[]}"#).expect_err("neither"), "/result");
    assert_eq!(of(r#"{"task":5}"#).expect_err("no task"), "/result/task");
    /// Type of the results of `tools/call`.
    type Outcome = <tasks::CallToolRequest as Request>::Result;
    let outcome: Outcome = from_str(TASK).expect("a task");
    assert!(matches!(outcome, tasks::CallToolOutcome::CreateTask(_)));
}

/// In 2026-07-28 a result with the type `input_required` is a request for input, and any other result of `tools/call`
/// is a tool result.
#[test]
fn tool_calls_may_require_input() {
    let of = decode_result::<rounds::FromServer>;
    let input = r#"{"resultType":"input_required","requestState":"s"}"#;
    assert!(matches!(
        of(input),
        Ok(rounds::ServerResult::InputRequired(_))
    ));
    for kind in ["complete", "vendor"] {
        let text = format!(r#"{{"content":[],"resultType":"{kind}"}}"#);
        assert!(matches!(of(&text), Ok(rounds::ServerResult::CallTool(_))));
    }
    let bad = r#"{"resultType":"input_required","content":[],"inputRequests":5}"#;
    assert_eq!(of(bad).expect_err("no map"), "/result/inputRequests");
    assert_eq!(
        of(r#"{"resultType":"complete"}"#).expect_err("no content"),
        "/result"
    );
    /// Type of the results of `tools/call`.
    type Outcome = <rounds::CallToolRequest as Request>::Result;
    let outcome: Outcome = from_str(input).expect("a request for input");
    assert!(matches!(outcome, rounds::CallToolOutcome::InputRequired(_)));
}

/// Constructors of results set `resultType` to the constant of the result type.
#[test]
fn constructors_set_result_type() {
    let result = rounds::CallToolResult::new(Vec::new());
    assert_eq!(
        to_string(&result),
        r#"{"content":[],"resultType":"complete"}"#
    );
    let input = rounds::InputRequiredResult::new();
    assert_eq!(to_string(&input), r#"{"resultType":"input_required"}"#);
}

/// In revisions whose request types include the envelope, a request of an unknown method is encoded as it was decoded,
/// and an invalid envelope is refused.
#[test]
fn unknown_methods_with_envelope_round_trip() {
    /// Checks that a request with the id 7 is encoded as it was decoded.
    fn check<D: Direction>(request: &str) {
        let message =
            decode_message::<D>(request.as_bytes(), &request_method).expect("an open union");
        assert_eq!(to_string(&message), request);
        let Message::Request(request) = message else {
            panic!("{message:?} is not a request");
        };
        assert_eq!(request.id(), Some(RequestId::from(7)));
    }
    for request in [
        r#"{"jsonrpc":"2.0","id":7,"method":"vendor/do","params":{"a":1}}"#,
        r#"{"params":{"a":1},"method":"vendor/do","id":7,"jsonrpc":"2.0"}"#,
    ] {
        check::<tasks::FromClient>(request);
        check::<tasks::FromServer>(request);
        check::<rounds::FromClient>(request);
    }
    for bad in [
        r#"{"id":7,"method":"vendor/do"}"#,
        r#"{"jsonrpc":"1.0","id":7,"method":"vendor/do"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"vendor/do"}"#,
        r#"{"jsonrpc":"2.0","id":7,"id":7,"method":"vendor/do"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"vendor/do","result":{}}"#,
    ] {
        let message = decode_message::<tasks::FromClient>(bad.as_bytes(), &request_method);
        assert!(message.is_err(), "{bad} is {message:?}");
    }
}
