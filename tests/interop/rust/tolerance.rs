//! A client that uses rmcp in front of an untidy server: `tolerance METHOD COMMAND…` starts a server over stdio,
//! `tolerance METHOD --http URL` connects to a server over HTTP. The client does what METHOD is about, and prints one line
//! of JSON: what it delivers to its program, or the error.

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ContentBlock, GetPromptRequestParams,
    Implementation, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::json;
use tokio::process::Command;

/// Error of the client.
type Failure = Box<dyn std::error::Error>;
/// Running rmcp client.
type Session = RunningService<RoleClient, ClientConfig>;

/// Connects to a server process or a URL: with a probe, then with a handshake if the probe fails.
async fn connect(target: &[String]) -> Result<Session, Failure> {
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let client = ClientConfig::new(
        ClientCapabilities::default(),
        Implementation::new("interop-peer", "1.0.0"),
    );
    match target {
        [option, url] if option == "--http" => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            Ok(client.serve_with_lifecycle(transport, lifecycle).await?)
        }
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments);
            let transport = TokioChildProcess::new(command)?;
            Ok(client.serve_with_lifecycle(transport, lifecycle).await?)
        }
        [] => Err("name a command, or --http and a URL".into()),
    }
}

/// Joins the names of definitions.
fn names(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Joins the texts of content blocks.
fn texts<'a>(contents: impl Iterator<Item = &'a ContentBlock>) -> String {
    let texts = contents.map(|content| match content {
        ContentBlock::Text(text) => text.text.clone(),
        other => format!("{other:?}"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Does what the method is about.
async fn deliver(session: &Session, method: &str) -> Result<String, Failure> {
    Ok(match method {
        "tools/list" => {
            let tools = session.list_all_tools().await?;
            names(tools.into_iter().map(|tool| tool.name.into_owned()))
        }
        "prompts/list" => {
            let prompts = session.list_all_prompts().await?;
            names(prompts.into_iter().map(|prompt| prompt.name))
        }
        "resources/list" => {
            let resources = session.list_all_resources().await?;
            names(resources.into_iter().map(|resource| resource.name))
        }
        "resources/templates/list" => {
            let templates = session.list_all_resource_templates().await?;
            names(templates.into_iter().map(|template| template.name))
        }
        "tools/call" => {
            let result = session.call_tool(CallToolRequestParams::new("echo")).await?;
            texts(result.content.iter())
        }
        "prompts/get" => {
            let params = GetPromptRequestParams::new("greet");
            let result = session.get_prompt(params).await?;
            texts(result.messages.iter().map(|message| &message.content))
        }
        "resources/read" => {
            let params = ReadResourceRequestParams::new("zoo://a");
            let result = session.read_resource(params).await?;
            let texts = result.contents.iter().map(|contents| match contents {
                ResourceContents::TextResourceContents { text, .. } => text.clone(),
                other => format!("{other:?}"),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => {
            let server = session.peer_info().ok_or("the session is open")?;
            serde_json::to_string(&server.capabilities)?
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (method, target) = arguments
        .split_first()
        .expect("a method, then a command or --http and a URL");
    let delivered = match connect(target).await {
        Ok(session) => deliver(&session, method).await,
        Err(error) => Err(error),
    };
    let line = match delivered {
        Ok(text) => json!({ "delivered": text }),
        Err(error) => {
            let text = error.to_string();
            json!({ "error": text.lines().next().unwrap_or_default() })
        }
    };
    println!("{line}");
}
