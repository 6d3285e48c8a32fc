//! HTTP/2 beside HTTP/1.1 at the port of a server.

use std::time::Duration;

use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_exact_tests_transport::http::{TestServer, stateless_call};
use mcp_exact_transport::http::server::{HttpServerOptions, ListenOptions};

use crate::wire::start;

/// A client can use HTTP/2 and HTTP/1.1 on the same port.
#[tokio::test]
async fn http2_is_served_on_same_port() {
    let server = start().await;
    let stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connected");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("h2c");
    tokio::spawn(connection);
    let (headers, body) = stateless_call(1, "count", "");
    let mut request = http::Request::post(server.url("/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in &headers {
        request = request.header(*name, value);
    }
    let request = request
        .body(Full::<bytes::Bytes>::from(body))
        .expect("a request");
    let response = sender.send_request(request).await.expect("a response");
    assert_eq!(response.status(), 200);
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("counted"));
}

/// The connection of an idle client is closed, in HTTP/1.1 and HTTP/2, even if the client answers HTTP/2 pings.
#[tokio::test]
async fn idle_connections_of_http2_are_ended() {
    let listen = ListenOptions {
        header_timeout: Duration::from_millis(200),
        ..ListenOptions::default()
    };
    let server = TestServer::start_with(HttpServerOptions::default(), listen).await;
    let stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connected");
    let (_sender, connection) = hyper::client::conn::http2::handshake::<_, _, Empty<bytes::Bytes>>(
        TokioExecutor::new(),
        TokioIo::new(stream),
    )
    .await
    .expect("h2c");
    let ended = tokio::time::timeout(Duration::from_secs(60), connection).await;
    assert!(ended.is_ok(), "the connection lives on");
}
