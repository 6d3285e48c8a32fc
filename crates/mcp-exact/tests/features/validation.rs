//! Validation of arguments and results against JSON schemas, with the feature `validation`.

use mcp_exact::testing::every_revision;
use mcp_exact::{Client, JsonObject, Problem, Server, Tool, ToolResult};

use crate::common::object;

/// Creates a tool whose integer `n` is at most 9 in the arguments and at most 5 in the result.
fn tool(name: &str) -> Tool {
    Tool::new(name)
        .input_schema(object(r#"{"type":"object","properties":{"n":{"type":"integer","maximum":9}}}"#))
        .output_schema(object(r#"{"type":"object","properties":{"n":{"type":"integer","maximum":5}},"required":["n"]}"#))
}

/// "Servers MUST: Validate all tool inputs" (`server/tools`, "Security Considerations").
#[tokio::test]
async fn arguments_and_results_must_match_schemas() {
    let server = Server::builder("test", "1")
        .tool(tool("echo"), |arguments: JsonObject| async move {
            ToolResult::new().structured(arguments)
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let text = |arguments: &'static str| {
                let client = client.clone();
                async move {
                    client
                        .call_tool("echo", &object(arguments))
                        .await
                        .expect("a result")
                        .text()
                }
            };
            assert_eq!(text(r#"{"n":5}"#).await, r#"{"n":5}"#);
            let refused = text(r#"{"n":10}"#).await;
            assert_eq!(
                refused,
                "invalid arguments at \"/n\": 10 is greater than the maximum of 9"
            );
            let wrong = text(r#"{"n":7}"#).await;
            assert!(
                wrong.starts_with("the result of the tool leaves its output schema at \"/n\""),
                "{wrong}"
            );
        },
    )
    .await;
}

/// The error of `ServerBuilder::build` names the tool whose input schema is invalid.
#[test]
fn invalid_schemas_are_refused() {
    let tool = Tool::new("bad").input_schema(object(
        r#"{"type":"object","properties":{"n":{"type":"int"}}}"#,
    ));
    let error = Server::builder("test", "1")
        .tool(tool, || async { "" })
        .build()
        .expect_err("no type");
    assert!(
        matches!(&error.problems()[0], Problem::InputSchema { name, .. } if name == "bad"),
        "{error}"
    );
}

/// "Clients SHOULD validate structured results against this schema" (`server/tools`, "Output Schema"): a client with
/// validation rejects an invalid result of a server that does not validate.
#[tokio::test]
async fn clients_check_results() {
    let schema = r#"{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}"#;
    let list = format!(
        r#"{{"tools":[{{"name":"add","inputSchema":{{"type":"object"}},"outputSchema":{schema}}}]}}"#
    );
    let server = mcp_exact::Server::raw("raw", "1.0.0", move |request: mcp_exact::RawRequest| {
        let result = match request.method.as_str() {
            "tools/list" => list.clone(),
            _ => r#"{"content":[],"structuredContent":{"sum":"three"}}"#.to_owned(),
        };
        async move { mcp_exact::Ok(result.parse::<mcp_exact::JsonObject>()?) }
    })
    .capability("tools", mcp_exact::JsonObject::new())
    .build()
    .expect("a server");
    let client = mcp_exact::Client::in_memory(&server);
    let client = client.validate_output().await.expect("a client");
    let error = client.call_tool("add", &()).await.expect_err("no integer");
    assert!(
        error
            .to_string()
            .contains("leaves the output schema of the tool at \"/sum\""),
        "{error}"
    );
    // The tool was executed: its result is not lost.
    let mcp_exact::ClientError::InvalidOutput { output, .. } = error else {
        panic!("{error}");
    };
    let structured = output.structured().map(|structured| structured.to_string());
    assert_eq!(structured.as_deref(), Some(r#"{"sum":"three"}"#));
    let lenient = mcp_exact::Client::in_memory(&server)
        .await
        .expect("a client");
    assert!(lenient.call_tool("add", &()).await.is_ok());
}

/// The error of `ServerBuilder::build` names the tool whose output schema is invalid.
#[test]
fn invalid_output_schemas_are_named() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"nothing"}}}"#;
    let tool =
        Tool::new("bad").output_schema(schema.parse::<mcp_exact::JsonObject>().expect("JSON"));
    let server = Server::builder("test", "1")
        .tool(tool, || async { "" })
        .build();
    let error = server.expect_err("a bad schema").to_string();
    assert!(
        error.contains("the output schema of tool \"bad\""),
        "{error}"
    );
}

/// Builds a server with one tool that has this input schema; returns the problem of the schema.
fn problem_of(schema: &str) -> Option<String> {
    let tool = Tool::new("x").input_schema(object(schema));
    let built = Server::builder("test", "1").tool(tool, || async { "" });
    built.build().err().map(|error| error.to_string())
}

/// "Implementations MUST support at least 2020-12", the default dialect, and "MUST validate schemas according to their
/// declared or default dialect. They MUST handle unsupported dialects gracefully by returning an appropriate error"
/// (`basic`, "JSON Schema Usage").
#[tokio::test]
async fn schemas_are_validated_by_their_dialect() {
    let pair = |dialect: &str, keyword: &str| {
        object(&format!(
            r#"{{{dialect}"type":"object","properties":{{"p":{{"type":"array","{keyword}":[{{"type":"integer"}}]}}}}}}"#
        ))
    };
    let draft_7 = r#""$schema":"http://json-schema.org/draft-07/schema#","#;
    let newest = r#""$schema":"https://json-schema.org/draft/2020-12/schema","#;
    for (dialect, keyword) in [
        ("", "prefixItems"),
        (newest, "prefixItems"),
        (draft_7, "items"),
    ] {
        let tool = Tool::new("first").input_schema(pair(dialect, keyword));
        let server = Server::builder("test", "1").tool(tool, || async { "called" });
        let server = server.build().expect("a valid schema");
        let client = Client::in_memory(&server).await.expect("connected");
        for (arguments, expected) in [
            (r#"{"p":[1]}"#, "called"),
            (r#"{"p":["a"]}"#, "invalid arguments at \"/p/0\""),
        ] {
            let result = client.call_tool("first", &object(arguments)).await;
            let text = result.expect("a result").text();
            assert!(text.starts_with(expected), "{dialect} {keyword}: {text}");
        }
    }
    // A list in `items` is valid in draft 7 alone.
    let error = problem_of(&pair("", "items").to_string()).expect("another dialect");
    assert!(error.contains("input schema"), "{error}");
    let unknown = r#"{"$schema":"https://schemas.example/mine","type":"object"}"#;
    let error = problem_of(unknown).expect("an unknown dialect");
    assert!(error.contains("https://schemas.example/mine"), "{error}");
}

/// "Implementations MUST NOT automatically dereference `$ref` values that resolve to network URIs" (2026-07-28, `basic`,
/// "`$ref` Resolution"): a schema with such a reference is refused, and nothing is fetched.
#[tokio::test]
async fn network_references_are_not_fetched() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    for member in ["$ref", "$dynamicRef"] {
        let schema = format!(
            r#"{{"type":"object","properties":{{"p":{{"{member}":"http://{address}/schema.json"}}}}}}"#
        );
        let error = problem_of(&schema).expect("it is not fetched");
        assert!(error.contains(&address.to_string()), "{error}");
    }
    tokio::task::yield_now().await;
    let accepted = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
    assert!(accepted.is_err(), "nobody connected");
}
