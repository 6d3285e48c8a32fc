//! Tools, resources, prompts and completions, against clients of every revision in memory.

mod common;

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

use common::object;

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Add {
    /// The first summand.
    a: i64,
    b: i64,
}

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
                .named("intro")
                .mime_type("text/plain"),
            || async { "Welcome" },
        )
        .resource("docs://bytes", || async { vec![0_u8, 255] })
        .template(
            ResourceTemplate::new("file://{+path}{?line}").named("files"),
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

/// One handler serves every revision: structured content and its output schema from 2025-06-18 on, text before.
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
            let structured = client.revision().as_str() >= "2025-06-18";
            assert_eq!(output.structured().is_some(), structured);
            assert_eq!(output.text(), r#"{"sum":3}"#);
            let tools = client.tools().all().await.expect("tools");
            assert_eq!(tools[0].output_schema().is_some(), structured);
        },
    )
    .await;
}

#[tokio::test]
async fn lists_come_in_pages() {
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

#[tokio::test]
async fn states_and_context_are_extracted() {
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

/// Content that a revision does not have arrives in another form.
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

/// Server/tools, "Error Handling": errors of a tool are results, so that models can correct themselves.
#[tokio::test]
async fn tool_errors_are_results() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let error = client
                .call::<_, String>("fails", &())
                .await
                .expect_err("a failure");
            assert_eq!(error.to_string(), "the tool failed: disk full");
            let output = client
                .call_tool("add", &object(r#"{"a":"x","b":1}"#))
                .await
                .expect("a result");
            assert!(output.is_error());
            // The error names the argument, so that a model can correct it.
            assert_eq!(
                output.text(),
                r#"invalid arguments at "/a": invalid type: string "x", expected i64"#
            );
        },
    )
    .await;
}

#[tokio::test]
async fn protocol_errors_stay_protocol_errors() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let code = |error: ClientError| match error {
                ClientError::Server(error) => error.code(),
                other => panic!("{other}"),
            };
            let refused = client
                .call_tool("refuses", &())
                .await
                .expect_err("an error");
            assert_eq!(code(refused), Some(-32602));
            let unknown = client
                .call_tool("nothing", &())
                .await
                .expect_err("an error");
            assert_eq!(code(unknown), Some(-32602));
            let wrong = client.request(
                "tools/call",
                Some(object(r#"{"name":"add","arguments":[]}"#)),
            );
            assert_eq!(code(wrong.await.expect_err("an error")), Some(-32602));
        },
    )
    .await;
}

#[tokio::test]
async fn a_panic_ends_its_request_only() {
    let server = server();
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let error = client.call_tool("panics", &()).await.expect_err("a panic");
            assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32603)));
            let _: Sum = client
                .call("add", &Add { a: 1, b: 2 })
                .await
                .expect("the server lives on");
        },
    )
    .await;
}

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
            let code = if client.revision().as_str() < "2026-07-28" {
                -32002
            } else {
                -32602
            };
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

