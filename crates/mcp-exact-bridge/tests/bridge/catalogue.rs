//! Catalogue: clients of every revision see the names, texts and arguments of the catalogue, and servers their own.

use std::sync::{Arc, Mutex};

use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, Headers, RawJson, Revision, Server, Tool, revisions};
use mcp_exact_bridge::{
    AccessRule, Bridge, BridgeError, Call, CallObserver, Catalogue, Decision, Hook, HookFuture,
    Hooks, Options, Prefix, Rules, ToolEntry, ToolFilter, Update, Upstream,
};
use mcp_exact_session::{JsonObject, PeerError};
use serde_json::json;

use crate::common::{client_of, handle_of, listen, object, patient};
use crate::own_uris::{REVISIONS, named, revision, send};
use crate::schemas::{server_with, tools_of};
use crate::scripted::text_of;
use crate::task_server::{REVISION, TaskServer, about, begin, bridge_to, listed};

/// Schema of the tool `read_text_file`.
const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"encoding":{"type":"string"},"head":{"type":"integer"}},"required":["path","encoding","head"]}"#;
/// The same for clients.
const LISTED: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"integer","default":10}},"required":["path"]}"#;
/// Tools of the servers: the first one has an entry of everything, the second one is hidden, the third one has none.
const TOOLS: [(&str, &str); 3] = [
    ("read_text_file", SCHEMA),
    ("remove", r#"{"type":"object"}"#),
    ("list", r#"{"type":"object"}"#),
];

/// Returns the catalogue of servers with these names.
fn catalogue(servers: &[&str]) -> Catalogue {
    let json = |text: &str| text.parse().expect("JSON");
    let mut catalogue = Catalogue::default();
    for server in servers {
        let mut entry = ToolEntry::default();
        entry.rename = Some("read".to_owned());
        entry.title = Some("Read a file".to_owned());
        entry.description = Some("Reads a file of the project.".to_owned());
        entry
            .annotations
            .insert("readOnlyHint".to_owned(), true.into());
        entry.fixed.insert("encoding".to_owned(), json("\"utf-8\""));
        entry.defaults.insert("head".to_owned(), json("10"));
        catalogue
            .insert(server, "read_text_file", entry)
            .expect("an entry");
        let mut hidden = ToolEntry::default();
        hidden.is_hidden = true;
        catalogue
            .insert(server, "remove", hidden)
            .expect("an entry");
    }
    catalogue
}

fn with_catalogue(catalogue: Catalogue) -> Options {
    let mut options = Options::default();
    options.rules.catalogue = catalogue;
    options
}

/// Returns the text of the result of a call, or that of the error.
async fn call(client: &ClientHandle, name: &str, arguments: &str) -> Result<String, PeerError> {
    let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let result = send(client, "tools/call", &params).await?;
    let contents: Vec<JsonObject> = result
        .get("content")
        .expect("content")
        .decode_as()
        .expect("an array");
    Ok(text_of(&contents[0], "text"))
}

/// Checks what a client sees of a server whose names have a prefix.
async fn use_catalogue(client: &ClientHandle, of_client: Revision, prefix: &str, pair: &str) {
    let tools = tools_of(client).await;
    let of_server = tools
        .iter()
        .filter(|tool| text_of(tool, "name").starts_with(prefix));
    let of_server: Vec<&JsonObject> = of_server.collect();
    let names: Vec<String> = of_server.iter().map(|tool| text_of(tool, "name")).collect();
    assert_eq!(
        names,
        [format!("{prefix}read"), format!("{prefix}list")],
        "{pair}"
    );
    let read = of_server[0];
    assert_eq!(text_of(read, "inputSchema"), LISTED, "{pair}");
    assert_eq!(
        text_of(read, "description"),
        "Reads a file of the project.",
        "{pair}"
    );
    // The title is where the revision has titles, and nowhere in the oldest one, which has no annotations either.
    let title = r#""Read a file""#;
    let annotations = read
        .get("annotations")
        .map(|annotations| annotations.text().to_owned());
    let annotations = annotations.unwrap_or_default();
    let is_annotated = annotations.contains(r#""readOnlyHint":true"#);
    let (has_title, is_titled) = (read.get("title").is_some(), annotations.contains(title));
    let wanted = match of_client.as_str() {
        "2024-11-05" => (false, false, false),
        "2025-03-26" => (false, true, true),
        _ => (true, false, true),
    };
    assert_eq!(
        (has_title, is_titled, is_annotated),
        wanted,
        "{pair}: {read}"
    );

    let read = format!("{prefix}read");
    let got = call(client, &read, r#"{"path":"a"}"#).await.expect(pair);
    assert_eq!(
        got, r#"{"path":"a","encoding":"utf-8","head":10}"#,
        "{pair}"
    );
    let got = call(client, &read, r#"{"head":1e0}"#).await.expect(pair);
    assert_eq!(got, r#"{"head":1e0,"encoding":"utf-8"}"#, "{pair}");
    let refused = call(client, &read, r#"{"encoding":"x"}"#).await;
    // From 2025-11-25 on the model reads what is wrong.
    let is_read = of_client.as_str() >= "2025-11-25";
    assert_eq!(refused.is_ok(), is_read, "{pair}");
    let refused = refused.unwrap_or_else(|error| error.message().to_owned());
    let words =
        r#"the argument "encoding" has a fixed value here and cannot be sent; leave it out"#;
    assert_eq!(refused, words, "{pair}");
    for own in ["read_text_file", "remove"] {
        let name = format!("{prefix}{own}");
        let unknown = call(client, &name, "{}").await.expect_err(pair);
        assert_eq!(unknown.message(), format!("Unknown tool: {name}"), "{pair}");
    }
    let got = call(client, &format!("{prefix}list"), "{}")
        .await
        .expect(pair);
    assert_eq!(got, "{}", "{pair}");
}

/// Every pair of revisions: in front of one server, in front of two, and at the endpoint of one of two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_see_the_catalogue() {
    for of_server in revisions() {
        let one = Bridge::new(
            server_with(of_server, &TOOLS),
            with_catalogue(catalogue(&[""])),
        );
        let one = one.await.expect("a bridge");
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("a", Arc::new(server_with(of_server, &TOOLS))),
            ("b", Arc::new(server_with(of_server, &TOOLS))),
        ];
        let options = with_catalogue(catalogue(&["a", "b"]));
        let many = Bridge::many(named(all), patient(options))
            .await
            .expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = handle_of(&one, of_client).await;
            use_catalogue(&client, of_client, "", &pair).await;
            client.close();
            let client = handle_of(&many, of_client).await;
            for prefix in ["a__", "b__"] {
                use_catalogue(&client, of_client, prefix, &pair).await;
            }
            client.close();
        }
    }
    let newest = revision("2026-07-28");
    let all: Vec<(&str, Arc<dyn Upstream>)> = vec![("a", Arc::new(server_with(newest, &TOOLS)))];
    let many = Bridge::many(named(all), patient(with_catalogue(catalogue(&["a"])))).await;
    let listening = listen(&many.expect("a bridge")).await;
    let client = Client::connect(&format!("{}/a", listening.url))
        .await
        .expect("connected");
    let tools = client.tools().all().await.expect("tools");
    assert_eq!(tools[0].name(), "read");
    let called = client.call_tool("read", &json!({})).await.expect("called");
    assert_eq!(called.text(), r#"{"encoding":"utf-8","head":10}"#);
    client.close();
}

/// A tool that the entry of its server switches off is in no list, and the refusal of its call names the list, however tools are
/// named.
#[tokio::test]
async fn switched_off_tools_name_their_list() {
    let filter = |server: &str| {
        let mut catalogue = Catalogue::default();
        let filter = ToolFilter::default().deny("excludeTools", ["remove"]);
        catalogue.set_filter(server, filter);
        with_catalogue(catalogue)
    };
    for of_client in REVISIONS.map(revision) {
        let server = || server_with(of_client, &TOOLS);
        let mut bridges = vec![("", Bridge::new(server(), filter("")).await)];
        for (prefix, names) in [
            ("a__", Prefix::Always),
            ("", Prefix::OnConflict),
            ("", Prefix::Never),
        ] {
            let mut options = filter("a");
            options.prefix = names;
            let server: Arc<dyn Upstream> = Arc::new(server());
            let bridge = Bridge::many(named(vec![("a", server)]), patient(options));
            bridges.push((prefix, bridge.await));
        }
        for (prefix, bridge) in bridges {
            let client = handle_of(&bridge.expect("a bridge"), of_client).await;
            let name = format!("{prefix}remove");
            // Before and after the list is known.
            for _ in 0..2 {
                let refused = call(&client, &name, "{}").await.expect_err("switched off");
                let reason = "`excludeTools` in the configuration of its server switches it off";
                let words = format!("Unknown tool: {name} ({reason})");
                assert_eq!(refused.message(), words);
                assert_eq!(tools_of(&client).await.len(), TOOLS.len() - 1);
            }
            let unknown = call(&client, "none", "{}").await.expect_err("unknown");
            assert_eq!(unknown.message(), "Unknown tool: none");
            client.close();
        }
    }
}

/// Hook that records the names and arguments of calls.
struct Record(Arc<Mutex<Vec<String>>>);

impl Hook for Record {
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        if call.method == "tools/call" {
            let seen = (call.subject(), call.arguments());
            self.0.lock().expect("a lock").push(format!("{seen:?}"));
        }
        Box::pin(std::future::ready(Decision::Relay))
    }
}

/// Access rules and hooks name tools as their servers do, and observers get both names.
#[tokio::test]
async fn rules_and_observers_know_own_names() {
    let (seen, reported) = (Arc::default(), Arc::new(Mutex::new(Vec::new())));
    for of_client in REVISIONS.map(revision) {
        let mut options = with_catalogue(catalogue(&["a"]));
        let mut rule = AccessRule::default();
        rule.deny = vec!["read".to_owned(), "list".to_owned()];
        options.rules.access = vec![rule];
        options.hooks = Hooks::default().with(Record(Arc::clone(&seen)));
        let calls = Arc::clone(&reported);
        options.on_call = Some(CallObserver::new(move |report| {
            let call = report.call;
            if call.method == "tools/call" {
                let names = (call.server.clone(), call.subject(), call.listed_as.clone());
                calls.lock().expect("a lock").push(names);
            }
        }));
        let server: Arc<dyn Upstream> = Arc::new(server_with(of_client, &TOOLS));
        let bridge = Bridge::many(named(vec![("a", server)]), patient(options)).await;
        let client = handle_of(&bridge.expect("a bridge"), of_client).await;
        let tools = tools_of(&client).await;
        assert_eq!(tools.len(), 1, "{tools:?}");
        call(&client, "a__read", "{}").await.expect("called");
        call(&client, "a__list", "{}").await.expect_err("denied");
        client.close();
    }
    let seen = std::mem::take(&mut *seen.lock().expect("a lock"));
    let wanted = r#"(Some("read_text_file"), Some("{\"encoding\":\"utf-8\",\"head\":10}"))"#;
    assert_eq!(seen, [wanted, wanted]);
    let text = |text: &str| Some(text.to_owned());
    let called = ("a".to_owned(), text("read_text_file"), text("read"));
    let denied = (String::new(), text("a__list"), None);
    let once = [called, denied];
    assert_eq!(
        *reported.lock().expect("a lock"),
        [once.clone(), once].concat()
    );
}

/// A changed catalogue applies to connected clients at once; a tool without an entry whose name it gives to another tool is hidden.
#[tokio::test]
async fn catalogue_changes_apply_immediately() {
    for of_client in REVISIONS.map(revision) {
        let server: Arc<dyn Upstream> = Arc::new(server_with(of_client, &TOOLS));
        let bridge = Bridge::many(named(vec![("a", server)]), patient(Options::default())).await;
        let bridge = bridge.expect("a bridge");
        let client = handle_of(&bridge, of_client).await;
        call(&client, "a__read_text_file", "{}")
            .await
            .expect("called");
        let update = async |catalogue: Catalogue| {
            let (mut update, mut rules) = (Update::default(), Rules::default());
            rules.catalogue = catalogue;
            update.rules = Some(rules);
            bridge.update(update).await
        };
        update(catalogue(&["a"])).await.expect("an update");
        use_catalogue(&client, of_client, "a__", of_client.as_str()).await;
        let mut taken = Catalogue::default();
        let mut entry = ToolEntry::default();
        entry.rename = Some("list".to_owned());
        taken.insert("a", "remove", entry).expect("an entry");
        update(taken).await.expect("an update");
        let tools = tools_of(&client).await;
        let names: Vec<String> = tools.iter().map(|tool| text_of(tool, "name")).collect();
        assert_eq!(names, ["a__read_text_file", "a__list"], "{of_client}");
        update(Catalogue::default()).await.expect("an update");
        call(&client, "a__read_text_file", "{}")
            .await
            .expect("called");
        client.close();
    }
}

/// A name that two entries give is an error at the start that names both keys; a tool of a server that has such a name without an
/// entry is hidden, and keeps nobody from starting.
#[tokio::test]
async fn taken_names_are_those_of_entries() {
    let newest = revision("2026-07-28");
    let renamed = |server: &str, tool: &str, name: &str, catalogue: &mut Catalogue| {
        let mut entry = ToolEntry::default();
        entry.rename = Some(name.to_owned());
        catalogue.insert(server, tool, entry).expect("an entry");
    };
    let start = async |catalogue: Catalogue, prefix: Prefix| {
        let mut options = with_catalogue(catalogue);
        options.prefix = prefix;
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("a", Arc::new(server_with(newest, &TOOLS))),
            ("b", Arc::new(server_with(newest, &TOOLS))),
        ];
        match Bridge::many(named(all), patient(options)).await {
            Ok(_) => None,
            Err(BridgeError::Settings(words)) => Some(words),
            Err(error) => panic!("{error}"),
        }
    };
    let mut taken = Catalogue::default();
    renamed("b", "remove", "list", &mut taken);
    assert_eq!(start(taken, Prefix::Always).await, None);
    let mut same = Catalogue::default();
    renamed("a", "list", "x", &mut same);
    renamed("b", "remove", "x", &mut same);
    assert_eq!(start(same.clone(), Prefix::Always).await, None);
    let words = start(same, Prefix::Never).await.expect("an error");
    assert!(words.contains("servers.a.tools.list.rename"), "{words}");
    assert!(words.contains("servers.b.tools.remove.rename"), "{words}");
    // An entry for a tool that no server has is reported, and does not keep anybody from starting.
    let mut missing = Catalogue::default();
    renamed("a", "missing", "x", &mut missing);
    assert_eq!(start(missing, Prefix::Always).await, None);
}

/// A parameter with a fixed value is mirrored into no header of clients (2026-07-28, `basic/transports/streamable-http`, "Custom
/// Headers from Tool Parameters"), and into that of the gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fixed_parameters_are_mirrored_by_the_gateway() {
    let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"zone":{"type":"string","x-mcp-header":"Zone"}}}"#;
    let server = Server::builder("behind", "1.0.0")
        .tool(
            Tool::new("where").input_schema(object(schema)),
            |headers: Headers| async move {
                let of = |name: &str| headers.get(name).unwrap_or("none").to_owned();
                format!("{} {}", of("mcp-param-region"), of("mcp-param-zone"))
            },
        )
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = listener.serve(
        server.http(HttpServerOptions::default()),
        std::future::pending(),
    );
    let serving = tokio::spawn(serving);
    let mut catalogue = Catalogue::default();
    let mut entry = ToolEntry::default();
    entry.rename = Some("place".to_owned());
    entry
        .fixed
        .insert("region".to_owned(), RawJson::string("eu"));
    catalogue.insert("", "where", entry).expect("an entry");
    let upstream = HttpEndpoint::new(&url).expect("a URL");
    let bridge = Bridge::new(upstream, with_catalogue(catalogue)).await;
    let listening = listen(&bridge.expect("a bridge")).await;
    let client = Client::connect(&listening.url).revision(revision("2026-07-28"));
    let client = client.await.expect("connected");
    let tools = client.tools().all().await.expect("listed");
    assert!(
        !tools[0]
            .input_schema()
            .expect("a schema")
            .text()
            .contains("Region")
    );
    let called = client.call_tool("place", &json!({"zone": "b"})).await;
    assert_eq!(called.expect("called").text(), "eu b");
    client.close();
    serving.abort();
}

