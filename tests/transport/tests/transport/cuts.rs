//! Resumption after random cuts, without sockets: the test passes requests directly to the service and drops response
//! bodies at random points.

use std::sync::Arc;

use http_body_util::BodyExt;
use mcp_exact_tests_transport::echo::{self, STEPS};
use mcp_exact_tests_transport::http::{INITIALIZE, Random, call, respond};
use mcp_exact_transport::event_log::MemoryEventLog;
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService, ResponseBody};
use mcp_exact_transport::sse::{Decoded, Decoder};

/// Client that cuts its connections at random.
struct Cutter {
    /// Service that receives the requests.
    service: HttpService,
    /// Event log of the service.
    log: Arc<MemoryEventLog>,
    /// Random number generator that selects the positions of the cuts.
    random: Random,
    /// Number of cuts so far.
    cuts: u32,
}

impl Cutter {
    /// Creates a client of a new service; `seed` determines the positions of the cuts.
    fn new(seed: u64) -> Self {
        let log = Arc::new(MemoryEventLog::default());
        let options = HttpServerOptions {
            event_log: Some(Arc::clone(&log) as _),
            ..HttpServerOptions::default()
        };
        let service = HttpService::new(echo::server_settings(), Arc::new(echo::handle), options);
        Self {
            service,
            log,
            random: Random(seed),
            cuts: 0,
        }
    }

    /// Passes an HTTP request to the service; returns the response.
    async fn send(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> http::Response<ResponseBody> {
        respond(&self.service, method, headers, body).await
    }

    /// Starts a session; returns its id.
    async fn begin(&self) -> String {
        let response = self.send("POST", &[], INITIALIZE).await;
        let id = response.headers()["mcp-session-id"]
            .to_str()
            .expect("ASCII")
            .to_owned();
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let response = self.send("POST", &[("mcp-session-id", &id)], note).await;
        assert_eq!(response.status(), 202);
        id
    }

    /// Calls the tool `steps` and reads its messages over several connections, all of which but the last are cut;
    /// returns the messages.
    async fn read_with_cuts(&mut self, session: &str) -> Vec<String> {
        let headers = [("mcp-session-id", session)];
        let mut response = self.send("POST", &headers, &call(7, "steps", "")).await;
        let mut messages = Vec::new();
        let mut last_id = String::new();
        loop {
            assert_eq!(response.status(), 200, "{last_id}");
            let is_over = self.read_some(response, &mut messages, &mut last_id).await;
            if is_over {
                return messages;
            }
            assert!(!last_id.is_empty(), "cut before the first event");
            self.cuts += 1;
            let headers = [("mcp-session-id", session), ("last-event-id", &last_id)];
            response = self.send("GET", &headers, "").await;
        }
    }

    /// Reads a response up to a random byte; returns true if the result was received.
    async fn read_some(
        &mut self,
        response: http::Response<ResponseBody>,
        messages: &mut Vec<String>,
        last_id: &mut String,
    ) -> bool {
        let mut decoder = Decoder::new(1 << 20);
        // The first event is always read: before it, there is nothing to resume from.
        let mut left = 60 + usize::try_from(self.random.below(400)).expect("small");
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let data = frame.expect("no error").into_data().expect("data");
            let taken = data.len().min(left);
            left -= taken;
            decoder.push(&data[..taken]);
            while let Some(Decoded::Event(event)) = decoder.next_event() {
                *last_id = event.id;
                if !event.data.is_empty() {
                    messages.push(String::from_utf8(event.data).expect("UTF-8"));
                }
            }
            if messages
                .last()
                .is_some_and(|last| last.contains("\"result\""))
            {
                return true;
            }
            if left == 0 {
                return false;
            }
            if self.random.below(4) == 0 {
                tokio::task::yield_now().await;
            }
        }
        false
    }
}

/// A client that reconnects with `Last-Event-ID` receives each message exactly once, wherever the connection was cut.
#[tokio::test]
async fn ten_thousand_cuts_lose_nothing() {
    let mut cutter = Cutter::new(1);
    let mut session = cutter.begin().await;
    let mut rounds = 0;
    while cutter.cuts < 10_000 {
        let messages = cutter.read_with_cuts(&session).await;
        assert_eq!(
            messages.len(),
            usize::try_from(STEPS).expect("small") + 1,
            "{messages:?}"
        );
        for (at, message) in messages.iter().enumerate().take(messages.len() - 1) {
            let step = format!("\"progress\":{}", at + 1);
            assert!(message.contains(&step), "message {at} is {message}");
        }
        rounds += 1;
        if rounds % 50 == 0 {
            let headers = [("mcp-session-id", session.as_str())];
            let response = cutter.send("DELETE", &headers, "").await;
            assert_eq!(response.status(), 204);
            session = cutter.begin().await;
        }
    }
    let headers = [("mcp-session-id", session.as_str())];
    cutter.send("DELETE", &headers, "").await;
    assert_eq!(
        cutter.log.bytes(),
        0,
        "ended sessions leave nothing in the log"
    );
    assert_eq!(cutter.service.sessions(), 0);
}
