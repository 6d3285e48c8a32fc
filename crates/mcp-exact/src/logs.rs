//! `tracing` events as log messages for the client (`server/utilities/logging`).
//!
//! Events of a handler's task are sent as log messages about its request, if the level that the client has set includes
//! them.

use std::cell::Cell;
use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::cx::Cx;
use crate::protocol::{Json, Level};

tokio::task_local! {
    /// Context of the request whose handler is being polled.
    pub(crate) static CURRENT_CX: Cx;
}

/// A layer that sends the `tracing` events of handlers to the clients of their requests, like
/// [`Cx::log`](crate::Cx::log): with their level, their target as the logger, their message and fields.
///
/// Events outside of handlers, in tasks that handlers spawn, and of this library itself are not sent. Events that occur
/// while a message is created are not sent either, which prevents recursion. Add the layer where the application sets
/// up `tracing`:
///
/// ```
/// use mcp_exact::ClientLogs;
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// let subscriber = tracing_subscriber::registry().with(ClientLogs::new());
/// # drop(subscriber);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientLogs(());

impl ClientLogs {
    /// Creates the layer.
    pub fn new() -> Self {
        Self(())
    }
}

impl<S: Subscriber> Layer<S> for ClientLogs {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        // Events of this library would cause a message about each message.
        if metadata.target().starts_with("mcp_exact") {
            return;
        }
        let Ok(cx) = CURRENT_CX.try_with(Cx::clone) else {
            return;
        };
        // An event that occurs while a message is created, such as in the `Debug` of a field, would cause endless
        // recursion.
        let Some(_making) = MessageGuard::begin() else {
            return;
        };
        let mut fields = EventFields(Map::new());
        event.record(&mut fields);
        // An event may occur after the request has ended.
        let _ = cx.log(
            mcp_level(*metadata.level()),
            Some(metadata.target()),
            Json::from(Value::Object(fields.0)),
        );
    }
}

thread_local! {
    /// True while this thread creates a message from an event.
    static IS_CREATING: Cell<bool> = const { Cell::new(false) };
}

/// Guard of the creation of a message, which prevents recursion on a thread.
struct MessageGuard;

impl MessageGuard {
    /// Marks the thread as creating a message; returns `None` if the thread is already marked.
    fn begin() -> Option<Self> {
        // Not `then_some`: a guard that is created and dropped immediately would mark the outer creation as ended.
        (!IS_CREATING.replace(true)).then(|| Self)
    }
}

impl Drop for MessageGuard {
    fn drop(&mut self) {
        IS_CREATING.set(false);
    }
}

/// Returns the MCP log level for a level of `tracing`.
fn mcp_level(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warning,
        tracing::Level::INFO => Level::Info,
        _ => Level::Debug,
    }
}

/// Fields of an event, by name.
struct EventFields(Map<String, Value>);

impl EventFields {
    /// Records a field of the event.
    fn record_field(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.record_field(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_field(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_field(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record_field(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_field(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_field(field, format!("{value:?}"));
    }
}
