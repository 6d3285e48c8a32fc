//! Hosts of several servers, which are isolated from each other, with a common list of tools.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_exact::transport::memory_pair;
use mcp_exact::{
    Catalogue, Client, ClientError, Cx, Host, HostError, Input, JsonObject, RawJson, RawRequest,
    SendError, Server, ServerBuilder, ServerState, Tolerance, Tool, ToolEntry, ToolFilter,
};

use crate::common::object;

/// Creates a server with a tool `say` that returns `reply`.
fn server(reply: &'static str) -> Server {
    Server::builder("test", "1")
        .tool("say", move || async move { reply })
        .build()
        .expect("a server")
}

/// A failing server and a hanging server do not affect the other servers.
#[tokio::test(start_paused = true)]
async fn failing_servers_do_not_affect_others() {
    let (silent, _kept_open) = memory_pair(1024, 1024);
    let host = Host::builder()
        .server("good", Client::in_memory(&server("hello")))
        .server("good__too", Client::in_memory(&server("again")))
        .server("silent", Client::over(silent))
        .config(
            r#"{"mcpServers":{
            "missing":{"command":"/does/not/exist"},
            "odd":{},
            "port":{"command":"x","timeout":"60"},
            "text":{"command":"x","args":"y"},
            "off":{"command":"/does/not/exist","disabled":true},
            "switched":{"command":"/does/not/exist","enabled":false}
        }}"#,
        )
        .expect("a configuration")
        .timeout(Duration::from_secs(3))
        .start()
        .await;
    assert_eq!(host.servers().collect::<Vec<_>>(), ["good", "good__too"]);
    let failed: Vec<&str> = host.failures().map(|(name, _)| name).collect();
    assert_eq!(failed, ["missing", "odd", "port", "silent", "text"]);
    let (_, error) = host.failures().nth(2).expect("a failure");
    let expected = "the entry cannot be read: `timeout`: invalid type: string \"60\", expected u64";
    assert_eq!(error.to_string(), expected);
    let (_, error) = host.failures().nth(3).expect("a failure");
    let mut late = ClientError::HostTimedOut {
        limit: Duration::from_secs(3),
        is_own: false,
    };
    assert_eq!(error, late);
    let expected = "the server was not ready within 3 s; allow more by `HostBuilder::timeout`, or the key `timeout` of its entry";
    assert_eq!(error.to_string(), expected);
    if let ClientError::HostTimedOut { is_own, .. } = &mut late {
        *is_own = true;
    }
    assert!(
        late.to_string()
            .contains("`connect_timeout` of its connection"),
        "{late}"
    );
    let names: Vec<String> = host
        .tools()
        .await
        .tools
        .iter()
        .map(|tool| tool.name().to_owned())
        .collect();
    assert_eq!(names, ["good__say", "good_too__say"]);
    let text = |name: &'static str| {
        let host = &host;
        async move { host.call(name, &()).await.map(|output| output.text()) }
    };
    assert_eq!(text("good__say").await.as_deref(), Ok("hello"));
    assert_eq!(text("good_too__say").await.as_deref(), Ok("again"));
    assert_eq!(
        text("bad__say").await,
        Err(HostError::UnknownServer("bad__say".to_owned()))
    );
    host.client("good").expect("a client").close();
    assert!(text("good__say").await.is_err());
    assert_eq!(text("good_too__say").await.as_deref(), Ok("again"));
    let tools = host.tools().await;
    assert_eq!((tools.tools.len(), tools.failures.len()), (1, 1));
}

