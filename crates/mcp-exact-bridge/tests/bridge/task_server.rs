//! A server of 2025-11-25 with tasks, and clients that use it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use mcp_exact::JsonObject;
use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect,
};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_session::{
    CachedNegotiation, CallOptions, ClientConfig, ClientEvent, ClientSettings, Identity, PeerError,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::common::object;
use crate::isolation::{connect_as, outcome_of};
use crate::matrix::wait_until;

/// Revision of the server.
pub const REVISION: &str = "2025-11-25";

/// Server of 2025-11-25 with tasks, whose ids have a prefix and count from 1.
#[derive(Clone)]
pub struct TaskServer {
    /// Prefix of the task ids.
    prefix: &'static str,
    /// Tasks, connections and received messages of the server.
    state: Arc<Mutex<ServerState>>,
}

/// Tasks, connections and received messages of a server.
#[derive(Default)]
struct ServerState {
    /// Status of each task.
    tasks: BTreeMap<String, &'static str>,
    /// Channels for the lines to each connection.
    connections: Vec<mpsc::UnboundedSender<String>>,
    /// Methods of the received requests that begin with `tasks/`.
    methods: Vec<String>,
    /// Received responses to requests of the server.
    responses: Vec<JsonObject>,
    /// Params of the received notifications about the status of a task.
    statuses: Vec<JsonObject>,
}

impl TaskServer {
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            state: Arc::default(),
        }
    }

    /// Returns a task as JSON.
    pub fn task(id: &str, status: &str) -> String {
        format!(
            r#"{{"taskId":"{id}","status":"{status}","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":6e4,"pollInterval":5,"vendor":1.0}}"#
        )
    }

    /// Returns the members that answer a request.
    fn answer(&self, method: &str, params: &JsonObject) -> String {
        let mut state = self.state.lock().expect("a lock");
        let id = text(params, "taskId");
        if method.starts_with("tasks/") {
            state.methods.push(method.to_owned());
        }
        match (method, id.as_deref()) {
            ("initialize", _) => r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}"#.to_owned(),
            ("tools/list", _) => r#""result":{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}]}"#.to_owned(),
            ("tools/call", _) if params.get("task").is_some() => {
                let id = format!("{}{}", self.prefix, state.tasks.len() + 1);
                state.tasks.insert(id.clone(), "working");
                format!(r#""result":{{"task":{},"more":[1.0]}}"#, Self::task(&id, "working"))
            }
            ("tools/call", _) => r#""result":{"content":[]}"#.to_owned(),
            ("tasks/list", _) => {
                let tasks = state.tasks.iter();
                let tasks = tasks.map(|(id, status)| Self::task(id, status));
                let tasks = tasks.collect::<Vec<_>>().join(",");
                format!(r#""result":{{"tasks":[{tasks}]}}"#)
            }
            ("tasks/result", Some(id)) => format!(
                r#""result":{{"content":[],"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}}}}}}"#
            ),
            ("tasks/get" | "tasks/cancel", Some(id)) => match state.tasks.get_mut(id) {
                Some(status) => {
                    if method == "tasks/cancel" {
                        *status = "cancelled";
                    }
                    format!(r#""result":{}"#, Self::task(id, status))
                }
                None => r#""error":{"code":-32602,"message":"no such task"}"#.to_owned(),
            },
            _ => r#""result":{}"#.to_owned(),
        }
    }

    /// Sends the status of a task to every connection.
    pub fn tell_status(&self, id: &str) {
        let state = self.state.lock().expect("a lock");
        let params = Self::task(id, state.tasks[id]);
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{params}}}"#
        );
        for connection in &state.connections {
            let _ = connection.send(line.clone());
        }
    }

    /// Removes and returns the methods of the received `tasks/` requests.
    pub fn take_methods(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().expect("a lock").methods)
    }

    /// Records a response or a notification of a client.
    fn record(&self, message: JsonObject) {
        let mut state = self.state.lock().expect("a lock");
        match text(&message, "method").as_deref() {
            None => state.responses.push(message),
            Some("notifications/tasks/status") => {
                let params = message.get("params").expect("a task");
                state.statuses.push(params.try_into().expect("an object"));
            }
            Some(_) => {}
        }
    }

    /// Returns the number of connections that were opened so far. The index of the latest connection is this number
    /// minus one.
    pub fn connections(&self) -> usize {
        self.state.lock().expect("a lock").connections.len()
    }

    /// Sends a request on a connection, and returns the response.
    pub async fn ask(&self, connection: usize, method: &str, params: &str) -> JsonObject {
        /// Id of the latest request, unique across all servers.
        static LATEST_ID: AtomicU64 = AtomicU64::new(1000);
        let id = LATEST_ID.fetch_add(1, Relaxed);
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let sent = self.state.lock().expect("a lock").connections[connection].send(line);
        sent.expect("an open connection");
        let response = || {
            let state = self.state.lock().expect("a lock");
            let mut responses = state.responses.iter();
            let is_response = |response: &&JsonObject| {
                let of = response.get("id");
                of.is_some_and(|of| of.text() == id.to_string())
            };
            responses.find(is_response).cloned()
        };
        wait_until(|| response().is_some(), method).await;
        response().expect("a response")
    }

    /// Returns the ids of the tasks in the received status notifications.
    pub fn statuses(&self) -> Vec<String> {
        let state = self.state.lock().expect("a lock");
        let ids = state.statuses.iter().map(|task| text(task, "taskId"));
        ids.map(|id| id.expect("an id")).collect()
    }

    /// Serves one connection until it is closed.
    async fn serve(self, stream: DuplexStream) {
        let (reader, writer) = tokio::io::split(stream);
        let (sender, lines) = mpsc::unbounded_channel();
        self.state
            .lock()
            .expect("a lock")
            .connections
            .push(sender.clone());
        tokio::spawn(write_lines(writer, lines));
        let mut requests = BufReader::new(reader).lines();
        while let Ok(Some(line)) = requests.next_line().await {
            let message = object(&line);
            let (Some(id), Some(method)) = (message.get("id"), text(&message, "method")) else {
                self.record(message);
                continue;
            };
            let params = message
                .get("params")
                .and_then(|params| params.try_into().ok());
            let answer = self.answer(&method, &params.unwrap_or_default());
            let _ = sender.send(format!(
                r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#,
                id.text()
            ));
        }
    }
}

