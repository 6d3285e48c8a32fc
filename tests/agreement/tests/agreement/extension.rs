//! Types of the extensions: a definition that is equal in the extension and in its revision has one type, a task is
//! distinguished from the result that it replaces, and messages between pages and hosts have what their specification shows.
//! Other modules check that the types agree with the schemas of the extensions.

use mcp_exact_tests_types::mcp_2026_07_28 as core;
use mcp_exact_tests_types::mcp_ext_apps as apps;
use mcp_exact_tests_types::mcp_ext_tasks as tasks;
use mcp_exact_wire::{Json, Notification, Nullable, Request, Validate, from_str, to_string};

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

/// Params of a message between page and host, as `M` defines them, keep everything.
fn keeps<T: mcp_exact_wire::Decode + mcp_exact_wire::Encode + Validate>(text: &str) -> T {
    let value: T = from_str(text).expect(text);
    assert!(value.validate().is_empty(), "{text}");
    // The order of members is that of the schema.
    let sorted = |text: &str| {
        text.parse::<Json>()
            .expect(text)
            .parse::<serde_json::Value>()
    };
    assert_eq!(
        sorted(&to_string(&value)).expect("JSON"),
        sorted(text).expect("JSON")
    );
    value
}

/// The handshake of a page with its host, as specification/2026-01-26/apps.mdx of the extension shows it ("Host Context"), with a
/// setting of a later version.
#[test]
fn pages_shake_hands_with_hosts() {
    let params: <apps::McpUiInitializeRequest as Request>::Params = keeps(
        r#"{"appCapabilities":{"availableDisplayModes":["inline"],"later":{}},"appInfo":{"name":"My UI","version":"1.0.0"},"protocolVersion":"2026-01-26"}"#,
    );
    let info: core::Implementation = params.app_info;
    assert_eq!(info.name, "My UI");
    let result: <apps::McpUiInitializeRequest as Request>::Result = keeps(
        r##"{"protocolVersion":"2026-01-26","hostCapabilities":{"serverTools":{}},"hostInfo":{"name":"host","version":"1.0.0"},
        "hostContext":{"theme":"dark","styles":{"variables":{"--color-text-primary":"#fff"}},"displayMode":"inline",
        "containerDimensions":{"width":400,"maxHeight":600},"x":1,
        "toolInfo":{"id":1,"tool":{"name":"t","inputSchema":{"type":"object"}}}}}"##,
    );
    let context = result.host_context;
    let dimensions = context.container_dimensions.expect("dimensions");
    assert!(dimensions.height.is_none() && dimensions.max_height.is_some());
    let styles = context.styles.and_then(|styles| styles.variables);
    assert_eq!(styles.expect("variables").len(), 1);
    let tool: core::Tool = context.tool_info.expect("a tool").tool;
    assert_eq!(tool.name, "t");
}

/// A host gives a page the results of tools of every revision: before 2026-07-28 without `resultType`.
#[test]
fn results_of_every_revision_reach_pages() {
    type Params = <apps::McpUiToolResultNotification as Notification>::Params;
    for kind in ["", r#","resultType":"complete""#] {
        let text = format!(
            r#"{{"content":[{{"type":"text","text":"hi"}}],"structuredContent":[1]{kind}}}"#
        );
        let params: Params = keeps(&text);
        assert!(matches!(params.content[..], [core::ContentBlock::Text(_)]));
    }
}

/// What a page may load and use, and who may call a tool; what later versions add is kept.
#[test]
fn settings_of_pages_are_open() {
    let meta: apps::McpUiResourceMeta = keeps(
        r#"{"csp":{"connectDomains":["https://a.example.com"],"x":1},"permissions":{"camera":{},"later":{}},"prefersBorder":true}"#,
    );
    assert!(meta.permissions.expect("permissions").camera.is_some());
    let text = r#"{"resourceUri":"ui://a","visibility":["app"],"csp":{}}"#;
    let meta: apps::McpUiToolMeta = keeps(text);
    let visibility = meta.visibility.expect("visibility");
    assert_eq!(visibility, [apps::McpUiToolVisibility::App]);
    let later = text.replace("\"app\"", "\"app\",\"later\"");
    let meta: apps::McpUiToolMeta = from_str(&later).expect("a later version");
    assert_eq!(to_string(&meta), later);
    assert!(!meta.validate().is_empty());
}
