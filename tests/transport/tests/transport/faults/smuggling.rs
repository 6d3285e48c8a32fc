//! Request smuggling: a request that HTTP parsers interpret differently does not make the server execute a second
//! request in its body.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_session::ServerEvent;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{Reply, TestServer, stateless_call};
use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::io::AsyncReadExt;

/// Returns a complete request that the server must not execute.
fn hidden_request(host: &str) -> String {
    let (headers, body) = stateless_call(1, "echo", "hidden");
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A server does not execute a request that is hidden in another request by contradictory headers.
#[tokio::test]
async fn no_request_hides_in_another() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
        if let ServerEvent::Request(request) = &event
            && let Some(params) = request.params()
            && params.to_string().contains("hidden")
        {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        echo::handle(server, event);
    };
    let server = TestServer::start_handler(Arc::new(handler), HttpServerOptions::default()).await;
    let host = server.address.to_string();
    let hidden = hidden_request(&host);
    let size = hidden.len();
    let fixed = format!(
        "Host: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    );
    // A reader that goes by the first header sees one request, one that goes by the second sees two.
    let heads = [
        format!("{fixed}Content-Length: {size}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{fixed}Transfer-Encoding: chunked\r\nContent-Length: {size}\r\n\r\n0\r\n\r\n"),
        format!("{fixed}Content-Length: 0\r\nContent-Length: {size}\r\n\r\n"),
        format!("{fixed}Content-Length: {size}\r\nContent-Length: 0\r\n\r\n"),
        format!("{fixed}Content-Length: 0, {size}\r\n\r\n"),
        format!("{fixed}Content-Length: +0\r\n\r\n"),
        format!("{fixed}Content-Length: -1\r\n\r\n"),
        format!("{fixed}Content-Length: 0x0\r\n\r\n"),
        format!("{fixed}Content-Length : 0\r\n\r\n"),
        format!("{fixed}Content-Length:\r\n 0\r\n\r\n"),
        format!("{fixed}Content-Length: 18446744073709551616\r\n\r\n"),
        format!("{fixed}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!(
            "{fixed}Transfer-Encoding: identity, chunked\r\nContent-Length: {size}\r\n\r\n0\r\n\r\n"
        ),
        format!("{fixed}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("{fixed}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
        format!("{fixed}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        format!(
            "{fixed}Transfer-Encoding: \u{b}chunked\r\nContent-Length: {size}\r\n\r\n0\r\n\r\n"
        ),
        format!("{fixed}Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n"),
        format!("{fixed}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n"),
        format!("{fixed}Transfer-Encoding: chunked\r\n\r\n0 \n\r\n"),
        format!("{fixed}X: a\0b\r\nContent-Length: 0\r\n\r\n"),
        format!("{fixed}X: a\rContent-Length: {size}\r\nContent-Length: 0\r\n\r\n"),
    ];
    for head in heads {
        let text = format!("POST /mcp HTTP/1.1\r\n{head}{hidden}");
        let mut stream = server.open(&text).await;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        // One that waits for more of a body that the client has announced has not worked on anything.
        let _ = tokio::time::timeout(Duration::from_millis(300), read).await;
        let status = Reply::parse(&bytes).status;
        let count = String::from_utf8_lossy(&bytes).matches("HTTP/1.1 ").count();
        assert_eq!(seen.load(Ordering::SeqCst), 0, "{head:?} {status}");
        assert!(count <= 1, "{head:?} {count} answers");
        assert!(matches!(status, 0 | 400 | 403 | 501), "{head:?} {status}");
    }
    // The same request is worked on where nothing is ambiguous: the count above could have seen it.
    let mut stream = server.open(&hidden).await;
    let mut buffer = [0; 64];
    assert!(stream.read(&mut buffer).await.expect("an answer") > 0);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}
