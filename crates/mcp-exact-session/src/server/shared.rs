//! Selection of the process that handles a client message, for sessions that several processes serve at the same time.
//!
//! Only the heads of messages are parsed, and no state is changed.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{HeadKind, Json, MessageHead, RequestId, from_str};

use super::ServerEndpoint;
use crate::builtin_notifications::{CANCELLED, PROGRESS};
use crate::message::{self, parse_wire_id};

/// Received frame, divided by the process that handles its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DividedFrame {
    /// Messages that this process handles; `None` if there are none.
    pub for_this_process: Option<Vec<u8>>,
    /// Messages that other processes handle; `None` if there are none.
    pub for_other_processes: Option<Vec<u8>>,
}

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Divides a frame of the client between this endpoint and the endpoints of other processes.
    ///
    /// Messages for other processes are responses to requests that this endpoint has not sent, and cancellations and
    /// progress of requests that are not in flight at this endpoint. A batch is divided into two batches (2025-03-26,
    /// `basic/transports`, "Sending Messages to the Server": "a batch of one or more responses and/or notifications",
    /// or of requests and notifications). This endpoint handles the requests of the batch and the cancellations of
    /// these requests.
    pub fn divide_frame(&self, frame: &[u8]) -> DividedFrame {
        let whole = || Some(frame.to_vec());
        let Some(messages) = self.batch_messages(frame) else {
            let (own, foreign) = if self.is_for_this_process(frame, &[]) {
                (whole(), None)
            } else {
                (None, whole())
            };
            return DividedFrame {
                for_this_process: own,
                for_other_processes: foreign,
            };
        };
        let texts = messages.iter().map(|message| message.text().as_bytes());
        let requests: Vec<RequestId> = texts.clone().filter_map(request_id).collect();
        let (own, foreign): (Vec<&[u8]>, Vec<&[u8]>) =
            texts.partition(|text| self.is_for_this_process(text, &requests));
        if foreign.is_empty() {
            return DividedFrame {
                for_this_process: whole(),
                for_other_processes: None,
            };
        }
        let batch = |messages: Vec<&[u8]>| {
            let messages = messages.into_iter().map(<[u8]>::to_vec);
            Some(message::write_batch(messages))
        };
        DividedFrame {
            for_this_process: (!own.is_empty()).then(|| batch(own)).flatten(),
            for_other_processes: batch(foreign),
        }
    }

    /// Returns the messages of a batch; `None` for a single message, and for a batch that is refused entirely.
    fn batch_messages(&self, frame: &[u8]) -> Option<Vec<Json>> {
        let has_batches = self
            .session_revision()
            .is_some_and(RevisionSpec::has_batches);
        let text = std::str::from_utf8(frame).ok().filter(|_| has_batches)?;
        let head = MessageHead::parse(text).ok()?;
        if head.kind != HeadKind::Batch {
            return None;
        }
        let messages: Vec<Json> = from_str(text).ok()?;
        (messages.len() <= self.core.limits.batch_items).then_some(messages)
    }

    /// Returns true unless a message refers to a request that is in flight in another process. `requests` are the ids of the
    /// requests in the same batch, which this process handles.
    fn is_for_this_process(&self, message: &[u8], requests: &[RequestId]) -> bool {
        let text = std::str::from_utf8(message).ok();
        let Some(head) = text.and_then(|text| MessageHead::parse(text).ok()) else {
            return true;
        };
        let is_pending = |id: Option<RequestId>| {
            let id = id.as_ref().and_then(parse_wire_id);
            id.is_some_and(|id| self.core.pending.by_wire_id(id).is_some())
        };
        let param = |path: &[&str]| {
            let mut names = path.iter();
            let params = from_str::<Json>(head.params?).ok()?;
            let found = names.try_fold(params.view(), |value, name| value.object()?.find(name));
            found?.decode_as::<RequestId>().ok()
        };
        match (head.kind, head.method.as_deref()) {
            (HeadKind::Response, _) => is_pending(head.id.and_then(|id| from_str(id).ok())),
            (HeadKind::Notification, Some(PROGRESS)) => is_pending(param(&["progressToken"])),
            (HeadKind::Notification, Some(CANCELLED)) => param(&["requestId"]).is_none_or(|id| {
                requests.contains(&id) || self.core.in_flight.find(None, &id).is_some()
            }),
            _ => true,
        }
    }
}

/// Returns the id of a request; `None` for any other message.
fn request_id(message: &[u8]) -> Option<RequestId> {
    let head = MessageHead::parse(std::str::from_utf8(message).ok()?).ok()?;
    let id = head.id.filter(|_| head.kind == HeadKind::Request)?;
    from_str(id).ok()
}
