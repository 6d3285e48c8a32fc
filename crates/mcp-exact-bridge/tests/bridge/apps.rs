//! Tools of pages (MCP Apps): clients that show no pages get none of them, wherever they ask, and others know them in every revision.

use std::future::pending;
use std::sync::Arc;

use mcp_exact::apps::App;
use mcp_exact::transport::{ConnectionOptions, ServerHandler, memory_pair, serve};
use mcp_exact::{Client, Connect, JsonObject, Revision, Server, Tool, revisions};
use mcp_exact_bridge::{Bridge, Options, ToolSearch, Upstream};
use mcp_exact_session::ServerSettings;

use crate::common::{InMemory, Intercepted, client_of, object, patient, server};
use crate::own_uris::{REVISIONS, named, revision};

/// Tools of a server that lists them to every client: one for models and pages, and one for pages alone.
const TOOLS: &str = r#"[{"name":"both","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://page"},"x":1}},{"name":"press","description":"Press the button.","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://page","visibility":["app"]}}}]"#;

/// Settings and event handler of an endpoint.
type Endpoint = (Arc<ServerSettings>, Arc<dyn ServerHandler>);

/// Returns a server of one revision that does not look at what its client declares.
fn upstream(of_server: Revision) -> impl Upstream {
    let server = Server::builder("pages", "1.0.0")
        .revisions([of_server])
        .tool("both", || async { "both" })
        .tool("press", || async { "pressed" })
        .build()
        .expect("a server");
    let hints = if of_server.as_str() >= "2026" {
        r#","resultType":"complete","ttlMs":0,"cacheScope":"private""#
    } else {
        ""
    };
    let listed = format!(r#""result":{{"tools":{TOOLS}{hints}}}"#);
    let answer =
        move |method: &str, _: &JsonObject| (method == "tools/list").then(|| listed.clone());
    Intercepted {
        server,
        answer: Arc::new(answer),
    }
}

/// Connects a client of one revision to an endpoint in memory.
fn connect((settings, handler): &Endpoint, of_client: Revision) -> Connect {
    let (local, remote) = memory_pair(256 << 10, 4 << 20);
    let (settings, handler) = (Arc::clone(settings), Arc::clone(handler));
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, pending()).await;
    });
    Client::over(local).revision(of_client)
}

async fn bridges(of_server: Revision, options: &Options) -> [Bridge; 2] {
    let single = Bridge::new(upstream(of_server), options.clone()).await;
    let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
        ("web", Arc::new(upstream(of_server))),
        ("other", Arc::new(upstream(of_server))),
    ];
    let joint = Bridge::many(named(all), patient(options.clone())).await;
    [single.expect("a bridge"), joint.expect("a bridge")]
}

/// "Host MUST NOT include tools in the agent's tool list when their visibility does not include "model"" (Visibility): whoever has not
/// declared the extension does not get them. Whoever has knows the visibility in every revision, and calls the tool for a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_of_pages_are_for_their_hosts() {
    for of_server in revisions() {
        let [single, joint] = bridges(of_server, &Options::default()).await;
        let own = joint.endpoint_of("web").await.expect("an endpoint");
        let own = own.expect("a server");
        for of_client in revisions() {
            for (entrance, endpoint, prefix) in [
                ("single", &single.endpoint(), ""),
                ("own", &own, ""),
                ("joint", &joint.endpoint(), "web__"),
            ] {
                let case = format!("{entrance}: client {of_client}, server {of_server}");
                let [both, press] = ["both", "press"].map(|tool| format!("{prefix}{tool}"));
                let host = connect(endpoint, of_client).apps().await.expect(&case);
                let tools = host.tools().all().await.expect(&case);
                let ui = |name: &str| {
                    let tool = tools.iter().find(|tool| tool.name() == name);
                    tool.expect(&case).ui()
                };
                assert!(ui(&both).is_for_model() && ui(&both).is_for_app(), "{case}");
                assert!(!ui(&press).is_for_model(), "{case}");
                assert!(ui(&press).is_for_app(), "{case}");
                assert!(ui(&press).page_uri().is_some(), "{case}");
                let pressed: String = host.call(&press, &()).await.expect(&case);
                assert_eq!(pressed, "pressed", "{case}");

                let plain = connect(endpoint, of_client).await.expect(&case);
                let tools = plain.tools().all().await.expect(&case);
                assert!(tools.iter().any(|tool| tool.name() == both), "{case}");
                assert!(!tools.iter().any(|tool| tool.name() == press), "{case}");
                let error = plain.call_tool(&press, &()).await.expect_err(&case);
                assert!(
                    error.to_string().contains("Unknown tool"),
                    "{case}: {error}"
                );
                plain.call_tool(&both, &()).await.expect(&case);
                host.close();
                plain.close();
            }
        }
    }
}

