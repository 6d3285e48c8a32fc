//! Events of `tracing` that reach the client of the request (`server/utilities/logging`).
#![cfg(feature = "logs")]

use std::sync::{Arc, Mutex};

use mcp_exact::testing::every_revision;
use mcp_exact::{Client, ClientLogs, Level, LogMessage, Server};
use tracing_subscriber::layer::SubscriberExt as _;

#[tokio::test]
async fn events_become_log_messages() {
    let subscriber = tracing_subscriber::registry().with(ClientLogs::new());
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::info!("outside of every request");
    let server = Server::builder("test", "1.0.0")
        .log_level(Level::Info)
        .tool("work", || async {
            tracing::warn!(pages = 3, path = "a.txt", ok = true, "half of it is done");
            tokio::task::yield_now().await;
            tracing::debug!("nobody wants to know");
            "done"
        })
        .build()
        .expect("a server");
    let logs: Arc<Mutex<Vec<LogMessage>>> = Arc::default();
    let taken = Arc::clone(&logs);
    every_revision(
        || {
            let taken = Arc::clone(&taken);
            Client::in_memory(&server).on_log(move |log| taken.lock().expect("no panic").push(log))
        },
        |client| async move {
            let done: String = client
                .call("work", &())
                .log_level(Level::Info)
                .await
                .expect("a text");
            assert_eq!(done, "done");
        },
    )
    .await;
    let logs = logs.lock().expect("no panic");
    assert_eq!(logs.len(), mcp_exact::revisions().count(), "{logs:?}");
    for log in logs.iter() {
        assert_eq!(
            (log.level, log.logger.as_deref()),
            (Level::Warning, Some("logs"))
        );
        let data: serde_json::Value = log.data.parse().expect("an object");
        let expected = serde_json::json!({
            "message": "half of it is done", "pages": 3, "path": "a.txt", "ok": true
        });
        assert_eq!(data, expected);
    }
}
