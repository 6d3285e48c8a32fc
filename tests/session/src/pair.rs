//! Client and server in memory, with one handler for all revisions; every message is checked against its schema.
//!
//! Timestamps are simulated, so tests are deterministic.

use serde_json::{Value, json};

use crate::*;

/// Result of one pass over both endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// At least one message was delivered, or at least one event was handled.
    Busy,
    /// No endpoint had a message to send or an event to handle.
    Idle,
}

/// Connected client and server endpoints in memory.
pub struct Pair {
    /// The client's endpoint.
    pub client: ClientEndpoint,
    /// The server's endpoint.
    pub server: ServerEndpoint<()>,
    /// Simulated time of both endpoints.
    pub now: Time,
    /// Events of the client, except input requests, which are answered.
    pub client_events: Vec<ClientEvent>,
    /// Events of the server, except requests, which are handled.
    pub server_events: Vec<ServerEvent<()>>,
    /// Number of messages that were checked against their schema.
    pub checked_messages: usize,
    /// Schema checker of the messages in both directions.
    checker: SchemaChecker,
}

impl Pair {
    /// Creates a client and a server that have not exchanged messages yet.
    pub fn new(client_config: ClientConfig, server_config: ServerConfig) -> Self {
        Self {
            client: client(client_config),
            server: server(server_config),
            now: Time::ZERO,
            client_events: Vec::new(),
            server_events: Vec::new(),
            checked_messages: 0,
            checker: SchemaChecker::default(),
        }
    }

    /// Delivers messages and handles requests until neither endpoint has messages or events.
    ///
    /// # Panics
    /// If the exchange does not end, or a message violates the schema.
    pub fn run_until_idle(&mut self) {
        for _ in 0..1000 {
            if self.move_messages() == Step::Idle {
                return;
            }
        }
        panic!("no end");
    }

    /// Delivers the queued messages of both endpoints to the peer, and handles the events.
    pub fn move_messages(&mut self) -> Step {
        Entrance::Duplex.record_use();
        let mut busy = false;
        let mut out = Vec::new();
        while self.client.poll_transmit(&mut out).is_some() {
            busy = true;
            let frame = std::mem::take(&mut out);
            if !frame.is_empty() {
                self.check(true, &frame);
                let with = FrameContext::new(());
                let _ = self
                    .server
                    .receive(StreamId::DUPLEX, &frame, with, self.now);
            }
        }
        while let Some(event) = self.server.poll_event() {
            busy = true;
            match event {
                ServerEvent::Request(request) => {
                    reply_to_requests(&mut self.server, &request, self.now)
                }
                other => self.server_events.push(other),
            }
        }
        while self.server.poll_transmit(&mut out).is_some() {
            busy = true;
            let frame = std::mem::take(&mut out);
            if !frame.is_empty() {
                self.check(false, &frame);
                let _ = self.client.receive(StreamId::DUPLEX, &frame, self.now);
            }
        }
        while let Some(event) = self.client.poll_event() {
            busy = true;
            match event {
                ClientEvent::Request {
                    key, request: ask, ..
                } => {
                    let sent = self.client.answer(key, client_answer(&ask), self.now);
                    sent.expect("a question waits");
                }
                other => self.client_events.push(other),
            }
        }
        if busy { Step::Busy } else { Step::Idle }
    }

    /// Sends a request, and returns its outcome when it has ended.
    ///
    /// # Panics
    /// If the request is not sent or does not end.
    pub fn complete_request(&mut self, method: &str, params: Option<Value>) -> Outcome {
        let params = params.map(to_object);
        let options = CallOptions {
            progress: true,
            log_level: Some(Level::Debug),
            ..CallOptions::default()
        };
        let key = self
            .client
            .request(method, params, options, self.now)
            .expect(method);
        self.run_until_idle();
        let done = self.client_events.iter().filter_map(|event| match event {
            ClientEvent::Completed(done, outcome) if *done == key => Some(outcome.clone()),
            _ => None,
        });
        let done: Vec<Outcome> = done.collect();
        assert_eq!(done.len(), 1, "{method}: {done:?}");
        done[0].clone()
    }

    /// Returns the negotiated revision, or the error with which the negotiation failed.
    ///
    /// # Panics
    ///
    /// If the negotiation has not ended.
    pub fn negotiated_revision(&self) -> Result<Revision, NegotiationError> {
        let verdict = self.client_events.iter().find_map(|event| match event {
            ClientEvent::Negotiated(agreed, _) => Some(Ok(agreed.revision)),
            ClientEvent::Failed(error) => Some(Err(error.clone())),
            _ => None,
        });
        verdict.expect("an agreement or a failure")
    }

