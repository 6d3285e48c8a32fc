//! Requirements of `docs/requirements.toml` on the tasks of 2025-11-25 (`basic/utilities/tasks`,
//! `basic/utilities/progress`).

use mcp_exact_tests_session::*;

use super::requirements::{call_request, progress, server};

/// The only revision whose core protocol defines tasks.
const TASKS_REVISION: &str = "2025-11-25";

/// Creates a client whose server declares these task capabilities.
fn task_client(tasks: Value) -> CheckedClient {
    let capabilities = json!({ "tools": {}, "tasks": tasks });
    CheckedClient::connected(
        client_config(&[TASKS_REVISION]),
        TASKS_REVISION,
        capabilities,
    )
}

/// Returns the params of a tool call that creates a task.
fn task_call() -> Value {
    json!({ "name": "x", "task": { "ttl": 60000 } })
}

/// A call with `task` is not sent if the server has not declared tasks for tool calls.
#[test]
fn tasks_need_declared_capability() {
    for tasks in [
        json!({}),
        json!({ "list": {} }),
        json!({ "requests": { "tools": {} } }),
        json!({ "requests": { "sampling": { "createMessage": {} } } }),
    ] {
        let mut client = task_client(tasks.clone());
        let sent = client.try_request("tools/call", task_call());
        assert!(
            matches!(sent, Err(SendError::Capability { .. })),
            "{tasks}: {sent:?}"
        );
        assert!(client.take_messages().is_empty());
    }
    let mut client = task_client(json!({ "requests": { "tools": { "call": {} } } }));
    let (_, sent) = client.request("tools/call", task_call());
    assert_eq!(sent["params"]["task"]["ttl"], 60000);
    // A server asks for no task either.
    let mut server = server(TASKS_REVISION);
    let key = server
        .serve(&call_request(TASKS_REVISION, json!(1), json!("t")))
        .key;
    let params = to_object(json!({ "messages": [], "maxTokens": 1, "task": {} }));
    let asks = vec![(
        "s".to_owned(),
        InputRequest::new("sampling/createMessage", Some(params)),
    )];
    let sent = server.endpoint.reply(
        key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
        Time::ZERO,
    );
    assert!(
        matches!(sent, Err(SendError::Capability { .. })),
        "{sent:?}"
    );
}

/// A server that has not declared tasks handles a call with `task` as an ordinary call.
#[test]
fn undeclared_task_param_is_ignored() {
    let mut server = server(TASKS_REVISION);
    let key = server
        .serve(&request_of_revision(
            TASKS_REVISION,
            1,
            "tools/call",
            task_call(),
            json!({}),
        ))
        .key;
    let answer = server.reply(key, empty_content()).remove(0);
    assert_eq!(answer["result"], json!({ "content": [] }));
    let mut client = connected_client(TASKS_REVISION);
    let schema = json!({ "type": "object", "properties": {} });
    for (method, params) in [
        (
            "sampling/createMessage",
            json!({ "messages": [], "maxTokens": 1, "task": {} }),
        ),
        (
            "elicitation/create",
            json!({ "message": "m", "requestedSchema": schema, "task": {} }),
        ),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        assert!(client.send(&message).is_empty(), "{method}");
        let ask = client.server_requests().remove(0).0;
        let answer = json!({ "action": "decline", "role": "assistant", "model": "m", "content": { "type": "text", "text": "t" } });
        assert!(client.answer_server_request(ask, answer)[0]["result"].is_object());
    }
}

/// An endpoint whose configuration has no tasks declares no tasks and refuses task requests.
#[test]
fn task_capability_comes_from_configuration() {
    // Neither side says that it has tasks, and neither has: requests for them are not there.
    let mut server = CheckedServer::new(server_config(&[TASKS_REVISION]), TASKS_REVISION);
    let answer = server
        .send(&initialize(TASKS_REVISION, json!({})))
        .remove(0);
    assert!(answer["result"]["capabilities"].get("tasks").is_none());
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let mut client = CheckedClient::new(client_config(&[TASKS_REVISION]), TASKS_REVISION);
    assert!(
        client.take_messages()[0]["params"]["capabilities"]
            .get("tasks")
            .is_none()
    );
    let mut client = connected_client(TASKS_REVISION);
    for method in ["tasks/list", "tasks/get", "tasks/result", "tasks/cancel"] {
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "taskId": "t" } });
        assert_eq!(
            server.send(&message)[0]["error"]["code"],
            -32601,
            "{method}"
        );
        assert_eq!(
            client.send(&message)[0]["error"]["code"],
            -32601,
            "{method}"
        );
    }
}

