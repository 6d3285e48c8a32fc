//! Many servers of different revisions behind one bridge, for clients of every revision.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::{Client, Cx, Error, Json, JsonObject, Resource, Revision, Server, Tool, revisions};
use mcp_exact_bridge::{
    AccessRule, Bridge, BridgeError, Call, Decision, Hook, HookFuture, Hooks, Options, Prefix,
    ServerUpdate, Update, Upstream,
};
use mcp_exact_session::Identity;

use crate::common::{
    Add, Confirm, InMemory, Intercepted, Sum, answer_to, client_of, handle_of, object, patient,
    server, with_sessions,
};
use crate::isolation::{listen_by_header, outcome_of, plain_client};
use crate::matrix::wait_on_paused_clock;

/// Creates a second server, which supports every revision; one of its tools has the same name as a tool of `server`.
fn second_server() -> Server {
    Server::builder("other", "3.2.1")
        .instructions("The other one.")
        .tool(
            Tool::new("add").description("Joins."),
            |mcp_exact::Input(add): mcp_exact::Input<Add>| async move {
                Json(Sum {
                    sum: add.a * 10 + add.b,
                })
            },
        )
        .tool("only", || async { "here" })
        .resource(Resource::new("other://x"), || async { "Something else." })
        .build()
        .expect("a server")
}

/// Returns named upstreams for [`Bridge::many`].
fn upstreams(all: &[(&str, &InMemory)]) -> Vec<(String, Arc<dyn Upstream>)> {
    let all = all.iter().map(|(name, upstream)| {
        let upstream: Arc<dyn Upstream> = Arc::new((*upstream).clone());
        ((*name).to_owned(), upstream)
    });
    all.collect()
}

/// Returns options with an identity and a prefix policy.
fn options(prefix: Prefix) -> Options {
    let mut options = Options::default();
    options.identity = Identity::new("gate", "1.0.0");
    options.prefix = prefix;
    options
}

/// Returns the names of all tools that a client lists.
async fn tool_names(client: &Client) -> Vec<String> {
    let tools = client.tools().all().await.expect("tools");
    tools.iter().map(|tool| tool.name()).collect()
}

/// Uses tools, prompts, resources and server requests of both servers, and checks the results.
async fn use_both(client: &Client, of_server: Revision) {
    let pair = format!("client {}, server {of_server}", client.revision());
    let info = client.server_info().expect("a name").to_string();
    assert!(info.contains("gate"), "{pair}: {info}");
    let instructions = client.instructions().expect("instructions");
    for part in [
        "# first\n\nUse it through a bridge.",
        "# second\n\nThe other one.",
    ] {
        assert!(instructions.contains(part), "{pair}: {instructions}");
    }
    let names = tool_names(client).await;
    for name in ["first__add", "first__count", "second__add", "second__only"] {
        assert!(names.iter().any(|known| known == name), "{pair}: {names:?}");
    }
    let add = Add { a: 1, b: 2 };
    let first: Sum = client.call("first__add", &add).await.expect(&pair);
    let second: Sum = client.call("second__add", &add).await.expect(&pair);
    assert_eq!((first.sum, second.sum), (3, 12), "{pair}");
    let unknown = client.call_tool("third__add", &add).await.expect_err(&pair);
    assert!(
        unknown.to_string().contains("Unknown tool: third__add"),
        "{unknown}"
    );

    let prompts = client.prompts().all().await.expect(&pair);
    assert_eq!(prompts[0].name(), "first__review", "{pair}");
    let prompt = client.prompt("first__review", [("code", "main")]).await;
    assert_eq!(prompt.expect(&pair).text(), "Review main.");

    // Reads a resource before any list, listed resources, a resource of a template, and an unknown resource.
    let read = client.read("other://x").await.expect(&pair);
    assert_eq!(read.text(), "Something else.", "{pair}");
    let resources = client.resources().all().await.expect(&pair);
    assert_eq!(resources.len(), 2, "{pair}");
    let templates = client.resource_templates().all().await.expect(&pair);
    assert_eq!(templates.len(), 1, "{pair}");
    for (uri, text) in [
        ("docs://intro", "An introduction."),
        ("docs://7", "Page 7."),
        ("other://x", "Something else."),
    ] {
        assert_eq!(client.read(uri).await.expect(&pair).text(), text, "{pair}");
    }
    assert!(client.read("none://x").await.is_err(), "{pair}");

    let sampled: String = client.call("first__sample", &()).await.expect(&pair);
    assert_eq!(sampled, "Something.", "{pair}");
    if client.revision().as_str() >= "2025-06-18" && of_server.as_str() >= "2025-06-18" {
        let asked: String = client.call("first__ask", &()).await.expect(&pair);
        assert_eq!(asked, "true false Something.", "{pair}");
    }
}

