//! Selection of the process that handles a client message, for sessions that several processes serve at the same time.
//!
//! Only the head of the message is read, and no state is changed.

use mcp_exact_wire::{HeadKind, MessageHead, RequestId, from_str};

use super::ServerEndpoint;
use crate::builtin_notifications::{CANCELLED, PROGRESS};
use crate::message::own_id;

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Returns true unless a message is about something that another process has in flight: the response to a request that this
    /// endpoint has not sent, or the cancellation or progress of a request that it does not know. Such a message is for the
    /// process that waits for it. Batches always belong to the endpoint that has received them.
    pub fn concerns(&self, message: &[u8]) -> bool {
        let text = std::str::from_utf8(message).ok();
        let Some(head) = text.and_then(|text| MessageHead::parse(text).ok()) else {
            return true;
        };
        let is_pending = |id: Option<RequestId>| {
            let id = id.as_ref().and_then(own_id);
            id.is_some_and(|id| self.core.pending.by_wire_id(id).is_some())
        };
        let param = |path: &[&str]| {
            let mut names = path.iter();
            let params = mcp_exact_wire::from_str::<mcp_exact_wire::Json>(head.params?).ok()?;
            let found = names.try_fold(params.view(), |value, name| value.object()?.find(name));
            found?.decode_as::<RequestId>().ok()
        };
        match (head.kind, head.method.as_deref()) {
            (HeadKind::Response, _) => is_pending(head.id.and_then(|id| from_str(id).ok())),
            (HeadKind::Notification, Some(PROGRESS)) => is_pending(param(&["progressToken"])),
            (HeadKind::Notification, Some(CANCELLED)) => {
                param(&["requestId"]).is_none_or(|id| self.core.in_flight.find(None, &id).is_some())
            }
            _ => true,
        }
    }
}
