//! A client and a server that write and read JSON text without validation, apart from the negotiation of the revision.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use mcp_exact_bridge::{Bridge, Upstream};
use mcp_exact_session::{CachedNegotiation, ClientSettings, Lifecycle, lifecycle};
use mcp_exact_transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, MemoryTransport, Received,
    Transport, connect, memory_pair, serve,
};
use mcp_exact_wire::JsonObject;
use tokio::task::JoinHandle;

/// Maximum size of a message, and of all queued messages, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// Capabilities of a server with all features.
const CAPABILITIES: &str =
    r#"{"tools":{"listChanged":true},"prompts":{},"resources":{},"completions":{}}"#;

/// Connection that writes JSON texts as messages without a change.
struct RawConnection {
    /// Transport in memory that carries the messages.
    transport: MemoryTransport,
    /// Received messages that were not returned.
    received: VecDeque<String>,
}

impl RawConnection {
    fn new(transport: MemoryTransport) -> Self {
        Self {
            transport,
            received: VecDeque::new(),
        }
    }

    /// Returns the next message; `None` at the end of input.
    async fn receive(&mut self) -> Option<String> {
        while self.received.is_empty() {
            let (transport, received) = (&mut self.transport, &mut self.received);
            let is_open = poll_fn(|cx| {
                transport.poll_receive(cx, &mut |message| {
                    if let Received::Frame(bytes) = message {
                        received.push_back(String::from_utf8(bytes.to_vec()).expect("text"));
                    }
                    true
                })
            });
            if !is_open.await.ok()? {
                break;
            }
        }
        self.received.pop_front()
    }

    /// Sends a JSON text as a message without a change.
    async fn send(&mut self, message: &str) {
        self.transport
            .output()
            .extend_from_slice(message.as_bytes());
        self.transport.end_frame();
        let transport = &mut self.transport;
        // A peer that has disconnected reads nothing.
        let _ = poll_fn(|cx| match transport.poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => Poll::Pending,
        })
        .await;
    }
}

/// A server of one revision that responds to every request with the same result.
#[derive(Clone)]
pub struct RawServer {
    /// Revision of the server.
    revision: &'static str,
    /// Result and params of the current request.
    state: Arc<Mutex<State>>,
}

/// Result and params that the test shares with the server.
#[derive(Default)]
struct State {
    /// Result with which the server responds to the next requests.
    result: String,
    /// Params of the last request.
    params: Option<String>,
}

impl RawServer {
    /// Creates a server that responds with the empty result.
    pub fn new(revision: &'static str) -> Self {
        let state = State {
            result: "{}".to_owned(),
            params: None,
        };
        Self {
            revision,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Sets the result of the following requests.
    pub fn set_result(&self, result: &str) {
        result.clone_into(&mut self.state.lock().expect("a lock").result);
    }

    /// Removes and returns the params of the last request, as received.
    pub fn take_params(&self) -> Option<String> {
        self.state.lock().expect("a lock").params.take()
    }

    /// Responds to the negotiation, and to every other request of a connection with the result of the state.
    async fn serve(self, mut connection: RawConnection) {
        while let Some(text) = connection.receive().await {
            let message: JsonObject = text.parse().expect(&text);
            let Some(id) = message.get("id") else {
                continue;
            };
            let method = message.view().find("method").expect("a method");
            let (revision, id) = (self.revision, id.text());
            let has_sessions = lifecycle(revision) == Some(Lifecycle::Initialize);
            let answer = match &*method.as_str().expect("a name") {
                "initialize" if has_sessions => format!(
                    r#""result":{{"protocolVersion":"{revision}","capabilities":{CAPABILITIES},"serverInfo":{{"name":"raw","version":"1.0.0"}}}}"#
                ),
                "server/discover" if !has_sessions => format!(
                    r#""result":{{"resultType":"complete","supportedVersions":["{revision}"],"capabilities":{CAPABILITIES},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"raw","version":"1.0.0"}}}}}}"#
                ),
                "initialize" | "server/discover" => {
                    r#""error":{"code":-32601,"message":"Method not found"}"#.to_owned()
                }
                _ => {
                    let mut state = self.state.lock().expect("a lock");
                    let params = message.get("params");
                    let params = params.map_or("{}".to_owned(), |params| params.text().to_owned());
                    state.params = Some(params);
                    format!(r#""result":{}"#, state.result)
                }
            };
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#);
            connection.send(&answer).await;
        }
    }
}

impl Upstream for RawServer {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = memory_pair(MAX_BYTES, MAX_BYTES);
        tokio::spawn(self.clone().serve(RawConnection::new(remote)));
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, local, options))
    }
}

/// Client of one revision that sends JSON texts to a bridge.
pub struct RawClient {
    /// Connection to the bridge.
    connection: RawConnection,
    /// Id of the next request.
    next_id: u64,
}

impl RawClient {
    /// Connects to a bridge, and negotiates the revision.
    pub async fn connect(bridge: &Bridge, revision: &str) -> Self {
        let (local, remote) = memory_pair(MAX_BYTES, MAX_BYTES);
        let (settings, handler) = bridge.endpoint();
        tokio::spawn(async move {
            let options = ConnectionOptions::default();
            let _ = serve(settings, handler, remote, options, std::future::pending()).await;
        });
        let mut client = Self {
            connection: RawConnection::new(local),
            next_id: 1,
        };
        if lifecycle(revision) == Some(Lifecycle::Initialize) {
            let hello = format!(
                r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"raw","version":"1.0.0"}}}}"#
            );
            let answer = client.request("initialize", &hello).await;
            assert!(answer.get("result").is_some(), "{answer}");
            let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            client.connection.send(ready).await;
        }
        client
    }

    /// Sends a request and returns the complete response. Other messages are ignored.
    pub async fn request(&mut self, method: &str, params: &str) -> JsonObject {
        let id = self.next_id;
        self.next_id += 1;
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.connection.send(&request).await;
        loop {
            let text = self.connection.receive().await.expect("an answer");
            let message: JsonObject = text.parse().expect(&text);
            if message
                .get("id")
                .is_some_and(|of| of.text() == id.to_string())
            {
                return message;
            }
        }
    }
}
