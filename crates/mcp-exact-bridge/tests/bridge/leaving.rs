//! Clients that leave while the gateway opens a connection for them, and servers that are removed meanwhile: processes,
//! sessions and permits return to what their owners hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect,
};
use mcp_exact::{JsonObject, Server, revisions};
use mcp_exact_bridge::{Bridge, Options, Rules, ServerUpdate, SharedUpstream, Update, Upstream};
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::common::{answer_to, line_with, object, server};
use crate::matrix::{wait_on_paused_clock, wait_until};

/// Server that answers on a connection only when it has a permit to start.
#[derive(Clone)]
pub struct Slow {
    server: Server,
    /// Number of connections that may start.
    pub starts: Arc<Semaphore>,
    /// Number of connections that were opened.
    pub opened: Arc<AtomicUsize>,
    /// Number of connections that have not ended.
    pub open: Arc<AtomicUsize>,
}

impl Slow {
    pub fn new(server: Server) -> Self {
        Self {
            server,
            starts: Arc::new(Semaphore::new(1)),
            opened: Arc::default(),
            open: Arc::default(),
        }
    }
}

impl Upstream for Slow {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let line = |stream: tokio::io::DuplexStream| {
            let (reader, writer) = tokio::io::split(stream);
            LineTransport::new(reader, writer, 4 << 20)
        };
        let (local, remote) = tokio::io::duplex(256 << 10);
        let of_server = self.clone();
        self.opened.fetch_add(1, Ordering::AcqRel);
        self.open.fetch_add(1, Ordering::AcqRel);
        tokio::spawn(async move {
            let starts = of_server.starts.acquire().await;
            starts.expect("open").forget();
            let _ = of_server.server.serve(line(remote)).await;
            of_server.open.fetch_sub(1, Ordering::AcqRel);
        });
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, line(local), options))
    }
}

/// Returns the messages of a client that sends one request.
fn messages(has_session: bool, method: &str, params: &str) -> Vec<String> {
    let comma = if params.is_empty() { "" } else { "," };
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#;
    let meta = if has_session { r#""_meta":{}"# } else { meta };
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{{{meta}{comma}{params}}}}}"#
    );
    if !has_session {
        return vec![call];
    }
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"raw","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    vec![initialize.to_owned(), ready.to_owned(), call]
}

/// Sends messages of a client, and returns the answer to its request. The gateway learns at once that the client has left.
async fn answer(bridge: &Bridge, messages: &[String]) -> JsonObject {
    let options = ConnectionOptions {
        drain: Duration::ZERO,
        close: Duration::ZERO,
        ping: None,
    };
    let is_right = |line: &str| object(line).get("id").is_some_and(|id| id.text() == "9");
    object(&line_with(options, bridge, messages, is_right).await)
}

/// A client that leaves while its connection is opened leaves nothing behind: no process, no session at the server, and no
/// permit that a limit of connections counts.
#[tokio::test]
async fn clients_that_leave_leave_nothing() {
    let read = r#""uri":"docs://intro""#;
    let listen =
        r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["docs://intro"]}"#;
    for of_server in revisions().filter(|revision| revision.as_str() >= "2025-11") {
        for (has_session, method, params) in [
            (true, "tools/list", ""),
            (true, "tools/call", r#""name":"revision""#),
            (true, "resources/subscribe", read),
            (false, "tools/list", ""),
            (false, "tools/call", r#""name":"revision""#),
            (false, "resources/read", read),
            (false, "subscriptions/listen", listen),
        ] {
            // The session of a shared server answers itself, and subscribes for all sessions of the principal.
            let alone = method == "resources/subscribe";
            for is_shared in [false, true]
                .into_iter()
                .filter(|is_shared| !(alone && *is_shared))
            {
                let what =
                    format!("{method}, session {has_session}, shared {is_shared}, {of_server}");
                let upstream = Slow::new(server(of_server));
                let mut options = Options::default();
                options.connections = 2;
                // Longer than the test waits for the end of a connection.
                options.connect_timeout = Duration::from_secs(600);
                let bridge = if is_shared {
                    Bridge::new(SharedUpstream(upstream.clone()), options).await
                } else {
                    Bridge::new(upstream.clone(), options).await
                };
                let bridge = bridge.expect("a bridge");
                wait_until(|| upstream.open.load(Ordering::Acquire) == 0, &what).await;
                let sent = messages(has_session, method, params);
                for _ in 0..6 {
                    let before = upstream.opened.load(Ordering::Acquire);
                    let is_opened = || upstream.opened.load(Ordering::Acquire) > before;
                    tokio::select! {
                        answer = answer(&bridge, &sent) => panic!("{what}: {answer}"),
                        () = wait_until(is_opened, &what) => {}
                    }
                }
                let connections = || bridge.metrics().servers[0].connections;
                wait_until(
                    || connections() == 0,
                    &format!("{what}: the gateway holds none"),
                )
                .await;
                upstream.starts.add_permits(1000);
                let open = || upstream.open.load(Ordering::Acquire);
                wait_until(|| open() == 0, &format!("{what}: the server holds none")).await;
                let list = messages(false, "tools/list", "");
                let answer = answer(&bridge, &list).await;
                assert!(answer.get("result").is_some(), "{what}: {answer}");
                assert_eq!(
                    (bridge.usage().sessions, bridge.usage().requests),
                    (0, 0),
                    "{what}"
                );
                assert_eq!(connections(), open(), "{what}");
                bridge.shutdown().await;
                wait_until(|| open() == 0, &format!("{what}: the end")).await;
            }
        }
    }
}

/// A server that is removed while a connection to it is opened cannot be called on that connection.
#[tokio::test(start_paused = true)]
async fn removed_server_is_not_called() {
    let newest = revisions().next_back().expect("a revision");
    for has_session in [true, false] {
        let [kept, removed] = [(); 2].map(|()| Slow::new(server(newest)));
        let all = [("a", &kept), ("b", &removed)];
        let all = all.map(|(name, upstream)| {
            let upstream: Arc<dyn Upstream> = Arc::new(upstream.clone());
            (name.to_owned(), upstream)
        });
        let mut options = Options::default();
        options.servers_may_change = true;
        kept.starts.add_permits(1000);
        let bridge = Bridge::many(all, options).await.expect("a bridge");
        let before = removed.opened.load(Ordering::Acquire);
        let call = messages(has_session, "tools/call", r#""name":"b__revision""#);
        let update = async {
            let is_opened = || removed.opened.load(Ordering::Acquire) > before;
            wait_on_paused_clock(is_opened, "the connection is opened").await;
            let mut update = Update::default();
            update.rules = Some(Rules::default());
            update.servers = Some(vec![("a".to_owned(), ServerUpdate::Keep)]);
            bridge.update(update).await.expect("an update");
            removed.starts.add_permits(1000);
        };
        let (answer, ()) = tokio::join!(answer_to(&bridge, &call, "9"), update);
        assert!(answer.get("error").is_some(), "{answer}");
    }
}