/// Clients of every revision use the tools, prompts and resources of two servers behind one bridge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_every_revision_use_all_servers() {
    for of_server in revisions() {
        let (first, second) = (
            InMemory::new(&server(of_server)),
            InMemory::new(&second_server()),
        );
        let all = upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all, patient(options(Prefix::Always))).await;
        let bridge = bridge.expect("a bridge");
        for of_client in revisions() {
            let client = client_of(&bridge, of_client).await.expect("a client");
            let used = tokio::time::timeout(Duration::from_secs(60), use_both(&client, of_server));
            assert!(
                used.await.is_ok(),
                "client {of_client}, server {of_server}: too slow"
            );
            client.close();
        }
    }
}

/// With [`Prefix::OnConflict`] only the second tool of the same name is prefixed; with [`Prefix::Never`] the second
/// tool is omitted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_prefixed_on_conflict_or_never() {
    let newest = revisions().next_back().expect("a revision");
    let (first, second) = (
        InMemory::new(&server(newest)),
        InMemory::new(&second_server()),
    );
    let add = Add { a: 1, b: 2 };
    for of_client in revisions() {
        let all = || upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all(), patient(options(Prefix::OnConflict))).await;
        let bridge = bridge.expect("a bridge");
        let client = client_of(&bridge, of_client).await.expect("a client");
        let sum: Sum = client.call("second__add", &add).await.expect("a sum");
        assert_eq!(sum.sum, 12, "asked for before it was listed");
        let sum: Sum = client.call("add", &add).await.expect("a sum");
        assert_eq!(sum.sum, 3, "the first one keeps its name");
        assert!(tool_names(&client).await.contains(&"only".to_owned()));

        let bridge = Bridge::many(all(), patient(options(Prefix::Never))).await;
        let client = client_of(&bridge.expect("a bridge"), of_client).await;
        let names = tool_names(&client.expect("a client")).await;
        let adds = names.iter().filter(|name| name.contains("add")).count();
        assert_eq!(adds, 1, "{names:?}");
    }
}

