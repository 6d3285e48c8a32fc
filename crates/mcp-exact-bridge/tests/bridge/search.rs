//! Search instead of a list: clients of every revision find tools by words, and call them as others do.

use std::sync::{Arc, Mutex};

use mcp_exact::revisions;
use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact_bridge::{
    AccessRule, Bridge, CallObserver, Catalogue, LossPolicy, Options, Prefix, ToolEntry,
    ToolSearch, Upstream,
};
use mcp_exact_session::JsonObject;

use crate::common::{InMemory, answering, client_of, handle_of, listen, object, patient, server};
use crate::own_uris::{REVISIONS, named, revision, send};
use crate::schemas::{server_with, tools_of};
use crate::scripted::text_of;

/// Tools of a server.
const TOOLS: [(&str, &str); 3] = [
    (
        "read_file",
        r#"{"type":"object","properties":{"path":{"type":"string"}}}"#,
    ),
    (
        "write_file",
        r#"{"type":"object","properties":{"path":{"type":"string"},"text":{}}}"#,
    ),
    ("weather", r#"{"type":"object","properties":{"place":{}}}"#),
];

fn with_search(always: &[&str]) -> Options {
    let mut options = Options::default();
    let mut search = ToolSearch::default();
    search.always = always.iter().map(|&pattern| pattern.to_owned()).collect();
    options.rules.search = Some(search);
    options
}

async fn names(client: &ClientHandle) -> Vec<String> {
    let tools = tools_of(client).await;
    tools.iter().map(|tool| text_of(tool, "name")).collect()
}

/// Calls a tool, and returns the text of its result.
async fn call(client: &ClientHandle, name: &str, arguments: &str) -> Result<String, String> {
    let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let result = send(client, "tools/call", &params).await;
    let result = result.map_err(|error| error.message().to_owned())?;
    let is_error = result
        .get("isError")
        .is_some_and(|flag| flag.text() == "true");
    let contents: Vec<JsonObject> = result
        .get("content")
        .expect("content")
        .decode_as()
        .expect("an array");
    let text = text_of(&contents[0], "text");
    if is_error { Err(text) } else { Ok(text) }
}

/// Returns the tools that a search finds.
async fn found(client: &ClientHandle, query: &str) -> Vec<JsonObject> {
    let answer = call(client, "search_tools", &format!(r#"{{"query":"{query}"}}"#)).await;
    let answer = object(&answer.expect("an answer"));
    answer
        .get("tools")
        .expect("tools")
        .decode_as()
        .expect("an array")
}

/// Every pair of revisions: the list is short, the search returns names and schemas, and calls reach the tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_found_and_called() {
    for of_server in revisions() {
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("a", Arc::new(server_with(of_server, &TOOLS))),
            ("b", Arc::new(server_with(of_server, &TOOLS[..1]))),
        ];
        let many = Bridge::many(named(all), patient(with_search(&["b__*"]))).await;
        let many = many.expect("a bridge");
        let one = Bridge::new(server_with(of_server, &TOOLS), with_search(&[]));
        let one = one.await.expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            for (bridge, prefix, listed) in [
                (
                    &many,
                    "a__",
                    &["search_tools", "call_tool", "b__read_file"][..],
                ),
                (&one, "", &["search_tools", "call_tool"]),
            ] {
                let client = handle_of(bridge, of_client).await;
                assert_eq!(names(&client).await, listed, "{pair}");
                let weather = found(&client, "what is the weather").await;
                assert_eq!(weather.len(), 1, "{pair}: {weather:?}");
                let name = text_of(&weather[0], "name");
                assert_eq!(name, format!("{prefix}weather"), "{pair}");
                assert_eq!(text_of(&weather[0], "inputSchema"), TOOLS[2].1, "{pair}");
                let arguments = format!(r#"{{"name":"{name}","arguments":{{"place": 1e400}}}}"#);
                let called = call(&client, "call_tool", &arguments).await;
                assert_eq!(called.as_deref(), Ok(r#"{"place": 1e400}"#), "{pair}");
                // A tool that is not listed can be called by its name, too.
                let called = call(&client, &name, "{}").await;
                assert_eq!(called.as_deref(), Ok("{}"), "{pair}");
                client.close();
            }
        }
    }
}

/// Wrong arguments are errors that say what is wrong, and a search without a result says so.
#[tokio::test]
async fn wrong_calls_are_explained() {
    for of_client in REVISIONS.map(revision) {
        let bridge = Bridge::new(server_with(of_client, &TOOLS), with_search(&[])).await;
        let client = handle_of(&bridge.expect("a bridge"), of_client).await;
        for (tool, arguments, words) in [
            ("search_tools", "{}", "`query` must be a string"),
            (
                "search_tools",
                r#"{"query":"x","limit":0}"#,
                "`limit` must be an integer above 0",
            ),
            (
                "call_tool",
                "{}",
                "`name` in the arguments must be the name of a tool",
            ),
            ("call_tool", r#"{"name":"call_tool"}"#, "cannot call itself"),
            ("call_tool", r#"{"name":"none"}"#, "Unknown tool: none"),
            (
                "call_tool",
                r#"{"name":"weather","arguments":1}"#,
                "must be an object",
            ),
        ] {
            let refused = call(&client, tool, arguments).await.expect_err(arguments);
            assert!(refused.contains(words), "{refused}");
        }
        let none = call(&client, "search_tools", r#"{"query":"xyzzy"}"#).await;
        assert_eq!(
            none.as_deref(),
            Ok("No tool has these words; there are 3 tools. Try other words.")
        );
        let one = call(&client, "search_tools", r#"{"query":"file","limit":1}"#).await;
        assert_eq!(one.expect("an answer").matches("inputSchema").count(), 1);
        client.close();
    }
}

/// A search that some servers have not answered says so, whether it finds something or not.
#[tokio::test]
async fn missing_servers_are_said() {
    for of_client in REVISIONS.map(revision) {
        let missing = HttpEndpoint::new("http://127.0.0.1:1/mcp").expect("a URL");
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("a", Arc::new(server_with(of_client, &TOOLS))),
            ("b", Arc::new(missing)),
        ];
        let bridge = Bridge::many(named(all), with_search(&[])).await;
        let client = handle_of(&bridge.expect("a bridge"), of_client).await;
        let none = call(&client, "search_tools", r#"{"query":"xyzzy"}"#).await;
        let none = none.expect("an answer");
        assert!(none.contains("some servers have not answered"), "{none}");
        let params = r#"{"name":"search_tools","arguments":{"query":"weather"}}"#;
        let some = send(&client, "tools/call", params)
            .await
            .expect("an answer");
        assert!(
            some.text().contains("Some servers have not answered"),
            "{}",
            some.text()
        );
        client.close();
    }
}

/// A tool of a server that has the name of a tool of the search gets a prefix, or is left out; the name is that of the search.
#[tokio::test]
async fn names_of_the_search_are_reserved() {
    let tools = [("call_tool", TOOLS[0].1), ("weather", TOOLS[2].1)];
    let newest = revision("2026-07-28");
    for (prefix, of_server) in [
        (Prefix::OnConflict, Some("a__call_tool")),
        (Prefix::Never, None),
    ] {
        let mut options = with_search(&["*"]);
        options.prefix = prefix;
        let all: Vec<(&str, Arc<dyn Upstream>)> =
            vec![("a", Arc::new(server_with(newest, &tools)))];
        let bridge = Bridge::many(named(all), patient(options))
            .await
            .expect("a bridge");
        let client = handle_of(&bridge, newest).await;
        let own = ["search_tools", "call_tool"].into_iter();
        let wanted: Vec<&str> = own.chain(of_server).chain(["weather"]).collect();
        assert_eq!(names(&client).await, wanted);
        if let Some(name) = of_server {
            let called = call(&client, "call_tool", &format!(r#"{{"name":"{name}"}}"#)).await;
            called.expect("called");
        }
        client.close();
    }
}

/// What rules, catalogue and pins hide is not found and not called, and the audit log has the call that was made.
#[tokio::test]
async fn searches_follow_the_rules() {
    for of_client in REVISIONS.map(revision) {
        let mut options = with_search(&[]);
        let mut rule = AccessRule::default();
        rule.deny = vec!["write_*".to_owned()];
        options.rules.access = vec![rule];
        let (mut renamed, mut hidden) = (ToolEntry::default(), ToolEntry::default());
        renamed.rename = Some("open".to_owned());
        renamed.description = Some("Shows a document.".to_owned());
        hidden.is_hidden = true;
        let catalogue: &mut Catalogue = &mut options.rules.catalogue;
        catalogue
            .insert("a", "read_file", renamed)
            .expect("an entry");
        catalogue.insert("a", "weather", hidden).expect("an entry");
        let reported = Arc::new(Mutex::new(Vec::new()));
        let calls = Arc::clone(&reported);
        options.on_call = Some(CallObserver::new(move |report| {
            let call = report.call;
            if call.method == "tools/call" {
                let names = (call.server.clone(), call.subject(), call.listed_as.clone());
                calls.lock().expect("a lock").push(names);
            }
        }));
        let all: Vec<(&str, Arc<dyn Upstream>)> =
            vec![("a", Arc::new(server_with(of_client, &TOOLS)))];
        let bridge = Bridge::many(named(all), patient(options))
            .await
            .expect("a bridge");
        let client = handle_of(&bridge, of_client).await;
        let tools = found(&client, "show write read weather path document").await;
        let tools: Vec<String> = tools.iter().map(|tool| text_of(tool, "name")).collect();
        assert_eq!(tools, ["a__open"]);
        for name in ["a__write_file", "a__weather", "a__read_file"] {
            let called = call(&client, "call_tool", &format!(r#"{{"name":"{name}"}}"#)).await;
            assert_eq!(called, Err(format!("Unknown tool: {name}")));
        }
        call(&client, "call_tool", r#"{"name":"a__open"}"#)
            .await
            .expect("called");
        client.close();
        let reported = reported.lock().expect("a lock");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(reported[0], (String::new(), text("search_tools"), None));
        let last = ("a".to_owned(), text("read_file"), text("open"));
        assert_eq!(reported.last(), Some(&last));
        assert!(
            !reported
                .iter()
                .any(|(_, subject, _)| *subject == text("call_tool"))
        );
    }
}

/// A tool that asks its client during the call works through `call_tool`, for clients and servers of both lifecycles, over HTTP, too;
/// losses of the call follow their policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn called_tools_ask_their_client() {
    for of_server in REVISIONS.map(revision) {
        for of_client in REVISIONS.map(revision) {
            let behind = InMemory::new(&server(of_server));
            let bridge = Bridge::new(behind, with_search(&[])).await;
            let bridge = bridge.expect("a bridge");
            let client = client_of(&bridge, of_client).await.expect("a client");
            let arguments = object(r#"{"name":"steps"}"#);
            let called = client
                .call_tool("call_tool", &arguments)
                .await
                .expect("called");
            assert_eq!(
                called.text(),
                "false",
                "client {of_client}, server {of_server}"
            );
            client.close();
            let listening = listen(&bridge).await;
            let client = answering(mcp_exact::Client::connect(&listening.url)).revision(of_client);
            let client = client.await.expect("a client");
            let called = client
                .call_tool("call_tool", &arguments)
                .await
                .expect("called");
            assert_eq!(
                called.text(),
                "false",
                "client {of_client}, server {of_server}"
            );
            client.close();
        }
    }
    let bridge_with = async |policy| {
        let mut options = with_search(&[]);
        options.rules.losses = policy;
        let newest = server(revision("2026-07-28"));
        Bridge::new(InMemory::new(&newest), options)
            .await
            .expect("a bridge")
    };
    for (policy, is_refused) in [(LossPolicy::Refuse, true), (LossPolicy::Report, false)] {
        let client = handle_of(&bridge_with(policy).await, revision("2024-11-05")).await;
        let called = call(
            &client,
            "call_tool",
            r#"{"name":"add","arguments":{"a":1,"b":2}}"#,
        )
        .await;
        assert_eq!(called.is_err(), is_refused, "{called:?}");
        client.close();
    }
}