/// A task belongs to its client under the name of the catalogue, and is hidden with its tool.
#[tokio::test]
async fn tasks_follow_the_catalogue() {
    let of_tool = |entry: ToolEntry| {
        let mut catalogue = Catalogue::default();
        catalogue.insert("", "slow", entry).expect("an entry");
        catalogue
    };
    let mut entry = ToolEntry::default();
    entry.rename = Some("later".to_owned());
    let bridge = bridge_to(TaskServer::new(""), with_catalogue(of_tool(entry))).await;
    let client = handle_of(&bridge, revision(REVISION)).await;
    let (_, id) = begin(&client, "later").await;
    about(&client, "tasks/get", &id).await.expect("a task");
    assert_eq!(listed(&client).await, [&*id]);
    let mut hidden = ToolEntry::default();
    hidden.is_hidden = true;
    let (mut update, mut rules) = (Update::default(), Rules::default());
    rules.catalogue = of_tool(hidden);
    update.rules = Some(rules);
    bridge.update(update).await.expect("an update");
    let refused = about(&client, "tasks/get", &id).await.expect_err("hidden");
    let missing = about(&client, "tasks/get", "99")
        .await
        .expect_err("no task");
    assert_eq!(refused, missing);
    client.close();
}

/// Lists of a single server have one page, in which every tool is looked at.
#[tokio::test]
async fn listed_tools_are_called_by_applications() {
    let newest = revision("2026-07-28");
    let bridge = Bridge::new(
        server_with(newest, &TOOLS),
        with_catalogue(catalogue(&[""])),
    );
    let bridge = bridge.await.expect("a bridge");
    for of_client in revisions() {
        let client = client_of(&bridge, of_client).await.expect("a client");
        let tools = client.tools().all().await.expect("tools");
        assert_eq!(tools.len(), 2);
        for tool in tools {
            client
                .call_tool(&tool.name(), &json!({}))
                .await
                .expect("called");
        }
        client.close();
    }
}
