//! Schemas of tools in the form that widely used hosts accept, for clients and servers of every revision.

use std::sync::{Arc, Mutex};

use mcp_exact::transport::ClientHandle;
use mcp_exact::{Client, Headers, RawJson, Revision, Server, Tool, revisions};
use mcp_exact_bridge::{
    Bridge, ConfiguredUpstream, Options, SchemaObserver, Upstream, UpstreamSettings,
};
use mcp_exact_session::JsonObject;
use mcp_exact_tool_schema::deviations;
use serde_json::json;

use crate::common::{InMemory, Intercepted, handle_of, listen, object, patient};
use crate::own_uris::{named, revision, send};
use crate::scripted::text_of;

/// Schema with all shapes that have an equivalent, and an unknown keyword.
const SCHEMA: &str = r##"{"type":"object","x-unknown":1e400,"allOf":[{"$ref":"#/$defs/Query"}],"$defs":{"Query":{"type":"object","properties":{"text":{"type":["string","null"]},"limit":{"type":"integer","format":"uint8"},"any":true},"required":["limit"]}}}"##;
/// Its equivalent.
const PORTABLE: &str = r#"{"type":"object","x-unknown":1e400,"properties":{"text":{"type":"string"},"limit":{"type":"integer","minimum":0,"maximum":255},"any":{}},"required":["limit"]}"#;
/// Schema with shapes that have no equivalent.
const LEFT: &str = r##"{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"$ref":"#/$defs/Node"},"b":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}}}"##;

/// Returns a server of a revision that lists tools with these input schemas in this text; each tool returns its arguments as text.
pub fn server_with(
    of_server: Revision,
    tools: &[(&str, &str)],
) -> Intercepted<impl Fn(&str, &JsonObject) -> Option<String> + Send + Sync + 'static> {
    let tool = |(name, schema): &(&str, &str)| {
        format!(r#"{{"name":"{name}","inputSchema":{schema},"outputSchema":{{"type": "object"}}}}"#)
    };
    let tools: Vec<String> = tools.iter().map(tool).collect();
    let is_new = of_server.as_str() >= "2026";
    let (kind, cached) = if is_new {
        (
            r#""resultType":"complete","#,
            r#","ttlMs":1000,"cacheScope":"public""#,
        )
    } else {
        ("", "")
    };
    let list = format!(
        r#""result":{{{kind}"tools":[{}]{cached}}}"#,
        tools.join(", ")
    );
    let answer = move |method: &str, message: &JsonObject| match method {
        "tools/list" => Some(list.clone()),
        "tools/call" => {
            let params = object(&text_of(message, "params"));
            let arguments = RawJson::string(&text_of(&params, "arguments"));
            Some(format!(
                r#""result":{{{kind}"content":[{{"type":"text","text":{}}}],"structuredContent":{{}}}}"#,
                arguments.text()
            ))
        }
        _ => None,
    };
    let server = Server::builder("behind", "1.0.0")
        .revisions([of_server])
        .tool("echo", || async { "" })
        .build()
        .expect("a server");
    Intercepted {
        server,
        answer: Arc::new(answer),
    }
}

fn portable() -> Options {
    let mut options = Options::default();
    options.portable_schemas = true;
    options
}

/// Returns the tools that a client lists.
pub async fn tools_of(client: &ClientHandle) -> Vec<JsonObject> {
    let listed = send(client, "tools/list", "").await.expect("tools");
    let tools = listed.get("tools").expect("tools");
    tools.decode_as().expect("an array")
}

/// Checks that a client gets the tool `echo` of a server with a schema that hosts accept, and that its call is relayed unchanged.
async fn use_echo(client: &ClientHandle, name: &str, pair: &str) {
    let tools = tools_of(client).await;
    let tool = tools.iter().find(|tool| text_of(tool, "name") == name);
    let tool = tool.unwrap_or_else(|| panic!("{pair}: {tools:?}"));
    assert_eq!(text_of(tool, "inputSchema"), PORTABLE, "{pair}");
    if let Some(output) = tool.get("outputSchema") {
        assert_eq!(
            output.text(),
            r#"{"type":"object","properties":{}}"#,
            "{pair}"
        );
    }
    let arguments = r#"{"text":null,"limit":300,"other":1e400}"#;
    let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let called = send(client, "tools/call", &params).await.expect(pair);
    let text = RawJson::string(arguments);
    assert!(
        called.text().contains(text.text()),
        "{pair}: {}",
        called.text()
    );
}

