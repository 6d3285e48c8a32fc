//! Observation of the messages that an endpoint sends, for the spans of a trace.

use std::fmt;

use crate::outcome::Outcome;
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

    /// Handles the end of a request that a client has sent by itself, such as the first one of a negotiation, and whose end is no
    /// event. The observer may have seen the answer before.
    fn handle_end(&self, request: RequestKey, outcome: &Outcome) {
        let _ = (request, outcome);
    }
}
