//! Client endpoint and server endpoint of `mcp-exact-session`, used directly: the base of the comparison with the macro
//! API.

use anyhow::Context as _;
use mcp_exact_session::*;

use crate::load::TEXT;

/// Client endpoint and server endpoint that have negotiated a revision and exchange messages in memory.
pub struct Pair {
    /// Client endpoint.
    client: ClientEndpoint,
    /// Server endpoint.
    server: ServerEndpoint<()>,
    /// Reused buffer for the bytes of one frame.
    frame: Vec<u8>,
}

impl Pair {
    /// Creates both endpoints and negotiates the revision.
    pub fn new(revision: &str) -> anyhow::Result<Self> {
        let offer = Offer::new([revision])?;
        let mut config = ServerConfig::new(Identity::new("server", "1"));
        config.offer = offer.clone();
        config.limits.requests_per_second = u32::MAX;
        config.capabilities = r#"{"tools":{}}"#.parse()?;
        let server = ServerEndpoint::new(config.build()?, Binding::Duplex, Time::ZERO);
        let mut config = ClientConfig::new(Identity::new("client", "1"));
        config.offer = offer;
        let client = ClientEndpoint::new(config.build()?, Binding::Duplex, None, Time::ZERO);
        let mut pair = Self {
            client,
            server,
            frame: Vec::new(),
        };
        for _ in 0..3 {
            pair.deliver_to_server();
            pair.deliver_to_client();
        }
        pair.client.session_info().context("no session")?;
        while pair.client.poll_event().is_some() {}
        while pair.server.poll_event().is_some() {}
        Ok(pair)
    }

    /// Delivers all queued messages of the client to the server.
    fn deliver_to_server(&mut self) {
        self.frame.clear();
        while self.client.poll_transmit(&mut self.frame).is_some() {
            let (on, with) = (StreamId::DUPLEX, FrameContext::new(()));
            let received = self.server.receive(on, &self.frame, with, Time::ZERO);
            received.expect("open");
            self.frame.clear();
        }
    }

    /// Delivers all queued messages of the server to the client.
    fn deliver_to_client(&mut self) {
        self.frame.clear();
        while self.server.poll_transmit(&mut self.frame).is_some() {
            let received = self
                .client
                .receive(StreamId::DUPLEX, &self.frame, Time::ZERO);
            received.expect("open");
            self.frame.clear();
        }
    }

    /// Makes one complete call of a tool that returns its argument: request, reply and outcome.
    pub fn call(&mut self) {
        let params = format!(r#"{{"name":"echo","arguments":{{"text":"{TEXT}"}}}}"#);
        let params: JsonObject = params.parse().expect("an object");
        let options = CallOptions::default();
        let sent = self
            .client
            .request("tools/call", Some(params), options, Time::ZERO);
        let key = sent.expect("it leaves");
        self.deliver_to_server();
        let Some(ServerEvent::Request(request)) = self.server.poll_event() else {
            panic!("no request");
        };
        let text = request.param("arguments").and_then(|all| all.object());
        let text = text.and_then(|all| all.find("text")).expect("a text");
        let result = format!(
            r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
            text.text()
        );
        let result: JsonObject = result.parse().expect("an object");
        let reply = Reply::Result(RawResult::from(result));
        let replied = self.server.reply(request.key, reply, Time::ZERO);
        assert_eq!(replied, Ok(SendOutcome::Queued));
        self.deliver_to_client();
        match self.client.poll_event() {
            Some(ClientEvent::Completed(done, Outcome::Result(_))) if done == key => {}
            other => panic!("{other:?}"),
        }
    }
}
