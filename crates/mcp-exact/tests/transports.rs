//! The same server over HTTP, for clients of every revision.
#![cfg(all(feature = "http-server", feature = "http-client"))]

mod common;

use std::sync::{Arc, Mutex};

use mcp_exact::testing::revisions_from;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{
    Client, ClientChange, Connect, Cx, Error, Form, Headers, JsonObject, Progress, Server, Tool,
    revisions, schemars, serde,
};
use tokio::task::AbortHandle;

use common::object;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

fn server() -> Server {
    Server::builder("test", "1.0.0")
        .tool(
            "revision",
            |cx: Cx| async move { cx.revision().to_string() },
        )
        .tool(
            Tool::new("region").input_schema(object(
                r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
            )),
            |arguments: JsonObject, headers: Headers| async move {
                // What came in the header is what the body says: the server has compared the two.
                let header = headers.get("mcp-param-region").unwrap_or_default().to_owned();
                let body = arguments.get("region").map(|region| region.to_string());
                assert_eq!(body, Some(format!("{header:?}")));
                header
            },
        )
        .tool("agent", |headers: Headers| async move {
            headers.get("host").unwrap_or_default().to_owned()
        })
        .tool("ask", |cx: Cx| async move {
            cx.progress(1, 2)?;
            let answer = cx.elicit::<Confirm>("Sure?").await?;
            cx.progress(2, 2)?;
            Ok::<_, Error>(answer.accepted_with(|form| form.yes).to_string())
        })
        .build()
        .expect("a server")
}

/// Serves over HTTP until it is dropped.
struct Listening {
    url: String,
    task: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(server: &Server) -> Listening {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    Listening {
        url: format!("http://{address}/mcp"),
        task: task.abort_handle(),
    }
}

fn connect(url: &str) -> Connect {
    Client::connect(url)
        .on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
}

/// 2024-11-05 has no Streamable HTTP; its clients use HTTP+SSE, at another URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_work_over_http() {
    let listening = listen(&server()).await;
    revisions_from(
        "2025-03-26",
        || connect(&listening.url),
        |client| async move {
            let revision: String = client.call("revision", &()).await.expect("a revision");
            assert_eq!(revision, client.revision().as_str());
            let host: String = client.call("agent", &()).await.expect("a header");
            assert!(host.starts_with("127.0.0.1:"), "{host}");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_work_over_http() {
    let listening = listen(&server()).await;
    revisions_from(
        "2025-06-18",
        || connect(&listening.url),
        |client| async move {
            let progress = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&progress);
            let answer: String = client
                .call("ask", &())
                .on_progress(move |progress: Progress| {
                    seen.lock().expect("a lock").push(progress.done)
                })
                .await
                .expect("an answer");
            assert_eq!(answer, "true");
            assert_eq!(*progress.lock().expect("a lock"), [1.0, 2.0]);
        },
    )
    .await;
}

/// 2026-07-28, `basic/transports/streamable-http`, "Custom Headers from Tool Parameters": the server compares headers and body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrored_arguments_are_compared() {
    let listening = listen(&server()).await;
    let arguments = object(r#"{"region":"eu"}"#);
    let client = connect(&listening.url).await.expect("a client");
    // A client knows what to mirror once it has listed the tools.
    let unlisted = client
        .call_tool("region", &arguments)
        .await
        .expect("listed after the refusal");
    assert_eq!(unlisted.text(), "eu");
    client.tools().all().await.expect("tools");
    let listed: String = client.call("region", &arguments).await.expect("a text");
    assert_eq!(listed, "eu");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_announced_over_http() {
    let server = server();
    let listening = listen(&server).await;
    for revision in revisions().filter(|revision| revision.as_str() >= "2025-03-26") {
        let (changed, mut changes) = tokio::sync::mpsc::unbounded_channel();
        let client = connect(&listening.url)
            .revision(revision)
            .on_change(move |change| drop(changed.send(change)))
            .await
            .expect("a client");
        // The stream for what the server sends by itself opens beside the first requests (up to 2025-11-25).
        let change = loop {
            server
                .tools()
                .insert("new", || async { "" })
                .expect("a tool");
            let wait = tokio::time::timeout(std::time::Duration::from_millis(100), changes.recv());
            match wait.await {
                Ok(change) => break change,
                Err(_) => continue,
            }
        };
        assert_eq!(change, Some(ClientChange::Tools), "{revision}");
        assert!(
            !format!("{server:?}").contains("listeners: 0"),
            "{server:?}"
        );
        client.close();
        // Nothing is kept for a client that has left.
        for _ in 0..100 {
            if format!("{server:?}").contains("listeners: 0") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(
            format!("{server:?}").contains("listeners: 0"),
            "{revision}: {server:?}"
        );
    }
}
