//! Measured servers, each with one tool `echo` that returns its argument.

use std::sync::Arc;

use anyhow::bail;
use mcp_exact::{IntoServer as _, server};
use mcp_exact_session::{
    Identity, IncomingRequest, JsonObject, PeerError, RawResult, Reply, ServerConfig, ServerEvent,
};
use mcp_exact_transport::{RequestContext, ServerHandle};

/// Arguments of the tool `echo`.
#[derive(serde::Serialize)]
pub struct Text {
    /// Text that the tool returns.
    pub text: String,
}

/// Server that is written with the macro API.
pub struct Echo;

#[server(name = "echo", version = "1")]
impl Echo {
    /// Returns the argument.
    #[tool(read_only)]
    async fn echo(&self, text: String) -> String {
        text
    }
}

/// Runs the server `api` or `driver` over stdio until the end of its input.
pub fn run(name: &str) -> anyhow::Result<()> {
    let runtime = super::runtime()?;
    match name {
        "api" => {
            let served = runtime.block_on(Echo.serve_stdio());
            served.map_err(|error| anyhow::anyhow!("{error}"))
        }
        "driver" => {
            let mut config = ServerConfig::new(Identity::new("echo", "1"));
            config.capabilities = r#"{"tools":{}}"#.parse()?;
            let served = mcp_exact_transport::serve_stdio(config.build()?, Arc::new(handle));
            Ok(runtime.block_on(served)?)
        }
        other => bail!("no server is called {other:?}; there are `api` and `driver`"),
    }
}

/// Replies to each request that the driver delivers.
fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    if let ServerEvent::Request(request) = event {
        let reply = call(&request).unwrap_or_else(Reply::Error);
        let _ = server.reply(request.key, reply);
    }
}

/// Returns the reply to a call of the tool `echo`.
fn call(request: &IncomingRequest<RequestContext>) -> Result<Reply, PeerError> {
    let arguments = request.param("arguments");
    let arguments = arguments.and_then(|arguments| arguments.object());
    let text = arguments.and_then(|arguments| arguments.find("text"));
    let text = text.ok_or_else(|| PeerError::invalid_params("`text` is missing"))?;
    let text = text.text();
    let result = format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#);
    let result: Result<JsonObject, _> = result.parse();
    let result = result.map_err(|error| PeerError::internal(error.to_string()))?;
    Ok(Reply::Result(RawResult::from(result)))
}
