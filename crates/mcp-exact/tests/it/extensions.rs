//! Extensions that both peers declare, in every revision.

use mcp_exact::testing::every_revision;
use mcp_exact::{Client, ClientError, Cx, JsonObject, SendError, Server, revisions};
use tokio::sync::mpsc;

use crate::common::has_sessions;

const ID: &str = "com.example/index";

/// Returns settings with one member.
fn settings(depth: i64) -> JsonObject {
    JsonObject::from_iter([("depth", depth)])
}

/// Returns a server whose only method returns the client's settings after a notification; half of it is of a merged builder.
fn server() -> Server {
    let part = Server::builder("part", "1.0.0")
        .extension_notifications(ID, ["index/done"])
        .extension_method(ID, "index/rebuild", |cx: Cx| async move {
            cx.notify("index/done", None)
                .expect("the client has declared it");
            cx.client_extension(ID).expect("the client has declared it")
        });
    let builder = Server::builder("test", "1.0.0").extension(ID, settings(2));
    builder.merge(None, part).build().expect("a server")
}

/// "Both sides declare extension support" (2026-07-28, `basic/versioning`, "Extension Negotiation"), and the same members
/// of the capabilities in older revisions: settings, methods and notifications reach the peer.
#[tokio::test]
async fn declared_extensions_work_in_every_revision() {
    let server = server();
    for revision in revisions() {
        let (sender, mut done) = mpsc::unbounded_channel();
        let client = Client::in_memory(&server)
            .revision(revision)
            .extension(ID, settings(7))
            .extension_methods(ID, ["index/rebuild"])
            .on_notification("index/done", move |notification| {
                let _ = sender.send(notification.revision);
            })
            .await
            .expect("a client");
        assert_eq!(client.server_extension(ID), Some(settings(2)), "{revision}");
        assert_eq!(client.server_extension("com.example/other"), None);
        let result = client.request("index/rebuild", None).await;
        let result = result.expect("both have declared it");
        assert_eq!(result.get("depth"), Some(7.into()), "{revision}");
        assert_eq!(done.recv().await, Some(revision));
    }
}

/// "If one side supports an extension and the other does not, the supporting side MUST either revert to core protocol
/// behavior or reject the request with an appropriate error": the handler is not called.
#[tokio::test]
async fn methods_need_the_extension_of_the_client() {
    let server = server();
    every_revision(
        || Client::in_memory(&server).methods(["index/rebuild"]),
        |client| async move {
            let code = if has_sessions(client.revision()) {
                -32601
            } else {
                -32021
            };
            match client.request("index/rebuild", None).await {
                Err(ClientError::Server(error)) => assert_eq!(error.code(), Some(code), "{error}"),
                other => panic!("{other:?}"),
            }
        },
    )
    .await;
}

/// From 2026-07-28 on, a method is not sent to a server that has not declared its extension.
#[tokio::test]
async fn methods_need_the_extension_of_the_server() {
    let server = Server::builder("test", "1.0.0").build().expect("a server");
    every_revision(
        || Client::in_memory(&server).extension_methods(ID, ["index/rebuild"]),
        |client| async move {
            let refused = client.request("index/rebuild", None).await;
            let is_refused = match (&refused, has_sessions(client.revision())) {
                (Err(ClientError::Server(error)), true) => error.code() == Some(-32601),
                (Err(ClientError::Send(SendError::Capability { .. })), false) => true,
                _ => false,
            };
            assert!(is_refused, "{refused:?}");
        },
    )
    .await;
}
