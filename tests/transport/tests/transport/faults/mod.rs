//! Faults with real processes and sockets: killed processes, cut connections, messages that are too long, too slow or
//! too numerous, and changes of the system clock.
//!
//! No process may hang, panic, or leak memory, and well-behaved clients must not be affected.

mod clock;
mod connections;
mod crash;
mod input;
mod processes;
mod sessions;
mod shutdown;
mod smuggling;

/// Path of the HTTP test server.
const HTTP_SERVER: &str = env!("CARGO_BIN_EXE_http_server");
/// Path of the stdio test server.
const STDIO_SERVER: &str = env!("CARGO_BIN_EXE_echo_server");
/// Path of the test client that calls a tool.
const CALLER_PROGRAM: &str = env!("CARGO_BIN_EXE_caller");

/// Timeout of a step that is immediate on an idle machine.
const STEP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(90);
