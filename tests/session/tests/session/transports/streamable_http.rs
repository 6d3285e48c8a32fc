//! Both endpoints over simulated HTTP, without sockets (`basic/transports` of 2025-03-26 and later; 2026-07-28:
//! `basic/transports/streamable-http`).

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_session::http::{RequestTarget, classify};
use mcp_exact_tests_session::*;

/// Client, the server endpoint of its session, and new server endpoints for requests without a session.
struct SimulatedHttp {
    /// Client endpoint.
    client: ClientEndpoint,
    /// Settings of all server endpoints.
    settings: Arc<ServerSettings>,
    /// Server endpoint of the session.
    session: Option<ServerEndpoint<()>>,
    /// Client's stream by the corresponding stream of the server endpoint.
    answer_streams: BTreeMap<StreamId, StreamId>,
    /// Events of the client so far.
    client_events: Vec<ClientEvent>,
    /// Number of POSTs so far.
    posts: usize,
    /// HTTP statuses of the responses to the POSTs so far.
    statuses: Vec<u16>,
    /// Schema checker of the messages in both directions.
    checker: SchemaChecker,
}

impl SimulatedHttp {
    /// Creates a client and server settings that offer these revisions.
    fn new(client: &[&str], server: &[&str]) -> Self {
        let config = client_config(client).build().expect("a configuration");
        let client = ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO);
        Self {
            client,
            settings: server_config(server).build().expect("a configuration"),
            session: None,
            answer_streams: BTreeMap::new(),
            client_events: Vec::new(),
            posts: 0,
            statuses: Vec::new(),
            checker: SchemaChecker::default(),
        }
    }

    /// Delivers messages and answers server requests until the client has no more output and events.
    fn exchange_messages(&mut self) {
        for _ in 0..100 {
            let mut busy = false;
            let mut body = Vec::new();
            while let Some(transmit) = self.client.poll_transmit(&mut body) {
                busy = true;
                if let Transmit::Frame {
                    stream: on, http, ..
                } = transmit
                {
                    self.deliver_post(on, &http, &std::mem::take(&mut body));
                }
            }
            while let Some(event) = self.client.poll_event() {
                busy = true;
                match event {
                    ClientEvent::Request { key, .. } => {
                        let answer = Ok(to_result(json!({ "roots": [] })));
                        self.client
                            .answer(key, answer, Time::ZERO)
                            .expect("it waits");
                    }
                    event => self.client_events.push(event),
                }
            }
            if !busy {
                return;
            }
        }
        panic!("no end");
    }

    /// Delivers a POST to the endpoint of the session, or to a new endpoint.
    fn deliver_post(&mut self, on: StreamId, hints: &HttpHints, body: &[u8]) {
        self.posts += 1;
        let agreed = self
            .client
            .session_info()
            .map(|agreed| agreed.revision.as_str());
        self.checker.check_frame(true, body, agreed);
        let mut headers = Vec::new();
        let mut header = |name: &str, value: Option<String>| {
            headers.extend(value.map(|value| (name.to_owned(), value)));
        };
        header(
            "MCP-Protocol-Version",
            hints.revision.map(|r| r.to_string()),
        );
        header("Mcp-Method", hints.method.clone());
        header("Mcp-Name", hints.name.as_deref().map(http::encode_value));
        header(
            "Mcp-Session-Id",
            self.session.as_ref().map(|_| "s".to_owned()),
        );
        let request = HttpRequest::new(headers);
        match classify(&request, body, &self.settings.offer) {
            RequestTarget::Stateless => {
                let mut server = self.endpoint_for();
                self.handle_events(&mut server, on, request, body);
            }
            RequestTarget::Initialize => {
                let mut server = self.endpoint_for();
                self.handle_events(&mut server, on, request, body);
                self.session = Some(server);
            }
            RequestTarget::Session(_) | RequestTarget::NoSessionId => match self.session.take() {
                Some(mut server) => {
                    self.handle_events(&mut server, on, request, body);
                    self.session = Some(server);
                }
                None => self.fail_post(on, 400, b""),
            },
            RequestTarget::UnsupportedRevision(_, refusal) | RequestTarget::Refused(refusal) => {
                self.fail_post(on, refusal.status(true), b"");
            }
        }
    }

    /// Creates a server endpoint without a session.
    fn endpoint_for(&self) -> ServerEndpoint<()> {
        let config = Arc::clone(&self.settings);
        ServerEndpoint::new(config, Binding::StreamableHttp, Time::ZERO)
    }

    /// Handles the events and the output of a server endpoint after a POST.
    fn handle_events(
        &mut self,
        server: &mut ServerEndpoint<()>,
        on: StreamId,
        http: HttpRequest,
        body: &[u8],
    ) {
        let stream = server.open(StreamKind::Post).expect("a stream");
        self.answer_streams.insert(stream, on);
        let with = FrameContext {
            http: Some(http),
            ..FrameContext::new(())
        };
        server
            .receive(stream, body, with, Time::ZERO)
            .expect("open");
        while let Some(event) = server.poll_event() {
            if let ServerEvent::Request(request) = event {
                assert!(request.context().http.is_some());
                let reply = reply_to(&request);
                server
                    .reply(request.key, reply, Time::ZERO)
                    .expect("it waits");
            }
        }
        let mut frame = Vec::new();
        while let Some(transmit) = server.poll_transmit(&mut frame) {
            match transmit {
                Transmit::Frame {
                    stream: on, http, ..
                } => {
                    let to = self.answer_streams[&on];
                    let status = http.status.unwrap_or(200);
                    self.statuses.push(status);
                    let agreed = server.session_info().or(self.client.session_info());
                    let agreed = agreed.map(|agreed| agreed.revision.as_str());
                    self.checker.check_frame(false, &frame, agreed);
                    match status {
                        400.. => self.fail_post(to, status, &frame),
                        _ => self.client.receive(to, &frame, Time::ZERO).expect("open"),
                    }
                }
                Transmit::Status { stream, status } => {
                    self.statuses.push(status);
                    self.client.handle_close(
                        self.answer_streams[&stream],
                        StreamEnd::Clean,
                        Time::ZERO,
                    );
                }
                other => panic!("{other:?}"),
            }
            frame.clear();
        }
    }

    /// Notifies the client of an HTTP error status.
    fn fail_post(&mut self, on: StreamId, code: u16, body: &[u8]) {
        let body = body.to_vec();
        self.client
            .handle_failure(on, TransportFailure::Status { code, body }, Time::ZERO);
    }

    /// Sends a request with the method `method`; returns its outcome.
    fn call_tool(&mut self, method: &str, params: Value) -> Outcome {
        let options = CallOptions::default();
        let key = self
            .client
            .request(method, Some(to_object(params)), options, Time::ZERO)
            .expect(method);
        self.exchange_messages();
        let mut ends = self.client_events.iter().filter_map(|event| match event {
            ClientEvent::Completed(done, outcome) if *done == key => Some(outcome.clone()),
            _ => None,
        });
        let end = ends.next().expect("an end");
        assert_eq!(ends.next(), None);
        end
    }
}

