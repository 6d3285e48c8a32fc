//! Event streams of a session, without sockets: recording, ends, and limits of waiting bus messages.

use std::future::Future as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use mcp_exact_session::{CallOptions, Change, Scope, ServerEvent};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, respond};
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService, ResponseBody};
use mcp_exact_transport::store::{BusMessage, ChangeBus, MemoryChangeBus};
use mcp_exact_transport::{RequestContext, ServerHandle};

use crate::slow_log::SlowLog;

/// Maximum number of messages before the test fails.
const MAX_MESSAGES: usize = 1000;

/// Service with a session whose standalone stream is open.
struct Streaming {
    /// Service of the session.
    service: HttpService,
    /// Server handle of the session.
    server: ServerHandle,
    /// Body of the standalone stream.
    body: ResponseBody,
}

impl Streaming {
    /// Starts a session and opens its standalone stream.
    async fn start(options: HttpServerOptions) -> Self {
        let seen: Arc<Mutex<Option<ServerHandle>>> = Arc::default();
        let note = Arc::clone(&seen);
        let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
            *note.lock().expect("not poisoned") = Some(server.clone());
            echo::handle(server, event);
        };
        let service = HttpService::new(echo::server_settings(), Arc::new(handler), options);
        let begun = respond(&service, "POST", &[], INITIALIZE).await;
        let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
        let headers = [("mcp-session-id", id)];
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(
            respond(&service, "POST", &headers, note).await.status(),
            202
        );
        let stream = respond(&service, "GET", &headers, "").await;
        assert_eq!(stream.status(), 200);
        let server = seen.lock().expect("not poisoned").take().expect("an event");
        let mut streaming = Self {
            service,
            server,
            body: stream.into_body(),
        };
        assert!(streaming.poll().is_ready(), "the stream begins at once");
        streaming
    }

    /// Returns the output that is available on the stream; `Ready(None)` at the end of the stream.
    fn poll(&mut self) -> Poll<Option<String>> {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(self.body.frame()).poll(&mut cx).map(|frame| {
            let data = frame?.expect("no error").into_data().expect("data");
            Some(String::from_utf8(data.into()).expect("UTF-8"))
        })
    }

    /// Returns the output of the stream until it contains `text` or the stream ends.
    async fn read_until(&mut self, text: &str) -> String {
        let mut all = String::new();
        for _ in 0..MAX_MESSAGES {
            match self.poll() {
                Poll::Ready(Some(data)) => all.push_str(&data),
                Poll::Ready(None) => break,
                Poll::Pending => tokio::task::yield_now().await,
            }
            if all.contains(text) {
                break;
            }
        }
        all
    }
}

/// Each event has one id (2025-11-25, `basic/transports`, "Resumability and Redelivery"): if a server request is
/// cancelled while it is being recorded, it keeps its event id, and no later message is lost.
#[tokio::test]
async fn cancelled_request_loses_no_message() {
    let log = Arc::new(SlowLog::default());
    let permits = &log.gate.permits;
    permits.add_permits(100);
    let mut streaming = Streaming::start(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as _),
        ..HttpServerOptions::default()
    })
    .await;
    permits.forget_permits(100);
    let server = streaming.server.clone();
    let request = server.request(
        Scope::Peer,
        "roots/list",
        None,
        CallOptions::default(),
        None,
    );
    assert_eq!(server.publish(&Change::Tools), 1);
    assert!(streaming.poll().is_pending(), "it is recorded first");
    drop(request.expect("sent"));
    assert_eq!(server.publish(&Change::Prompts), 1);
    permits.add_permits(100);
    let sent = streaming.read_until("prompts/list_changed").await;
    for message in [
        "roots/list",
        "tools/list_changed",
        "notifications/cancelled",
        "prompts/list_changed",
    ] {
        assert_eq!(sent.matches(message).count(), 1, "{message}: {sent}");
    }
    let mut ids: Vec<&str> = sent
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{sent}");
}

/// When the service shuts down, a stream that always has output ends after the output that was queued before.
#[tokio::test]
async fn busy_stream_ends_with_its_service() {
    let mut streaming = Streaming::start(HttpServerOptions::default()).await;
    let server = streaming.server.clone();
    assert_eq!(server.publish(&Change::Prompts), 1);
    streaming.service.drain();
    let mut sent = String::new();
    for _ in 0..MAX_MESSAGES {
        server.publish(&Change::Tools);
        match streaming.poll() {
            Poll::Ready(Some(data)) => sent.push_str(&data),
            Poll::Ready(None) => {
                assert!(sent.contains("prompts/list_changed"), "{sent}");
                return;
            }
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    panic!("the stream goes on: {sent}");
}

/// Messages that were queued before the application closes a session are still sent.
#[tokio::test]
async fn messages_before_the_close_leave() {
    let mut streaming = Streaming::start(HttpServerOptions::default()).await;
    let server = streaming.server.clone();
    assert_eq!(server.publish(&Change::Tools), 1);
    server.close();
    let sent = streaming.read_until("never sent").await;
    assert!(sent.contains("tools/list_changed"), "{sent}");
}

/// The total size of waiting bus messages is limited; if messages were dropped, every client is notified of all
/// changes.
#[tokio::test]
async fn flood_of_the_bus_is_bounded() {
    let bus = Arc::new(MemoryChangeBus::default());
    let mut streaming = Streaming::start(HttpServerOptions {
        change_bus: Some(Arc::clone(&bus) as _),
        ..HttpServerOptions::default()
    })
    .await;
    let frame = Bytes::from(vec![b' '; 1 << 20]);
    for _ in 0..40 {
        bus.publish(BusMessage::Frame {
            session: "another".to_owned(),
            frame: frame.to_vec(),
            scopes: Vec::new(),
        });
    }
    let sent = streaming.read_until("resources/list_changed").await;
    assert!(sent.contains("tools/list_changed"), "{sent}");
}
