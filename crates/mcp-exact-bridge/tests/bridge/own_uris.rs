//! Pages of MCP Apps (`ui://`) and Skills (`skill://`) of several servers are kept apart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::ClientHandle;
use mcp_exact::{
    ClientChange, Content, Error, Input, JsonObject, Partial, Prompt, PromptResult, RawJson,
    Resource, Revision, Server, Tool, ToolResult, schemars, serde,
};
use mcp_exact_bridge::{
    AccessRule, Bridge, Call, Decision, Hook, HookFuture, Hooks, Options, Upstream,
};
use mcp_exact_session::{ClientConfig, ClientEvent, Identity, PeerError};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::common::{InMemory, client_of, handle_of, object, patient};
use crate::isolation::{connect_as, listen_by_header, outcome_of};
use crate::scripted::{ELICIT, Scripted, called_tool, request, text_of, tool_response};

/// Revisions of clients and servers: one with sessions, and one without.
pub const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Time limit for what has to happen.
pub const TIMEOUT: Duration = Duration::from_secs(60);

pub fn revision(id: &str) -> Revision {
    let found = mcp_exact::revisions().find(|revision| revision.as_str() == id);
    found.expect("known")
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Path {
    pub path: String,
}

/// Creates a server whose tool, prompt and resources have the same URIs as those of every other server of this function. Every
/// content is the name of the server.
pub fn server_with_pages(name: &'static str, of_server: Revision) -> Server {
    let page = || Resource::new("ui://page").mime_type("text/html;profile=mcp-app");
    let ui = || object(r#"{"resourceUri":"ui://page"}"#);
    Server::builder(name, "1.0.0")
        .revisions([of_server])
        .tool(
            Tool::new("show")
                .meta("ui", ui())
                .meta("ui/resourceUri", RawJson::string("ui://page")),
            move || async move {
                ToolResult::new()
                    .content(Content::link(&page()))
                    .content(Content::embedded_text("ui://page", "see ui://page"))
                    .structured(object(r#"{"uri":"ui://page"}"#))
                    .meta("ui", ui())
            },
        )
        .prompt(Prompt::new("explain"), || async {
            PromptResult::user(Content::embedded_text("skill://notes/SKILL.md", "text"))
        })
        .resource(page(), move || async move { name })
        .resource(
            Resource::new("skill://notes/SKILL.md"),
            move || async move { name },
        )
        .template("ui://{+path}", move |Input(path): Input<Path>| async move {
            if path.path.starts_with("none") {
                return Err(Error::resource_not_found(format!("ui://{}", path.path)));
            }
            Ok(format!("{name} {}", path.path))
        })
        .complete_template("ui://{+path}", "path", move |_: Partial| async move {
            vec![name.to_owned()]
        })
        .build()
        .expect("a server")
}

/// Returns named upstreams for [`Bridge::many`].
pub fn named(all: Vec<(&str, Arc<dyn Upstream>)>) -> Vec<(String, Arc<dyn Upstream>)> {
    let all = all.into_iter();
    all.map(|(name, upstream)| (name.to_owned(), upstream))
        .collect()
}

/// Creates a bridge in front of two servers with the same URIs.
async fn bridge_of(servers: [(&'static str, &Server); 2], options: Options) -> Bridge {
    let all = servers.map(|(name, server)| {
        let upstream: Arc<dyn Upstream> = Arc::new(InMemory::new(server));
        (name, upstream)
    });
    let bridge = Bridge::many(named(all.into()), patient(options)).await;
    bridge.expect("a bridge")
}

/// Sends a request with params as JSON text, and returns the outcome.
pub async fn send(
    client: &ClientHandle,
    method: &str,
    params: &str,
) -> Result<JsonObject, PeerError> {
    let params = (!params.is_empty()).then(|| object(params));
    outcome_of(client.request(method, params, <_>::default(), None)).await
}

/// Reads a resource, and returns its URI and its text.
pub async fn read(client: &ClientHandle, uri: &str) -> Result<(String, String), PeerError> {
    let params = format!(r#"{{"uri":{}}}"#, RawJson::string(uri).text());
    let result = send(client, "resources/read", &params).await?;
    let contents: Vec<JsonObject> = result
        .get("contents")
        .expect("contents")
        .decode_as()
        .expect("an array");
    Ok((text_of(&contents[0], "uri"), text_of(&contents[0], "text")))
}

/// Returns the URIs of the page that the tools name, by the tool.
pub async fn pages_of_tools(client: &ClientHandle) -> Vec<(String, String)> {
    let listed = send(client, "tools/list", "").await.expect("tools");
    let tools = listed.get("tools").expect("tools");
    let tools: Vec<JsonObject> = tools.decode_as().expect("an array");
    let page = |tool: &JsonObject| {
        let meta = JsonObject::try_from(tool.get("_meta").expect("_meta")).expect("an object");
        let ui = JsonObject::try_from(meta.get("ui").expect("ui")).expect("an object");
        let page = text_of(&ui, "resourceUri");
        assert_eq!(text_of(&meta, "ui/resourceUri"), page, "both spellings");
        page
    };
    let tools = tools.iter();
    tools
        .map(|tool| (text_of(tool, "name"), page(tool)))
        .collect()
}

/// A server that lists the page of another server, and lists it first, does not get the requests for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_takes_over_a_page() {
    for of_server in REVISIONS.map(revision) {
        let [evil, good] = ["evil", "good"].map(|name| server_with_pages(name, of_server));
        for of_client in REVISIONS.map(revision) {
            let pair = format!("client {of_client}, server {of_server}");
            let bridge = bridge_of([("evil", &evil), ("good", &good)], Options::default()).await;
            let client = handle_of(&bridge, of_client).await;
            send(&client, "resources/list", "")
                .await
                .expect("resources");
            let pages = pages_of_tools(&client).await;
            assert_eq!(pages.len(), 2, "{pair}: {pages:?}");
            for (tool, page) in pages {
                let owner = tool.strip_suffix("__show").expect("a prefix");
                assert!(page.starts_with("ui://"), "{pair}: {page}");
                let answer = read(&client, &page).await.expect(&pair);
                assert_eq!(answer, (page, owner.to_owned()), "{pair}");
            }
            // A URI that names no server, or another one in a part that only servers read, reaches no other server.
            for (uri, expected) in [
                ("ui://page", None),
                ("ui://other/page", None),
                ("ui://good", None),
                ("ui://evil/../good/page", Some("evil ../good/page")),
                ("UI://GOOD/x", Some("good x")),
            ] {
                let answer = read(&client, uri).await.ok().map(|(_, text)| text);
                // A server may not find a spelling that it has not listed.
                let is_right = answer.as_deref() == expected || answer.is_none();
                assert!(is_right, "{pair}: {uri}: {answer:?}");
            }
            client.close();
        }
    }
}

/// URIs have the form for clients wherever a server names them, and lead back to the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uris_lead_back_to_their_servers() {
    for of_server in REVISIONS.map(revision) {
        let [one, two] = ["one", "two"].map(|name| server_with_pages(name, of_server));
        let bridge = bridge_of([("a", &one), ("b", &two)], Options::default()).await;
        for of_client in REVISIONS.map(revision) {
            let pair = format!("client {of_client}, server {of_server}");
            let client = handle_of(&bridge, of_client).await;
            for (method, params, expected) in [
                ("tools/list", "", &["ui://a/page", "ui://b/page"][..]),
                (
                    "resources/list",
                    "",
                    &[
                        "ui://a/page",
                        "ui://b/page",
                        "skill://a/notes/SKILL.md",
                        "skill://b/notes/SKILL.md",
                    ],
                ),
                (
                    "resources/templates/list",
                    "",
                    &["ui://a/{+path}", "ui://b/{+path}"],
                ),
                (
                    "prompts/get",
                    r#"{"name":"b__explain"}"#,
                    &["skill://b/notes/SKILL.md"],
                ),
            ] {
                let result = send(&client, method, params).await.expect(&pair);
                for uri in expected {
                    let has = result.text().contains(&format!("\"{uri}\""));
                    assert!(has, "{pair}: {method}: {uri}: {result}");
                }
                for own in [":\"ui://page", ":\"skill://notes", "Template\":\"ui://{"] {
                    assert!(!result.text().contains(own), "{pair}: {method}: {result}");
                }
            }
            let called = send(
                &client,
                "tools/call",
                r#"{"name":"b__show","arguments":{}}"#,
            );
            let called = called.await.expect(&pair).text().to_owned();
            // Link, embedded resource and `_meta` are changed; text and structured content are the server's.
            assert_eq!(
                called.matches(r#""ui://b/page""#).count(),
                3,
                "{pair}: {called}"
            );
            assert!(
                called.contains(r#""structuredContent":{"uri":"ui://page"}"#),
                "{called}"
            );
            assert!(called.contains(r#""text":"see ui://page""#), "{called}");

            for (uri, text) in [
                ("ui://b/page", "two"),
                ("skill://a/notes/SKILL.md", "one"),
                ("ui://a/some/other", "one some/other"),
            ] {
                let answer = read(&client, uri).await.expect(&pair);
                assert_eq!(answer, (uri.to_owned(), text.to_owned()), "{pair}");
            }
            let missing = read(&client, "ui://b/none").await.expect_err(&pair);
            let data = missing.data().map_or("", |data| data.text());
            assert!(
                data.contains("\"ui://b/none\""),
                "{pair}: {missing}: {data}"
            );

            let params = r#"{"ref":{"type":"ref/resource","uri":"ui://b/{+path}"},"argument":{"name":"path","value":""}}"#;
            let completed = send(&client, "completion/complete", params).await;
            let completed = completed.expect(&pair).to_string();
            assert!(completed.contains(r#"["two"]"#), "{pair}: {completed}");
            client.close();
        }
    }
}

/// A client that subscribes to a page is told its changes, and not those of another server's page with the same URI.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_of_the_right_server() {
    for of_server in REVISIONS.map(revision) {
        let [one, two] = ["one", "two"].map(|name| server_with_pages(name, of_server));
        let bridge = bridge_of([("a", &one), ("b", &two)], Options::default()).await;
        for of_client in REVISIONS.map(revision) {
            let pair = format!("client {of_client}, server {of_server}");
            let (changed, mut changes) = mpsc::unbounded_channel();
            let client = client_of(&bridge, of_client);
            let client = client.on_change(move |change| drop(changed.send(change)));
            let client = client.await.expect(&pair);
            let subscription = client.subscribe(["ui://b/page"]).await.expect(&pair);
            let told = async {
                loop {
                    one.resources().updated("ui://page");
                    two.resources().updated("ui://other");
                    two.resources().updated("ui://page");
                    let wait = Duration::from_millis(50);
                    if let Ok(Some(ClientChange::Resource(uri))) =
                        tokio::time::timeout(wait, changes.recv()).await
                    {
                        return uri;
                    }
                }
            };
            let uri = tokio::time::timeout(TIMEOUT, told).await.expect(&pair);
            assert_eq!(uri, "ui://b/page", "{pair}");
            while changes.try_recv().is_ok() {}
            for _ in 0..3 {
                one.resources().updated("ui://page");
                let wait = Duration::from_millis(20);
                if let Ok(Some(change)) = tokio::time::timeout(wait, changes.recv()).await {
                    let is_late = change == ClientChange::Resource("ui://b/page".to_owned());
                    assert!(
                        is_late || !matches!(change, ClientChange::Resource(_)),
                        "{pair}"
                    );
                }
            }
            drop(subscription);
            client.close();
        }
    }
}

/// Rules, hooks and the server see the server's own URIs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_see_the_uris_of_the_server() {
    #[derive(Clone, Default)]
    struct Subjects(Arc<Mutex<Vec<(String, String)>>>);
    impl Hook for Subjects {
        fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
            if let Some(subject) = call.subject() {
                let mut all = self.0.lock().expect("a lock");
                all.push((call.server.clone(), subject));
            }
            Box::pin(std::future::ready(Decision::Relay))
        }
    }
    for of_server in REVISIONS.map(revision) {
        let [one, two] = ["one", "two"].map(|name| server_with_pages(name, of_server));
        let subjects = Subjects::default();
        let mut options = Options::default();
        options.hooks = Hooks::default().with(subjects.clone());
        let (mut allowed, mut denied) = (AccessRule::default(), AccessRule::default());
        allowed.servers = vec!["a".to_owned()];
        allowed.allow = ["ui://page", "show"].map(str::to_owned).into();
        denied.servers = vec!["b".to_owned()];
        denied.deny = vec!["ui://**".to_owned()];
        options.rules.access = vec![allowed, denied];
        let bridge = bridge_of([("a", &one), ("b", &two)], options).await;
        for of_client in REVISIONS.map(revision) {
            let pair = format!("client {of_client}, server {of_server}");
            let client = handle_of(&bridge, of_client).await;
            let listed = send(&client, "resources/list", "").await.expect(&pair);
            let listed = listed.text();
            for (uri, is_shown) in [
                ("ui://a/page", true),
                ("skill://a/notes/SKILL.md", false),
                ("ui://b/page", false),
                ("skill://b/notes/SKILL.md", true),
            ] {
                assert_eq!(listed.contains(uri), is_shown, "{pair}: {uri}");
                subjects.0.lock().expect("a lock").clear();
                assert_eq!(read(&client, uri).await.is_ok(), is_shown, "{pair}: {uri}");
                let (scheme, rest) = uri.split_once("://").expect("a URI");
                let (server, rest) = rest.split_once('/').expect("a URI");
                let seen = std::mem::take(&mut *subjects.0.lock().expect("a lock"));
                let own = (server.to_owned(), format!("{scheme}://{rest}"));
                assert_eq!(seen, Vec::from_iter(is_shown.then_some(own)), "{pair}");
            }
            client.close();
        }
    }
}

/// In front of one server, URIs are those of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uris_of_one_server_do_not_change() {
    for of_server in REVISIONS.map(revision) {
        let server = server_with_pages("one", of_server);
        let bridge = crate::common::bridge(InMemory::new(&server)).await;
        for of_client in REVISIONS.map(revision) {
            let client = handle_of(&bridge, of_client).await;
            let page = vec![("show".to_owned(), "ui://page".to_owned())];
            assert_eq!(pages_of_tools(&client).await, page);
            let answer = read(&client, "ui://page").await.expect("a page");
            assert_eq!(answer, ("ui://page".to_owned(), "one".to_owned()));
            client.close();
        }
    }
}

/// A request of a server to its client, and an extension's request with a URI, have the form for clients and for the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_messages_name_the_server() {
    let with_page = ELICIT.replacen('{', r#"{"_meta":{"ui":{"resourceUri":"ui://page"}},"#, 1);
    let server = move |name: &'static str| {
        let with_page = with_page.clone();
        Scripted::new(revision("2025-11-25"), move |message| {
            let id = text_of(message, "id");
            if called_tool(message).is_some() {
                return vec![request("ask", "elicitation/create", &with_page)];
            }
            if text_of(message, "method") == "skills/files" {
                let params = JsonObject::try_from(message.get("params").expect("params"));
                let uri = text_of(&params.expect("an object"), "uri");
                let result = format!(r#""result":{{"files":[{{"uri":"{uri}"}}],"of":"{name}"}}"#);
                return vec![crate::scripted::response(&id, &result)];
            }
            if text_of(message, "id") == "ask" {
                return vec![tool_response("1", "asked", false)];
            }
            Vec::new()
        })
    };
    for of_client in REVISIONS {
        let mut options = Options::default();
        options.rules.extension_methods = vec!["skills/*".to_owned()];
        let all = named(vec![
            ("a", Arc::new(server("a"))),
            ("b", Arc::new(server("b"))),
        ]);
        let bridge = Bridge::many(all, patient(options)).await.expect("a bridge");
        let listening = listen_by_header(&bridge).await;
        let (asked, mut asks) = mpsc::unbounded_channel();
        let mut config = ClientConfig::new(Identity::new("raw", "1.0.0"));
        config.capabilities = object(r#"{"elicitation":{}}"#);
        config.pass_input_required = true;
        config.extensions.policy = mcp_exact_session::ExtensionPolicy::AllowAll;
        let client = connect_as(&listening.url, "own", of_client, config, move |event| {
            if let ClientEvent::Request { request, .. } = event {
                let params = request.params().map(ToString::to_string);
                let _ = asked.send(params.unwrap_or_default());
            }
        });
        let client = client.await;
        let result = send(&client, "skills/files", r#"{"uri":"skill://b/x"}"#).await;
        let result = result.expect("files").to_string();
        let expected = r#"{"files":[{"uri":"skill://b/x"}],"of":"b"}"#;
        assert!(
            result.contains(&expected[1..20]) && result.contains(r#""of":"b""#),
            "{result}"
        );

        let params = Some(object(r#"{"name":"b__x","arguments":{}}"#));
        let called = client.request("tools/call", params, <_>::default(), None);
        let ask = if of_client == "2025-11-25" {
            let ask = tokio::time::timeout(TIMEOUT, asks.recv()).await;
            ask.expect("in time").expect("a request")
        } else {
            outcome_of(called)
                .await
                .expect("input required")
                .to_string()
        };
        assert!(ask.contains(r#""resourceUri":"ui://b/page""#), "{ask}");
        client.close();
    }
}
