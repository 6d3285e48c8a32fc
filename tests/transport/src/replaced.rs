//! Scripted server on any transport that simulates a server that is replaced behind a relay: after its first tool call,
//! the server supports another revision.

use std::future::poll_fn;
use std::task::Poll;

use mcp_exact_transport::{Received, Transport};
use serde_json::{Value, json};

/// The revision without handshake.
const DISCOVER: &str = "2026-07-28";
/// Name of the `_meta` member that contains the revision of a request.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Server that supports one revision before its first call, and another revision afterwards.
///
/// The result of a call contains the revision.
#[derive(Debug, Clone)]
pub struct ReplacedServer {
    /// Currently supported revision.
    revision: String,
    /// Revision that the server supports after its first tool call; `None` after that call.
    next: Option<String>,
    /// Revision that `initialize` has negotiated.
    session: Option<String>,
}

impl ReplacedServer {
    /// Creates a server that supports the revision `from`, and after its first tool call only the revision `to`.
    pub fn new(from: &str, to: &str) -> Self {
        Self {
            revision: from.to_owned(),
            next: Some(to.to_owned()),
            session: None,
        }
    }

    /// Returns the response to a message; `None` for a notification.
    pub fn answer(&mut self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let response = match self.result(message) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        Some(response)
    }

    /// Returns the result of a request, or its error.
    fn result(&mut self, message: &Value) -> Result<Value, Value> {
        let has_discovery = self.revision == DISCOVER;
        let params = &message["params"];
        let version = params["_meta"][VERSION].as_str().map(str::to_owned);
        match message["method"].as_str().unwrap_or_default() {
            "initialize" if !has_discovery => {
                self.session = Some(self.revision.clone());
                let server = json!({ "name": "replaced", "version": "1" });
                let capabilities = json!({ "tools": {} });
                Ok(json!({
                    "protocolVersion": self.revision, "capabilities": capabilities, "serverInfo": server,
                }))
            }
            "server/discover" if !has_discovery => {
                Err(json!({ "code": -32601, "message": "Method not found" }))
            }
            _ if version.or_else(|| self.session.clone()).as_ref() != Some(&self.revision) => {
                let data = json!({ "supported": [self.revision], "requested": "another" });
                Err(
                    json!({ "code": -32022, "message": "Unsupported protocol version", "data": data }),
                )
            }
            method => {
                let text = json!([{ "type": "text", "text": self.revision }]);
                if let Some(next) = self.next.take_if(|_| method == "tools/call") {
                    self.revision = next;
                }
                Ok(json!({
                    "resultType": "complete", "supportedVersions": [DISCOVER], "ttlMs": 0,
                    "capabilities": { "tools": {} }, "cacheScope": "private", "tools": [], "content": text,
                }))
            }
        }
    }

    /// Answers the messages of a transport until its end.
    pub async fn serve(mut self, mut transport: impl Transport) {
        poll_fn(|cx| {
            loop {
                let mut answers = Vec::new();
                let polled = transport.poll_receive(cx, &mut |received| {
                    if let Received::Frame(frame) = received {
                        let message = serde_json::from_slice(frame).expect("a message");
                        answers.extend(self.answer(&message));
                    }
                    true
                });
                for answer in answers {
                    let text = answer.to_string();
                    transport.output().extend_from_slice(text.as_bytes());
                    transport.end_frame();
                }
                // Small answers always fit.
                let _ = transport.poll_flush(cx);
                match polled {
                    Poll::Ready(Ok(true)) => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }
}