/// Calls a tool repeatedly until the bridge has reconnected to its server.
async fn call_until_it_works(client: &Client, tool: &str) -> Sum {
    let mut ended = Err("not called".to_owned());
    for _ in 0..200 {
        let called = client.call(tool, &Add { a: 1, b: 2 }).await;
        ended = called.map_err(|error| error.to_string());
        if ended.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ended.unwrap_or_else(|error| panic!("{tool}: {error}"))
}

/// The tools of an unreachable server are not listed, calls of them fail, and both work again once the server is
/// reachable.
#[tokio::test(start_paused = true)]
async fn other_servers_work_without_an_unreachable_one() {
    let oldest = revisions().next();
    for of_server in oldest.into_iter().chain(revisions().next_back()) {
        let (first, second) = (
            InMemory::new(&server(of_server)),
            InMemory::new(&second_server()),
        );
        second.is_down.store(true, Ordering::Relaxed);
        let all = upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all, options(Prefix::Always)).await;
        let bridge = bridge.expect("a bridge");
        let reached = bridge
            .servers()
            .into_iter()
            .map(|(_, known)| known.is_some());
        assert_eq!(reached.collect::<Vec<_>>(), [true, false]);
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client_of(&bridge, of_client).await.expect("a client");
            let add = Add { a: 1, b: 2 };
            for round in 0..2 {
                second.is_down.store(true, Ordering::Relaxed);
                second.kill();
                first.kill();
                let down = || second.connections() == 0;
                wait_on_paused_clock(down, "the second server is gone").await;
                let error = client.call::<_, Sum>("second__add", &add).await;
                assert!(error.is_err(), "{pair}, round {round}");
                // A connection that was being opened may have been lost, too: the first server is there again soon.
                let sum: Sum = call_until_it_works(&client, "first__add").await;
                assert_eq!(sum.sum, 3, "{pair}");
                let names = tool_names(&client).await;
                let of_first = names.iter().all(|name| name.starts_with("first__"));
                assert!(of_first && !names.is_empty(), "{pair}: {names:?}");

                second.is_down.store(false, Ordering::Relaxed);
                let sum: Sum = call_until_it_works(&client, "second__add").await;
                assert_eq!(sum.sum, 12, "{pair}: it is back");
                let names = tool_names(&client).await;
                assert!(
                    names.contains(&"second__add".to_owned()),
                    "{pair}: {names:?}"
                );
            }
            client.close();
        }
    }
}

/// Hidden items are neither listed nor callable, and rules for other principals do not apply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_for_lists_and_calls() {
    let rule = |servers: &str, principals: &str, allow: &str, deny: &str| {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let mut rule = AccessRule::default();
        rule.servers = list(servers);
        rule.principals = list(principals);
        rule.allow = list(allow);
        rule.deny = list(deny);
        rule
    };
    for of_server in revisions() {
        let (first, second) = (
            InMemory::new(&server(of_server)),
            InMemory::new(&second_server()),
        );
        let mut options = options(Prefix::Always);
        options.rules.access = vec![
            rule("first", "", "add rev* docs://intro", ""),
            rule("second", "", "", "*"),
            rule("second", "own", "*", ""),
        ];
        let all = upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all, patient(options)).await.expect("a bridge");
        let listening = listen_by_header(&bridge).await;
        let own = plain_client(&listening.url, "own").await;
        let other = plain_client(&listening.url, "other").await;
        let request = |client: &mcp_exact::transport::ClientHandle, method, params: &str| {
            let params = (!params.is_empty()).then(|| crate::common::object(params));
            outcome_of(client.request(method, params, <_>::default(), None))
        };
        let names = |listed: mcp_exact::JsonObject| {
            let text = listed.to_string();
            let names = [
                "first__add",
                "first__count",
                "first__revision",
                "second__only",
            ];
            names.map(|name| text.contains(&format!("\"{name}\"")))
        };
        let listed = request(&own, "tools/list", "").await.expect("tools");
        assert!(
            listed.to_string().contains(r#""cacheScope":"private""#),
            "{listed}"
        );
        assert_eq!(names(listed), [true, false, true, true]);
        let listed = request(&other, "tools/list", "").await.expect("tools");
        assert_eq!(names(listed), [true, false, true, false]);
        let only = r#"{"name":"second__only"}"#;
        assert!(request(&own, "tools/call", only).await.is_ok());
        let refused = request(&other, "tools/call", only).await;
        assert_eq!(refused.expect_err("hidden").code(), Some(-32602));
        let count = request(&own, "tools/call", r#"{"name":"first__count"}"#).await;
        assert_eq!(count.expect_err("hidden").code(), Some(-32602));
        let read = |client| request(client, "resources/read", r#"{"uri":"other://x"}"#);
        assert!(read(&own).await.is_ok());
        assert_eq!(read(&other).await.expect_err("hidden").code(), Some(-32602));
        own.close();
        other.close();
    }
}

/// Access rules also apply in front of a single server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_in_front_of_one_server() {
    for of_server in revisions() {
        let mut options = Options::default();
        let mut rule = AccessRule::default();
        let hidden = ["count", "docs://intro", "docs://{+page}"];
        rule.deny = hidden.map(str::to_owned).into();
        options.rules.access = vec![rule];
        let bridge = Bridge::new(InMemory::new(&server(of_server)), options).await;
        let bridge = bridge.expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client_of(&bridge, of_client).await.expect("a client");
            let names = tool_names(&client).await;
            assert!(names.contains(&"add".to_owned()), "{pair}: {names:?}");
            assert!(!names.contains(&"count".to_owned()), "{pair}: {names:?}");
            assert!(client.call_tool("count", &()).await.is_err(), "{pair}");
            assert!(client.read("docs://intro").await.is_err(), "{pair}");
            let raw = handle_of(&bridge, of_client).await;
            let params = r#"{"ref":{"type":"ref/resource","uri":"docs://{+page}"},"argument":{"name":"page","value":"1"}}"#;
            let params = Some(crate::common::object(params));
            let completed = raw.request("completion/complete", params, <_>::default(), None);
            assert!(outcome_of(completed).await.is_err(), "{pair}");
            let params = Some(crate::common::object(r#"{"uri":"docs://intro"}"#));
            let read = raw.request("resources/read", params, <_>::default(), None);
            let code = outcome_of(read).await.expect_err(&pair).code();
            // "Resource not found: -32002" (`server/resources`, "Error Handling"), from 2026-07-28 on -32602.
            let is_newest = of_client.as_str() >= "2026";
            assert_eq!(
                code,
                Some(if is_newest { -32602 } else { -32002 }),
                "{pair}"
            );
            raw.close();
            assert_eq!(
                client.read("docs://2").await.expect(&pair).text(),
                "Page 2."
            );
            client.close();
        }
    }
}

/// Hook that records which server receives which request.
struct RequestRecorder(Arc<Mutex<Vec<(String, String)>>>);

impl Hook for RequestRecorder {
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        let note = (call.server.clone(), call.method.clone());
        self.0.lock().expect("a lock").push(note);
        Box::pin(std::future::ready(Decision::Relay))
    }
}

