//! Extensions that both peers have declared (2026-07-28: `basic/versioning`, "Extension Negotiation"), with the tasks
//! extension and its generated types as the example.

use mcp_exact_tests_session::*;
use mcp_ext_tasks::{
    CreateTaskResult, GetTaskRequest, GetTaskResult, TaskRequestParams, TaskStatus,
    TaskStatusNotificationParams, UpdateTaskRequest, UpdateTaskRequestParams, UpdateTaskResult,
};

/// Identifier of the tasks extension.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Returns the declaration of the tasks extension.
fn tasks_extension() -> Extensions {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut tasks = Extension::new(TASKS_EXTENSION);
    tasks.requests = words(&["tasks/get", "tasks/update", "tasks/cancel"]);
    tasks.name_param = Some("taskId".to_owned());
    tasks.notifications = words(&["notifications/tasks"]);
    tasks.result_types = words(&["task"]);
    tasks.filter_members = words(&["taskIds"]);
    Extensions {
        negotiated: vec![tasks],
        ..Extensions::default()
    }
}

/// Creates a client and a server of 2026-07-28, each with or without the tasks extension.
fn connect_pair(client_has: bool, server_has: bool) -> (RawClient, RawServer) {
    let mut client = client_config(&["2026-07-28"]);
    let mut server = server_config(&["2026-07-28"]);
    if client_has {
        client.extensions = tasks_extension();
    }
    if server_has {
        server.extensions = tasks_extension();
    }
    let mut server = RawServer::new(server);
    let mut client = RawClient::new(client);
    let probe = client.take_messages().remove(0);
    let answer = server.send(&probe).remove(0);
    check_message("2026-07-28", false, Some("server/discover"), &answer);
    client.send(&answer);
    let agreed = client.events();
    let [ClientEvent::Negotiated(agreed, _)] = &agreed[..] else {
        panic!("{agreed:?}");
    };
    let declared = to_value(&agreed.capabilities)["extensions"][TASKS_EXTENSION].is_object();
    assert_eq!(declared, server_has);
    (client, server)
}

/// Sends a request of the generated method type `Q`; returns the sent message.
fn call_as<Q: mcp_ext_tasks::RequestMethod>(client: &mut RawClient, params: &Q::Params) -> Value
where
    Q::Params: mcp_ext_tasks::Encode,
{
    client
        .endpoint
        .request_typed::<Q>(params, CallOptions::default(), client.now)
        .expect("negotiated");
    client.take_messages().remove(0)
}

/// Delivers the server's response to the client; returns the result that the client's application receives.
fn answer_call(client: &mut RawClient, answer: &[Value]) -> RawResult {
    assert_eq!(answer.len(), 1, "{answer:?}");
    client.send(&answer[0]);
    match client.outcomes().pop() {
        Some((_, Outcome::Result(result))) => result,
        other => panic!("{other:?}"),
    }
}

/// Returns a result of `tools/call` that creates a task.
fn created_task() -> CreateTaskResult {
    let at = "2026-07-28T00:00:00Z";
    let ttl = mcp_ext_tasks::Nullable::Null;
    CreateTaskResult::new("t-1", TaskStatus::Working, at, at, ttl)
}