/// A call that the policy rejects is not sent; allowed and rejected calls are audited.
#[tokio::test]
async fn calls_are_allowed_and_audited() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let host = Host::builder()
        .server("a", Client::in_memory(&server("a")))
        .policy(|call| call.arguments.get("x").is_none())
        .audit(move |call, result| {
            let entry = (format!("{}/{}", call.server, call.tool), result.is_ok());
            seen.lock().expect("a lock").push(entry);
        })
        .start()
        .await;
    assert!(host.call("a__say", &()).await.is_ok());
    let refused = host
        .call("a__say", &object(r#"{"x":1}"#))
        .await
        .expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "the policy of the host does not allow \"say\" of server \"a\""
    );
    let expected = [("a/say".to_owned(), true), ("a/say".to_owned(), false)];
    assert_eq!(*calls.lock().expect("a lock"), expected);
}

/// A sent call is audited even if its future is dropped.
#[tokio::test]
async fn dropped_calls_are_audited() {
    let hanging = Server::builder("test", "1").tool("hang", std::future::pending::<()>);
    let (sender, mut audited) = tokio::sync::mpsc::unbounded_channel();
    let host = Host::builder()
        .server("a", Client::in_memory(&hanging.build().expect("a server")))
        .audit(move |call, result| drop(sender.send((call.tool.to_owned(), result.clone()))))
        .start()
        .await;
    let call = host.call("a__hang", &());
    let ended = tokio::time::timeout(Duration::from_millis(1), call).await;
    assert!(ended.is_err());
    let (tool, result) = audited.recv().await.expect("a call");
    assert_eq!(tool, "hang");
    assert!(
        matches!(result, Err(HostError::CallDropped { .. })),
        "{result:?}"
    );
}

/// Every name in the list calls the tool of the correct server, for all names of servers and tools.
#[tokio::test]
async fn prefixed_names_select_the_server() {
    let named = |tool: &'static str, reply: &'static str| {
        let server = Server::builder("test", "1").tool(tool, move || async move { reply });
        Client::in_memory(&server.build().expect("a server"))
    };
    let host = Host::builder()
        .server("a", named("b__say", "first"))
        .server("a__b", named("say", "second"))
        .server("a b", named("say", "third"))
        .start()
        .await;
    let mut texts = Vec::new();
    for tool in host.tools().await.tools {
        let output = host.call(tool.name(), &()).await.expect("a result");
        texts.push((tool.server, output.text()));
    }
    let expected = [("a", "first"), ("a b", "third"), ("a__b", "second")];
    assert_eq!(
        texts,
        expected.map(|(server, text)| (server.to_owned(), text.to_owned()))
    );
}

