//! `tracing` events that are sent to the client of the current request (`server/utilities/logging`).

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};
use std::task::{Context, Poll, Wake, Waker};

use mcp_exact::testing::every_revision;
use mcp_exact::{Client, ClientLogs, Level, LogMessage, Server};
use tracing_subscriber::layer::SubscriberExt as _;

/// Installs the layer globally, because `tracing` prevents recursive calls of a thread-local subscriber.
fn install_layer() {
    /// Ensures that the layer is installed once.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry().with(ClientLogs::new());
        tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
    });
}

/// Value that writes a log event whenever it is formatted.
struct LoggingValue;

impl fmt::Debug for LoggingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tracing::warn!(value = ?LoggingValue, "written");
        f.write_str("noisy")
    }
}

/// An event that occurs while a log message is created is not sent to the client.
#[tokio::test]
async fn log_messages_cause_no_others() {
    install_layer();
    let server = Server::builder("test", "1.0.0")
        .log_level(Level::Info)
        .tool("work", || async {
            tracing::warn!(value = ?LoggingValue, "once");
            "done"
        })
        .build()
        .expect("a server");
    let logs: Arc<Mutex<Vec<LogMessage>>> = Arc::default();
    let taken = Arc::clone(&logs);
    let client = Client::in_memory(&server)
        .on_log(move |log| taken.lock().expect("no panic").push(log))
        .await
        .expect("connected");
    let done: String = client
        .call("work", &())
        .log_level(Level::Info)
        .await
        .expect("a text");
    assert_eq!(done, "done");
    let logs = logs.lock().expect("no panic");
    let data: Vec<serde_json::Value> = logs
        .iter()
        .map(|log| log.data.parse().expect("an object"))
        .collect();
    let expected = serde_json::json!({"message": "once", "value": "noisy"});
    assert_eq!(data, [expected]);
}

/// Future whose waker writes a log event, as the runtime and HTTP libraries do.
struct LoggingFuture<F>(Pin<Box<F>>);

/// Waker that writes log events before it wakes the task.
struct LoggingWaker(Waker);

impl Wake for LoggingWaker {
    fn wake(self: Arc<Self>) {
        tracing::error!(target: "tokio::task::waker", "woken");
        tracing::error!(target: "hyper::proto", "woken");
        self.0.wake_by_ref();
    }
}

impl<F: Future> Future for LoggingFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let waker = Waker::from(Arc::new(LoggingWaker(cx.waker().clone())));
        let span = tracing::error_span!("driver");
        let _entered = span.enter();
        tracing::error!(target: "hyper::proto", "polled");
        self.0.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// Sending a log message causes log events of other libraries, in the handler's call and in the task of the connection.
/// None of these events becomes a log message.
#[tokio::test]
async fn sending_log_messages_causes_no_others() {
    install_layer();
    let server = Server::builder("test", "1.0.0")
        .log_level(Level::Debug)
        .tool("work", || async {
            let span = tracing::error_span!("working");
            span.in_scope(|| tracing::warn!(target: "app", "once"));
            tokio::task::yield_now().await;
            "done"
        })
        .build()
        .expect("a server");
    let (near, far) = mcp_exact::transport::memory_pair(1 << 16, 1 << 20);
    tokio::spawn(LoggingFuture(Box::pin(
        async move { server.serve(far).await },
    )));
    let logs: Arc<Mutex<Vec<LogMessage>>> = Arc::default();
    let taken = Arc::clone(&logs);
    let client = Client::over(near)
        .on_log(move |log| taken.lock().expect("no panic").push(log))
        .await
        .expect("connected");
    let call = client.call("work", &()).log_level(Level::Debug);
    let done: String = call.await.expect("a text");
    assert_eq!(done, "done");
    let logs = logs.lock().expect("no panic");
    let loggers: Vec<_> = logs.iter().map(|log| log.logger.as_deref()).collect();
    assert_eq!(loggers, [Some("app")], "{logs:?}");
}

/// An event of a handler is sent with its level, target, message and fields. Events outside of requests and below the
/// level of the client are not sent.
#[tokio::test]
async fn events_become_log_messages() {
    install_layer();
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
            (Level::Warning, Some(module_path!()))
        );
        let data: serde_json::Value = log.data.parse().expect("an object");
        let expected = serde_json::json!({
            "message": "half of it is done", "pages": 3, "path": "a.txt", "ok": true
        });
        assert_eq!(data, expected);
    }
}
