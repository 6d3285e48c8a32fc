//! Measures the decoding of a request into the types of the application's home revision, compared with the decoding
//! into the types of the client's revision.

use std::hint::black_box;

use mcp_exact_convert::Home;
use mcp_exact_session::{
    Binding, FrameContext, Identity, IncomingRequest, LossPolicy, ServerConfig, ServerEndpoint,
    ServerEvent, StreamId, Time,
};

use crate::Line;

/// Request that starts a session.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"client","version":"1"}}}"#;
/// Notification that completes the handshake.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Returns the measurement of an application with the home revision `H` that decodes the request `call` of a client of
/// 2025-06-18.
pub fn line<H: Home>(name: &str, call: &str) -> Line {
    let request = received_request(call);
    let same = request.clone();
    let own = move || drop(black_box(same.typed().expect("a call")));
    let home = move || {
        let home = request.typed_as::<H>(LossPolicy::Report);
        drop(black_box(home.expect("a call of the other revision")));
    };
    Line {
        what: format!("home view, {}, of {name}", H::REVISION.as_str()),
        base: "its own",
        demanded: 1.3,
        calls: 2_000,
        compared: Box::new(own),
        run: Box::new(home),
    }
}

/// Returns the request `call` as a server endpoint delivers it to the application.
fn received_request(call: &str) -> IncomingRequest<()> {
    let mut config = ServerConfig::new(Identity::new("server", "1"));
    config.capabilities = r#"{"tools":{}}"#.parse().expect("an object");
    let settings = config.build().expect("a configuration");
    let mut server = ServerEndpoint::new(settings, Binding::Duplex, Time::ZERO);
    for frame in [INITIALIZE, INITIALIZED, call] {
        let with = FrameContext::new(());
        let received = server.receive(StreamId::DUPLEX, frame.as_bytes(), with, Time::ZERO);
        received.expect("an open stream");
    }
    while let Some(event) = server.poll_event() {
        if let ServerEvent::Request(request) = event {
            return request;
        }
    }
    panic!("no request was received");
}
