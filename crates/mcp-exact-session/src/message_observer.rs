//! Observation of the messages that an endpoint sends, for the spans of a trace.

use std::fmt;

use crate::stream::RequestKey;

/// Observer of the messages that an endpoint sends.
///
/// Transports observe received messages themselves.
pub trait MessageObserver: fmt::Debug + Send + Sync {
    /// Handles a message before it is queued, in the thread whose call sends the message. `request` is the key of the
    /// local request that the message sends.
    ///
    /// The observer may add members to `_meta` of the message, and changes nothing else. It must not call the endpoint.
    fn handle_outgoing(&self, message: &mut Vec<u8>, request: Option<RequestKey>);
}