    /// Checks a message against the schema of the revision that it names, or else of the negotiated revision.
    fn check(&mut self, from_client: bool, frame: &[u8]) {
        let message: Value = serde_json::from_slice(frame).expect("JSON");
        check_single_message(&message);
        let agreed = self.client.session_info().or(self.server.session_info());
        let agreed = agreed.map(|agreed| agreed.revision.as_str());
        self.checker.check_frame(from_client, frame, agreed);
        self.checked_messages += 1;
    }
}

/// Replies to a request of any revision; params that do not match the request's type are answered with an error.
fn reply_to_requests(server: &mut ServerEndpoint<()>, request: &IncomingRequest<()>, now: Time) {
    let reply = match request.typed() {
        Ok(_) => reply_to(server, request),
        Err(error) => Reply::Error(error),
    };
    if let Err(error) = server.reply(request.key, reply, now) {
        let error = PeerError::internal(error.to_string());
        server
            .reply(request.key, error, now)
            .expect("an error can be sent");
    }
}

/// Returns the reply to a request; a call of the tool `ask` is answered with input requests.
fn reply_to(server: &mut ServerEndpoint<()>, request: &IncomingRequest<()>) -> Reply {
    let params = request.params().map_or(Value::Null, to_value);
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let value = match request.method() {
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": schema }] }),
        "tools/call" if params["name"] == "echo" => text_result(&params["arguments"]["text"]),
        "tools/call" if params["name"] == "ask" => return input_for_name_and_sampling(request),
        "tools/call" if params["name"] == "slow" => {
            for step in [1.0, 2.0, 3.0] {
                let said = server.send_progress(
                    request.key,
                    &Progress::new(step).with_total(3.0).with_message("on"),
                );
                said.expect("progress increases");
                let during = Scope::During(request.key);
                server
                    .send_log(during, Level::Info, Some("slow"), json!(step))
                    .expect("logging");
            }
            text_result(&json!("done"))
        }
        "resources/list" => json!({ "resources": [{ "name": "a", "uri": "a:b" }] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" => json!({ "contents": [{ "uri": params["uri"], "text": "c" }] }),
        "resources/subscribe" | "resources/unsubscribe" => json!({}),
        "prompts/list" => json!({ "prompts": [{ "name": "p" }] }),
        "prompts/get" => {
            let content = json!({ "type": "text", "text": "hi" });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        "completion/complete" => json!({ "completion": { "values": ["x"] } }),
        _ => return Reply::Error(PeerError::invalid_params("nothing of the kind")),
    };
    Reply::Result(to_result(value))
}

/// Creates a tool result with one text block.
fn text_result(text: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Requires an elicitation and a sampling request, then a second elicitation, and finally returns the collected input
/// responses as text.
///
/// Clients without elicitation get only the sampling request.
fn input_for_name_and_sampling(request: &IncomingRequest<()>) -> Reply {
    let able = |name: &str| request.client().capabilities.get(name).is_some();
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let elicit = json!({ "message": "Who?", "requestedSchema": schema });
    let elicit = || InputRequest::new("elicitation/create", Some(to_object(elicit.clone())));
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    let sample = json!({ "messages": [message], "maxTokens": 5 });
    let sample = InputRequest::new("sampling/createMessage", Some(to_object(sample)));
    let so_far: Value = match &request.state {
        Some(state) => serde_json::from_str(state).expect("the state of this handler"),
        None => json!([]),
    };
    let mut so_far = so_far.as_array().cloned().unwrap_or_default();
    for (name, outcome) in request.responses.iter() {
        match outcome {
            Outcome::Result(result) => so_far.push(json!([name, to_value(result.object())])),
            other => so_far.push(json!([name, format!("{other:?}")])),
        }
    }
    let asks: Vec<(String, InputRequest)> = match so_far.len() {
        0 if able("elicitation") => vec![("first".into(), elicit()), ("sample".into(), sample)],
        0 => vec![("sample".into(), sample)],
        2 => vec![("second".into(), elicit())],
        _ => {
            return Reply::Result(to_result(text_result(&json!(
                Value::from(so_far).to_string()
            ))));
        }
    };
    Reply::InputRequired {
        requests: asks,
        state: Some(Value::from(so_far).to_string()),
    }
}

/// Returns the client's result for a server request.
fn client_answer(ask: &ServerRequest) -> Result<RawResult, PeerError> {
    Ok(to_result(match ask.method() {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "n" } }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///r" }] }),
        _ => {
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "t" } })
        }
    }))
}