/// A client that cancels a call that creates a task sends no `notifications/cancelled`.
#[test]
fn task_is_not_cancelled_by_notification() {
    let requests = json!({ "requests": { "tools": { "call": {} } }, "cancel": {} });
    // Before there is a task to name, and after that.
    for created in [false, true] {
        let mut client = task_client(requests.clone());
        let (key, sent) = client.request("tools/call", task_call());
        if created {
            let task = json!({ "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000 });
            client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "task": task } }));
            assert!(matches!(&client.outcomes()[..], [(done, Outcome::Result(_))] if *done == key));
        }
        let now = client.now;
        client.endpoint.cancel(key, "enough", now);
        assert!(client.take_messages().is_empty(), "no `cancelled`");
        // The way to do it.
        let (_, cancel) = client.request("tasks/cancel", json!({ "taskId": "t" }));
        assert_eq!(cancel["method"], "tasks/cancel");
        let (_, _) = client.request("tools/call", task_call());
        let deadline = client.endpoint.poll_timeout().expect("a deadline");
        client.endpoint.handle_timeout(deadline);
        let sent = client.take_messages();
        let cancelled: Vec<&Value> = sent
            .iter()
            .filter(|m| m["method"] == "notifications/cancelled")
            .collect();
        assert_eq!(cancelled.len(), 1, "the ordinary request: {sent:?}");
        assert_eq!(cancelled[0]["params"]["requestId"], cancel["id"]);
    }
}

/// Returns the JSON of a task with this status.
fn task_params(status: &str) -> Value {
    json!({ "taskId": "t", "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000 })
}

/// Progress of a call that has created a task is delivered until the task is completed.
#[test]
fn task_keeps_progress_token_until_completion() {
    let requests = json!({ "requests": { "tools": { "call": {} } }, "cancel": {}, "list": {} });
    for end in [
        "tasks/get",
        "tasks/cancel",
        "tasks/result",
        "notifications/tasks/status",
    ] {
        let mut client = task_client(requests.clone());
        let (key, sent) = client.request("tools/call", task_call());
        let token = sent["params"]["_meta"]["progressToken"].clone();
        client.send(&progress(&token, json!(1)));
        let created = json!({ "task": task_params("working") });
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": created }));
        client.events();
        for (done, raised) in [
            (json!(1), false),
            (json!(2), true),
            (json!(2), false),
            (json!(3), true),
        ] {
            client.send(&progress(&token, done));
            let events = client.events();
            let told = matches!(&events[..], [ClientEvent::Progress { key: of, progress: _, .. }] if *of == key);
            assert_eq!(told, raised, "{end}: {events:?}");
        }
        match end {
            "notifications/tasks/status" => {
                client.send(
                    &json!({ "jsonrpc": "2.0", "method": end, "params": task_params("working") }),
                );
                client.send(&progress(&token, json!(4)));
                assert!(
                    matches!(client.events().last(), Some(ClientEvent::Progress { .. })),
                    "still working"
                );
                client.send(
                    &json!({ "jsonrpc": "2.0", "method": end, "params": task_params("failed") }),
                );
            }
            _ => {
                let (_, asked) = client.request(end, json!({ "taskId": "t" }));
                let body = if end == "tasks/result" {
                    json!({ "content": [] })
                } else {
                    task_params("completed")
                };
                client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": body }));
            }
        }
        client.events();
        client.send(&progress(&token, json!(9)));
        assert!(client.events().is_empty(), "{end}: it is over");
    }
    // A request that did not become a task ends with its result.
    let mut client = task_client(requests);
    let (_, sent) = client.request("tools/call", task_call());
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "content": [] } }));
    client.events();
    client.send(&progress(
        &sent["params"]["_meta"]["progressToken"],
        json!(1),
    ));
    assert!(client.events().is_empty());
}
