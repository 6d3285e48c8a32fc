//! Names of the members of `_meta` that 2026-07-28 defines (`basic`, "_meta").
//!
//! This module contains the defined names, and the check of the name format.

pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Name of the result member that contains the kind of the result.
pub(crate) const RESULT_TYPE: &str = "resultType";

/// Returns true if a name can be a key of `_meta` (`basic`, "_meta", "Key name format"): an optional prefix of labels, and a
/// name, which is empty or begins and ends with a letter or digit.
pub fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => prefix.split('.').all(is_label) && is_name(name),
    }
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.bytes().all(inner)
}

fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |c: char| c.is_ascii_alphanumeric();
    name.is_empty() || (name.starts_with(ends) && name.ends_with(ends) && name.bytes().all(inner))
}
