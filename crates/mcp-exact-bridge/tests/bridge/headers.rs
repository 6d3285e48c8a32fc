//! Headers of clients: credentials are not relayed to the server, but trace contexts and mirrored parameters are relayed.

use std::sync::{Arc, Mutex};

use ::http::request::Parts;
use ::http::{HeaderName, HeaderValue};
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{
    AuthFuture, Authenticate, Authenticated, HttpListener, HttpServerOptions,
};
use mcp_exact::{Client, Cx, Error, Headers, Revision, Server, Tool, revisions};
use mcp_exact_bridge::{Bridge, Options};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::common::{Listening, listen, listen_with, object};

/// Value of the header `traceparent` that clients send.
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// Authenticator that records the headers of all requests and assigns the same principal to all clients.
#[derive(Default)]
struct HeaderRecorder(Mutex<Vec<String>>);

impl Authenticate for HeaderRecorder {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        let headers = format!("{:?}", request.headers);
        self.0.lock().expect("a lock").push(headers);
        Box::pin(async { Ok(Authenticated::Anonymous) })
    }
}

/// Serves a server over HTTP whose tool returns the received `_meta`.
async fn serve(revision: Revision, notes: &Arc<HeaderRecorder>) -> Listening {
    let server = Server::builder("behind", "1.0.0")
        .revisions([revision])
        .tool("meta", |cx: Cx| async move {
            let meta = cx.meta().map(|meta| meta.to_string());
            Ok::<_, Error>(meta.unwrap_or_default())
        })
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions {
        authenticate: Some(Arc::clone(notes) as Arc<dyn Authenticate>),
        ..HttpServerOptions::default()
    });
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    Listening::new(format!("http://{address}/mcp"), task.abort_handle())
}

/// "MCP servers MUST NOT … pass through the token it received from the MCP client" (`basic/authorization`, "Access Token
/// Privilege Restriction").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_clients_stay_in_the_bridge() {
    let over_http = || revisions().filter(|revision| revision.as_str() > "2024-11-05");
    for of_server in over_http() {
        let (upstream, downstream) = (
            Arc::new(HeaderRecorder::default()),
            Arc::new(HeaderRecorder::default()),
        );
        let behind = serve(of_server, &upstream).await;
        let own = HttpEndpoint::new(&behind.url).expect("a URL").header(
            HeaderName::from_static("authorization"),
            HeaderValue::from_static("Bearer of-the-bridge"),
        );
        let bridge = Bridge::new(own, Options::default())
            .await
            .expect("a bridge");
        let options = HttpServerOptions {
            authenticate: Some(Arc::clone(&downstream) as Arc<dyn Authenticate>),
            ..HttpServerOptions::default()
        };
        let listening = listen_with(&bridge, options).await;
        for of_client in over_http() {
            let pair = format!("client {of_client}, server {of_server}");
            let endpoint = HttpEndpoint::new(&listening.url).expect("a URL");
            let endpoint = endpoint
                .header(
                    HeaderName::from_static("authorization"),
                    HeaderValue::from_static("Bearer of-the-client"),
                )
                .header(
                    HeaderName::from_static("traceparent"),
                    HeaderValue::from_static(TRACE),
                );
            let client = Client::http(endpoint).revision(of_client);
            let client = client.await.expect(&pair);
            let meta: String = client.call("meta", &()).await.expect(&pair);
            if of_server.as_str() >= "2026" {
                assert!(meta.contains(TRACE), "{pair}: {meta}");
            }
            client.close();
            let got = std::mem::take(&mut *downstream.0.lock().expect("a lock"));
            assert!(
                got.iter().any(|got| got.contains("of-the-client")),
                "{pair}"
            );
            let sent = std::mem::take(&mut *upstream.0.lock().expect("a lock"));
            assert!(!sent.is_empty(), "{pair}");
            for sent in sent {
                assert!(sent.contains("of-the-bridge"), "{pair}: {sent}");
                assert!(!sent.contains("of-the-client"), "{pair}: {sent}");
            }
        }
    }
}

/// "Intermediate servers that do not recognize an `Mcp-Param-{Name}` header MUST forward it"; "Intermediaries MUST return
/// an appropriate HTTP error status (e.g., `400 Bad Request`) for validation failures" (2026-07-28,
/// `basic/transports/streamable-http`): the server gets the header of a mirrored parameter, and a request whose headers
/// differ from its body does not reach the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrored_parameters_reach_the_server() {
    let schema =
        r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let newest = revisions().find(|revision| revision.as_str() == "2026-07-28");
    let newest = newest.expect("it is compiled in");
    let server = Server::builder("behind", "1.0.0")
        .revisions([newest])
        .tool(
            Tool::new("region").input_schema(object(schema)),
            move |headers: Headers| {
                *counted.lock().expect("a lock") += 1;
                async move {
                    headers
                        .get("mcp-param-region")
                        .unwrap_or_default()
                        .to_owned()
                }
            },
        )
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    let behind = Listening::new(format!("http://{address}/mcp"), task.abort_handle());
    let endpoint = HttpEndpoint::new(&behind.url).expect("a URL");
    let bridge = Bridge::new(endpoint, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let listening = listen(&bridge).await;
    let client = Client::connect(&listening.url).revision(newest);
    let client = client.await.expect("connected");
    client.tools().all().await.expect("listed");
    let called = client.call_tool("region", &json!({"region": "eu"})).await;
    assert_eq!(called.expect("called").text(), "eu");
    client.close();
    assert_eq!(*calls.lock().expect("a lock"), 1);

    let address = listening.url.strip_prefix("http://").expect("a URL");
    let address = address.strip_suffix("/mcp").expect("a URL");
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"region","arguments":{{"region":"eu"}},"_meta":{meta}}}}}"#
    );
    for (name, region) in [("other", "eu"), ("region", "us"), ("region", "")] {
        let region = match region {
            "" => String::new(),
            region => format!("Mcp-Param-Region: {region}\r\n"),
        };
        let message = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n{region}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(message.as_bytes()).await.expect("sent");
        let mut response = String::new();
        let read = stream.read_to_string(&mut response);
        read.await.expect("a response");
        assert!(
            response.starts_with("HTTP/1.1 400 "),
            "{message}\n{response}"
        );
        assert!(response.contains("-32020"), "{response}");
    }
    assert_eq!(*calls.lock().expect("a lock"), 1);
}