/// The messages of the tasks extension can be sent and received as generated types by both peers.
#[test]
fn task_messages_have_generated_types() {
    let (mut client, mut server) = connect_pair(true, true);
    let (_, call) = client.request("tools/call", json!({ "name": "slow" }));
    server.send(&call);
    let request = server.take_request();
    let reply = Reply::result(&created_task()).expect("an object");
    server
        .endpoint
        .reply(request.key, reply, server.now)
        .expect("negotiated");
    let answer = server.take_messages();
    let result = answer_call(&mut client, &answer);
    let task: CreateTaskResult = mcp_ext_tasks::from_str(result.object().text()).expect("a task");
    assert_eq!(
        (&*task.task_id, &task.status),
        ("t-1", &TaskStatus::Working)
    );

    let get = call_as::<GetTaskRequest>(&mut client, &TaskRequestParams::new(task.task_id));
    server.send(&get);
    let request = server.take_request();
    let params: TaskRequestParams =
        mcp_ext_tasks::from_str(request.params().expect("some").text()).expect("typed");
    assert_eq!(params.task_id, "t-1");
    let working = json!({ "taskId": "t-1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null });
    server
        .endpoint
        .reply(request.key, result_of(working), server.now)
        .expect("it waits");
    let answer = server.take_messages();
    let got = answer_call(&mut client, &answer)
        .decode_as::<GetTaskRequest>()
        .expect("typed");
    assert!(matches!(got, GetTaskResult::Working(_)), "{got:?}");

    let answers = UpdateTaskRequestParams::new("t-1", mcp_ext_tasks::Map::default());
    let update = call_as::<UpdateTaskRequest>(&mut client, &answers);
    server.send(&update);
    let key = server.take_request().key;
    let reply = Reply::result(&UpdateTaskResult::new()).expect("an object");
    server
        .endpoint
        .reply(key, reply, server.now)
        .expect("it waits");
    let answer = server.take_messages();
    answer_call(&mut client, &answer)
        .decode_as::<UpdateTaskRequest>()
        .expect("typed");
}

/// Creates a reply with the result `value`.
fn result_of(value: Value) -> Reply {
    Reply::Result(to_result(value))
}

/// A task notification of the tasks extension is delivered to a client that has subscribed to the task.
#[test]
fn task_notifications_reach_subscribers() {
    let (mut client, mut server) = connect_pair(true, true);
    let filter = json!({ "notifications": { "taskIds": ["t-1"], "unknown": 1 } });
    let (key, listen) = client.request("subscriptions/listen", filter);
    let acknowledged = server.send(&listen);
    assert_eq!(
        acknowledged[0]["params"]["notifications"],
        json!({ "taskIds": ["t-1"] })
    );
    client.send(&acknowledged[0]);
    let events = server.events();
    let [
        ServerEvent::Subscribed {
            key: listener,
            filter,
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        to_value(&filter.extension_members),
        json!({ "taskIds": ["t-1"] })
    );
    let status = json!({ "taskId": "t-1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": null });
    let sent = server.endpoint.notify(
        Scope::During(*listener),
        "notifications/tasks",
        Some(to_object(status)),
    );
    assert_eq!(sent, Ok(SendOutcome::Queued));
    let told = server.take_messages();
    client.send(&told[0]);
    let events = client.events();
    let [
        ClientEvent::Subscribed(one, _),
        ClientEvent::Notification(heard),
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(*one, key);
    let params = heard.params().expect("some").text();
    let status: TaskStatusNotificationParams = mcp_ext_tasks::from_str(params).expect("typed");
    assert!(
        matches!(status, TaskStatusNotificationParams::Working(_)),
        "{status:?}"
    );
}

/// Messages of an extension that only one peer has declared are neither sent nor accepted.
#[test]
fn extension_needs_both_peers() {
    // The client has not declared it.
    let (mut client, mut server) = connect_pair(false, true);
    let get = |client: &mut RawClient| {
        let params = Some(to_object(json!({ "taskId": "t" })));
        client
            .endpoint
            .request("tasks/get", params, CallOptions::default(), client.now)
    };
    assert!(matches!(get(&mut client), Err(SendError::Method { .. })));
    let (_, call) = client.request("tools/call", json!({ "name": "slow" }));
    server.send(&call);
    let key = server.take_request().key;
    let task = Reply::result(&created_task()).expect("an object");
    let refused = server.endpoint.reply(key, task, server.now);
    let capability = format!("extensions.{TASKS_EXTENSION}");
    assert_eq!(
        refused,
        Err(SendError::Capability {
            method: "tools/call".into(),
            capability: capability.clone()
        })
    );
    let mut raw = call.clone();
    raw["id"] = json!(77);
    raw["method"] = json!("tasks/get");
    raw["params"]["taskId"] = json!("t");
    let refused = server.send(&raw);
    assert_eq!(refused[0]["error"]["code"], code::MISSING_CLIENT_CAPABILITY);
    assert_eq!(
        refused[0]["error"]["data"],
        json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } })
    );
    raw["id"] = json!(78);
    raw["method"] = json!("subscriptions/listen");
    raw["params"]["notifications"] = json!({ "taskIds": ["t"] });
    assert_eq!(
        server.send(&raw)[0]["error"]["code"],
        code::MISSING_CLIENT_CAPABILITY
    );
    // A client that knows nothing of it takes no such result.
    let task = json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "resultType": "task", "taskId": "t" } });
    client.send(&task);
    let outcomes = client.outcomes();
    assert!(
        matches!(&outcomes[..], [(_, Outcome::Error(error))] if error.is_local()),
        "{outcomes:?}"
    );

    // The server has not declared it.
    let (mut client, mut server) = connect_pair(true, false);
    let expected = SendError::Capability {
        method: "tasks/get".into(),
        capability,
    };
    assert_eq!(get(&mut client), Err(expected));
    raw["method"] = json!("tasks/get");
    assert_eq!(
        server.send(&raw)[0]["error"]["code"],
        code::METHOD_NOT_FOUND
    );
}

/// Tasks are declared as a capability in the revision that defines them, and as an extension in later revisions.
#[test]
fn tasks_are_declared_by_revision() {
    let mut config = server_config(&["2025-11-25"]);
    config
        .capabilities
        .insert("tasks", to_object(json!({ "list": {} })));
    let mut server = RawServer::new(config);
    let begun = server.send(&initialize("2025-11-25", json!({ "tasks": {} })));
    assert_eq!(
        begun[0]["result"]["capabilities"]["tasks"],
        json!({ "list": {} })
    );
    let mut config = client_config(&["2025-11-25"]);
    config
        .capabilities
        .insert("tasks", to_object(json!({ "list": {} })));
    let mut client = RawClient::new(config);
    let initialize = client.take_messages().remove(0);
    assert_eq!(
        initialize["params"]["capabilities"]["tasks"],
        json!({ "list": {} })
    );
    client.send(
        &json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": {
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {},
            "tasks": { "list": {}, "requests": { "tools": { "call": {} } } } },
        "serverInfo": { "name": "s", "version": "1" } } }),
    );
    client.take_messages();
    client.events();
    // What another server offers can be used.
    let (_, call) = client.request("tools/call", json!({ "name": "x", "task": { "ttl": 1 } }));
    check_message("2025-11-25", true, None, &call);
    assert_eq!(call["params"]["task"], json!({ "ttl": 1 }));
    let (_, get) = client.request("tasks/get", json!({ "taskId": "t" }));
    check_message("2025-11-25", true, None, &get);
}