/// Returns the reply to a request; a tool call is first answered with a request for the roots.
fn reply_to(request: &IncomingRequest<()>) -> Reply {
    match (request.method(), request.responses.get("r")) {
        ("tools/list", _) => Reply::Result(to_result(json!({ "tools": [] }))),
        ("tools/call", None) => Reply::InputRequired {
            requests: vec![("r".to_owned(), InputRequest::new("roots/list", None))],
            state: Some("s".into()),
        },
        ("tools/call", Some(Outcome::Result(_))) => {
            assert_eq!((request.retries, request.state.as_deref()), (1, Some("s")));
            Reply::Result(to_result(json!({ "content": [] })))
        }
        _ => Reply::Error(PeerError::internal("unexpected")),
    }
}

/// Returns the revision that the client has negotiated, if any.
fn session_info(web: &SimulatedHttp) -> Option<&'static str> {
    web.client_events.iter().find_map(|event| match event {
        ClientEvent::Negotiated(agreed, _) => Some(agreed.revision.as_str()),
        _ => None,
    })
}

/// A client and a server of every pair of revisions negotiate over HTTP as the specification requires, and can exchange
/// requests.
#[test]
fn every_revision_pair_works_over_http() {
    let mut reversed = all_revisions();
    reversed.reverse();
    let mut sets: Vec<Vec<&str>> = all_revisions().into_iter().map(|id| vec![id]).collect();
    sets.push(reversed.clone());
    sets.push(
        reversed
            .iter()
            .copied()
            .filter(|id| lifecycle(id) == Some(Lifecycle::Initialize))
            .collect(),
    );
    for client in &sets {
        for server in &sets {
            let mut web = SimulatedHttp::new(client, server);
            web.exchange_messages();
            // The first one that both speak, in the order of the client; an old client offers one only.
            let common = client.iter().find(|id| server.contains(id)).copied();
            assert_eq!(
                session_info(&web),
                common,
                "{client:?} {server:?} {:?}",
                web.client_events
            );
            if common.is_none() {
                let failed = |event: &ClientEvent| matches!(event, ClientEvent::Failed(_));
                assert!(
                    web.client_events.iter().any(failed),
                    "{:?}",
                    web.client_events
                );
                continue;
            }
            assert!(matches!(
                web.call_tool("tools/list", json!({})),
                Outcome::Result(_)
            ));
            let called = web.call_tool("tools/call", json!({ "name": "n\u{e9}" }));
            assert!(
                matches!(called, Outcome::Result(_)),
                "{common:?} {called:?}"
            );
            let checked: usize = web.checker.checked_counts.values().sum();
            // The handshake or the probe, a list, a call, its question and the answer: both directions.
            assert!(checked >= 8, "{:?}", web.checker);
        }
    }
}