/// A server sends an input request while it reads a resource that no server lists: the responses are sent only to this
/// server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_for_unlisted_resources_are_routed() {
    let newest = revisions().next_back().expect("a revision");
    let asking = Server::builder("asking", "1.0.0")
        .revisions([newest])
        .resource(Resource::new("ask://x"), |cx: Cx| async move {
            let form = cx.elicit::<Confirm>("First?").await?;
            let yes = form.accepted_with(|form| form.yes);
            Ok::<_, Error>(yes.to_string())
        })
        .build()
        .expect("a server");
    for of_client in revisions().filter(|revision| revision.as_str() >= "2025-06-18") {
        let (first, second) = (InMemory::new(&second_server()), InMemory::new(&asking));
        let notes = Arc::default();
        let mut options = options(Prefix::Always);
        options.hooks = Hooks::default().with(RequestRecorder(Arc::clone(&notes)));
        let all = upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all, patient(options)).await.expect("a bridge");
        let client = client_of(&bridge, of_client).await.expect("a client");
        let read = client.read("ask://x").await.expect("the resource");
        assert_eq!(read.text(), "true", "client {of_client}");
        let notes = std::mem::take(&mut *notes.lock().expect("a lock"));
        let of_first = notes.iter().filter(|(server, _)| server == "first").count();
        assert_eq!(of_first, 1, "client {of_client}: {notes:?}");
        client.close();
    }
}

