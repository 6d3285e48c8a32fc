//! Each of many servers has an endpoint of its own, which serves it as a bridge in front of it alone does.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use mcp_exact::transport::http::server::HttpServerOptions;
use mcp_exact::transport::store::{MemorySessionStore, SessionStore};
use mcp_exact::{Client, ClientChange, Server};
use mcp_exact_bridge::{AccessRule, Bridge, Options, ServerUpdate, Update, Upstream};
use mcp_exact_session::{ClientConfig, Identity, Seal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::common::{InMemory, listen, listen_with, patient};
use crate::isolation::connect_as;
use crate::matrix::wait_until;
use crate::own_uris::{
    REVISIONS, TIMEOUT, named, pages_of_tools, read, revision, send, server_with_pages,
};
use crate::scripted::{Scripted, response, text_of};

/// Creates a bridge in front of the servers `a` and `b`, which have the same tools and URIs.
async fn bridge_of(one: &Server, two: &Server, options: Options) -> Bridge {
    let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
        ("a", Arc::new(InMemory::new(one))),
        ("b", Arc::new(InMemory::new(two))),
    ];
    let bridge = Bridge::many(named(all), patient(options)).await;
    bridge.expect("a bridge")
}

/// Sends an HTTP request, and returns status, headers in lower case and body.
async fn http(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, HashMap<String, String>, String) {
    let rest = url.strip_prefix("http://").expect("a URL");
    let (address, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let mut head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let request = format!("{head}\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let headers = lines.filter_map(|line| line.split_once(": "));
    (
        status.expect("a status").parse().expect("a number"),
        headers
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect(),
        body.to_owned(),
    )
}

/// Request that begins a session.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;

/// Request in a session.
const LIST: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;

/// The endpoint of a server has the name, tools and URIs of this server alone, for clients with sessions and without, beside the
/// joint endpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_have_endpoints_of_their_own() {
    for of_server in REVISIONS.map(revision) {
        let [one, two] = ["one", "two"].map(|name| server_with_pages(name, of_server));
        let bridge = bridge_of(&one, &two, Options::default()).await;
        let listening = listen(&bridge).await;
        for of_client in REVISIONS {
            let pair = format!("client {of_client}, server {of_server}");
            for (path, name, other) in [("a", "one", &two), ("%62", "two", &one)] {
                let url = format!("{}/{path}", listening.url);
                let config = ClientConfig::new(Identity::new("raw", "1.0.0"));
                let raw = connect_as(&url, "own", of_client, config, |_| {}).await;
                let page = vec![("show".to_owned(), "ui://page".to_owned())];
                assert_eq!(pages_of_tools(&raw).await, page, "{pair}");
                let listed = send(&raw, "resources/list", "").await.expect(&pair);
                assert_eq!(
                    listed.text().matches(r#""uri":"ui://page""#).count(),
                    1,
                    "{pair}"
                );
                let answer = read(&raw, "ui://page").await.expect(&pair);
                assert_eq!(answer, ("ui://page".to_owned(), name.to_owned()), "{pair}");
                let called = send(&raw, "tools/call", r#"{"name":"show","arguments":{}}"#).await;
                assert!(
                    called.expect(&pair).text().contains(r#""uri":"ui://page""#),
                    "{pair}"
                );
                for params in [r#"{"name":"a__show"}"#, r#"{"name":"b__show"}"#] {
                    assert!(send(&raw, "tools/call", params).await.is_err(), "{pair}");
                }
                raw.close();

                let (changed, mut changes) = mpsc::unbounded_channel();
                let client = Client::connect(&url).revision(revision(of_client));
                let client = client.on_change(move |change| drop(changed.send(change)));
                let client = client.await.expect(&pair);
                let info = client.server_info().expect("a name").to_string();
                assert!(info.contains(name), "{pair}: {info}");
                let subscription = client.subscribe(["ui://page"]).await.expect(&pair);
                let this = if name == "one" { &one } else { &two };
                let told = async {
                    loop {
                        other.resources().updated("skill://notes/SKILL.md");
                        this.resources().updated("ui://page");
                        let wait = Duration::from_millis(50);
                        if let Ok(Some(ClientChange::Resource(uri))) =
                            tokio::time::timeout(wait, changes.recv()).await
                        {
                            return uri;
                        }
                    }
                };
                let uri = tokio::time::timeout(TIMEOUT, told).await.expect(&pair);
                assert_eq!(uri, "ui://page", "{pair}");
                drop(subscription);
                client.close();
            }
            let joint = Client::connect(&listening.url).revision(revision(of_client));
            let joint = joint.await.expect(&pair);
            let names: Vec<_> = joint.tools().all().await.expect(&pair);
            let names: Vec<_> = names.iter().map(|tool| tool.name()).collect();
            assert_eq!(names, ["a__show", "b__show"], "{pair}");
            joint.close();
        }
        // The end of a subscription reaches the bridge after the client has gone.
        wait_until(|| bridge.usage().requests == 0, "the requests end").await;
    }
}

/// Unknown names, and other paths below, are answered with status 404; the endpoint of HTTP+SSE is below that of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_names_are_not_found() {
    let [one, two] = ["one", "two"].map(|name| server_with_pages(name, revision(REVISIONS[0])));
    let bridge = bridge_of(&one, &two, Options::default()).await;
    let listening = listen(&bridge).await;
    for (path, expected) in [
        ("/a", 200),
        ("/c", 404),
        ("/A", 404),
        ("/", 404),
        ("/a/", 404),
        ("/a/b", 404),
        ("/a%2Fb", 404),
        ("/..%2Fmcp", 404),
    ] {
        let url = format!("{}{path}", listening.url);
        let (status, _, body) = http("POST", &url, &[], INITIALIZE).await;
        assert_eq!(status, expected, "{path}: {body}");
    }
    let oldest = mcp_exact::revisions().next().expect("a revision");
    let client = Client::connect(&format!("{}/a", listening.url)).revision(oldest);
    let client = client.await.expect("a client of HTTP+SSE");
    let tools = client.tools().all().await.expect("tools");
    assert_eq!(tools[0].name(), "show");
    client.close();
}

/// Seal that marks what it seals.
#[derive(Debug)]
struct Mark;

impl Seal for Mark {
    fn seal(&self, payload: &str, _: &[u8]) -> String {
        format!("v1.{payload}")
    }

    fn open(&self, sealed: &str, _: &[u8]) -> Option<String> {
        Some(sealed.strip_prefix("v1.")?.to_owned())
    }
}

/// A session belongs to the endpoint at which it began, on other processes, too, and with sealed ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_belong_to_their_endpoint() {
    check_sessions(None).await;
    check_sessions(Some(Arc::new(Mark))).await;
}

/// Begins a session at each endpoint, and uses it at each endpoint of two processes.
async fn check_sessions(seal: Option<Arc<dyn Seal>>) {
    let [one, two] = ["one", "two"].map(|name| server_with_pages(name, revision(REVISIONS[0])));
    let store = Arc::new(MemorySessionStore::default());
    let options = || HttpServerOptions {
        session_store: Some(Arc::clone(&store) as Arc<dyn SessionStore>),
        session_ids: seal.clone(),
        ..HttpServerOptions::default()
    };
    let (bridge, other_bridge) = (
        bridge_of(&one, &two, Options::default()).await,
        bridge_of(&one, &two, Options::default()).await,
    );
    let process = listen_with(&bridge, options()).await;
    let other_process = listen_with(&other_bridge, options()).await;
    for began_at in ["", "/a", "/b"] {
        let url = format!("{}{began_at}", process.url);
        let (status, headers, body) = http("POST", &url, &[], INITIALIZE).await;
        assert_eq!(status, 200, "{body}");
        let id = headers["mcp-session-id"].clone();
        let of_session = [
            ("Mcp-Session-Id", id.as_str()),
            ("Mcp-Protocol-Version", "2025-11-25"),
        ];
        for process in [&process, &other_process] {
            for path in ["/a", "/b", ""] {
                let url = format!("{}{path}", process.url);
                let is_its = path == began_at;
                let (status, _, body) = http("POST", &url, &of_session, LIST).await;
                assert_eq!(
                    status,
                    if is_its { 200 } else { 404 },
                    "{began_at} {path}: {body}"
                );
                if is_its {
                    let tool = if path.is_empty() {
                        "\"a__show\""
                    } else {
                        "\"show\""
                    };
                    assert!(body.contains(tool), "{body}");
                } else {
                    let (status, ..) = http("DELETE", &url, &of_session, "").await;
                    assert_eq!(status, 404, "{began_at} {path}");
                }
            }
        }
    }
    assert_eq!(bridge.usage().sessions, 3);
    assert_eq!(other_bridge.usage().sessions, 3);
}

/// Access rules and counters are those of the bridge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_at_every_endpoint() {
    for of_server in REVISIONS.map(revision) {
        let [one, two] = ["one", "two"].map(|name| server_with_pages(name, of_server));
        let mut rule = AccessRule::default();
        rule.servers = vec!["b".to_owned()];
        rule.deny = vec!["show".to_owned(), "ui://page".to_owned()];
        let mut options = Options::default();
        options.rules.access = vec![rule];
        let bridge = bridge_of(&one, &two, options).await;
        let listening = listen(&bridge).await;
        for of_client in REVISIONS {
            let pair = format!("client {of_client}, server {of_server}");
            for (path, is_shown) in [("a", true), ("b", false)] {
                let url = format!("{}/{path}", listening.url);
                let config = ClientConfig::new(Identity::new("raw", "1.0.0"));
                let client = connect_as(&url, "own", of_client, config, |_| {}).await;
                let listed = send(&client, "tools/list", "").await.expect(&pair);
                assert_eq!(listed.text().contains("\"show\""), is_shown, "{pair}");
                let called = send(&client, "tools/call", r#"{"name":"show","arguments":{}}"#);
                assert_eq!(called.await.is_ok(), is_shown, "{pair}");
                assert_eq!(read(&client, "ui://page").await.is_ok(), is_shown, "{pair}");
                client.close();
            }
        }
        let metrics = bridge.metrics().to_string();
        assert!(
            metrics.contains(r#"server="a",method="tools/call""#),
            "{metrics}"
        );
    }
}

/// A method of an extension is relayed to the only server of the endpoint, although the joint endpoint refuses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_work_at_own_endpoints() {
    let server = |name: &'static str| {
        Scripted::new(revision("2025-11-25"), move |message| {
            let result = format!(r#""result":{{"of":"{name}"}}"#);
            let is_its = text_of(message, "method") == "skills/files";
            Vec::from_iter(is_its.then(|| response(&text_of(message, "id"), &result)))
        })
    };
    let all = named(vec![
        ("a", Arc::new(server("one"))),
        ("b", Arc::new(server("two"))),
    ]);
    let bridge = Bridge::many(all, patient(Options::default())).await;
    let listening = listen(&bridge.expect("a bridge")).await;
    for of_client in REVISIONS {
        for (path, expected) in [("/b", Some("two")), ("", None)] {
            let mut config = ClientConfig::new(Identity::new("raw", "1.0.0"));
            config.extensions.policy = mcp_exact_session::ExtensionPolicy::AllowAll;
            let url = format!("{}{path}", listening.url);
            let client = connect_as(&url, "own", of_client, config, |_| {}).await;
            let answer = send(&client, "skills/files", r#"{"uri":"skill://x"}"#).await;
            let of = answer.ok().map(|answer| text_of(&answer, "of"));
            assert_eq!(of.as_deref(), expected, "client {of_client}");
            client.close();
        }
    }
}

/// Endpoints follow the servers of the bridge: one that cannot be reached is not ready, one that is added is there, and one that
/// is removed is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_follow_the_servers() {
    let [one, two] = ["one", "two"].map(|name| server_with_pages(name, revision(REVISIONS[0])));
    let down = InMemory::new(&two);
    down.is_down.store(true, Relaxed);
    let all = named(vec![
        ("a", Arc::new(InMemory::new(&one))),
        ("b", Arc::new(down.clone())),
    ]);
    let bridge = Bridge::many(all, patient(Options::default())).await;
    let bridge = bridge.expect("a bridge");
    let listening = listen(&bridge).await;
    let [url_a, url_b, url_c] = ["a", "b", "c"].map(|name| format!("{}/{name}", listening.url));
    let begin = async |url: &str| http("POST", url, &[], INITIALIZE).await.0;
    assert_eq!(begin(&url_b).await, 503);
    down.is_down.store(false, Relaxed);
    let ready = async {
        while begin(&url_b).await != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, ready).await.expect("ready");

    let client = Client::connect(&url_a).revision(revision(REVISIONS[0]));
    let client = client.await.expect("a client");
    assert_eq!(
        client.read("ui://page").await.expect("a page").text(),
        "one"
    );
    let connect = |server| ServerUpdate::Connect(Arc::new(InMemory::new(server)));
    let mut update = Update::default();
    update.servers = Some(vec![
        ("a".to_owned(), connect(&two)),
        ("c".to_owned(), connect(&one)),
    ]);
    bridge.update(update).await.expect("an update");
    let text = client.read("ui://page").await.expect("a page").text();
    assert_eq!(text, "two", "the session continues with the new server");
    assert_eq!(begin(&url_b).await, 404);
    let other = Client::connect(&url_c).revision(revision(REVISIONS[1]));
    let other = other.await.expect("a client");
    assert_eq!(other.read("ui://page").await.expect("a page").text(), "one");
    let next = Client::connect(&url_a).revision(revision(REVISIONS[1]));
    let next = next.await.expect("a client");
    let info = next.server_info().expect("a name").to_string();
    assert!(
        info.contains("two"),
        "new clients see the new server: {info}"
    );
    for client in [client, other, next] {
        client.close();
    }
}