/// Creates a server that lists tools with these names, without any check, and answers each call with the name of the tool.
fn listing(names: &Arc<Mutex<Vec<&'static str>>>) -> ServerBuilder {
    let names = Arc::clone(names);
    Server::raw("raw", "1", move |request: RawRequest, _: Cx| {
        let names = names.lock().expect("a lock").clone();
        async move {
            let params = request.params.unwrap_or_default();
            if request.method == "tools/call" {
                let name = params.get("name").expect("a name");
                let result = format!(
                    r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
                    name.text()
                );
                return mcp_exact::Ok(object(&result));
            }
            let tools = names.iter().enumerate().map(|(place, name)| {
                format!(r#"{{"name":{name:?},"description":"{place}","inputSchema":{{"type":"object"}}}}"#)
            });
            let tools = tools.collect::<Vec<_>>().join(",");
            Ok(object(&format!(r#"{{"tools":[{tools}]}}"#)))
        }
    })
}

/// Names are those that providers of models accept, `^[a-zA-Z0-9_-]{1,64}$` and unique, whatever servers list: dots and 128 characters
/// are legal in MCP, and other characters and duplicates only discouraged (2025-11-25, `server/tools`, "Tool Names"). Each name calls
/// its tool, also after the list has changed.
#[tokio::test]
async fn models_accept_all_names() {
    let long = "lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll";
    let listed = [
        "twin",
        "twin",
        "docs.find",
        "docs/find",
        "docs_find",
        "größe x",
        long,
    ];
    let names = Arc::new(Mutex::new(listed.to_vec()));
    let listing = listing(&names).capability("tools", JsonObject::new());
    let listing = listing.build().expect("a server");
    let host = Host::builder()
        .server("my server", Client::in_memory(&listing))
        .server(long, Client::in_memory(&listing))
        .start()
        .await;
    let tools = host.tools().await;
    assert!(tools.failures.is_empty());
    let given: Vec<&str> = tools.for_model().map(|tool| tool.name()).collect();
    let is_accepted = |name: &&str| {
        let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(is_kept)
    };
    assert!(given.iter().all(is_accepted), "{given:?}");
    let unique: std::collections::BTreeSet<&str> = given.iter().copied().collect();
    // The second twin is left out.
    assert_eq!((given.len(), unique.len()), (12, 12), "{given:?}");
    let of_mine = tools.tools.iter().filter(|tool| tool.server == "my server");
    let of_mine: Vec<_> = of_mine.collect();
    assert_eq!(of_mine[0].definition.description().as_deref(), Some("0"));
    assert_eq!(
        [of_mine[0].name(), of_mine[3].name()],
        ["my_server__twin", "my_server__docs_find"]
    );
    let find = of_mine[1].name();
    assert!(find.starts_with("my_server__docs_find_"), "{find}");
    names.lock().expect("a lock").rotate_left(3);
    let again = host.tools().await;
    for tool in tools.for_model() {
        let called = host.call(tool.name(), &()).await.expect("a result");
        assert_eq!(called.text(), tool.definition.name());
        let listed = again.for_model_call(tool.name()).expect("the same name");
        assert_eq!(listed.definition.name(), tool.definition.name());
    }
    // The name is known while the tool is not listed, and the server says what it thinks of the call.
    names
        .lock()
        .expect("a lock")
        .retain(|name| *name != "docs.find");
    assert!(host.tools().await.for_model_call(find).is_err());
    assert_eq!(
        host.call(find, &()).await.expect("a result").text(),
        "docs.find"
    );
    // The catalogue knows the names that servers have.
    let mut read = ToolEntry::default();
    read.rename = Some("docs.read".to_owned());
    let mut catalogue = Catalogue::default();
    catalogue.insert("files", "twin", read).expect("an entry");
    let host = Host::builder()
        .server("files", Client::in_memory(&listing))
        .catalogue(catalogue)
        .start()
        .await;
    let tools = host.tools().await;
    let renamed = tools.for_page("files", "docs.read").expect("a tool");
    assert!(is_accepted(&renamed.name()), "{}", renamed.name());
    let called = host.call(renamed.name(), &()).await.expect("a result");
    assert_eq!(called.text(), "twin");
}

/// "Servers that support tools MUST declare the `tools` capability" (`server/tools`, "Capabilities"): tools of a server that declares
/// nothing are not lost without a word. A lenient host asks for them, and a server that does not know the method has none; to a
/// strict one, the server has failed. A server with prompts alone has failed to neither.
#[tokio::test]
async fn servers_without_capabilities_are_asked() {
    let names = Arc::new(Mutex::new(vec!["find"]));
    let silent = listing(&names).build().expect("a server");
    let prompts = Server::builder("test", "1").prompt("greet", || async { "hello" });
    let prompts = prompts.build().expect("a server");
    let start = async |tolerance| {
        Host::builder()
            .server("silent", Client::in_memory(&silent).tolerance(tolerance))
            .server("prompts", Client::in_memory(&prompts))
            .server("good", Client::in_memory(&server("hello")))
            .start()
            .await
    };
    let tools = start(Tolerance::Lenient).await.tools().await;
    assert_eq!((tools.tools.len(), tools.failures.len()), (1, 0));
    let tools = start(Tolerance::Strict).await.tools().await;
    assert_eq!(tools.tools.len(), 1);
    assert_eq!(tools.failures.keys().collect::<Vec<_>>(), ["silent"]);
    let failure = &tools.failures["silent"];
    assert!(
        matches!(failure, ClientError::Send(SendError::Capability { capability, .. }) if capability == "tools"),
        "{failure}"
    );
    assert_eq!(
        failure.to_string(),
        "`tools/list` needs the capability `tools`, which was not declared; only the server can declare it: change the server, or tell its authors"
    );
}

/// A server is reconnected without affecting other servers, and its status shows the reconnection.
#[tokio::test]
async fn servers_are_restarted_alone() {
    let host = Host::builder()
        .server("good", Client::in_memory(&server("hello")))
        .server("other", Client::in_memory(&server("again")))
        .config(r#"{"mcpServers":{"missing":{"command":"/does/not/exist"}}}"#)
        .expect("a configuration")
        .start()
        .await;
    let newest = mcp_exact::revisions().next_back();
    let status = |name: &str| host.status()[name].clone();
    let state = |name: &str| (status(name).state, status(name).attempt_count);
    assert_eq!(state("good"), (ServerState::Connected, 1));
    assert_eq!(status("good").revision, newest);
    assert_eq!(state("missing"), (ServerState::Disconnected, 1));
    assert!(matches!(
        status("missing").last_error,
        Some(ClientError::Connect(_))
    ));

    let (first, other) = (host.client("good"), host.client("other"));
    let first = first.expect("a client");
    let began = status("good").changed_at;
    first.close();
    assert!(first.call_tool("say", &()).await.is_err());
    assert_eq!(state("good"), (ServerState::Disconnected, 1));
    assert_eq!(status("good").revision, None);
    host.restart("good").await.expect("a client");
    assert_eq!(state("good"), (ServerState::Connected, 2));
    assert!(status("good").changed_at >= began);
    let text = host
        .call("good__say", &())
        .await
        .map(|output| output.text());
    assert_eq!(text.as_deref(), Ok("hello"));
    // Servers are restarted while they are connected, too; the former connection ends.
    let second = host.client("good").expect("a client");
    host.restart("good").await.expect("a client");
    assert!(second.call_tool("say", &()).await.is_err());
    assert!(host.call("good__say", &()).await.is_ok());
    assert_eq!(state("other"), (ServerState::Connected, 1));
    assert!(other.expect("a client").call_tool("say", &()).await.is_ok());

    let failed = host.restart("missing").await.expect_err("no such program");
    assert!(matches!(failed, HostError::Client { .. }), "{failed}");
    assert_eq!(state("missing"), (ServerState::Disconnected, 2));
    let unknown = host.restart("unknown").await.expect_err("not configured");
    assert_eq!(unknown, HostError::NotConfigured("unknown".to_owned()));
}

/// Returns the text of a call.
async fn text_of(host: &Host, name: &str) -> Result<String, HostError> {
    host.call(name, &()).await.map(|output| output.text())
}

/// A running host gets and loses servers; names stay unique, and belong to the same servers for as long as the host lives.
#[tokio::test]
async fn servers_come_and_go() {
    let connect = |reply: &'static str| Client::in_memory(&server(reply));
    let configured = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&configured);
    let mut host = Host::builder()
        .server("a b", connect("first"))
        .configure(move |server, connect| {
            seen.lock().expect("a lock").push(server.to_owned());
            connect
        })
        .start()
        .await;
    host.add("a_b", connect("second")).await.expect("added");
    host.add("other", connect("third")).await.expect("added");
    assert_eq!(*configured.lock().expect("a lock"), ["a b", "a_b", "other"]);
    let listed = |tools: mcp_exact::HostTools| {
        let tools = tools.tools.into_iter();
        tools.map(|tool| tool.name().to_owned()).collect::<Vec<_>>()
    };
    let names = ["a_b__say", "a_b-2__say", "other__say"];
    assert_eq!(listed(host.tools().await), names);
    assert_eq!(text_of(&host, "a_b-2__say").await.as_deref(), Ok("second"));
    // What has this name stays as it is.
    let taken = host.add("a b", connect("fourth")).await.expect_err("taken");
    assert_eq!(taken, HostError::NameTaken("a b".to_owned()));
    assert_eq!(text_of(&host, "a_b__say").await.as_deref(), Ok("first"));
    // The connection ends, even if the application has a clone of the client.
    let client = host.client("a b").expect("a client");
    host.remove("a b").await.expect("removed");
    assert!(client.is_closed());
    assert_eq!(listed(host.tools().await), names[1..]);
    let gone = text_of(&host, "a_b__say").await;
    assert_eq!(gone, Err(HostError::UnknownServer("a_b__say".to_owned())));
    assert_eq!(host.status().keys().collect::<Vec<_>>(), ["a_b", "other"]);
    let gone = host.remove("a b").await;
    assert_eq!(gone, Err(HostError::NotConfigured("a b".to_owned())));
    // No other server gets its names, and it has them again when it is back.
    host.add("a  b", connect("fifth")).await.expect("added");
    host.add("a b", connect("again")).await.expect("added");
    assert_eq!(text_of(&host, "a_b-3__say").await.as_deref(), Ok("fifth"));
    assert_eq!(text_of(&host, "a_b__say").await.as_deref(), Ok("again"));
    // A server that cannot be connected is one of the host, which can be tried again.
    let missing = Client::command("/does/not/exist", [""; 0]);
    let failed = host.add("missing", missing).await.expect_err("no program");
    assert!(matches!(failed, HostError::Client { .. }), "{failed}");
    assert_eq!(
        host.failures().map(|(name, _)| name).collect::<Vec<_>>(),
        ["missing"]
    );
    assert!(host.restart("missing").await.is_err());
    host.remove("missing").await.expect("removed");
    assert_eq!(host.failures().count(), 0);
}

/// A restart whose future is dropped is a failure, also if that happens while the former connection ends.
#[tokio::test]
async fn dropped_restarts_are_failures() {
    let host = Host::builder()
        .server("a", Client::in_memory(&server("hello")))
        .start()
        .await;
    let mut restarting = Box::pin(host.restart("a"));
    let polled = std::future::poll_fn(|cx| Poll::Ready(restarting.as_mut().poll(cx))).await;
    assert!(polled.is_pending(), "the former connection ends first");
    drop(restarting);
    assert_eq!(host.servers().count(), 0);
    let failed: Vec<&str> = host.failures().map(|(name, _)| name).collect();
    assert_eq!(failed, ["a"]);
    assert!(host.status()["a"].last_error.is_some());
    host.restart("a").await.expect("a client");
    assert_eq!(host.failures().count(), 0);
}

/// A server that was added as a transport cannot be restarted, and the error contains a hint.
#[tokio::test]
async fn transports_serve_one_connection() {
    let (local, remote) = memory_pair(1 << 16, 1 << 16);
    let served = server("hello");
    tokio::spawn(async move { served.serve(remote).await });
    let host = Host::builder()
        .server("given", Client::over(local))
        .start()
        .await;
    assert!(host.call("given__say", &()).await.is_ok());
    let failed = host.restart("given").await.expect_err("one connection");
    assert!(
        failed.to_string().contains("add the server by its command"),
        "{failed}"
    );
}

/// A server whose tools return their arguments.
fn echo() -> Server {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"encoding":{}},"required":["encoding"]}"#;
    let echo = |Input(arguments): Input<JsonObject>| async move { arguments.to_string() };
    Server::builder("test", "1")
        .tool(
            Tool::new("read_text_file").input_schema(object(schema)),
            echo,
        )
        .tool(Tool::new("remove").input_schema(object(schema)), echo)
        .build()
        .expect("a server")
}

/// Models see the catalogue of the host, and policy, audit and server the tools as the server has them.
#[tokio::test]
async fn catalogue_describes_tools() {
    let (mut read, mut hidden) = (ToolEntry::default(), ToolEntry::default());
    read.rename = Some("read".to_owned());
    read.description = Some("Reads a file.".to_owned());
    read.fixed
        .insert("encoding".to_owned(), RawJson::string("utf-8"));
    hidden.is_hidden = true;
    let mut catalogue = Catalogue::default();
    catalogue
        .insert("files", "read_text_file", read)
        .expect("an entry");
    catalogue
        .insert("files", "remove", hidden)
        .expect("an entry");
    let audited = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::clone(&audited);
    let host = Host::builder()
        .server("files", Client::in_memory(&echo()))
        .server("other", Client::in_memory(&server("hello")))
        .catalogue(catalogue)
        .policy(|call| call.tool != "remove")
        .audit(move |call, _| {
            let call = format!("{} {}", call.tool, call.arguments);
            calls.lock().expect("a lock").push(call);
        })
        .start()
        .await;
    let tools = host.tools().await.tools;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["files__read", "other__say"]);
    assert_eq!(
        tools[0].definition.description().as_deref(),
        Some("Reads a file.")
    );
    let schema = tools[0].definition.input_schema().expect("a schema");
    assert_eq!(
        schema.text(),
        r#"{"type":"object","properties":{"path":{"type":"string"}}}"#
    );
    let called = host.call("files__read", &object(r#"{"path":"a"}"#)).await;
    assert_eq!(
        called.expect("called").text(),
        r#"{"path":"a","encoding":"utf-8"}"#
    );
    assert_eq!(
        *audited.lock().expect("a lock"),
        [r#"read_text_file {"path":"a","encoding":"utf-8"}"#]
    );
    let fixed = host
        .call("files__read", &object(r#"{"encoding":"x"}"#))
        .await;
    let fixed = fixed.expect_err("a fixed argument");
    assert!(matches!(fixed, HostError::Argument { .. }), "{fixed}");
    for unknown in ["files__read_text_file", "files__remove"] {
        let error = host.call(unknown, &()).await.expect_err(unknown);
        assert_eq!(error, HostError::UnknownTool(unknown.to_owned()));
    }
    let refused = audited.lock().expect("a lock").pop();
    assert_eq!(
        refused.as_deref(),
        Some(r#"read_text_file {"encoding":"x"}"#)
    );
    let found = host.find_tools("reading files", 5).await.tools;
    let found: Vec<&str> = found.iter().map(|tool| tool.name()).collect();
    assert_eq!(found, ["files__read"]);
    host.close();
}

/// Tools that are switched off are in no list and cannot be called, at every entrance of client and host.
#[tokio::test]
async fn tools_are_switched_off() {
    let filter = ToolFilter::default().deny("excludeTools", ["remove"]);
    let connect = Client::in_memory(&echo()).tool_filter(filter);
    let mut host = Host::builder()
        .server("files", connect.clone())
        .start()
        .await;
    let client = host.add("more", connect).await.expect("connected");
    let tools = host.tools().await.tools;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["files__read_text_file", "more__read_text_file"]);
    let off = ClientError::ToolOff {
        tool: "remove".to_owned(),
        key: "excludeTools".to_owned(),
    };
    for server in ["files", "more"] {
        let refused = host.call(&format!("{server}__remove"), &()).await;
        let error = HostError::Client {
            server: server.to_owned(),
            error: off.clone(),
        };
        assert_eq!(refused.expect_err(server), error);
    }
    let text = "the tool \"remove\" is switched off by `excludeTools` in the configuration of its server; change that list to use the tool";
    assert_eq!(off.to_string(), text);
    let listed = client.request("tools/list", None).await.expect("a list");
    assert!(!listed.text().contains("remove"), "{listed}");
    let params = object(r#"{"name":"remove","arguments":{"encoding":1}}"#);
    let called = client.request("tools/call", Some(params)).await;
    assert_eq!(called.expect_err("switched off"), off);
    let called = client.call_tool("read_text_file", &object(r#"{"encoding":1}"#));
    assert!(called.await.is_ok());
}