/// A rule that hides a resource from one principal does not affect the routing of other principals: their requests
/// still reach the server of the resource.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_for_principals_affect_no_others() {
    let newest = revisions().next_back().expect("a revision");
    let (first, second) = (
        InMemory::new(&server(newest)),
        InMemory::new(&second_server()),
    );
    let notes = Arc::default();
    let mut options = options(Prefix::Always);
    options.hooks = Hooks::default().with(RequestRecorder(Arc::clone(&notes)));
    let mut rule = AccessRule::default();
    rule.principals = vec!["other".to_owned()];
    rule.deny = vec!["other://*".to_owned()];
    options.rules.access = vec![rule];
    let all = upstreams(&[("first", &first), ("second", &second)]);
    let bridge = Bridge::many(all, patient(options)).await.expect("a bridge");
    let listening = listen_by_header(&bridge).await;
    let own = plain_client(&listening.url, "own").await;
    let other = plain_client(&listening.url, "other").await;
    for client in [&own, &other] {
        let listed = client.request("resources/list", None, <_>::default(), None);
        let listed = outcome_of(listed).await.expect("resources").to_string();
        assert_eq!(listed.contains("other://x"), std::ptr::eq(client, &own));
        // A server without its lists could have the resource, too.
        let templates = client.request("resources/templates/list", None, <_>::default(), None);
        outcome_of(templates).await.expect("templates");
    }
    notes.lock().expect("a lock").clear();
    let params = Some(object(r#"{"uri":"other://x"}"#));
    let read = own.request("resources/read", params, <_>::default(), None);
    assert!(outcome_of(read).await.is_ok());
    let notes = std::mem::take(&mut *notes.lock().expect("a lock"));
    let read = ("second".to_owned(), "resources/read".to_owned());
    assert_eq!(notes, [read], "the listing server is asked at once");
    own.close();
    other.close();
}

/// A server sends an input request while it reads a resource that another server lists: the responses are sent to the
/// requesting server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_reach_the_requesting_server() {
    let newest = revisions().next_back().expect("a revision");
    let asking = Server::builder("asking", "1.0.0")
        .revisions([newest])
        .template("ask://{+page}", |cx: Cx| async move {
            let form = cx.elicit::<Confirm>("First?").await?;
            let yes = form.accepted_with(|form| form.yes);
            Ok::<_, Error>(yes.to_string())
        })
        .build()
        .expect("a server");
    for of_client in revisions().filter(|revision| revision.as_str() >= "2025-06-18") {
        let server = Server::builder("listing", "1.0.0")
            .resource(Resource::new("ask://x"), || async { "" })
            .build();
        let listing = Intercepted {
            server: server.expect("a server"),
            answer: Arc::new(|method: &str, _: &JsonObject| {
                let error = r#""error":{"code":-32602,"message":"it was removed"}"#;
                (method == "resources/read").then(|| error.to_owned())
            }),
        };
        let second: Arc<dyn Upstream> = Arc::new(InMemory::new(&asking));
        let all: [(_, Arc<dyn Upstream>); 2] = [
            ("first".to_owned(), Arc::new(listing)),
            ("second".to_owned(), second),
        ];
        let bridge = Bridge::many(all, patient(options(Prefix::Always))).await;
        let bridge = bridge.expect("a bridge");
        let client = client_of(&bridge, of_client).await.expect("a client");
        client.resources().all().await.expect("resources");
        let read = client.read("ask://x").await.expect("the resource");
        assert_eq!(read.text(), "true", "client {of_client}");
        client.close();
    }
}

/// If the server of a resource does not list it any more, the resource is read from the next server that has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_move_to_other_servers() {
    let with = |text: &'static str| {
        let server = Server::builder(text, "1.0.0")
            .resource(Resource::new("doc://x"), move || async move { text });
        InMemory::new(&server.build().expect("a server"))
    };
    let (first, second) = (with("first"), with("second"));
    for of_client in revisions() {
        let all = upstreams(&[("a", &first), ("b", &second)]);
        let bridge = Bridge::many(all, patient(options(Prefix::Always))).await;
        let bridge = bridge.expect("a bridge");
        let client = client_of(&bridge, of_client).await.expect("a client");
        client.resources().all().await.expect("resources");
        let read = client.read("doc://x").await.expect("the resource");
        assert_eq!(read.text(), "first", "client {of_client}");
        let mut update = Update::default();
        update.servers = Some(vec![("b".to_owned(), ServerUpdate::Keep)]);
        bridge.update(update).await.expect("an update");
        let read = client.read("doc://x").await.expect("the resource");
        assert_eq!(read.text(), "second", "client {of_client}");
        client.close();
    }
}

