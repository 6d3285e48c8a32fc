//! Configurations of the client and the server of a simulated network: random revisions, all capabilities, low limits,
//! and a seal.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::*;

use crate::hostile::Choices;

/// Returns the configuration of a client with random revisions and all capabilities.
pub(crate) fn client(choices: &mut Choices<'_>) -> ClientConfig {
    let mut config = ClientConfig::new(Identity::new("client", "1"));
    config.offer = offer(choices);
    config.capabilities = object(
        r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#,
    );
    config.extensions = extensions();
    config.limits = limits();
    config.request_timeout.idle = Duration::from_secs(3);
    config
}

/// Returns the configuration of a server with random revisions, all capabilities, and usually a seal.
pub(crate) fn server(choices: &mut Choices<'_>) -> ServerConfig {
    let mut config = ServerConfig::new(Identity::new("server", "1"));
    config.offer = offer(choices);
    config.capabilities = object(
        r#"{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{},"logging":{},"completions":{}}"#,
    );
    config.extensions = extensions();
    config.limits = limits();
    config.request_timeout.idle = Duration::from_secs(2);
    if choices.chance(200) {
        config.seal = Some(Arc::new(ChecksumSeal));
    }
    config
}

/// Returns limits that are low enough to be reached in a short run.
pub(crate) fn limits() -> Limits {
    Limits {
        message_bytes: 4096,
        message_budget: MessageBudget::new(8192),
        depth: 16,
        batch_items: 4,
        name_bytes: 64,
        in_flight: 6,
        in_flight_bytes: 4096,
        pending: 6,
        remembered_ids: 4,
        streams: 12,
        queued: 16,
        queued_bytes: 16 << 10,
        stream_bytes: 8 << 10,
        reserved_bytes: 4 << 10,
        requests_per_second: 100,
        notifications_per_second: 20,
        subscriptions: 3,
        subscription_bytes: 64,
        input_requests: 3,
        retries: 3,
        state_bytes: 256,
        tool_bytes: 1024,
    }
}

/// Parses a text as a JSON object; returns an empty object if the text is not an object.
pub(crate) fn object(text: &str) -> JsonObject {
    text.parse().unwrap_or_default()
}

/// Seal of request states that detects changes by a checksum before the state.
#[derive(Debug)]
struct ChecksumSeal;

impl Seal for ChecksumSeal {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        let add = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add(u32::from(*byte));
        let sum = payload.as_bytes().iter().chain(context).fold(7, add);
        format!("{sum:08x}{payload}")
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        let (_, payload) = sealed.split_at_checked(8)?;
        (self.seal(payload, context) == sealed).then(|| payload.to_owned())
    }
}

/// Returns an offer of random revisions.
fn offer(choices: &mut Choices<'_>) -> Offer {
    let mask = usize::from(choices.next_byte());
    let mut chosen: Vec<Revision> = revisions()
        .enumerate()
        .filter(|(at, _)| mask >> at & 1 == 1)
        .map(|(_, revision)| revision)
        .collect();
    if chosen.is_empty() {
        chosen = revisions().collect();
    }
    if mask & 0x80 == 0 {
        chosen.reverse();
    }
    Offer {
        revisions: chosen,
        oldest: None,
    }
}

/// Returns the methods and result types of a vendor that both endpoints allow.
fn extensions() -> Extensions {
    Extensions {
        requests: vec!["x/vendor".into()],
        notifications: vec!["notifications/x".into()],
        result_types: vec!["x".into()],
        ..Extensions::default()
    }
}
