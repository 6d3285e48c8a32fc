//! Authorization tests: clients and resource servers with malicious peers.

#[cfg(target_os = "linux")]
mod browser;
mod choices;
mod client;
mod dpop;
mod grants;
mod hosts;
mod insecure;
mod issuers;
mod processes;
mod proofs;
mod provider_rows;
mod refresh;
mod registration;
mod resource;
mod secrets;
mod server;
mod specification;
mod stepup;
mod stores;
mod third_party;
mod verifiers;