/// "name [...] Unique identifier for the tool" (2025-06-18, `server/tools`, "Tool"): of two tools with the same name, clients see the
/// first one, in front of one server and of two, which may both have it.
#[tokio::test]
async fn first_of_two_namesakes_counts() {
    let newest = revisions().next_back().expect("a revision");
    let tools = [
        ("echo", r#"{"type":"object","title":"first"}"#),
        ("other", r#"{"type":"object"}"#),
        ("echo", r#"{"type":"object","title":"second"}"#),
    ];
    for of_server in revisions() {
        let server = || server_with(of_server, &tools);
        let one = Bridge::new(server(), Options::default()).await;
        let all: Vec<(&str, Arc<dyn Upstream>)> =
            vec![("a", Arc::new(server())), ("b", Arc::new(server()))];
        let many = Bridge::many(named(all), patient(Options::default())).await;
        for (bridge, expected) in [
            (one, &["echo", "other"][..]),
            (many, &["a__echo", "a__other", "b__echo", "b__other"]),
        ] {
            let bridge = bridge.expect("a bridge");
            for of_client in [of_server, newest] {
                let client = handle_of(&bridge, of_client).await;
                let tools = tools_of(&client).await;
                let names: Vec<String> = tools.iter().map(|tool| text_of(tool, "name")).collect();
                assert_eq!(names, expected, "{of_server} {of_client}");
                let echo = tools
                    .iter()
                    .filter(|tool| text_of(tool, "name").ends_with("echo"));
                for tool in echo {
                    let schema = text_of(tool, "inputSchema");
                    assert!(schema.contains("first"), "{schema}");
                }
            }
        }
    }
}

/// Every pair of revisions: equal ones, whose lists are relayed as text, and others; in front of one server and of two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_are_portable_in_every_pair() {
    for of_server in revisions() {
        let tools = [("echo", SCHEMA)];
        let one = Bridge::new(server_with(of_server, &tools), portable()).await;
        let one = one.expect("a bridge");
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("a", Arc::new(server_with(of_server, &tools))),
            ("b", Arc::new(server_with(of_server, &tools))),
        ];
        let many = Bridge::many(named(all), patient(portable()))
            .await
            .expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = handle_of(&one, of_client).await;
            use_echo(&client, "echo", &pair).await;
            client.close();
            let client = handle_of(&many, of_client).await;
            for name in ["a__echo", "b__echo"] {
                use_echo(&client, name, &pair).await;
            }
            client.close();
        }
    }
}

/// A server's own setting counts, at the joint endpoint and at its own one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_have_own_settings_for_schemas() {
    let newest = revision("2026-07-28");
    let mut settings = UpstreamSettings::default();
    settings.portable_schemas = Some(true);
    let changed = ConfiguredUpstream {
        upstream: server_with(newest, &[("echo", SCHEMA)]),
        settings,
    };
    let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
        ("a", Arc::new(changed)),
        ("b", Arc::new(server_with(newest, &[("echo", SCHEMA)]))),
    ];
    let bridge = Bridge::many(named(all), patient(Options::default())).await;
    let bridge = bridge.expect("a bridge");
    let schemas = |tools: Vec<JsonObject>| -> Vec<String> {
        let schemas = tools.iter().map(|tool| text_of(tool, "inputSchema"));
        schemas.collect()
    };
    for of_client in ["2025-11-25", "2026-07-28"] {
        let client = handle_of(&bridge, revision(of_client)).await;
        let listed = schemas(tools_of(&client).await);
        assert_eq!(listed[0], PORTABLE);
        assert_ne!(listed[1], PORTABLE);
        client.close();
    }
    let listening = listen(&bridge).await;
    for (server, is_portable) in [("a", true), ("b", false)] {
        let url = format!("{}/{server}", listening.url);
        let client = Client::connect(&url).await.expect("connected");
        let tools = client.tools().all().await.expect("tools");
        let schema = tools[0].input_schema().expect("a schema");
        assert_eq!(schema.text() == PORTABLE, is_portable, "{server}");
        client.close();
    }
}

