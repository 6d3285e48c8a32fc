//! Server of one revision with sessions, whose messages a function of the test writes.

use std::sync::Arc;

use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect,
};
use mcp_exact::{JsonObject, RawJson, Revision};
use mcp_exact_bridge::Upstream;
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::task::JoinHandle;

use crate::common::object;

/// Line by which a script lets the server exit.
pub const EXIT: &str = "exit";

/// Server in memory. A function returns its messages after a message of the client, or [`EXIT`]; the server itself completes the
/// handshake and lists no tools.
pub struct Scripted<F> {
    /// Revision that the server negotiates.
    pub revision: Revision,
    /// Function that returns the messages of the server after a message of the client.
    pub script: Arc<F>,
}

impl<F: Fn(&JsonObject) -> Vec<String> + Send + Sync + 'static> Scripted<F> {
    /// Creates a server of a revision.
    pub fn new(revision: Revision, script: F) -> Self {
        let script = Arc::new(script);
        Self { revision, script }
    }
}

/// Returns the member of a message as text: the content of a string, or else the JSON text; empty if there is none.
pub fn text_of(message: &JsonObject, name: &str) -> String {
    let value = message.view().find(name);
    let text = value.map(|value| match value.as_str() {
        Some(text) => text.into_owned(),
        None => value.text().to_owned(),
    });
    text.unwrap_or_default()
}

/// Returns the name of the tool that a message calls; `None` for other messages.
pub fn called_tool(message: &JsonObject) -> Option<String> {
    let params = message.get("params").map(JsonObject::try_from)?.ok()?;
    (text_of(message, "method") == "tools/call").then(|| text_of(&params, "name"))
}

/// Returns a response with these members, such as `"result":{}`.
pub fn response(id: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},{members}}}"#)
}

/// Returns the response of a tool with a text.
pub fn tool_response(id: &str, text: &str, is_error: bool) -> String {
    let text = RawJson::string(text);
    response(
        id,
        &format!(
            r#""result":{{"content":[{{"type":"text","text":{}}}],"isError":{is_error}}}"#,
            text.text()
        ),
    )
}

/// Returns a request of the server.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#)
}

/// Returns the response to `initialize`.
fn initialize_response(message: &JsonObject, revision: Revision) -> String {
    let result = format!(
        r#""result":{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}},"resources":{{}}}},"serverInfo":{{"name":"scripted","version":"1.0.0"}}}}"#
    );
    response(&text_of(message, "id"), &result)
}

/// Params of a sampling request.
pub const SAMPLE: &str =
    r#"{"messages":[{"role":"user","content":{"type":"text","text":"Hi."}}],"maxTokens":1}"#;
/// Params of an elicitation request.
pub const ELICIT: &str = r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}}}}"#;

impl<F: Fn(&JsonObject) -> Vec<String> + Send + Sync + 'static> Upstream for Scripted<F> {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = tokio::io::duplex(256 << 10);
        let (revision, script) = (self.revision, Arc::clone(&self.script));
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(remote);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = object(&line);
                let written = script(&message);
                let answers = match &*text_of(&message, "method") {
                    _ if !written.is_empty() => written,
                    "initialize" => vec![initialize_response(&message, revision)],
                    "tools/list" => {
                        let id = text_of(&message, "id");
                        vec![response(&id, r#""result":{"tools":[]}"#)]
                    }
                    "server/discover" => {
                        let error = r#""error":{"code":-32601,"message":"Method not found"}"#;
                        vec![response(&text_of(&message, "id"), error)]
                    }
                    _ => written,
                };
                for answer in answers {
                    if answer == EXIT {
                        return;
                    }
                    if writer
                        .write_all(format!("{answer}\n").as_bytes())
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }
        });
        let (reader, writer) = tokio::io::split(local);
        let transport = LineTransport::new(reader, writer, settings.limits.message_bytes);
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, transport, options))
    }
}