/// The POST of `notifications/initialized` gets status 202.
#[test]
fn unanswered_messages_get_202() {
    let mut web = SimulatedHttp::new(&["2025-11-25"], &["2025-11-25"]);
    web.exchange_messages();
    // `initialize`, then `initialized`.
    assert_eq!((web.posts, &web.statuses[..]), (2, &[200, 202][..]));
}

/// Messages that belong to a request are sent on the stream of its POST, before the response.
#[test]
fn related_messages_share_the_answer_stream() {
    let config = server_config(&["2025-06-18"])
        .build()
        .expect("a configuration");
    let known = SessionInfo {
        revision: Offer::new(["2025-06-18"]).expect("known").revisions[0],
        capabilities: to_object(json!({ "roots": {} })),
        implementation: None,
        instructions: None,
    };
    let mut server: ServerEndpoint<()> = ServerEndpoint::resume(
        config,
        Binding::StreamableHttp,
        Snapshot::new(known, 0),
        Time::ZERO,
    )
    .expect("offered");
    assert_eq!(server.publish(&Change::Tools), 0, "no stream for it");
    assert_eq!(
        server.ping(RequestTimeout::default(), Time::ZERO),
        Err(SendError::NoStream)
    );
    let post = server.open(StreamKind::Post).expect("a stream");
    let streams = [StreamKind::Standalone; 2].map(|kind| server.open(kind).expect("a stream"));
    let params = json!({ "name": "x", "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    server
        .receive(
            post,
            call.to_string().as_bytes(),
            FrameContext::new(()),
            Time::ZERO,
        )
        .expect("open");
    let Some(ServerEvent::Request(request)) = server.poll_event() else {
        panic!("no request");
    };
    // The change of before waited for the first stream; the newest one carries what comes now.
    assert_eq!(server.publish(&Change::Tools), 1);
    server
        .send_progress(request.key, &Progress::new(1.0))
        .expect("it increases");
    server
        .send_log(Scope::During(request.key), Level::Error, None, json!(1))
        .expect("it may");
    server
        .reply(
            request.key,
            Reply::Result(to_result(json!({ "content": [] }))),
            Time::ZERO,
        )
        .expect("it waits");
    let mut sent = Vec::new();
    let mut out = Vec::new();
    while let Some(Transmit::Frame {
        stream: on,
        related_request: about,
        is_last: last,
        ..
    }) = server.poll_transmit(&mut out)
    {
        sent.push((on, about.is_some(), last));
    }
    let during = |last| (post, true, last);
    assert_eq!(
        sent,
        [
            (streams[0], false, false),
            (streams[1], false, false),
            during(false),
            during(false),
            during(true)
        ]
    );
}

/// If the session gets status 404, its pending request ends and the client reports the loss of the session.
#[test]
fn unknown_session_ends_with_404() {
    let mut web = SimulatedHttp::new(&["2025-11-25"], &["2025-11-25"]);
    web.exchange_messages();
    let key = web
        .client
        .request("tools/list", None, CallOptions::default(), Time::ZERO)
        .expect("it leaves");
    let mut out = Vec::new();
    let Some(Transmit::Frame { stream: on, .. }) = web.client.poll_transmit(&mut out) else {
        panic!("nothing left");
    };
    web.fail_post(on, 404, b"");
    web.exchange_messages();
    let ends = web
        .client_events
        .iter()
        .filter(|event| matches!(event, ClientEvent::Completed(done, _) if *done == key));
    assert_eq!(ends.count(), 1);
    assert!(
        web.client_events
            .iter()
            .any(|event| matches!(event, ClientEvent::SessionLost))
    );
    let again = web
        .client
        .request("tools/list", None, CallOptions::default(), Time::ZERO);
    assert_eq!(again, Err(SendError::Closed));
}

/// If the stream of a POST breaks or ends without a response, its request ends as lost.
#[test]
fn broken_stream_loses_its_request() {
    let mut web = SimulatedHttp::new(&["2026-07-28"], &["2026-07-28"]);
    web.exchange_messages();
    let mut leave = || {
        let key = web
            .client
            .request("tools/list", None, CallOptions::default(), Time::ZERO)
            .expect("it leaves");
        let mut out = Vec::new();
        match web.client.poll_transmit(&mut out) {
            Some(Transmit::Frame { stream: on, .. }) => (key, on),
            other => panic!("{other:?}"),
        }
    };
    let (lost, broken) = leave();
    let (stopped, stream) = leave();
    web.client.handle_close(broken, StreamEnd::Lost, Time::ZERO);
    web.client.cancel(stopped, "enough", Time::ZERO);
    // The end of the stream is the cancellation: no message.
    assert_eq!(
        web.client.poll_transmit(&mut Vec::new()),
        Some(Transmit::Close { stream })
    );
    web.exchange_messages();
    let ends: Vec<_> = web
        .client_events
        .iter()
        .filter_map(|event| match event {
            ClientEvent::Completed(key, outcome) => Some((*key, outcome.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(lost, Outcome::Lost), (stopped, Outcome::Cancelled)]);
}
