//! Tools, resources, prompts and completions, against clients of every revision in memory.

mod errors;
mod merging;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::{
    Client, ClientError, Content, Contents, Cx, Error, Input, Json, Partial, PeerError, Prompt,
    PromptResult, Resource, ResourceTemplate, Result, Server, State, Tool, ToolResult, schemars,
    serde,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::object;
use crate::common::spec;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Add {
    /// The first summand.
    a: i64,
    b: i64,
}

/// Structured result of the tool `add`.
#[derive(Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Path {
    path: String,
    line: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Review {
    /// Subject of the review.
    code: String,
    strict: Option<bool>,
}

/// Creates a server with a definition of every kind.
fn server() -> Server {
    Server::builder("test", "1.0.0")
        .title("Test server")
        .instructions("Use it.")
        .state(String::from("state"))
        .page_size(2)
        .tool(
            Tool::new("add")
                .title("Add")
                .description("Adds.")
                .read_only(true)
                .idempotent(true),
            |Input(add): Input<Add>| async move { Json(Sum { sum: add.a + add.b }) },
        )
        .tool("text", |State(text): State<String>, cx: Cx| async move {
            format!("{text} {}", cx.revision())
        })
        .tool("blocks", || async {
            ToolResult::new()
                .content("text")
                .content(Content::image([1, 2], "image/png"))
                .content(Content::audio([3], "audio/wav"))
                .content(Content::link(
                    &Resource::new("docs://intro").mime_type("text/plain"),
                ))
                .meta("example.com/key", true)
        })
        .tool("fails", || async {
            Err::<String, _>(std::io::Error::other("disk full"))
        })
        .tool("refuses", || async {
            Err::<(), _>(PeerError::invalid_params("not you"))
        })
        .tool("panics", || async {
            if true {
                panic!("at the disco")
            }
        })
        .resource(
            Resource::new("docs://intro")
                .with_name("intro")
                .mime_type("text/plain"),
            || async { "Welcome" },
        )
        .resource("docs://bytes", || async { vec![0_u8, 255] })
        .template(
            ResourceTemplate::new("file://{+path}{?line}").with_name("files"),
            |Input(path): Input<Path>| async move {
                if path.path.contains("missing") {
                    return Err(Error::resource_not_found(format!("file://{}", path.path)));
                }
                Ok(Contents::text(format!("{} {:?}", path.path, path.line))
                    .mime_type("text/x-file"))
            },
        )
        .prompt(
            Prompt::new("review").description("Reviews."),
            |Input(review): Input<Review>| async move {
                PromptResult::user(format!("{} {:?}", review.code, review.strict))
                    .description("A review")
            },
        )
        .complete_prompt("review", "code", |partial: Partial| async move {
            (0..150)
                .map(|n| format!("{}{n}", partial.value))
                .collect::<Vec<_>>()
        })
        .build()
        .expect("a server")
}

/// One handler serves every revision: with structured content and an output schema from 2025-06-18 on, with text in
/// earlier revisions.
#[tokio::test]
async fn structured_results_reach_every_revision() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let sum: Sum = client
                .call("add", &Add { a: 1, b: 2 })
                .await
                .expect("a sum");
            assert_eq!(sum, Sum { sum: 3 });
            let output = client
                .call_tool("add", &Add { a: 1, b: 2 })
                .await
                .expect("a result");
            let structured = spec(client.revision()).has_structured_output();
            assert_eq!(output.structured().is_some(), structured);
            assert_eq!(output.text(), r#"{"sum":3}"#);
            let tools = client.tools().all().await.expect("tools");
            assert_eq!(tools[0].output_schema().is_some(), structured);
        },
    )
    .await;
}

/// A client collects the entries of all pages, and an invalid cursor is an error.
#[tokio::test]
async fn lists_are_paginated() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let tools = client.tools().all().await.expect("tools");
            let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
            assert_eq!(
                names,
                ["add", "text", "blocks", "fails", "refuses", "panics"]
            );
            assert_eq!(tools[0].description().as_deref(), Some("Adds."));
            let schema = tools[0].input_schema().expect("a schema").to_string();
            assert!(
                schema.contains(r#""description":"The first summand.""#),
                "{schema}"
            );
            let error = client
                .request("tools/list", Some(object(r#"{"cursor":"x"}"#)))
                .await
                .expect_err("a bad cursor");
            assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32602)));
        },
    )
    .await;
}

/// A handler receives a state of the server and the context of the request.
#[tokio::test]
async fn handlers_extract_state_and_context() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let text: String = client.call("text", &()).await.expect("a text");
            assert_eq!(text, format!("state {}", client.revision()));
        },
    )
    .await;
}

