//! Entry points: the ways in which a test passes messages to an endpoint. Tests of requirements that apply to every
//! transport run once per entry point.

use crate::*;

use std::cell::Cell;

/// Environment variable that names the entry point of a process that runs tests.
///
/// A process with this variable prints the name of each test that uses the entry point.
pub const ENTRANCE_VARIABLE: &str = "MCP_EXACT_ENTRANCE";

/// Entry point: transport by which messages reach the endpoints of [`RawServer`] and [`RawClient`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entrance {
    /// Each message by itself on a duplex stream, as on standard streams.
    Duplex,
    /// POSTs and a stream of events: Streamable HTTP or, for 2024-11-05, HTTP+SSE.
    Http,
    /// Arrays of one message on a duplex stream, in 2025-03-26; each message by itself in the other revisions.
    Batch,
}

impl Entrance {
    /// All entry points.
    pub const ALL: [Self; 3] = [Self::Duplex, Self::Http, Self::Batch];

    /// Returns the name of the entry point in `docs/requirements.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Duplex => "duplex",
            Self::Http => "http",
            Self::Batch => "batch",
        }
    }

    /// Returns the entry point of this process.
    ///
    /// # Panics
    /// If the environment names an unknown entry point.
    pub fn of_process() -> Self {
        let Ok(wanted) = std::env::var(ENTRANCE_VARIABLE) else {
            return Self::Duplex;
        };
        let found = Self::ALL.into_iter().find(|known| known.name() == wanted);
        found.unwrap_or_else(|| panic!("{ENTRANCE_VARIABLE}={wanted}"))
    }

    /// Prints once, if [`ENTRANCE_VARIABLE`] is set, that the running test uses this entry point.
    #[expect(
        clippy::print_stderr,
        reason = "the process that has started this one reads it"
    )]
    pub(crate) fn record_use(self) {
        thread_local! {
            /// True for each entry point whose use by this thread was printed.
            static PRINTED: Cell<[bool; 3]> = const { Cell::new([false; 3]) };
        }
        let mut printed = PRINTED.get();
        let again = std::mem::replace(&mut printed[self as usize], true);
        PRINTED.set(printed);
        if !again && std::env::var_os(ENTRANCE_VARIABLE).is_some() {
            let thread = std::thread::current();
            eprintln!(
                "through {}: {}",
                self.name(),
                thread.name().unwrap_or_default()
            );
        }
    }

    /// Returns the transport binding of an endpoint of this revision, if messages pass through this entry point.
    pub(crate) fn transport_binding(self, speaks: Option<Revision>) -> Binding {
        match (self, speaks.map(Revision::as_str)) {
            (Self::Duplex | Self::Batch, _) => Binding::Duplex,
            (Self::Http, Some("2024-11-05")) => Binding::HttpSse,
            (Self::Http, _) => Binding::StreamableHttp,
        }
    }

    /// Returns the frame that contains a message, in a session of the revision `agreed`.
    pub(crate) fn frame_message(self, message: &str, agreed: Option<Revision>) -> String {
        let batches = agreed.is_some_and(|agreed| agreed.as_str() == "2025-03-26");
        match self {
            Self::Batch if batches && message.starts_with('{') => {
                self.record_use();
                format!("[{message}]")
            }
            Self::Batch => message.to_owned(),
            Self::Duplex | Self::Http => {
                self.record_use();
                message.to_owned()
            }
        }
    }

    /// Splits a frame into its messages.
    pub(crate) fn split_frame(self, frame: String) -> Vec<String> {
        match serde_json::from_str(&frame) {
            Ok(Value::Array(items)) if self == Self::Batch => {
                items.iter().map(Value::to_string).collect()
            }
            _ => vec![frame],
        }
    }
}
