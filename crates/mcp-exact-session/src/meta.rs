//! Names of the members of `_meta` that 2026-07-28 defines (`basic`, "_meta").
//!
//! This module contains the defined names, and the check of the name format.

/// Member that contains the revision of a request.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Member that contains the capabilities of the client.
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Member that contains the name and the version of the client.
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Member that contains the lowest level of log messages that a client requests.
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Member that contains the name and the version of the server.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Member that contains the id of the subscription to which a notification belongs.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Name of the result member that contains the kind of the result.
pub(crate) const RESULT_TYPE: &str = "resultType";

/// Returns true if a text is a valid key of `_meta` (`basic`, "_meta", "Key name format"): an optional prefix of
/// labels, and a name that is empty or begins and ends with a letter or digit.
pub fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => prefix.split('.').all(is_label) && is_name(name),
    }
}

/// Returns true if a text is a valid label in the prefix of a `_meta` key.
fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.bytes().all(inner)
}

/// Returns true if a text is a valid name in a `_meta` key, that is, the part after the prefix.
fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |c: char| c.is_ascii_alphanumeric();
    name.is_empty() || (name.starts_with(ends) && name.ends_with(ends) && name.bytes().all(inner))
}