/// Content blocks that a revision does not define are converted.
#[tokio::test]
async fn newer_content_is_converted() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let output = client.call_tool("blocks", &()).await.expect("a result");
            let blocks: Vec<String> = output
                .blocks()
                .iter()
                .map(|block| block.get("type").expect("a type").to_string())
                .collect();
            let (audio, link) = match client.revision().as_str() {
                "2024-11-05" => ("\"audio\"", "\"text\""),
                "2025-03-26" => ("\"audio\"", "\"text\""),
                _ => ("\"audio\"", "\"resource_link\""),
            };
            assert_eq!(blocks, ["\"text\"", "\"image\"", audio, link]);
        },
    )
    .await;
}

/// Resources and resource templates are read by URI, and an unknown URI is an error.
#[tokio::test]
async fn resources_are_read_by_uri() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let intro = client.read("docs://intro").await.expect("contents");
            assert_eq!(intro.text(), "Welcome");
            assert_eq!(
                intro.items()[0].get("mimeType").expect("a type").text(),
                "\"text/plain\""
            );
            let bytes = client.read("docs://bytes").await.expect("contents");
            assert_eq!(bytes.blob(), Some(vec![0, 255]));
            let file = client.read("file:///a%20b?line=7").await.expect("contents");
            assert_eq!(file.text(), "/a b Some(7)");
            let error = client
                .read("file:///missing")
                .await
                .expect_err("no such file");
            let code = spec(client.revision()).resource_not_found_code();
            assert!(matches!(error, ClientError::Server(error) if error.code() == Some(code)));
            let error = client
                .read("other://x")
                .await
                .expect_err("no such resource");
            assert!(matches!(error, ClientError::Server(error) if error.code() == Some(code)));
            assert_eq!(client.resources().all().await.expect("resources").len(), 2);
            let templates = client.resource_templates().all().await.expect("templates");
            assert_eq!(templates[0].uri().as_deref(), Some("file://{+path}{?line}"));
        },
    )
    .await;
}

/// String arguments of a prompt are parsed as the types of the handler's `Input`, and a missing argument is an error.
#[tokio::test]
async fn prompt_arguments_are_parsed_from_strings() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let prompt = client
                .prompt("review", [("code", "x"), ("strict", "true")])
                .await
                .expect("a prompt");
            assert_eq!(prompt.text(), "x Some(true)");
            assert_eq!(prompt.description(), Some("A review"));
            let error = client
                .prompt("review", [])
                .await
                .expect_err("a missing argument");
            assert!(
                error
                    .to_string()
                    .contains("argument \"code\" of prompt \"review\" is missing"),
                "{error}"
            );
            let prompts = client.prompts().all().await.expect("prompts");
            let arguments = prompts[0]
                .object()
                .get("arguments")
                .expect("arguments")
                .to_string();
            assert!(
                arguments.contains(r#""description":"Subject of the review.""#),
                "{arguments}"
            );
        },
    )
    .await;
}

/// Completions have at most 100 values (`server/utilities/completion`).
#[tokio::test]
async fn completions_have_at_most_100_values() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let found = client
                .complete_prompt("review", "code", "a")
                .await
                .expect("values");
            assert_eq!(
                (found.values.len(), found.total, found.has_more),
                (100, Some(150), true)
            );
            assert_eq!(found.values[1], "a1");
            let none = client
                .complete_prompt("review", "strict", "")
                .await
                .expect("no values");
            assert!(none.values.is_empty() && !none.has_more);
            let error = client
                .complete_prompt("review", "nothing", "")
                .await
                .expect_err("no argument");
            assert!(
                error.to_string().contains("has no argument \"nothing\""),
                "{error}"
            );
        },
    )
    .await;
}

/// A server declares the capabilities of its registered definitions.
#[tokio::test]
async fn capabilities_are_derived_from_registrations() {
    let server = server();
    let all = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}}"#;
    assert_eq!(server.capabilities().text(), all);
    let empty = Server::builder("empty", "1")
        .without_logging()
        .build()
        .expect("a server");
    assert_eq!(empty.capabilities().text(), "{}");
    every_revision(
        move || Client::in_memory(&empty),
        |client| async move {
            assert!(client.tools().all().await.is_err());
        },
    )
    .await;
}

/// The title and the annotations of a tool are advertised in the form of each revision.
#[tokio::test]
async fn definitions_are_converted_to_negotiated_revision() {
    let server = server();
    let titles = |revision: &str| {
        let revision = mcp_exact::revisions()
            .find(|known| known.as_str() == revision)
            .expect("compiled in");
        server.advertised_tools(revision)[0].to_string()
    };
    // 2025-03-26 has a title among the annotations only.
    let annotations = |revision: &str| {
        let tool = object(&titles(revision));
        let annotations = object(tool.get("annotations").expect("annotations").text());
        (
            tool.get("title").is_some(),
            annotations.get("title").is_some(),
        )
    };
    assert_eq!(annotations("2026-07-28"), (true, false));
    assert_eq!(annotations("2025-06-18"), (true, false));
    assert_eq!(annotations("2025-03-26"), (false, true));
    assert!(!titles("2024-11-05").contains("annotations"));
}

