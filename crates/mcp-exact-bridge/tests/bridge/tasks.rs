//! Tasks: calls that a server answers with a handle, which belongs to one client (2025-11-25, `basic/utilities/tasks`, and the
//! extension `io.modelcontextprotocol/tasks` of 2026-07-28).
//!
//! The server of 2025-11-25 shows its tasks to every connection and notifies every connection of their status, so only
//! the bridge restricts clients to their own tasks.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{Client, Connect, Cx, Error, Form, JsonObject, Revision, Server, Tasks, Tool};
use mcp_exact_bridge::{AccessRule, Bridge, Options, SharedUpstream, Upstream};
use mcp_exact_session::{CallOptions, ClientConfig, ClientEvent, Extension, Identity, Json};
use tokio::sync::Notify;

use crate::common::{Confirm, InMemory, client_of, handle_with, listen, object, patient};
use crate::isolation::{connect_as, listen_by_header};
use crate::matrix::wait_until;
use crate::task_server::{
    REVISION, TaskServer, TaskStatuses, about, begin, bridge_to, listed, noting, request,
    session_of, text,
};

/// Returns the revision with a name.
fn revision(name: &str) -> Revision {
    let mut all = mcp_exact::revisions();
    all.find(|revision| revision.as_str() == name).expect(name)
}

/// Between equal revisions tasks are relayed unchanged: their results, their ids, and their status.
#[tokio::test]
async fn tasks_of_sessions_are_relayed() {
    let server = TaskServer::new("");
    let bridge = bridge_to(server.clone(), Options::default()).await;
    let statuses = TaskStatuses::default();
    let client = handle_with(&bridge, revision(REVISION), noting(&statuses)).await;
    let (created, id) = begin(&client, "slow").await;
    let expected = format!(
        r#"{{"task":{},"more":[1.0]}}"#,
        TaskServer::task("1", "working")
    );
    assert_eq!(created.text(), expected);
    assert_eq!(listed(&client).await, [&*id]);
    let got = about(&client, "tasks/get", &id).await.expect("a task");
    assert_eq!(got.text(), TaskServer::task("1", "working"));
    let cancelled = about(&client, "tasks/cancel", &id).await.expect("a task");
    assert_eq!(text(&cancelled, "status").as_deref(), Some("cancelled"));
    server.tell_status(&id);
    let is_told = || statuses.lock().expect("a lock").len() == 1;
    wait_until(is_told, "the status of the task").await;
    assert_eq!(
        statuses.lock().expect("a lock")[0],
        (id.clone(), "cancelled".to_owned())
    );
    let result = about(&client, "tasks/result", &id).await.expect("a result");
    assert!(result.text().contains(r#""taskId":"1""#), "{result}");
    assert!(
        bridge
            .metrics()
            .losses
            .keys()
            .all(|id| !id.starts_with("tools/call"))
    );
    client.close();
}

/// "receivers MUST reject `tasks/get`, `tasks/result`, and `tasks/cancel` requests for tasks that do not belong to the same
/// authorization context" (2025-11-25, `basic/utilities/tasks`, "Task Isolation and Access Control").
#[tokio::test]
async fn tasks_of_other_sessions_do_not_exist() {
    let server = TaskServer::new("");
    let bridge = bridge_to(server.clone(), Options::default()).await;
    let (statuses, other_statuses) = (TaskStatuses::default(), TaskStatuses::default());
    let own = handle_with(&bridge, revision(REVISION), noting(&statuses)).await;
    let other = handle_with(&bridge, revision(REVISION), noting(&other_statuses)).await;
    let (_, id) = begin(&own, "slow").await;
    let (_, id_of_other) = begin(&other, "slow").await;
    server.take_methods();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = about(&other, method, &id)
            .await
            .expect_err("another session");
        let missing = about(&other, method, "99").await.expect_err("no task");
        assert_eq!(refused, missing, "{method}");
        assert_eq!(refused.code(), Some(-32602), "{method}");
    }
    assert!(server.take_methods().is_empty(), "the server is not asked");
    assert_eq!(listed(&other).await, [&*id_of_other]);
    assert_eq!(listed(&own).await, [&*id]);
    server.tell_status(&id);
    server.tell_status(&id_of_other);
    let are_told = || {
        let statuses =
            [&statuses, &other_statuses].map(|statuses| statuses.lock().expect("a lock").len());
        statuses == [1, 1]
    };
    wait_until(are_told, "each client is told of its own task").await;
    assert_eq!(statuses.lock().expect("a lock")[0].0, id);
    assert_eq!(other_statuses.lock().expect("a lock")[0].0, id_of_other);
    own.close();
    other.close();
}

/// A task belongs to the principal of its call: the principal can use the task from another session, and no other
/// principal can use it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_belong_to_one_principal() {
    let server = TaskServer::new("");
    let bridge = bridge_to(server.clone(), Options::default()).await;
    let listening = listen_by_header(&bridge).await;
    let own = session_of(&listening.url, "own").await;
    let (_, id) = begin(&own, "slow").await;
    let later = session_of(&listening.url, "own").await;
    let other = session_of(&listening.url, "other").await;
    assert!(about(&later, "tasks/get", &id).await.is_ok());
    assert_eq!(listed(&later).await, [&*id]);
    let refused = about(&other, "tasks/get", &id).await;
    assert_eq!(refused.expect_err("another principal").code(), Some(-32602));
    assert!(listed(&other).await.is_empty());
    for client in [own, later, other] {
        client.close();
    }
}

