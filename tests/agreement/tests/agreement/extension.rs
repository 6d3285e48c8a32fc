//! Types of the tasks extension: a definition that is equal in the extension and in its revision has one type, and a
//! task is distinguished from the result that it replaces. Other modules check that the types agree with the schema of
//! the extension.

use mcp_exact_tests_types::mcp_2026_07_28 as core;
use mcp_exact_tests_types::mcp_ext_tasks as tasks;
use mcp_exact_wire::{Nullable, Request, from_str, to_string};

/// A definition that is equal in the extension and in its revision is the same Rust type.
#[test]
fn equal_definitions_share_a_type() {
    // Types, not values: each line compiles only when both names mean one type.
    let roots = core::InputRequest::ListRoots(core::ListRootsRequest::new());
    let mut requests = tasks::InputRequests::new();
    requests.insert("roots", roots);
    let task = tasks::InputRequiredTask::new("1", "then", "now", requests, Nullable::Null);
    assert_eq!(
        to_string(&task),
        r#"{"status":"input_required","createdAt":"then","inputRequests":{"roots":{"method":"roots/list"}},"lastUpdatedAt":"now","taskId":"1","ttlMs":null}"#
    );
    let error: core::Error = tasks::Error::new(-32603, "it broke");
    let task = tasks::FailedTask::new("1", "then", "now", error, Nullable::Null);
    assert!(to_string(&task).contains(r#""error":{"code":-32603,"message":"it broke"}"#));
}

/// The result that creates a task has the `resultType` `task`, and any other `resultType` is refused.
#[test]
fn created_tasks_have_a_result_type() {
    let status = tasks::TaskStatus::Working;
    let task = tasks::CreateTaskResult::new("1", status, "then", "now", Nullable::Null);
    let text = to_string(&task);
    assert!(text.starts_with(r#"{"resultType":"task","#), "{text}");
    let other = text.replace("\"task\"", "\"complete\"");
    let error = from_str::<tasks::CreateTaskResult>(&other).expect_err("no task");
    assert_eq!(error.pointer(), "/resultType");
}

/// The status of a task selects the variant of the result; a task with an unknown status is preserved.
#[test]
fn task_status_selects_the_variant() {
    assert_eq!(tasks::GetTaskRequest::METHOD, "tasks/get");
    let text = r#"{"resultType":"complete","createdAt":"a","lastUpdatedAt":"b","result":{"n":1.0},"status":"completed","taskId":"1","ttlMs":60000,"x":[]}"#;
    let result: <tasks::GetTaskRequest as Request>::Result = from_str(text).expect("a result");
    let tasks::GetTaskResult::Completed(done) = &result else {
        panic!("{result:?}");
    };
    assert_eq!(done.result.text(), r#"{"n":1.0}"#);
    let later = text.replace("completed", "paused");
    let result: tasks::GetTaskResult = from_str(&later).expect("a later version's status");
    let tasks::GetTaskResult::Unrecognized(unknown) = &result else {
        panic!("{result:?}");
    };
    assert_eq!(unknown.tag(), "paused");
    assert_eq!(to_string(&result), later);
}
