//! Results of tools as applications and models read them.

use mcp_exact::{Client, JsonObject, RawRequest, Server};

use crate::common::object;

/// Connects a client to a server whose tools have the results `results`, by name.
async fn client(results: &'static [(&'static str, &'static str)]) -> Client {
    let server = Server::raw("raw", "1.0.0", move |request: RawRequest| async move {
        let params = request.params.unwrap_or_default();
        let name: String = params.get("name").expect("a name").parse()?;
        let (_, result) = results
            .iter()
            .find(|(tool, _)| *tool == name)
            .expect("a tool");
        mcp_exact::Ok(object(result))
    })
    .capability("tools", JsonObject::new())
    .build()
    .expect("a server");
    Client::in_memory(&server).await.expect("a client")
}

/// "For backwards compatibility, a tool that returns structured content SHOULD also return the serialized JSON in a TextContent
/// block" (`server/tools`, "Structured Content"): models read the results of servers that do not, and the kinds of other content.
#[tokio::test]
async fn models_read_every_result() {
    let client = client(&[
        ("structured", r#"{"content":[],"structuredContent":{"answer":42}}"#),
        (
            "both",
            r#"{"content":[{"type":"text","text":"42"}],"structuredContent":{"answer":42}}"#,
        ),
        (
            "image",
            r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"structuredContent":{"answer":42}}"#,
        ),
        (
            "all",
            r#"{"content":[{"type":"text","text":"a"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"},
            {"type":"resource_link","uri":"x://a","name":"a","mimeType":"text/plain"},
            {"type":"resource","resource":{"uri":"x://b","text":"b"}},
            {"type":"resource","resource":{"uri":"x://c","blob":"AAAA"}}]}"#,
        ),
        ("nothing", r#"{"content":[]}"#),
    ])
    .await;
    for (tool, expected) in [
        ("structured", r#"{"answer":42}"#),
        ("both", "42"),
        ("image", "[image, image/png]\n{\"answer\":42}"),
        (
            "all",
            "a\n[audio, audio/wav]\n[resource x://a]\nb\n[resource x://c]",
        ),
        ("nothing", ""),
    ] {
        let output = client.call_tool(tool, &()).await.expect("a result");
        assert_eq!(output.for_model(), expected, "{tool}");
    }
}

/// Servers wrap values that are no objects, because structured content is an object (2025-06-18, `server/tools`).
#[tokio::test]
async fn wrapped_values_are_decoded() {
    let client = client(&[
        (
            "number",
            r#"{"content":[],"structuredContent":{"result":3}}"#,
        ),
        (
            "more",
            r#"{"content":[],"structuredContent":{"result":3,"unit":"m"}}"#,
        ),
    ])
    .await;
    assert_eq!(client.call("number", &()).await, Ok(3));
    let object: JsonObject = client.call("number", &()).await.expect("an object");
    assert_eq!(object.to_string(), r#"{"result":3}"#);
    for (tool, expected) in [
        ("number", "invalid type: map, expected a string"),
        ("more", "invalid type: map, expected a string"),
    ] {
        let error = client.call::<_, String>(tool, &()).await.expect_err(tool);
        assert_eq!(
            error.to_string(),
            format!("the result cannot be read: {expected}")
        );
    }
}
