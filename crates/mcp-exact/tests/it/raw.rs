//! Servers with a catch-all handler, alone and together with registered definitions.

use mcp_2025_06_18 as v2025_06_18;
use mcp_exact::testing::every_revision;
use mcp_exact::{
    Client, ClientError, Cx, JsonObject, PeerError, RawRequest, Server, ServerBuilder,
};

use crate::common::object;
use crate::common::spec;

/// Creates a server whose handler uses the types of 2025-06-18 for clients of every revision.
fn raw_server() -> ServerBuilder {
    Server::raw("raw", "1.0.0", |request: RawRequest, cx: Cx| async move {
        if request.method == "tools/list" {
            return mcp_exact::Ok(object(
                r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
            ));
        }
        let typed = cx.request_as::<v2025_06_18::V2025_06_18>()?;
        let v2025_06_18::ClientRequest::CallTool(call) = typed.request else {
            return Err(PeerError::method_not_found(&request.method).into());
        };
        let text = format!("{} of {}", call.params.name, cx.revision());
        let mut result = v2025_06_18::CallToolResult::new(vec![
            v2025_06_18::ContentBlock::text(text),
            v2025_06_18::ContentBlock::audio("", "audio/wav"),
        ]);
        result.structured_content = Some(object(r#"{"n":1}"#));
        Ok(cx.result_as::<v2025_06_18::V2025_06_18>(&result)?)
    })
    .capability("tools", JsonObject::new())
    .capability("prompts", JsonObject::new())
}

/// A catch-all handler in the types of one revision answers clients of every revision.
#[tokio::test]
async fn raw_servers_answer_every_revision() {
    let server = raw_server().build().expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let tools = client.tools().all().await.expect("tools");
            assert_eq!(tools.len(), 1);
            let output = client.call_tool("echo", &()).await.expect("a result");
            let text = format!("echo of {}", client.revision());
            assert!(output.text().starts_with(&text), "{}", output.text());
            let is_older = !spec(client.revision()).has_structured_output();
            assert_eq!(output.structured().is_none(), is_older);
            assert!(output.blocks().len() >= 2, "{output:?}");
            let error = client.prompt("any", []).await.expect_err("no prompts");
            assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32601)));
        },
    )
    .await;
}

/// Registered tools are called by their handlers, all other tools by the raw handler.
#[tokio::test]
async fn registered_tools_precede_raw_handler() {
    let server = raw_server()
        .tool("registered", || async { "by its handler" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let tools = client.tools().all().await.expect("tools");
            assert_eq!(tools[0].name(), "registered");
            let text: String = client.call("registered", &()).await.expect("a text");
            assert_eq!(text, "by its handler");
            let output = client.call_tool("other", &()).await.expect("a result");
            assert!(output.text().starts_with("other of "), "{output:?}");
        },
    )
    .await;
}

/// A handler for a method of the specification has precedence over registered definitions.
#[tokio::test]
async fn registered_methods_precede_definitions() {
    let server = Server::builder("test", "1.0.0")
        .tool("tool", || async { "by the tool" })
        .method("tools/call", || async {
            mcp_exact::Ok(object(
                r#"{"content":[{"type":"text","text":"by the method"}]}"#,
            ))
        })
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    let text: String = client.call("tool", &()).await.expect("a text");
    assert_eq!(text, "by the method");
}

#[test]
fn only_one_raw_handler_is_allowed() {
    let error = raw_server()
        .raw(|| async { mcp_exact::Ok(JsonObject::new()) })
        .build();
    let error = error.expect_err("two of them").to_string();
    assert!(
        error.contains("raw handler \"*\" is registered twice"),
        "{error}"
    );
}
