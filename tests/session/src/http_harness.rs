//! Harness of a client endpoint over HTTP; the test acts as its server, and checks every sent message and its headers.
//!
//! The harness accepts JSON values, and returns streams, headers and messages.

use mcp_exact_session::http::post_headers;
use serde_json::Value;

use crate::*;

/// Returns the value of a header.
///
/// # Panics
/// If the header occurs twice.
pub fn header_value<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let mut named = headers
        .iter()
        .filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let found = named.next().map(|(_, value)| &**value);
    assert_eq!(named.next(), None, "{name} is there twice");
    found
}

/// Names and values of HTTP headers.
pub type Headers = Vec<(String, String)>;

/// Harness of a client endpoint over HTTP; the test acts as its server.
pub struct HttpHarness {
    /// The endpoint under test.
    pub client: ClientEndpoint,
    /// Revision of the client.
    pub revision: &'static str,
}

impl HttpHarness {
    /// Creates a client that has negotiated the revision with its server.
    ///
    /// # Panics
    /// If the revision is not compiled in.
    pub fn new(revision: &'static str) -> Self {
        let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
        let settings = client_config(&[revision]).build().expect("a configuration");
        let binding = Binding::StreamableHttp;
        let client = ClientEndpoint::resume(
            settings,
            binding,
            Snapshot::new(negotiated_session(revision, capabilities), 0),
            Time::ZERO,
        );
        Self {
            client: client.expect("offered"),
            revision,
        }
    }

    /// Removes and returns the output of the endpoint: each message with its stream and the headers of its POST.
    ///
    /// # Panics
    ///
    /// If a message violates the schema.
    #[track_caller]
    pub fn take_output(&mut self) -> Vec<(StreamId, Headers, Value)> {
        Entrance::Http.record_use();
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(&mut bytes) {
            if let Transmit::Frame {
                stream: on, http, ..
            } = transmit
            {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                for item in message.as_array().unwrap_or(&vec![message.clone()]) {
                    check_message(self.revision, true, None, item);
                }
                sent.push((on, post_headers(&http), message));
            }
            bytes.clear();
        }
        sent
    }

    /// Sends a request; returns its key, its stream, its headers and its message.
    ///
    /// # Panics
    ///
    /// If the request is not sent.
    #[track_caller]
    pub fn request(
        &mut self,
        method: &str,
        params: Value,
    ) -> (RequestKey, StreamId, Headers, Value) {
        let params = (!params.is_null()).then(|| to_object(params));
        let key = self
            .client
            .request(method, params, CallOptions::default(), Time::ZERO);
        let (on, headers, message) = self.take_output().remove(0);
        (key.expect("it leaves"), on, headers, message)
    }

    /// Delivers a message of the server to the client on the stream `on`.
    ///
    /// # Panics
    ///
    /// If the endpoint does not accept the message.
    #[track_caller]
    pub fn receive(&mut self, on: StreamId, message: &Value) {
        Entrance::Http.record_use();
        let text = message.to_string();
        self.client
            .receive(on, text.as_bytes(), Time::ZERO)
            .expect("open");
    }

    /// Removes and returns the events of the endpoint.
    pub fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }
}