/// In front of many servers, methods of extensions are relayed only if a rule allows them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_allow_extension_methods() {
    let (first, second) = (
        InMemory::new(&second_server()),
        InMemory::new(&second_server()),
    );
    for is_allowed in [false, true] {
        let notes = Arc::default();
        let mut options = options(Prefix::Always);
        options.hooks = Hooks::default().with(RequestRecorder(Arc::clone(&notes)));
        if is_allowed {
            options.rules.extension_methods = vec!["example/*".to_owned()];
        }
        let all = upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all, patient(options)).await.expect("a bridge");
        for of_client in revisions() {
            let client = handle_of(&bridge, of_client).await;
            let sent = client.request("example/run", None, <_>::default(), None);
            let refused = outcome_of(sent)
                .await
                .expect_err("no server has the method");
            assert_eq!(refused.code(), Some(-32601), "client {of_client}");
            let notes: Vec<_> = std::mem::take(&mut *notes.lock().expect("a lock"));
            assert_eq!(
                !notes.is_empty(),
                is_allowed,
                "client {of_client}: {notes:?}"
            );
            client.close();
        }
    }
}

/// In front of many servers, extensions are announced whose messages are relayed: MCP Apps, which uses tools and resources, and
/// all others once a rule relays their methods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn relayed_extensions_are_announced() {
    const UI: &str = "io.modelcontextprotocol/ui";
    let with = |id: &str| {
        let server = Server::builder("test", "1.0.0").extension(id, JsonObject::new());
        InMemory::new(&server.build().expect("a server"))
    };
    let (first, second) = (with(UI), with("com.example/index"));
    for is_allowed in [false, true] {
        let mut options = options(Prefix::Always);
        if is_allowed {
            options.rules.extension_methods = vec!["index/*".to_owned()];
        }
        let all = upstreams(&[("first", &first), ("second", &second)]);
        let bridge = Bridge::many(all, patient(options)).await.expect("a bridge");
        for of_client in revisions() {
            let client = client_of(&bridge, of_client).await.expect("a client");
            let is_announced = |id: &str| client.server_extension(id).is_some();
            let found = [UI, "com.example/index"].map(is_announced);
            assert_eq!(found, [true, is_allowed], "client {of_client}");
            client.close();
        }
    }
}

/// A method that only the server's revision defines is not an extension method: the client receives the error that its
/// own revision defines for unknown methods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_of_other_revisions_are_refused() {
    for of_server in with_sessions() {
        let bridge = Bridge::new(InMemory::new(&server(of_server)), Options::default()).await;
        let bridge = bridge.expect("a bridge");
        for method in ["resources/subscribe", "logging/setLevel"] {
            let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
            let params = format!(r#"{{"uri":"docs://intro","level":"info","_meta":{{{meta}}}}}"#);
            let message =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            let answer = answer_to(&bridge, &[message], "1").await;
            let is_refused = answer.text().contains("-32601");
            assert!(is_refused, "server {of_server}: {answer}");
        }
    }
}

/// A bridge without servers, or with invalid or duplicate server names, cannot be created.
#[tokio::test]
async fn unusable_settings_are_refused() {
    let newest = revisions().next_back().expect("a revision");
    let one = InMemory::new(&server(newest));
    for names in [&["a__b"][..], &["a", "a"], &["a b"], &[]] {
        let all: Vec<(&str, &InMemory)> = names.iter().map(|name| (*name, &one)).collect();
        let refused = Bridge::many(upstreams(&all), Options::default()).await;
        assert!(
            matches!(refused, Err(BridgeError::Settings(_))),
            "{names:?}"
        );
    }
}
