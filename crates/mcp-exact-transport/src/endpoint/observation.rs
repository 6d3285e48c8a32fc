//! Observation of the messages of a shared endpoint as operations: spans and durations.
//!
//! Without the feature `operations`, nothing is observed.

#[cfg(feature = "operations")]
use std::sync::Arc;

#[cfg(feature = "operations")]
use super::Origin;
use super::{Endpoint, Shared};
#[cfg(feature = "operations")]
use crate::operations::{Network, Operations, ReceivedOperations};

/// Operations of a message that is received; `None` if nobody observes them.
#[cfg(feature = "operations")]
pub(crate) type Observed = Option<ReceivedOperations>;
/// Operations of a message that is received, which only the feature `operations` observes.
#[cfg(not(feature = "operations"))]
#[derive(Debug, Default)]
pub(crate) struct Observed {}

/// Begins to observe an endpoint; returns `None` for a request without a session that nobody observes.
#[cfg(feature = "operations")]
pub(super) fn begin_operations<E: Endpoint>(
    endpoint: &mut E,
    origin: &Origin,
) -> Option<Arc<Operations>> {
    let (network, session_id) = match origin {
        Origin::HttpSession(None) if !Operations::are_wanted() => return None,
        Origin::HttpSession(id) => (Network::of_transport("http"), id.as_deref()),
        Origin::HttpServer(host, port) => (Network::of_server(host, *port), None),
        Origin::Transport(name) => (Network::of_transport(name), None),
    };
    let operations = Operations::new(E::SIDE, network, session_id, endpoint.revision());
    endpoint.set_observer(Arc::clone(&operations));
    Some(operations)
}

impl<E: Endpoint> Shared<E> {
    /// Returns the operations of the connection, if they are observed.
    #[cfg(feature = "operations")]
    pub(crate) fn operations(&self) -> Option<&Arc<Operations>> {
        self.operations.as_ref()
    }

    /// Begins the operations of a message that the endpoint will receive.
    pub(crate) fn observe(&self, frame: &[u8], context: &E::Context) -> Observed {
        #[cfg(feature = "operations")]
        {
            let operations = self.operations.as_ref();
            let operations = operations.filter(|operations| operations.is_active())?;
            // A message that full queues reject is received again.
            let is_accepted = self.lock().endpoint.wants_input();
            is_accepted.then(|| operations.handle_received(frame, E::request_context(context)))
        }
        #[cfg(not(feature = "operations"))]
        {
            let _ = (frame, context);
            Observed {}
        }
    }
}
