//! Runs the executable: exit codes, every output format, and many lines of JSON.
//!
//! Each test starts its own process and checks only its output and its exit code.

#[cfg(feature = "bridge")]
mod bridge;
#[cfg(feature = "bridge")]
mod bridge_catalogue;
mod bridge_entries;
#[cfg(feature = "bridge")]
mod bridge_explain;
#[cfg(feature = "bridge")]
mod bridge_flood;
#[cfg(feature = "bridge")]
mod bridge_pins;
#[cfg(feature = "bridge")]
mod bridge_processes;
mod bridge_schemas;
#[cfg(all(feature = "bridge", feature = "oauth", unix))]
mod bridge_users;
mod check;
#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "bridge", feature = "oauth"))]
mod connections;
mod convert;
mod convert_jsonl;
mod convert_message;
mod diff;
#[cfg(all(feature = "client", unix))]
mod ends;
mod exactness;
mod failed_starts;
mod jsonl;
mod messages;
#[cfg(feature = "client")]
mod new;
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(feature = "client")]
mod peers;
mod program;
mod proxy;
mod revisions;
#[cfg(all(feature = "client", unix))]
mod servers;
mod session;
mod show;
#[cfg(all(feature = "client", unix))]
mod skills;
#[cfg(all(feature = "telemetry", unix))]
mod telemetry;
#[cfg(all(feature = "client", target_os = "linux"))]
mod terminal;
#[cfg(all(feature = "client", unix))]
mod tolerance;
