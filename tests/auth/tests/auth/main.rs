//! Authorization tests: clients and resource servers with malicious peers.

#[cfg(target_os = "linux")]
mod browser;
mod choices;
mod client;
mod grants;
mod insecure;
mod issuers;
mod processes;
mod provider_rows;
mod refresh;
mod resource;
mod secrets;
mod server;
mod specification;
mod third_party;
