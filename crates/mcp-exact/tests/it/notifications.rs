//! Notifications of vendors, in both directions.

use mcp_exact::testing::every_revision;
use mcp_exact::{
    Client, ClientError, Cx, JsonObject, Notification, RawJson, Root, SendError, Server, revisions,
};
use tokio::sync::mpsc;

use crate::common::{has_sessions, spec};

/// Returns params with one member.
fn params(value: &str) -> Option<JsonObject> {
    Some(JsonObject::from_iter([("value", RawJson::string(value))]))
}

/// Returns the member of [`params`].
fn value(notification: &Notification) -> Option<String> {
    let value = notification.params.as_ref()?.get("value")?;
    value.parse().ok()
}

/// Notifications that both peers declare reach the handlers of the peer, also if a handler before them panics.
#[tokio::test]
async fn vendor_notifications_reach_the_peer() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let builder = Server::builder("test", "1.0.0")
        .notifications(["com.example/indexed"])
        .tool("index", |cx: Cx| async move {
            cx.notify("com.example/indexed", params("a"))?;
            mcp_exact::Ok("done")
        });
    let part = Server::builder("part", "1.0.0")
        .on_notification("com.example/opened", |_| panic!("a handler"))
        .on_notification("com.example/opened", move |notification| {
            drop(sender.send((notification.revision, value(&notification))));
        });
    let server = builder.merge(None, part).build().expect("a server");
    for revision in revisions() {
        let (sender, mut indexed) = mpsc::unbounded_channel();
        let client = Client::in_memory(&server)
            .revision(revision)
            .notifications(["com.example/opened"])
            .on_notification("com.example/indexed", move |notification| {
                drop(sender.send(value(&notification)));
            })
            .await
            .expect("a client");
        client
            .notify("com.example/opened", params("b"))
            .expect("it is declared");
        // Without sessions nothing names its revision: it is of the one that the server prefers.
        let preferred = revisions().next_back().expect("a revision");
        let of = if has_sessions(revision) {
            revision
        } else {
            preferred
        };
        assert_eq!(received.recv().await, Some((of, Some("b".into()))));
        let done: Result<String, _> = client.call("index", &()).await;
        assert_eq!(done.as_deref(), Ok("done"), "{revision}");
        assert_eq!(indexed.recv().await, Some(Some("a".into())), "{revision}");
    }
}

/// A notification that the sender has not declared is not sent.
#[tokio::test]
async fn undeclared_notifications_are_not_sent() {
    let server = Server::builder("test", "1.0.0").tool("index", |cx: Cx| async move {
        let sent = cx.notify("com.example/indexed", None);
        matches!(sent, Err(SendError::Method { .. }))
    });
    let server = server.build().expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let sent = client.notify("com.example/opened", None);
            assert!(matches!(
                sent,
                Err(ClientError::Send(SendError::Method { .. }))
            ));
            let refused: Result<bool, _> = client.call("index", &()).await;
            assert_eq!(refused, Ok(true));
        },
    )
    .await;
}

/// "When roots change, clients that support `listChanged` MUST send a notification" (2025-06-18, `client/roots`): the
/// handler of the server receives it.
#[tokio::test]
async fn changed_roots_reach_the_server() {
    let (sender, mut received) = mpsc::unbounded_channel();
    let server = Server::builder("test", "1.0.0")
        .on_notification("notifications/roots/list_changed", move |notification| {
            let _ = sender.send(notification.revision);
        })
        .build()
        .expect("a server");
    for revision in revisions().filter(|revision| spec(*revision).has_server_requests()) {
        let client = Client::in_memory(&server).revision(revision).roots([]);
        let client = client.await.expect("a client");
        let root = Root {
            uri: "file:///a".into(),
            name: None,
        };
        client.set_roots([root]).expect("it has roots");
        assert_eq!(received.recv().await, Some(revision));
    }
}
