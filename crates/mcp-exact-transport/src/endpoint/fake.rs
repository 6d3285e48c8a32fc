//! Endpoint for unit tests that rejects its first messages because its queues are full.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::frame::Oversized;
use mcp_exact_session::{ReceiveError, Side, StreamEnd, StreamId, Time, Transmit};

use super::{Dispatch, Endpoint, Origin, Shared, Signal, SortedEvent};
use crate::metrics::{ConnectionUsage, MeteredConnection};

/// Endpoint that rejects its first messages as if its queues were full, and records all messages that it accepts.
#[derive(Debug, Default)]
pub(crate) struct FullEndpoint {
    /// Number of messages that the endpoint will still reject.
    pub(crate) refusals: usize,
    /// Messages that the endpoint has accepted.
    pub(crate) accepted_messages: Vec<String>,
    /// Time at which a timeout of the endpoint expires.
    pub(crate) deadline: Option<Time>,
}

impl FullEndpoint {
    /// Creates an endpoint that rejects the first `refusals` messages.
    pub(crate) fn shared(refusals: usize) -> Arc<Shared<Self>> {
        let endpoint = Self {
            refusals,
            ..Self::default()
        };
        let (dispatch, signal) = (Arc::new(NoOpDispatch), Arc::new(NoOpDispatch));
        Shared::new(endpoint, (), dispatch, signal, Origin::HttpSession(None))
    }
}

impl Endpoint for FullEndpoint {
    type Event = ();
    type Context = ();
    type Role = ();
    const SIDE: Side = Side::Server;

    fn receive(&mut self, _: StreamId, frame: &[u8], (): (), _: Time) -> Result<(), ReceiveError> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(ReceiveError::Full);
        }
        self.accepted_messages
            .push(String::from_utf8_lossy(frame).into_owned());
        Ok(())
    }

    fn receive_oversized(
        &mut self,
        on: StreamId,
        message: &Oversized<'_>,
        (): (),
        now: Time,
    ) -> Result<(), ReceiveError> {
        self.receive(on, message.head, (), now)
    }

    #[cfg(feature = "operations")]
    fn set_observer(&mut self, _: Arc<crate::operations::Operations>) {}

    #[cfg(feature = "operations")]
    fn revision(&self) -> Option<&'static str> {
        None
    }

    #[cfg(feature = "operations")]
    fn is_in_flight(&self, _: &mcp_exact_wire::RequestId) -> bool {
        false
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn closed(&mut self, _: StreamId, _: StreamEnd, _: Time) {}

    fn wants_input(&self) -> bool {
        true
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_transmit(&mut self, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }

    fn handle_timeout(&mut self, _: Time) {
        self.deadline = None;
    }

    fn shutdown(&mut self, _: Time) {}

    fn connection_usage(&self) -> ConnectionUsage {
        ConnectionUsage {
            in_flight: 0,
            queued_bytes: 0,
        }
    }

    fn count((): &(), _: &MeteredConnection) {}

    fn ping(&mut self, _: Duration, _: Time) -> bool {
        false
    }

    fn sort((): ()) -> SortedEvent<()> {
        SortedEvent::Other(())
    }

    fn update_role((): &mut (), (): &()) {}
}

/// Receiver of events that ignores all of them.
struct NoOpDispatch;

impl Signal<FullEndpoint> for NoOpDispatch {
    fn changed(&self, _: &Arc<Shared<FullEndpoint>>, _: Option<Time>) {}
}

impl Dispatch<FullEndpoint> for NoOpDispatch {
    fn dispatch(&self, _: &Arc<Shared<FullEndpoint>>, _: u64, (): ()) {}
}