#[tokio::test]
async fn prompts_take_strings() {
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

/// Server/utilities/completion: at most 100 values.
#[tokio::test]
async fn completions_have_a_hundred_values() {
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

#[tokio::test]
async fn capabilities_follow_from_registrations() {
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

#[tokio::test]
async fn definitions_are_converted() {
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
async fn server_info_and_instructions_arrive() {
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

#[tokio::test]
async fn merged_servers_have_prefixes() -> Result {
    let math = Server::builder("math", "1")
        .state(7_i64)
        .tool("seven", |State(seven): State<i64>| async move {
            seven.to_string()
        });
    let server = Server::builder("all", "1")
        .tool("seven", || async { "eight" })
        .merge(Some("math"), math)
        .build()?;
    let client = Client::in_memory(&server).await?;
    let (own, merged): (i64, i64) = tokio::join!(
        async {
            client
                .call::<_, String>("seven", &())
                .await
                .map_or(0, |text| i64::try_from(text.len()).unwrap_or(0))
        },
        async { client.call("math_seven", &()).await.unwrap_or_default() },
    );
    assert_eq!((own, merged), (5, 7));
    Ok(())
}

/// The functions and the layers of a merged builder come with it; a layer is around the tools of its own builder.
#[tokio::test]
async fn merged_servers_keep_their_layers() -> Result {
    let started = Arc::new(AtomicBool::new(false));
    let starts = Arc::clone(&started);
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        "slow"
    };
    let limit = tower::timeout::TimeoutLayer::new(Duration::from_millis(10));
    let part = Server::builder("part", "1")
        .layer(limit)
        .tool("limited", slow)
        .on_start(move |_| {
            starts.store(true, Ordering::SeqCst);
            async { Ok(()) }
        });
    let server = Server::builder("all", "1")
        .tool("free", slow)
        .merge(None, part)
        .build()?;
    server.start().await?;
    assert!(started.load(Ordering::SeqCst));
    let client = Client::in_memory(&server).await?;
    assert!(client.call_tool("limited", &()).await?.is_error());
    assert_eq!(client.call_tool("free", &()).await?.text(), "slow");
    Ok(())
}

/// Each further rule of visibility hides more.
#[tokio::test]
async fn rules_of_visibility_add_up() -> Result {
    let server = Server::builder("test", "1")
        .tool("a", || async { "" })
        .tool("b", || async { "" })
        .tool("c", || async { "" })
        .visible(|_, listed| listed.name() != "a")
        .visible(|_, listed| listed.name() != "b")
        .build()?;
    let client = Client::in_memory(&server).await?;
    let tools = client.tools().all().await?;
    assert_eq!((tools.len(), tools[0].name().as_str()), (1, "c"));
    Ok(())
}

/// Error of a program that wraps those of this crate.
#[derive(Debug)]
struct Wrapped(Box<dyn std::error::Error + Send + Sync>);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it failed")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

/// An error that wraps another one keeps its meaning.
#[tokio::test]
async fn wrapped_errors_keep_their_meaning() {
    let server = Server::builder("test", "1")
        .tool("refuses", || async {
            Err::<(), _>(Wrapped(PeerError::invalid_params("not you").into()))
        })
        .resource("x://gone", || async {
            let gone = mcp_exact::ResourceNotFound {
                uri: "x://gone".to_owned(),
            };
            Err::<String, _>(Wrapped(gone.into()))
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let code = |error| match error {
                ClientError::Server(error) => error.code(),
                error => panic!("{error}"),
            };
            let error = client.call_tool("refuses", &()).await;
            assert_eq!(code(error.expect_err("refused")), Some(-32602));
            let error = client.read("x://gone").await.expect_err("gone");
            let expected = match client.revision().as_str() {
                "2026-07-28" => -32602,
                _ => -32002,
            };
            assert_eq!(code(error), Some(expected));
        },
    )
    .await;
}

/// A handler that reads the arguments as they come is advertised as taking any.
#[tokio::test]
async fn arguments_without_a_schema_are_any() -> Result {
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
    let any = r#"{"type":"object"}"#;
    assert_eq!(schemas[..2], [any, any]);
    assert!(schemas[2].contains("additionalProperties"));
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

/// A program can have the exact types of one revision, whichever one the client speaks.
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

/// 2026-07-28, `basic/transports/streamable-http`, "Custom Headers from Tool Parameters".
#[test]
fn mirrored_parameters_are_checked() {
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

/// An extractor whose code panics.
struct Panics;

impl mcp_exact::FromCall for Panics {
    fn from_call(_: &mcp_exact::Call) -> Result<Self> {
        panic!("in the extractor")
    }
}

/// Code of the program that is no part of a handler's future may panic too: only the request fails.
#[tokio::test]
async fn panics_outside_of_handlers_are_caught() {
    let server = Server::builder("test", "1")
        .tool("extractor", |_: Panics| async { "" })
        .tool("closure", || {
            if true {
                panic!("before the async block")
            }
            async { "" }
        })
        .tool("fine", || async { "fine" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            for tool in ["extractor", "closure"] {
                let error = client.call_tool(tool, &()).await.expect_err("a panic");
                assert!(
                    matches!(error, ClientError::Server(error) if error.code() == Some(-32603))
                );
            }
            let fine: String = client.call("fine", &()).await.expect("the server lives on");
            assert_eq!(fine, "fine");
        },
    )
    .await;
}