/// Writes the lines of a channel to a connection.
async fn write_lines(
    mut writer: WriteHalf<DuplexStream>,
    mut lines: mpsc::UnboundedReceiver<String>,
) {
    while let Some(line) = lines.recv().await {
        if writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

impl Upstream for TaskServer {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = tokio::io::duplex(256 << 10);
        tokio::spawn(self.clone().serve(remote));
        let (reader, writer) = tokio::io::split(local);
        let transport = LineTransport::new(reader, writer, settings.limits.message_bytes);
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, transport, options))
    }
}

/// Returns a member that is a string.
pub fn text(object: &JsonObject, name: &str) -> Option<String> {
    object.get(name)?.decode_as().ok()
}

/// Ids and statuses of the tasks in the status notifications that a client has received.
pub type TaskStatuses = Arc<Mutex<Vec<(String, String)>>>;

/// Returns an event handler that records the status notifications of tasks.
pub fn noting(statuses: &TaskStatuses) -> impl Fn(ClientEvent) + Send + Sync + 'static {
    let statuses = Arc::clone(statuses);
    move |event| {
        if let ClientEvent::Notification(notification) = event
            && notification.method().starts_with("notifications/tasks")
        {
            let task = notification.params().expect("a task");
            let [id, status] = ["taskId", "status"].map(|name| text(task, name).expect(name));
            statuses.lock().expect("a lock").push((id, status));
        }
    }
}

/// Connects a client of 2025-11-25 with a session over HTTP.
pub async fn session_of(url: &str, principal: &'static str) -> ClientHandle {
    let config = ClientConfig::new(Identity::new("alike", "1.0.0"));
    connect_as(url, principal, REVISION, config, |_| {}).await
}

/// Sends a request, and returns its result or error.
pub async fn request(
    client: &ClientHandle,
    method: &str,
    params: &str,
) -> Result<JsonObject, PeerError> {
    let params = Some(object(params));
    outcome_of(client.request(method, params, CallOptions::default(), None)).await
}

/// Calls a tool as a task; returns the result and the id of the task.
pub async fn begin(client: &ClientHandle, tool: &str) -> (JsonObject, String) {
    let params = format!(r#"{{"name":"{tool}","arguments":{{}},"task":{{"ttl":6e4}}}}"#);
    let created = request(client, "tools/call", &params)
        .await
        .expect("a task");
    let task: JsonObject = created
        .get("task")
        .expect("a task")
        .try_into()
        .expect("an object");
    let id = text(&task, "taskId").expect("an id");
    (created, id)
}

/// Sends a request that names a task.
pub async fn about(client: &ClientHandle, method: &str, id: &str) -> Result<JsonObject, PeerError> {
    request(client, method, &format!(r#"{{"taskId":"{id}"}}"#)).await
}

/// Returns the ids of the tasks that a client can list.
pub async fn listed(client: &ClientHandle) -> Vec<String> {
    let result = request(client, "tasks/list", "{}").await.expect("a list");
    let tasks: Vec<JsonObject> = result
        .get("tasks")
        .expect("tasks")
        .decode_as()
        .expect("tasks");
    let ids = tasks.iter().map(|task| text(task, "taskId"));
    ids.collect::<Option<Vec<_>>>().expect("ids")
}

/// Creates a bridge in front of one server.
pub async fn bridge_to(upstream: impl Upstream, options: Options) -> Bridge {
    Bridge::new(upstream, options).await.expect("a bridge")
}
