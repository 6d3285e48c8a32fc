//! Tasks that a client creates for requests of the server (2025-11-25, `basic/utilities/tasks`): the bridge relays the
//! server's requests about its own tasks, and hides the tasks that the client has created for other servers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mcp_exact::JsonObject;
use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::{ConnectionOptions, connect, memory_pair, serve};
use mcp_exact_bridge::{Bridge, LossHook, Options, Upstream};
use mcp_exact_session::{ClientConfig, ClientEvent, Identity, Offer, PeerError, RawResult};

use crate::common::{object, patient};
use crate::matrix::wait_until;
use crate::task_server::{REVISION, TaskServer, bridge_to, request, text};

/// Capabilities of a client that can answer sampling requests with tasks.
const CAPABILITIES: &str = r#"{"sampling":{},"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}}}}}"#;

/// Params of a sampling request that the client is to answer with a task.
const SAMPLE: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":10,"task":{"ttl":6e4}}"#;

/// Client that answers each sampling request with a task.
#[derive(Clone, Default)]
struct TaskClient {
    /// Status of each task.
    tasks: Arc<Mutex<BTreeMap<String, &'static str>>>,
    /// Methods of the requests that the client has received.
    received_methods: Arc<Mutex<Vec<String>>>,
}

impl TaskClient {
    /// Connects the client to a bridge in memory, and the bridge to its servers.
    async fn connect(&self, bridge: &Bridge, servers: &[&TaskServer]) -> ClientHandle {
        let before: Vec<usize> = servers.iter().map(|of| of.connections()).collect();
        let (local, remote) = memory_pair(256 << 10, 4 << 20);
        let (settings, handler) = bridge.endpoint();
        tokio::spawn(async move {
            let options = ConnectionOptions::default();
            let _ = serve(settings, handler, remote, options, std::future::pending()).await;
        });
        let mut config = ClientConfig::new(Identity::new("keeps tasks", "1.0.0"));
        config.offer = Offer::new([REVISION]).expect("a revision");
        config.capabilities = object(CAPABILITIES);
        let answers = self.clone();
        let handler = move |client: &ClientHandle, event: ClientEvent| {
            if let ClientEvent::Request { key, request, .. } = event {
                let answer = answers.answer(request.method(), request.params());
                client.answer(key, answer).expect("an answer");
            }
        };
        let settings = config.build().expect("settings");
        let options = ConnectionOptions::default();
        let (client, _driver) = connect(settings, None, Arc::new(handler), local, options);
        client.ready().await.expect("a negotiation");
        let listed = request(&client, "tools/list", "{}").await;
        listed.expect("a list");
        let are_connected = || {
            servers
                .iter()
                .zip(&before)
                .all(|(of, before)| of.connections() > *before)
        };
        wait_until(are_connected, "the connections of the session").await;
        client
    }

