//! Approximate heap sizes of the received data in events.
//!
//! One implementation per type; [`HeapSize`] defines what is counted.

use mcp_exact_wire::{ErrorObject, MessageError};

use crate::change::{Change, Progress};
use crate::error::{PeerError, Violation};
use crate::log::LogMessage;
use crate::outcome::Outcome;
use crate::session_info::SessionInfo;

/// Number of bytes that each event counts in addition to its content, about the size of a short message.
pub(crate) const EVENT_SIZE: usize = 32;

/// Approximate heap memory of received data.
pub(crate) trait HeapSize {
    /// Returns the number of bytes on the heap.
    fn heap_size(&self) -> usize;
}

impl HeapSize for SessionInfo {
    fn heap_size(&self) -> usize {
        let info = self
            .implementation
            .as_ref()
            .map_or(0, |info| info.text().len());
        let instructions = self.instructions.as_ref().map_or(0, String::len);
        self.capabilities.text().len() + info + instructions
    }
}

impl HeapSize for Outcome {
    fn heap_size(&self) -> usize {
        match self {
            Self::Result(result) => result.object().text().len(),
            Self::Error(error) => error.heap_size(),
            Self::TimedOut | Self::Cancelled | Self::Lost | Self::Closed => 0,
        }
    }
}

impl HeapSize for PeerError {
    fn heap_size(&self) -> usize {
        let ErrorObject {
            code,
            message,
            data,
            extra,
        } = self.object();
        // Only numbers beyond 64 bits are kept as digits on the heap.
        let code = match code.as_i64() {
            Some(_) => 0,
            None => format!("{code}").len(),
        };
        let data = data.as_ref().map_or(0, |data| data.text().len());
        let extra = extra.iter().map(|(n, v)| n.len() + v.text().len());
        code + message.len() + data + extra.sum::<usize>()
    }
}

impl HeapSize for Progress {
    fn heap_size(&self) -> usize {
        self.message.as_ref().map_or(0, String::len)
    }
}

impl HeapSize for LogMessage {
    fn heap_size(&self) -> usize {
        self.logger.as_ref().map_or(0, String::len) + self.data.text().len()
    }
}

impl HeapSize for Change {
    fn heap_size(&self) -> usize {
        match self {
            Self::Resource(uri) => uri.len(),
            Self::Tools | Self::Prompts | Self::Resources => 0,
        }
    }
}

impl HeapSize for Violation {
    fn heap_size(&self) -> usize {
        match self {
            Self::InvalidMessage(error) => error.heap_size(),
            Self::ErrorWithoutId(error) | Self::InitializedRefused { error, .. } => {
                error.heap_size()
            }
            Self::Tool { name, reason } => name.len() + format!("{reason}").len(),
            Self::BeforeInitialize(method)
            | Self::Method(method)
            | Self::Notification(method)
            | Self::Subscription(method)
            | Self::Capability { method, .. } => method.len(),
            // Ids are short (`name_bytes`).
            Self::UnexpectedResponse(_)
            | Self::IdInUse(_)
            | Self::RepeatedInitialize
            | Self::ForeignPrincipal
            | Self::UnknownToken
            | Self::Progress
            | Self::Batch(_)
            | Self::Limit(_) => 0,
        }
    }
}

impl HeapSize for MessageError {
    fn heap_size(&self) -> usize {
        let error = self.decode_error();
        let method = self.method().map_or(0, str::len);
        method + error.pointer().len() + error.detail().len()
    }
}