/// A task of a tool that a rule hides is hidden, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hide_tasks_of_tools() {
    let server = TaskServer::new("");
    let bridge = bridge_to(server.clone(), Options::default()).await;
    let listening = listen_by_header(&bridge).await;
    let own = session_of(&listening.url, "own").await;
    let (_, id) = begin(&own, "slow").await;
    let mut update = mcp_exact_bridge::Update::default();
    let mut rules = mcp_exact_bridge::Rules::default();
    let mut rule = AccessRule::default();
    rule.deny = vec!["slow".to_owned()];
    rules.access = vec![rule];
    update.rules = Some(rules);
    bridge.update(update).await.expect("an update");
    let hidden = about(&own, "tasks/get", &id).await;
    assert_eq!(hidden.expect_err("a hidden tool").code(), Some(-32602));
    assert!(listed(&own).await.is_empty());
    own.close();
}

/// In front of many servers the ids of tasks start with the name of their server.
#[tokio::test]
async fn tasks_of_many_servers_are_joined() {
    let servers = [
        ("left", TaskServer::new("")),
        ("right", TaskServer::new("")),
    ];
    let upstreams = servers.clone().map(|(name, server)| {
        let upstream: Arc<dyn Upstream> = Arc::new(server);
        (name.to_owned(), upstream)
    });
    let bridge = Bridge::many(upstreams, patient(Options::default()))
        .await
        .expect("a bridge");
    let statuses = TaskStatuses::default();
    let client = handle_with(&bridge, revision(REVISION), noting(&statuses)).await;
    let (_, right) = begin(&client, "right__slow").await;
    let (_, left) = begin(&client, "left__slow").await;
    assert_eq!([&*left, &*right], ["left__1", "right__1"]);
    assert_eq!(listed(&client).await, ["left__1", "right__1"]);
    servers
        .iter()
        .for_each(|(_, server)| drop(server.take_methods()));
    let cancelled = about(&client, "tasks/cancel", &right)
        .await
        .expect("a task");
    assert_eq!(text(&cancelled, "taskId").as_deref(), Some("right__1"));
    assert!(
        servers[0].1.take_methods().is_empty(),
        "the other server is not asked"
    );
    let result = about(&client, "tasks/result", &left)
        .await
        .expect("a result");
    assert!(result.text().contains(r#""taskId":"left__1""#), "{result}");
    servers[1].1.tell_status("1");
    let is_told = || statuses.lock().expect("a lock").len() == 1;
    wait_until(is_told, "the status of the task").await;
    let expected = ("right__1".to_owned(), "cancelled".to_owned());
    assert_eq!(statuses.lock().expect("a lock")[0], expected);
    assert!(about(&client, "tasks/get", "1").await.is_err());
    client.close();
}

/// In revisions without tasks `task` is an unknown member of a call and has no meaning: the server receives the call
/// without the member.
#[tokio::test]
async fn calls_of_other_revisions_become_no_tasks() {
    for of_client in ["2025-06-18", "2026-07-28"] {
        let bridge = bridge_to(TaskServer::new(""), Options::default()).await;
        let client = handle_with(&bridge, revision(of_client), |_| {}).await;
        let params = r#"{"name":"slow","arguments":{},"task":{"ttl":60000}}"#;
        let done = request(&client, "tools/call", params).await;
        let done = done.unwrap_or_else(|error| panic!("{of_client}: {error:?}"));
        assert!(done.get("content").is_some(), "{of_client}: {done}");
        client.close();
    }
}

/// Sessions of a shared server have no tasks, because their calls use different connections.
#[tokio::test]
async fn shared_servers_have_no_tasks() {
    let server = TaskServer::new("");
    let bridge = bridge_to(SharedUpstream(server.clone()), Options::default()).await;
    let client = handle_with(&bridge, revision(REVISION), |_| {}).await;
    let info = client.session_info().expect("a session");
    assert_eq!(info.capabilities.get("tasks"), None);
    let list = client.request("tasks/list", None, CallOptions::default(), None);
    assert!(
        list.is_err(),
        "the client knows that the server has no tasks"
    );
    client.close();
}

/// Creates a server of 2026-07-28 with a tool whose calls become tasks; a task sends an input request, and then waits
/// until it is released.
fn extension_server(released: &Arc<Notify>) -> Server {
    let released = Arc::clone(released);
    Server::builder("tasks", "1.0.0")
        .revisions([revision("2026-07-28")])
        .tasks(Tasks::new().poll_interval(Duration::from_millis(5)))
        .tool(Tool::new("slow").task(), move |cx: Cx| {
            let released = Arc::clone(&released);
            async move {
                let form = cx.elicit::<Confirm>("Go on?").await?;
                released.notified().await;
                Ok::<_, Error>(form.accepted_with(|form| form.yes).to_string())
            }
        })
        .build()
        .expect("a server")
}

/// Connects a client of 2026-07-28 that supports the tasks extension and elicitation.
async fn extension_client(
    url: &str,
    principal: &'static str,
    on_event: impl Fn(ClientEvent) + Send + Sync + 'static,
) -> ClientHandle {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let mut extension = Extension::new("io.modelcontextprotocol/tasks");
    extension.requests = names(&["tasks/get", "tasks/update", "tasks/cancel"]);
    extension.name_param = Some("taskId".to_owned());
    extension.notifications = names(&["notifications/tasks"]);
    extension.result_types = names(&["task"]);
    extension.filter_members = names(&["taskIds"]);
    let mut config = ClientConfig::new(Identity::new("alike", "1.0.0"));
    config.capabilities = object(r#"{"elicitation":{}}"#);
    config.extensions.negotiated = vec![extension];
    config.pass_input_required = true;
    connect_as(url, principal, "2026-07-28", config, on_event).await
}

/// Polls a task until it has a status; returns the task.
async fn poll_until(client: &ClientHandle, id: &str, status: &str) -> JsonObject {
    loop {
        let task = about(client, "tasks/get", id).await.expect("a task");
        assert_eq!(text(&task, "taskId").as_deref(), Some(id));
        if text(&task, "status").as_deref() == Some(status) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// "Servers MUST perform authentication and authorization checks on each task-related request" (extension
/// `io.modelcontextprotocol/tasks`, "Security Considerations"): the server sees one client, the bridge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_tasks_belong_to_one_principal() {
    let released = Arc::new(Notify::new());
    let upstream = InMemory::new(&extension_server(&released));
    let bridge = bridge_to(upstream, Options::default()).await;
    let listening = listen_by_header(&bridge).await;
    let statuses = TaskStatuses::default();
    let own = extension_client(&listening.url, "own", noting(&statuses)).await;
    let other_statuses = TaskStatuses::default();
    let other = extension_client(&listening.url, "other", noting(&other_statuses)).await;
    let created = request(&own, "tools/call", r#"{"name":"slow","arguments":{}}"#).await;
    let id = text(&created.expect("a task"), "taskId").expect("an id");
    for method in ["tasks/get", "tasks/cancel"] {
        let refused = about(&other, method, &id)
            .await
            .expect_err("another principal");
        let missing = about(&other, method, "missing").await.expect_err("no task");
        assert_eq!(refused, missing, "{method}");
        assert_eq!(refused.code(), Some(-32602), "{method}");
    }
    let listening_params = format!(r#"{{"notifications":{{"taskIds":["{id}"]}}}}"#);
    let listens = |client: &ClientHandle| {
        let params = Some(object(&listening_params));
        let listen = "subscriptions/listen";
        let sent = client.request(listen, params, CallOptions::default(), None);
        sent.expect("a subscription")
    };
    let _subscriptions = [listens(&own), listens(&other)];
    let is_told = || !statuses.lock().expect("a lock").is_empty();
    wait_until(is_told, "the status of the task").await;

    let asking = poll_until(&own, &id, "input_required").await;
    let asks: JsonObject = asking
        .get("inputRequests")
        .expect("questions")
        .try_into()
        .expect("an object");
    let (name, _) = asks.iter().next().expect("a question");
    let accept = Json::from(object(crate::isolation::ACCEPT_RESPONSE));
    let mut update = JsonObject::from_iter([("taskId", Json::string(&id))]);
    update.insert("inputResponses", JsonObject::from_iter([(name, accept)]));
    let stolen = request(&other, "tasks/update", update.text()).await;
    assert_eq!(stolen.expect_err("another principal").code(), Some(-32602));
    request(&own, "tasks/update", update.text())
        .await
        .expect("an update");
    released.notify_one();
    let done = poll_until(&own, &id, "completed").await;
    assert!(done.text().contains("true"), "{done}");
    let is_over = || {
        let statuses = statuses.lock().expect("a lock");
        statuses
            .last()
            .is_some_and(|(_, status)| status == "completed")
    };
    wait_until(is_over, "the end of the task").await;
    assert!(
        statuses
            .lock()
            .expect("a lock")
            .iter()
            .all(|(task, _)| *task == id)
    );
    assert!(other_statuses.lock().expect("a lock").is_empty());
    own.close();
    other.close();
}

/// Adds a handler that accepts every elicitation request.
fn accepting(connect: Connect) -> Connect {
    let connect = connect.tasks();
    connect.on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
}

/// Clients wait for tasks through the bridge, in front of one server and of many, and without a principal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_wait_for_extension_tasks() {
    let released = Arc::new(Notify::new());
    let server = InMemory::new(&extension_server(&released));
    let many = [("one", server.clone()), ("two", server.clone())].map(|(name, server)| {
        let upstream: Arc<dyn Upstream> = Arc::new(server);
        (name.to_owned(), upstream)
    });
    let many = Bridge::many(many, patient(Options::default()))
        .await
        .expect("a bridge");
    for (bridge, tool) in [
        (bridge_to(server, Options::default()).await, "slow"),
        (many, "two__slow"),
    ] {
        let newest = revision("2026-07-28");
        let listening = listen(&bridge).await;
        let endpoint = HttpEndpoint::new(&listening.url).expect("a URL");
        let over_http = Client::http(endpoint).revision(newest);
        for connect in [client_of(&bridge, newest), over_http] {
            released.notify_one();
            let client = accepting(connect).await.expect("a client");
            let done: String = client.call(tool, &()).await.expect("a result");
            assert_eq!(done, "true", "{tool}");
        }
    }
}
