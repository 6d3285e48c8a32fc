//! What waits for the program: events in order, and how many bytes of the other side's they hold.
//!
//! Takes events; gives them one by one. Never drops one: whoever fills it looks first whether it is full.

use std::collections::VecDeque;

use mcp_exact_wire::{ErrorObject, MessageError};

use crate::client::ClientEvent;
use crate::error::{PeerError, Violation};
use crate::limits::{Limit, Limits};
use crate::server::{IncomingRequest, ServerEvent};
use crate::types::{Change, InputResponses, Outcome, Progress, SessionInfo};

/// What each event counts beside what it holds: as much as a short message.
const EVENT: usize = 32;

/// What came from the other side and is kept.
pub(crate) trait Held {
    /// How much memory it takes, about.
    fn size(&self) -> usize;
}

#[derive(Debug)]
pub(crate) struct Events<E> {
    /// With what each of them counts.
    queue: VecDeque<(usize, E)>,
    bytes: usize,
}

impl<E: Held> Events<E> {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(crate) fn push_back(&mut self, event: E) {
        let size = EVENT + event.size();
        self.bytes += size;
        self.queue.push_back((size, event));
    }

    pub(crate) fn pop_front(&mut self) -> Option<E> {
        let (size, event) = self.queue.pop_front()?;
        self.bytes -= size;
        Some(event)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The bound that it has reached.
    pub(crate) fn full(&self, limits: &Limits) -> Option<Limit> {
        limits.of_queue(self.len(), self.bytes)
    }
}

impl Held for ClientEvent {
    fn size(&self) -> usize {
        match self {
            Self::Negotiated(agreed, _) => agreed.size(),
            Self::Completed(_, outcome) => outcome.size(),
            Self::Progress(_, progress) => progress.size(),
            Self::Request { request, .. } => request.call.size(),
            Self::Log(_, log) => log.logger.as_ref().map_or(0, String::len) + log.data.text().len(),
            Self::Subscribed(_, filter) => filter.size(),
            Self::Changed(_, change) => change.size(),
            Self::Notification(heard) => heard.call.size(),
            Self::Violation(violation) => violation.size(),
            // The session is over with `Failed`: nothing else comes in.
            Self::Failed(_)
            | Self::RestartServer
            | Self::UseHttpSse
            | Self::RequestCancelled(_)
            | Self::SessionLost
            | Self::Closed => 0,
        }
    }
}

impl<C> Held for ServerEvent<C> {
    fn size(&self) -> usize {
        match self {
            Self::Negotiated(agreed) => agreed.size(),
            Self::Request(incoming) => incoming.size(),
            Self::Cancelled { reason, .. } => reason.as_ref().map_or(0, String::len),
            Self::Subscribed { filter, .. } => filter.size(),
            Self::Notification(notified) => notified.call.size(),
            Self::Completed(_, outcome) => outcome.size(),
            Self::Progress(_, progress) => progress.size(),
            Self::Violation(violation) => violation.size(),
            Self::Ready | Self::Closed => 0,
        }
    }
}

impl<C> Held for IncomingRequest<C> {
    /// The call counts although it is shared with what is being served: a request that is cancelled is not served any more.
    fn size(&self) -> usize {
        let state = self.state.as_ref().map_or(0, String::len);
        self.origin.call.size() + self.answers.size() + state
    }
}

impl Held for InputResponses {
    fn size(&self) -> usize {
        let size = |(name, outcome): (&str, &Outcome)| EVENT + name.len() + outcome.size();
        self.iter().map(size).sum()
    }
}

impl Held for SessionInfo {
    fn size(&self) -> usize {
        let info = self.info.as_ref().map_or(0, |info| info.text().len());
        let instructions = self.instructions.as_ref().map_or(0, String::len);
        self.capabilities.text().len() + info + instructions
    }
}

impl Held for Outcome {
    fn size(&self) -> usize {
        match self {
            Self::Result(result) => result.object().text().len(),
            Self::Error(error) => error.size(),
            Self::TimedOut | Self::Cancelled | Self::Lost | Self::Closed => 0,
        }
    }
}

impl Held for PeerError {
    fn size(&self) -> usize {
        let ErrorObject {
            code,
            message,
            data,
            extra,
        } = self.object();
        // Only a number beyond the machine's keeps its digits.
        let code = match code.as_i64() {
            Some(_) => 0,
            None => code.to_string().len(),
        };
        let data = data.as_ref().map_or(0, |data| data.text().len());
        let extra = extra.iter().map(|(n, v)| n.len() + v.text().len());
        code + message.len() + data + extra.sum::<usize>()
    }
}

impl Held for Progress {
    fn size(&self) -> usize {
        self.message.as_ref().map_or(0, String::len)
    }
}

impl Held for Change {
    fn size(&self) -> usize {
        match self {
            Self::Resource(uri) => uri.len(),
            Self::Tools | Self::Prompts | Self::Resources => 0,
        }
    }
}

impl Held for Violation {
    fn size(&self) -> usize {
        match self {
            Self::NoMessage(error) => error.size(),
            Self::Unaddressed(error) => error.size(),
            Self::Tool { name, reason } => name.len() + reason.to_string().len(),
            Self::BeforeInitialize(method)
            | Self::Method(method)
            | Self::Notification(method)
            | Self::Subscription(method)
            | Self::Capability { method, .. } => method.len(),
            // Ids are short (`name_bytes`).
            Self::UnexpectedResponse(_)
            | Self::IdInUse(_)
            | Self::InitializeAgain
            | Self::UnknownToken
            | Self::Progress
            | Self::Batch(_)
            | Self::Limit(_) => 0,
        }
    }
}

impl Held for MessageError {
    fn size(&self) -> usize {
        let error = self.decode_error();
        let method = self.method().map_or(0, str::len);
        method + error.pointer().len() + error.detail().len()
    }
}
