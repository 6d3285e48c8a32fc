//! One client that takes whatever it gets, beside ten that work: it gets its share and is told so, and every call of the others is
//! answered. Real sockets; clients are told apart by their addresses.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::Arc;

use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions, ListenOptions};
use mcp_exact::{Revision, revisions};
use mcp_exact_bridge::{Bridge, Options, PrincipalLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::common::{InMemory, Listening, server};

/// Largest number of connections to the server, for clients with and without sessions each.
const CONNECTIONS: usize = 32;

/// Largest number of sessions, and of connections of clients.
const SESSIONS: usize = 60;

/// Number of the clients that work.
const HONEST: u8 = 10;

/// Number of attempts of the flood of each kind.
const ATTEMPTS: usize = 2 * SESSIONS;

/// Client at an address of its own.
#[derive(Clone, Copy)]
struct Caller {
    server: SocketAddr,
    address: u8,
}

/// Status and text of a response.
#[derive(Debug)]
struct Response {
    status: u16,
    text: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        let line = self.text.lines().find(|line| {
            let found = line.split_once(": ");
            found.is_some_and(|(known, _)| known.eq_ignore_ascii_case(name))
        });
        Some(line?.split_once(": ")?.1)
    }
}

impl Caller {
    async fn connect(self) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        let local = SocketAddr::from(([127, 0, 0, self.address], 0));
        socket.bind(local).expect("an address");
        socket.connect(self.server).await.expect("a connection")
    }

    /// Returns the text of a POST.
    fn post(self, headers: &str, body: &str) -> String {
        let (host, length) = (self.server, body.len());
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
    }

    /// Sends a POST; a connection that is closed without a response has status 0.
    async fn send(self, headers: &str, body: &str) -> Response {
        let mut stream = self.connect().await;
        let _ = stream.write_all(self.post(headers, body).as_bytes()).await;
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        let status = text
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Response {
            status: status.unwrap_or_default(),
            text,
        }
    }

    /// Begins a session; returns the headers of its requests.
    async fn begin(self) -> Result<String, Response> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"c{}","version":"1"}}}}}}"#,
            self.address
        );
        let begun = self.send("", &body).await;
        let Some(id) = begun.header("mcp-session-id") else {
            return Err(begun);
        };
        let session = format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n");
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.send(&session, ready).await;
        Ok(session)
    }

    /// Calls a tool without a session, as a client with this name.
    fn call(self, tool: &str, arguments: &str, name: &str) -> (String, String) {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{name}","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}}}}}"#
        );
        let headers = format!(
            "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
        );
        (headers, body)
    }

    /// Works: a session with a list and calls, or calls without one. Every request is answered.
    async fn work(self) {
        let arguments = r#"{"a":1,"b":1}"#;
        if self.address % 2 == 0 {
            for _ in 0..3 {
                let (headers, body) = self.call("add", arguments, &format!("c{}", self.address));
                let answer = self.send(&headers, &body).await;
                assert!(
                    answer.text.contains(r#""sum":2"#),
                    "{}: {answer:?}",
                    self.address
                );
            }
            return;
        }
        let session = self.begin().await.expect("a session");
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add","arguments":{arguments}}}}}"#
        );
        let list = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
        for (body, expected) in [
            (list, r#""add""#),
            (&*call, r#""sum":2"#),
            (&call, r#""sum":2"#),
        ] {
            let answer = self.send(&session, body).await;
            assert!(
                answer.text.contains(expected),
                "{}: {answer:?}",
                self.address
            );
        }
    }
}

/// Serves a bridge with small limits.
async fn listen(bridge: &Bridge) -> (Listening, SocketAddr) {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let options = HttpServerOptions {
        sessions: SESSIONS,
        sessions_per_client: SESSIONS / 2,
        ..HttpServerOptions::default()
    };
    let listen = ListenOptions {
        connections: 4 * SESSIONS,
        connections_per_client: 2 * SESSIONS,
        ..ListenOptions::default()
    };
    let serving = listener
        .options(listen)
        .serve(bridge.http(options), std::future::pending());
    let task = tokio::spawn(serving).abort_handle();
    (
        Listening::new(format!("http://{address}/mcp"), task),
        address,
    )
}

/// What the flood holds, and how many of its attempts were refused in which way.
#[derive(Default)]
struct Flood {
    /// Connections that wait for their responses.
    waiting: Vec<TcpStream>,
    sessions: Vec<String>,
    refused: usize,
}

impl Flood {
    /// Counts a response that refuses: it says when to try again.
    fn note(&mut self, response: &Response) {
        // In a session, the answer itself says so.
        let is_told = response.text.contains("-32000") || response.text.contains("try again");
        let is_limit = matches!(response.status, 429 | 503);
        if is_limit {
            assert!(response.header("retry-after").is_some(), "{response:?}");
        }
        self.refused += usize::from(is_limit || is_told);
    }

    /// Begins sessions that it never uses.
    async fn initialize(&mut self, caller: Caller) {
        for _ in 0..ATTEMPTS {
            match caller.begin().await {
                Ok(session) => self.sessions.push(session),
                Err(refused) => self.note(&refused),
            }
        }
    }

    /// Takes a connection to the server, as a process of a command, in each of its sessions.
    async fn use_sessions(&mut self, caller: Caller) {
        for session in std::mem::take(&mut self.sessions) {
            let list = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
            self.note(&caller.send(&session, list).await);
            self.sessions.push(session);
        }
    }

    /// Sends the first half of large bodies.
    async fn bodies(&mut self, caller: Caller) {
        let body = " ".repeat(20 << 20);
        let text = caller.post("", &body);
        for _ in 0..8 {
            let mut stream = caller.connect().await;
            // The server may refuse it before all was sent.
            let _ = stream.write_all(&text.as_bytes()[..text.len() / 2]).await;
            self.waiting.push(stream);
        }
    }

    /// Makes calls that do not end, each as another client, so that each takes a connection to the server.
    async fn calls(&mut self, caller: Caller) {
        for number in 0..CONNECTIONS {
            let (headers, body) = caller.call("waits", "{}", &format!("flood{number}"));
            let mut stream = caller.connect().await;
            let text = caller.post(&headers, &body);
            stream.write_all(text.as_bytes()).await.expect("it is sent");
            self.waiting.push(stream);
        }
    }

    /// Opens streams of one HTTP/2 connection, and sends their headers alone.
    async fn streams(&mut self, caller: Caller) {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        let host = caller.server.to_string();
        // `:method POST`, `:scheme http`, `:path /mcp`, `:authority`, `content-type` (RFC 7541, Appendix A).
        let mut headers = b"\x83\x86\x04\x04/mcp\x01".to_vec();
        headers.push(u8::try_from(host.len()).expect("short"));
        headers.extend(host.as_bytes());
        headers
            .extend(b"\x0f\x10\x10application/json\x0f\x04\x23application/json, text/event-stream");
        for number in 0..256_u32 {
            let length = u32::try_from(headers.len()).expect("short").to_be_bytes();
            bytes.extend(&length[1..]);
            bytes.extend(b"\x01\x04");
            bytes.extend((2 * number + 1).to_be_bytes());
            bytes.extend(&headers);
        }
        let mut stream = caller.connect().await;
        stream.write_all(&bytes).await.expect("it is sent");
        self.waiting.push(stream);
    }

    /// Opens connections and sends nothing.
    async fn connections(&mut self, caller: Caller) {
        for _ in 0..4 * SESSIONS {
            self.waiting.push(caller.connect().await);
        }
    }
}

/// A client that floods gets its share of everything, and the calls of others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_leave_room_for_others() {
    let of_server: Revision = revisions()
        .find(|one| one.as_str() == "2025-11-25")
        .expect("known");
    let upstream = InMemory::new(&server(of_server));
    let mut options = Options::default();
    options.connections = CONNECTIONS;
    options.session_connections = CONNECTIONS;
    let bridge = Bridge::new(upstream.clone(), options)
        .await
        .expect("a bridge");
    let (_listening, address) = listen(&bridge).await;
    let caller = |address_end: u8| Caller {
        server: address,
        address: address_end,
    };
    let flooding = caller(2);
    let mut flood = Flood::default();
    flood.initialize(flooding).await;
    flood.use_sessions(flooding).await;
    assert_eq!(flood.sessions.len(), SESSIONS / 2);
    assert!(
        flood.refused >= ATTEMPTS - SESSIONS / 2,
        "{}",
        flood.refused
    );
    flood.calls(flooding).await;
    flood.streams(flooding).await;
    flood.bodies(flooding).await;
    flood.connections(flooding).await;
    let mut honest = JoinSet::new();
    for number in 0..HONEST {
        honest.spawn(caller(10 + number).work());
    }
    while let Some(ended) = honest.join_next().await {
        ended.expect("its calls are answered");
    }
    let held = upstream.connections();
    // The flood has half of those with sessions, and three quarters of the others.
    let most = CONNECTIONS / 2 + CONNECTIONS + usize::from(HONEST) / 2;
    assert!(held <= most, "{held} connections");
    drop(flood);
    bridge.shutdown().await;
}

/// The requests per second of a client hold for the sessions that it begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_hold_for_new_sessions() {
    let of_server: Revision = revisions().next().expect("a revision");
    let mut options = Options::default();
    let mut limits = PrincipalLimits::default();
    limits.per_second = Some(0.001);
    limits.burst = 2;
    options.rules.limits = Some(limits);
    let bridge = Bridge::new(InMemory::new(&server(of_server)), options);
    let bridge = Arc::new(bridge.await.expect("a bridge"));
    let (_listening, server) = listen(&bridge).await;
    for address in [2, 3] {
        let caller = Caller { server, address };
        for _ in 0..2 {
            caller.begin().await.expect("a session");
        }
        let refused = caller.begin().await.expect_err("a third one at once");
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
    }
    assert_eq!(bridge.metrics().refused(), 2);
}
