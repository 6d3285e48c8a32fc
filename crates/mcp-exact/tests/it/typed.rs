//! Results and definitions in the exact types of revisions, for clients of every revision.

use mcp_exact::testing::every_revision;
use mcp_exact::types::{AnyResourceContents, ContentBlock};
use mcp_exact::{
    Client, ClientError, Content, Contents, PromptResult, Server, Tool, ToolResult, types,
};

/// Server with one definition of each kind.
fn server() -> Server {
    Server::builder("test", "1")
        .tool(Tool::new("draw").read_only(true), || async {
            ToolResult::new()
                .content("a dot")
                .content(Content::image([1, 2], "image/png"))
                .content(Content::audio([3], "audio/wav"))
        })
        .resource("x://a", || async {
            Contents::text("text").and_blob(vec![4, 5])
        })
        .prompt("greet", || async { PromptResult::user("hello") })
        .build()
        .expect("a server")
}

/// Content, messages and definitions have the types of the newest revision, whatever revision was negotiated.
#[tokio::test]
async fn results_have_types_in_every_revision() {
    every_revision(
        || Client::in_memory(&server()),
        |client| async move {
            let output = client.call_tool("draw", &()).await.expect("a result");
            let [ContentBlock::Text(text), ContentBlock::Image(image), third] = output.content()
            else {
                panic!("{output:?}");
            };
            assert_eq!((&*text.text, &*image.mime_type), ("a dot", "image/png"));
            // 2024-11-05 has no audio, so that its servers embed a resource instead.
            if client.revision().as_str() > "2024-11-05" {
                assert!(matches!(third, ContentBlock::Audio(_)), "{third:?}");
                assert_eq!(output.audio()[0].bytes, [3]);
            }
            let images = output.images();
            assert_eq!(images[0].bytes, [1, 2]);
            assert_eq!(images[0].mime_type, "image/png");
            assert_eq!(output.clone().content().len(), 3);

            let read = client.read("x://a").await.expect("contents");
            let [
                AnyResourceContents::Text(text),
                AnyResourceContents::Blob(_),
            ] = read.contents()
            else {
                panic!("{read:?}");
            };
            assert_eq!(text.text, "text");
            let blob = &read.blobs()[0];
            assert_eq!(
                (&*blob.bytes, blob.uri.as_deref()),
                (&[4, 5][..], Some("x://a"))
            );

            let prompt = client.prompt("greet", []).await.expect("a prompt");
            let message = &prompt.messages()[0];
            assert_eq!(message.role, types::Role::User);
            assert_eq!(prompt.items().len(), 1);

            let tools = client.tools().all().await.expect("tools");
            let tool: types::Tool = tools[0].typed().expect("a tool");
            assert_eq!((&*tool.name, tool.title), ("draw", None));
            let annotations = tools[0].annotations();
            let is_known = client.revision().as_str() > "2024-11-05";
            let read_only = annotations.and_then(|annotations| annotations.read_only_hint);
            assert_eq!(read_only, is_known.then_some(true));
            let resources = client.resources().all().await.expect("resources");
            assert_eq!(resources[0].annotations(), None);
            let resource: mcp_2025_06_18::Resource = resources[0].typed().expect("a resource");
            assert_eq!(resource.uri, "x://a");
        },
    )
    .await;
}

/// A whole result is decoded by the types of any revision, and by no other type.
#[tokio::test]
async fn results_have_types_of_any_revision() {
    let client = Client::in_memory(&server()).await.expect("a client");
    let output = client.call_tool("draw", &()).await.expect("a result");
    let older: mcp_2025_06_18::CallToolResult = output.typed().expect("a result");
    assert_eq!(older.content.len(), 3);
    // The member is one of 2026-07-28.
    let text = mcp_2025_06_18::to_string(&older);
    assert!(!text.contains("resultType"), "{text}");
    let newest: types::CallToolResult = output.typed().expect("a result");
    assert_eq!(newest.result_type, "complete");
    let error = output
        .typed::<mcp_2025_06_18::GetPromptResult>()
        .expect_err("another type");
    assert!(
        error
            .to_string()
            .contains("it is not a `GetPromptResult` of 2025-06-18"),
        "{error}"
    );
    let tool = &client.tools().all().await.expect("tools")[0];
    let error = tool.typed::<types::Prompt>().map(drop);
    assert!(!matches!(error, Err(ClientError::Config(_))), "{error:?}");
}