#[tokio::test]
async fn client_receives_server_info_and_instructions() {
    let server = server();
    revisions_from(
        "2025-06-18",
        || Client::in_memory(&server),
        |client| async move {
            let info = client.server_info().expect("an identity").to_string();
            assert!(info.contains(r#""title":"Test server""#), "{info}");
            assert_eq!(client.instructions().as_deref(), Some("Use it."));
        },
    )
    .await;
}

/// A tool whose handler reads untyped arguments is advertised with an input schema that accepts any object.
#[tokio::test]
async fn arguments_without_schema_are_unrestricted() -> Result {
    let server = Server::builder("test", "1")
        .tool("echo", |arguments: mcp_exact::JsonObject| async move {
            arguments.to_string()
        })
        .tool("call", |call: mcp_exact::Call| async move {
            call.arguments().to_string()
        })
        .tool("none", || async { "" })
        .build()?;
    let newest = mcp_exact::revisions().next_back().expect("a revision");
    let schemas = server.advertised_tools(newest).into_iter();
    let schemas: Vec<String> = schemas
        .map(|tool| tool.get("inputSchema").expect("a schema").to_string())
        .collect();
    let any = r#"{"properties":{},"type":"object"}"#;
    assert_eq!(schemas[..2], [any, any]);
    assert!(schemas[2].contains("additionalProperties"));
    Ok(())
}

/// A type that is used twice is written twice into the schema of arguments, unless the tool asks for references.
#[tokio::test]
async fn subschemas_are_inlined_by_default() -> Result {
    #[derive(Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct Move {
        from: Place,
        to: Option<Place>,
    }
    #[derive(Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only the schema matters")]
    struct Place {
        row: u8,
    }
    let handler = |Input(_): Input<Move>| async move { "" };
    let server = Server::builder("test", "1")
        .tool("inlined", handler)
        .tool(Tool::new("referenced").schema_references(), handler)
        .build()?;
    let newest = mcp_exact::revisions().next_back().expect("a revision");
    let schemas = server.advertised_tools(newest).into_iter();
    let schemas: Vec<serde_json::Value> = schemas
        .map(|tool| {
            tool.get("inputSchema")
                .expect("a schema")
                .parse()
                .expect("JSON")
        })
        .collect();
    let [inlined, referenced] = &schemas[..] else {
        panic!("two tools");
    };
    for name in ["from", "to"] {
        assert_eq!(inlined["properties"][name]["type"], "object", "{inlined}");
        let reference = &referenced["properties"][name]["$ref"];
        assert_eq!(reference, "#/$defs/Place", "{referenced}");
    }
    assert_eq!(referenced["type"], "object");
    assert_eq!(referenced["$defs"]["Place"]["type"], "object");
    assert_eq!(inlined.get("$defs"), None);
    Ok(())
}

/// A vendor's method is answered for clients of every revision.
#[tokio::test]
async fn vendor_methods_are_answered() {
    let server = Server::builder("test", "1")
        .method("example.com/add", |Input(add): Input<Add>| async move {
            Json(Sum { sum: add.a + add.b })
        })
        .build()
        .expect("a server");
    let connect = || Client::in_memory(&server).methods(["example.com/add", "example.com/none"]);
    every_revision(connect, |client| async move {
        let params = Some(object(r#"{"a":1,"b":2}"#));
        let result = client
            .request("example.com/add", params)
            .await
            .expect("a result");
        assert_eq!(result.get("sum").expect("a sum").text(), "3");
        let error = client
            .request("example.com/add", None)
            .await
            .expect_err("no params");
        assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32602)));
        let error = client
            .request("example.com/none", None)
            .await
            .expect_err("no method");
        assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32601)));
    })
    .await;
}

/// A program can use the exact types of one revision, whatever revision the client has negotiated.
#[tokio::test]
async fn requests_have_exact_types() {
    let server = Server::builder("test", "1")
        .tool("typed", |cx: Cx, _: mcp_exact::JsonObject| async move {
            let request = cx.request_as::<mcp_2025_06_18::V2025_06_18>()?;
            match request.request {
                mcp_2025_06_18::ClientRequest::CallTool(call) => Ok(call.params.name),
                _ => Err(Error::msg("another request")),
            }
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let name: String = client.call("typed", &()).await.expect("a name");
            assert_eq!(name, "typed");
        },
    )
    .await;
}

/// Definitions with invalid header parameters are rejected (2026-07-28, `basic/transports/streamable-http`, "Custom
/// Headers from Tool Parameters").
#[test]
fn mirrored_header_parameters_are_checked() {
    let schema = |header: &str| {
        object(&format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}"#
        ))
    };
    let build = |header: &str| {
        let tool = Tool::new("a").input_schema(schema(header));
        Server::builder("test", "1")
            .tool(tool, || async { "" })
            .build()
            .map(drop)
    };
    assert!(build("Region").is_ok());
    let error = build("no token").expect_err("a space").to_string();
    assert!(
        error.contains("the input schema of tool \"a\" cannot be used"),
        "{error}"
    );
}
