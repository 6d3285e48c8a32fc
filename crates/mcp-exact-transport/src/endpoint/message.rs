//! Properties of a message that a transport needs before it passes the message to an endpoint.
//!
//! Only the head of the message is parsed.

#[cfg(feature = "http-server")]
use mcp_exact_revisions::method;
use mcp_exact_wire::{HeadKind, MessageHead};

/// Parses the head of a message; `None` if the head is malformed.
fn head(message: &[u8]) -> Option<MessageHead<'_>> {
    MessageHead::parse(std::str::from_utf8(message).ok()?).ok()
}

/// Returns true if the message is a request, or a batch that may contain a request.
pub(crate) fn is_request(message: &[u8]) -> bool {
    let kind = head(message).map(|head| head.kind);
    matches!(kind, Some(HeadKind::Request | HeadKind::Batch))
}

/// Returns the JSON text of the id of a request; `None` if the message is not a request, or its id is neither a string
/// nor a number.
#[cfg(feature = "http-server")]
pub(crate) fn request_id(message: &[u8]) -> Option<&str> {
    let head = head(message).filter(|head| head.kind == HeadKind::Request)?;
    let is_id = |id: &&str| id.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'));
    head.id.filter(is_id)
}

/// Returns true if the message is a batch.
#[cfg(feature = "http-server")]
pub(crate) fn is_batch(message: &[u8]) -> bool {
    head(message).is_some_and(|head| head.kind == HeadKind::Batch)
}

/// Returns true if the message is a response, `notifications/cancelled` or `notifications/progress`, which refer to a
/// request in flight.
#[cfg(feature = "http-server")]
pub(crate) fn is_for_request_in_flight(message: &[u8]) -> bool {
    head(message).is_some_and(|head| match head.kind {
        HeadKind::Response => true,
        HeadKind::Notification => matches!(
            head.method.as_deref(),
            Some(method::NOTIFICATIONS_CANCELLED | method::NOTIFICATIONS_PROGRESS)
        ),
        _ => false,
    })
}