    /// Returns the response of the client to a request of a server.
    fn answer(&self, method: &str, params: Option<&JsonObject>) -> Result<RawResult, PeerError> {
        self.received_methods
            .lock()
            .expect("a lock")
            .push(method.to_owned());
        let mut tasks = self.tasks.lock().expect("a lock");
        let id = params.and_then(|params| text(params, "taskId"));
        let answer = match (method, id) {
            ("sampling/createMessage", _) => {
                let id = (tasks.len() + 1).to_string();
                tasks.insert(id.clone(), "working");
                format!(r#"{{"task":{}}}"#, TaskServer::task(&id, "working"))
            }
            ("tasks/list", _) => {
                let all = tasks
                    .iter()
                    .map(|(id, status)| TaskServer::task(id, status));
                let all: Vec<String> = all.collect();
                format!(r#"{{"tasks":[{}]}}"#, all.join(","))
            }
            ("tasks/result", Some(id)) => format!(
                r#"{{"role":"assistant","model":"m","content":{{"type":"text","text":"of {id}"}},"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}}}}}}"#
            ),
            ("tasks/get" | "tasks/cancel", Some(id)) => {
                let status = tasks.get_mut(&id).expect("a known task");
                if method == "tasks/cancel" {
                    *status = "cancelled";
                }
                TaskServer::task(&id, status)
            }
            _ => return Err(PeerError::invalid_params("unexpected request")),
        };
        Ok(RawResult::from(object(&answer)))
    }

    /// Removes and returns the methods of the received requests.
    fn take_received_methods(&self) -> Vec<String> {
        std::mem::take(&mut self.received_methods.lock().expect("a lock"))
    }
}

/// Returns the result of a response.
fn result(response: &JsonObject) -> JsonObject {
    let result = response.get("result");
    let result = result.unwrap_or_else(|| panic!("{response}"));
    result.try_into().expect("an object")
}

/// Returns the error code of a response; `None` if the response has no error.
fn error_code(response: &JsonObject) -> Option<String> {
    let error: JsonObject = response.get("error")?.try_into().ok()?;
    Some(error.get("code")?.text().to_owned())
}

/// Sends a sampling request as a task on a connection of the server; returns the id of the task.
async fn sample(server: &TaskServer, connection: usize) -> String {
    let created = server
        .ask(connection, "sampling/createMessage", SAMPLE)
        .await;
    let created: JsonObject = result(&created)
        .get("task")
        .expect("a task")
        .try_into()
        .expect("an object");
    text(&created, "taskId").expect("an id")
}

/// Returns the ids of the tasks that the client lists to a connection of the server.
async fn listed(server: &TaskServer, connection: usize) -> Vec<String> {
    let response = server.ask(connection, "tasks/list", "{}").await;
    let tasks = result(&response).get("tasks").expect("tasks");
    let tasks: Vec<JsonObject> = tasks.decode_as().expect("tasks");
    let ids = tasks.iter().map(|task| text(task, "taskId"));
    ids.map(|id| id.expect("an id")).collect()
}

/// A server polls, lists and cancels a task of the client and gets its result, as a client does with a task of a server
/// (2025-11-25, `basic/utilities/tasks`).
#[tokio::test]
async fn tasks_of_clients_are_relayed() {
    let server = TaskServer::new("");
    let lost = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lost);
    let mut options = Options::default();
    options.on_loss = Some(LossHook::new(move |loss| {
        seen.lock().expect("a lock").push(loss.id());
    }));
    let bridge = bridge_to(server.clone(), options).await;
    let keeper = TaskClient::default();
    let client = keeper.connect(&bridge, &[&server]).await;
    // The capability is declared to the server, so that it is no loss.
    let lost = lost.lock().expect("a lock").clone();
    let is_of_client = |id: &&String| id.starts_with("ClientCapabilities");
    assert_eq!(lost.iter().find(is_of_client), None);
    let connection = server.connections() - 1;
    let created = server
        .ask(connection, "sampling/createMessage", SAMPLE)
        .await;
    let task = TaskServer::task("1", "working");
    assert_eq!(result(&created).text(), format!(r#"{{"task":{task}}}"#));
    assert_eq!(listed(&server, connection).await, ["1"]);
    let named = r#"{"taskId":"1"}"#;
    let got = server.ask(connection, "tasks/get", named).await;
    assert_eq!(result(&got).text(), task);
    let done = server.ask(connection, "tasks/result", named).await;
    assert!(done.text().contains(r#""text":"of 1""#), "{done}");
    assert!(done.text().contains(r#"{"taskId":"1"}"#), "{done}");
    let cancelled = server.ask(connection, "tasks/cancel", named).await;
    assert_eq!(
        result(&cancelled).text(),
        TaskServer::task("1", "cancelled")
    );
    let status = object(&TaskServer::task("1", "cancelled"));
    client
        .notify("notifications/tasks/status", Some(status))
        .expect("sent");
    wait_until(|| server.statuses() == ["1"], "the status of the task").await;
    client.close();
}

/// "receivers MUST reject `tasks/get`, `tasks/result`, and `tasks/cancel` requests for tasks that do not belong to the
/// same authorization context" (2025-11-25, `basic/utilities/tasks`): a task belongs to the server whose request has
/// become the task.
#[tokio::test]
async fn tasks_for_other_servers_are_hidden() {
    let [left, right] = [(); 2].map(|()| TaskServer::new(""));
    let upstreams = [("left", left.clone()), ("right", right.clone())];
    let upstreams = upstreams.map(|(name, server)| {
        let upstream: Arc<dyn Upstream> = Arc::new(server);
        (name.to_owned(), upstream)
    });
    let bridge = Bridge::many(upstreams, patient(Options::default())).await;
    let bridge = bridge.expect("a bridge");
    let keeper = TaskClient::default();
    let client = keeper.connect(&bridge, &[&left, &right]).await;
    let [of_left, of_right] = [&left, &right].map(|server| server.connections() - 1);
    let own = sample(&left, of_left).await;
    let other = sample(&right, of_right).await;
    assert_eq!([&*own, &*other], ["1", "2"]);
    keeper.take_received_methods();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let params = format!(r#"{{"taskId":"{own}"}}"#);
        let refused = right.ask(of_right, method, &params).await;
        assert_eq!(
            error_code(&refused).as_deref(),
            Some("-32602"),
            "{method}: {refused}"
        );
    }
    assert!(
        keeper.take_received_methods().is_empty(),
        "the client is not asked"
    );
    assert_eq!(listed(&left, of_left).await, [&*own]);
    assert_eq!(listed(&right, of_right).await, [&*other]);
    for id in [&own, &other] {
        let status = object(&TaskServer::task(id, "working"));
        client
            .notify("notifications/tasks/status", Some(status))
            .expect("sent");
    }
    let are_told = || !left.statuses().is_empty() && !right.statuses().is_empty();
    wait_until(are_told, "the status of both tasks").await;
    assert_eq!(left.statuses(), [own]);
    assert_eq!(right.statuses(), [other]);
    client.close();
}

/// A server cannot send one client a request about the task of another client, although both clients use the same
/// bridge.
#[tokio::test]
async fn tasks_of_other_clients_are_unknown() {
    let server = TaskServer::new("");
    let bridge = bridge_to(server.clone(), Options::default()).await;
    let [first, second] = [(); 2].map(|()| TaskClient::default());
    let own = first.connect(&bridge, &[&server]).await;
    let of_first = server.connections() - 1;
    let other = second.connect(&bridge, &[&server]).await;
    let of_second = server.connections() - 1;
    let id = sample(&server, of_first).await;
    second.take_received_methods();
    let params = format!(r#"{{"taskId":"{id}"}}"#);
    let refused = server.ask(of_second, "tasks/get", &params).await;
    assert_eq!(error_code(&refused).as_deref(), Some("-32602"), "{refused}");
    assert!(
        second.take_received_methods().is_empty(),
        "the other client is not asked"
    );
    let known = server.ask(of_first, "tasks/get", &params).await;
    assert!(known.get("result").is_some(), "{known}");
    own.close();
    other.close();
}