/// The search finds and calls no tools of pages for a client that shows none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_find_no_tools_of_pages() {
    let mut options = Options::default();
    options.rules.search = Some(ToolSearch::default());
    for of_client in REVISIONS.map(revision) {
        let bridges = bridges(revision(REVISIONS[0]), &options).await;
        for (bridge, press) in bridges.into_iter().zip(["press", "web__press"]) {
            let query = object(r#"{"query":"press the button"}"#);
            for shows_pages in [true, false] {
                let case = format!("{of_client}, {shows_pages}");
                let client = connect(&bridge.endpoint(), of_client);
                let client = if shows_pages { client.apps() } else { client };
                let client = client.await.expect(&case);
                let found = client.call_tool("search_tools", &query).await;
                let found = found.expect(&case).text();
                assert_eq!(found.contains("press"), shows_pages, "{case}: {found}");
                let params = object(&format!(r#"{{"name":"{press}","arguments":{{}}}}"#));
                let called = client.call_tool("call_tool", &params).await;
                assert_eq!(called.is_ok(), shows_pages, "{case}: {called:?}");
                client.close();
            }
        }
    }
}

/// "Resource MUST exist on the server" (Resource Discovery): a page that its server removes is named neither among the resources nor by a
/// tool, and both name it when it is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_pages_are_named_no_more() {
    const HTML: &str = "<!doctype html><title>Page</title>";
    for of_server in REVISIONS.map(revision) {
        for of_client in REVISIONS.map(revision) {
            let case = format!("client {of_client}, server {of_server}");
            let web = Server::builder("web", "1.0.0")
                .revisions([of_server])
                .app("ui://page", App::new(HTML))
                .tool(Tool::new("show").ui("ui://page"), || async { "shown" })
                .build()
                .expect("a server");
            let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
                ("web", Arc::new(InMemory::new(&web))),
                ("other", Arc::new(InMemory::new(&server(of_server)))),
            ];
            let bridge = Bridge::many(named(all), patient(Options::default())).await;
            let bridge = bridge.expect("a bridge");
            let client = client_of(&bridge, of_client).apps().await.expect(&case);
            for is_there in [true, false, true] {
                if is_there {
                    let page = || async { App::new(HTML) };
                    web.resources().insert("ui://page", page).expect("a page");
                } else {
                    assert!(web.resources().remove("ui://page"));
                }
                let tools = client.tools().all().await.expect(&case);
                let show = tools.iter().find(|tool| tool.name() == "web__show");
                let page = show.expect(&case).ui().resource_uri;
                let expected = is_there.then(|| "ui://web/page".to_owned());
                assert_eq!(page, expected, "{case}");
                let resources = client.resources().all().await.expect(&case);
                let mut uris = resources.iter().filter_map(|resource| resource.uri());
                assert_eq!(uris.any(|uri| uri == "ui://web/page"), is_there, "{case}");
                let read = client.read("ui://web/page").await;
                assert_eq!(read.is_ok(), is_there, "{case}: {read:?}");
            }
            client.close();
        }
    }
}
