//! Client that floods a gateway over HTTP, and clients that work beside it. They are told apart by their addresses, which Linux
//! has for every number of 127.0.0.0/8.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Client at an address of its own.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// Address of the gateway.
    pub server: SocketAddr,
    /// Last number of the address.
    pub address: u8,
}

/// Status and text of a response.
#[derive(Debug)]
pub struct Response {
    /// Status; 0 for a connection that was closed without a response.
    pub status: u16,
    /// Whole text of the response.
    pub text: String,
}

impl Response {
    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.text.lines().find(|line| {
            let found = line.split_once(": ");
            found.is_some_and(|(known, _)| known.eq_ignore_ascii_case(name))
        });
        Some(line?.split_once(": ")?.1)
    }
}

impl Caller {
    /// Opens a connection from the address of the client.
    pub async fn connect(self) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        let local = SocketAddr::from(([127, 0, 0, self.address], 0));
        socket.bind(local).expect("an address");
        socket.connect(self.server).await.expect("a connection")
    }

    /// Returns the text of a POST.
    fn post(self, headers: &str, body: &str) -> String {
        self.request("POST", headers, body)
    }

    /// Returns the text of a request.
    fn request(self, method: &str, headers: &str, body: &str) -> String {
        let (host, length) = (self.server, body.len());
        format!(
            "{method} /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
    }

    /// Sends a POST; a connection that is closed without a response has status 0.
    pub async fn send(self, headers: &str, body: &str) -> Response {
        self.exchange(&self.post(headers, body)).await
    }

    /// Sends the text of a request, and returns the response.
    async fn exchange(self, request: &str) -> Response {
        let mut stream = self.connect().await;
        let _ = stream.write_all(request.as_bytes()).await;
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
    pub async fn begin(self) -> Result<String, Response> {
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

    /// Works: a session with a list and calls, which it ends, or calls without one. Every request is answered.
    pub async fn work(self) {
        let arguments = r#"{"a":1,"b":1}"#;
        if self.address.is_multiple_of(2) {
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
        let ended = self.exchange(&self.request("DELETE", &session, "")).await;
        assert!(ended.status < 300, "{}: {ended:?}", self.address);
    }
}

/// What the flood holds, and how many of its attempts were refused in which way.
#[derive(Debug, Default)]
pub struct Flood {
    /// Connections that wait for their responses.
    waiting: Vec<TcpStream>,
    /// Headers of the requests of each session.
    pub sessions: Vec<String>,
    /// Number of attempts that were refused.
    pub refused: usize,
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
    pub async fn initialize(&mut self, caller: Caller, count: usize) {
        for _ in 0..count {
            match caller.begin().await {
                Ok(session) => self.sessions.push(session),
                Err(refused) => self.note(&refused),
            }
        }
    }

    /// Takes a connection to the server, as a process of a command, in each of its sessions.
    pub async fn use_sessions(&mut self, caller: Caller) {
        for session in std::mem::take(&mut self.sessions) {
            let list = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
            self.note(&caller.send(&session, list).await);
            self.sessions.push(session);
        }
    }

    /// Sends the first half of large bodies.
    pub async fn bodies(&mut self, caller: Caller, count: usize, size: usize) {
        let body = " ".repeat(size);
        let text = caller.post("", &body);
        for _ in 0..count {
            let mut stream = caller.connect().await;
            // The server may refuse it before all was sent.
            let _ = stream.write_all(&text.as_bytes()[..text.len() / 2]).await;
            self.waiting.push(stream);
        }
    }

    /// Makes calls that do not end, each as another client, so that each takes a connection to the server.
    pub async fn calls(&mut self, caller: Caller, count: usize) {
        for number in 0..count {
            let (headers, body) = caller.call("waits", "{}", &format!("flood{number}"));
            let mut stream = caller.connect().await;
            let text = caller.post(&headers, &body);
            stream.write_all(text.as_bytes()).await.expect("it is sent");
            self.waiting.push(stream);
        }
    }

    /// Opens streams of one HTTP/2 connection, and sends their headers alone.
    pub async fn streams(&mut self, caller: Caller) {
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
    pub async fn connections(&mut self, caller: Caller, count: usize) {
        for _ in 0..count {
            self.waiting.push(caller.connect().await);
        }
    }
}
