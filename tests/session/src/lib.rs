//! Shared parts of tests of sessions: an in-memory pair of endpoints, harnesses of single endpoints, configurations,
//! and checks of outgoing messages against the schema of their revision.
//!
//! The official schemas are read from the repository. The tests are deterministic, because they use a simulated clock.

mod checked;
pub mod discover_peers;
mod entrance;
mod http_harness;
mod http_server_harness;
mod pair;
mod raw;
mod replies;
mod schema;
mod schema_checker;
mod usage;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

pub use checked::{CheckedClient, CheckedServer, connected_client, request_of_revision};
pub use entrance::{ENTRANCE_VARIABLE, Entrance};
pub use http_harness::{Headers, HttpHarness, header_value};
pub use http_server_harness::{
    HttpServerHarness, SESSION_REVISIONS, http_request, negotiated_session,
    server_with_roots_client, tool_call,
};
pub use mcp_exact_session::*;
pub use pair::{Pair, Step};
pub use raw::{RawClient, RawServer, initialize};
pub use replies::{elicitation_request, elicitations_by_name, empty_content, empty_tool_list};
pub use schema::{
    check_message, check_single_message, errors_require_id, has_definition, message_errors,
    schema_documents,
};
pub use schema_checker::SchemaChecker;
pub use serde_json::{Value, json};
pub use usage::check_usage;

/// First revision without a handshake: each request carries the revision and the client's capabilities.
pub const DISCOVER_REVISION: &str = "2026-07-28";

/// Returns every revision, oldest first.
pub fn all_revisions() -> Vec<&'static str> {
    revisions().map(Revision::as_str).collect()
}

/// Returns every revision, newest first: the preference order of the default offer.
pub fn revisions_newest_first() -> Vec<&'static str> {
    all_revisions().into_iter().rev().collect()
}

/// Returns the revisions with a handshake, oldest first.
pub fn handshake_revisions() -> Vec<&'static str> {
    revisions_of_lifecycle(Lifecycle::Initialize)
}

/// Returns the revisions without a handshake, oldest first.
pub fn discover_revisions() -> Vec<&'static str> {
    revisions_of_lifecycle(Lifecycle::Discover)
}

/// Returns true if sessions of the revision begin with a handshake.
pub fn has_handshake(revision: &str) -> bool {
    lifecycle(revision) == Some(Lifecycle::Initialize)
}

/// Returns the newest revision that has the given lifecycle.
///
/// # Panics
///
/// If no revision has the lifecycle.
pub fn newest_of_lifecycle(wanted: Lifecycle) -> &'static str {
    revisions_of_lifecycle(wanted)
        .pop()
        .expect("one of each era")
}

/// Returns the revisions that have the given lifecycle, oldest first.
fn revisions_of_lifecycle(wanted: Lifecycle) -> Vec<&'static str> {
    all_revisions()
        .into_iter()
        .filter(|id| lifecycle(id) == Some(wanted))
        .collect()
}

/// Converts a value to an object.
///
/// # Panics
/// If the value is not a JSON object.
pub fn to_object(value: Value) -> JsonObject {
    JsonObject::try_from(Json::from(value)).expect("an object")
}

/// Converts a value to a result.
///
/// # Panics
/// If the value is not a JSON object.
pub fn to_result(value: Value) -> RawResult {
    RawResult::from(to_object(value))
}

/// Converts an object to a value.
///
/// # Panics
/// Never: an object is JSON.
pub fn to_value(object: &JsonObject) -> Value {
    object.parse().expect("JSON")
}

/// Creates an offer of these revisions, in descending order of preference.
///
/// # Panics
///
/// If one of the revisions is not compiled in.
pub fn offer_of(revisions: &[&str]) -> Offer {
    Offer::new(revisions.iter().copied()).expect("known revisions")
}

/// Creates the configuration of a server that offers these revisions and declares all capabilities.
///
/// # Panics
/// If one of the revisions is not compiled in.
pub fn server_config(revisions: &[&str]) -> ServerConfig {
    let mut config = ServerConfig::new(Identity::new("server", "1"));
    config.offer = offer_of(revisions);
    config.capabilities = to_object(json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "logging": {},
        "completions": {},
    }));
    config.seal = Some(Arc::new(ChecksumSeal(7)));
    config
}

/// Seal of request states, for tests: puts a checksum, keyed by the number, before the payload.
#[derive(Debug)]
pub struct ChecksumSeal(pub u64);

impl ChecksumSeal {
    /// Returns the keyed checksum of a payload and its context.
    fn checksum(&self, payload: &str, context: &[u8]) -> String {
        let mut hasher = DefaultHasher::new();
        (self.0, payload, context).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }
}

impl Seal for ChecksumSeal {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        format!("{}{payload}", self.checksum(payload, context))
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        let (sum, payload) = sealed.split_at_checked(16)?;
        (self.checksum(payload, context) == sum).then(|| payload.to_owned())
    }
}

/// Creates the configuration of a client that offers these revisions and declares all capabilities.
///
/// # Panics
/// If one of the revisions is not compiled in.
pub fn client_config(revisions: &[&str]) -> ClientConfig {
    let mut config = ClientConfig::new(Identity::new("client", "1"));
    config.offer = offer_of(revisions);
    config.capabilities = to_object(json!({
        "roots": { "listChanged": true },
        "sampling": { "tools": {} },
        "elicitation": { "form": {}, "url": {} },
    }));
    config
}

/// Creates a server endpoint on a duplex stream.
///
/// # Panics
/// If the configuration offers no revision.
pub fn server(config: ServerConfig) -> ServerEndpoint<()> {
    ServerEndpoint::new(
        config.build().expect("a configuration"),
        Binding::Duplex,
        Time::ZERO,
    )
}

/// Creates a client endpoint on a duplex stream.
///
/// # Panics
/// If the configuration offers no revision.
pub fn client(config: ClientConfig) -> ClientEndpoint {
    ClientEndpoint::new(
        config.build().expect("a configuration"),
        Binding::Duplex,
        None,
        Time::ZERO,
    )
}
