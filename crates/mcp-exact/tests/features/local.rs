//! Handlers whose futures are not `Send`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use mcp_exact::testing::every_revision;
use mcp_exact::{Client, ClientError, Cx, IntoServer as _, Result, server};
use tokio::sync::Notify;

/// Server whose tools have the option `local`.
struct LocalServer {
    /// Notified when the future of `forever` is dropped.
    dropped: Arc<Notify>,
}

/// Notifies a waiting task on drop.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[server(name = "local", version = "1.0.0")]
impl LocalServer {
    /// Holds a value that is not `Send` across an await point.
    #[tool(local)]
    async fn count(&self, to: u32, cx: &Cx) -> Result<String> {
        let counted = Rc::new(RefCell::new(0));
        for done in 0..to {
            cx.progress(done, to)?;
            tokio::task::yield_now().await;
            *counted.borrow_mut() += 1;
        }
        Ok(counted.borrow().to_string())
    }

    /// Panics after an await point.
    #[tool(local)]
    async fn panics(&self) {
        let rc = Rc::new(1);
        tokio::task::yield_now().await;
        assert_eq!(*rc, 2, "it panics");
    }

    /// Reports progress and never returns.
    #[tool(local)]
    async fn forever(&self, cx: &Cx) {
        let _told = NotifyOnDrop(Arc::clone(&self.dropped));
        let _rc = Rc::new(1);
        let _ = cx.progress(1, 2);
        std::future::pending::<()>().await;
    }
}

/// A local handler returns its result in every revision, and a panic is a tool error.
#[tokio::test]
async fn local_handlers_serve_every_revision() {
    let server = LocalServer {
        dropped: Arc::default(),
    };
    let server = server.into_server().expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let arguments = serde_json::json!({"to": 3});
            let count: u32 = client.call("count", &arguments).await.expect("a number");
            assert_eq!(count, 3);
            let error = client
                .call::<_, ()>("panics", &())
                .await
                .expect_err("a panic");
            assert!(matches!(&error, ClientError::Tool(_)), "{error}");
            assert!(
                error.to_string().contains("the handler panicked"),
                "{error}"
            );
        },
    )
    .await;
}

/// Cancellation drops the future of a local handler, like that of any other handler.
#[tokio::test]
async fn local_handlers_are_cancelled() {
    let dropped = Arc::new(Notify::new());
    let server = LocalServer {
        dropped: Arc::clone(&dropped),
    };
    let client = Client::in_memory(&server.into_server().expect("a server"));
    let client = client.await.expect("a client");
    let started = Arc::new(Notify::new());
    let begins = Arc::clone(&started);
    let call = client
        .call::<_, ()>("forever", &())
        .on_progress(move |_| begins.notify_one());
    let call = tokio::spawn(async move { call.await });
    started.notified().await;
    call.abort();
    dropped.notified().await;
}