/// Without the setting, and without a shape, a schema keeps its text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_schemas_keep_their_text() {
    let newest = revision("2026-07-28");
    let plain = r#"{"type": "object", "properties": { }}"#;
    for (options, schema) in [(Options::default(), SCHEMA), (portable(), plain)] {
        let bridge = Bridge::new(server_with(newest, &[("echo", schema)]), options).await;
        let client = handle_of(&bridge.expect("a bridge"), newest).await;
        assert_eq!(text_of(&tools_of(&client).await[0], "inputSchema"), schema);
        client.close();
    }
}

/// What has no equivalent is reported once for each tool and shape, however often and by whomever it is listed, and is what the
/// doctor finds in the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shapes_without_equivalent_are_reported() {
    let newest = revision("2026-07-28");
    let reports = Arc::new(Mutex::new(Vec::new()));
    let mut options = portable();
    let seen = Arc::clone(&reports);
    options.on_unportable_schema = Some(SchemaObserver::new(move |report| {
        let line = format!("{} {}: {report}", report.server, report.tool);
        seen.lock().expect("a lock").push(line);
    }));
    let tools = [("echo", SCHEMA), ("left", LEFT), ("other", LEFT)];
    let all: Vec<(&str, Arc<dyn Upstream>)> = vec![("a", Arc::new(server_with(newest, &tools)))];
    let bridge = Bridge::many(named(all), patient(options))
        .await
        .expect("a bridge");
    for of_client in ["2025-06-18", "2026-07-28", "2026-07-28"] {
        let client = handle_of(&bridge, revision(of_client)).await;
        for tool in tools_of(&client).await {
            let schema = object(&text_of(&tool, "inputSchema"));
            let is_left = text_of(&tool, "name") != "a__echo";
            assert_eq!(!deviations(&schema).is_empty(), is_left);
        }
        client.close();
    }
    let told = reports.lock().expect("a lock").clone();
    let of_tool = |tool: &str| {
        [
            format!(
                "a {tool}: /inputSchema/oneOf: not allowed beside the `type` of the whole schema; move the alternatives into one property"
            ),
            format!(
                "a {tool}: /inputSchema/properties/a/properties/next/$ref: a reference; write the definition in its place (and 2 more)"
            ),
        ]
    };
    assert_eq!(told, [of_tool("left"), of_tool("other")].concat());
    let metrics = bridge.metrics().to_string();
    for line in [
        r#"mcp_bridge_unportable_schemas_total{server="a",shape="reference"} 2"#,
        r#"mcp_bridge_unportable_schemas_total{server="a",shape="top-level-keyword"} 2"#,
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

/// A parameter that clients mirror into a header is mirrored as before, and a tool that clients ignore because of its annotations
/// (2026-07-28, `basic/transports/streamable-http`) is no other tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrored_parameters_stay() {
    let region = r#"{"type":"object","properties":{"region":{"type":["string","null"],"x-mcp-header":"Region"},"any":true}}"#;
    let newest = revision("2026-07-28");
    let server = Server::builder("behind", "1.0.0")
        .revisions([newest])
        .tool(
            Tool::new("region").input_schema(object(region)),
            |headers: Headers| async move {
                headers
                    .get("mcp-param-region")
                    .unwrap_or_default()
                    .to_owned()
            },
        )
        .build()
        .expect("a server");
    let bridge = Bridge::new(InMemory::new(&server), portable()).await;
    let listening = listen(&bridge.expect("a bridge")).await;
    let client = Client::connect(&listening.url).revision(newest);
    let client = client.await.expect("connected");
    let tools = client.tools().all().await.expect("listed");
    let schema = tools[0].input_schema().expect("a schema");
    assert!(deviations(&schema).is_empty(), "{schema}");
    // The header is compared with the argument by the gateway, which refuses a call that lacks it.
    let called = client.call_tool("region", &json!({"region": "eu"})).await;
    called.expect("called");
    client.close();

    let ignored = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":true},"$defs":{"A":{"type":"string","x-mcp-header":"A"}}}"##;
    let bridge = Bridge::new(server_with(newest, &[("echo", ignored)]), portable()).await;
    let client = handle_of(&bridge.expect("a bridge"), revision("2025-11-25")).await;
    let tools = tools_of(&client).await;
    assert!(
        text_of(&tools[0], "inputSchema").contains("$defs"),
        "{tools:?}"
    );
    client.close();
}
