//! Endpoints of the HTTP server: callbacks to the service, and timers.
//!
//! A timer task runs only while an endpoint has a deadline, that is, while a request of the server waits for its
//! response.

use std::sync::{Arc, OnceLock, Weak};

use mcp_exact_session::{ServerEvent, Time};

use super::service::Inner;
use crate::clock;
use crate::endpoint::{
    Dispatch, Origin, Readers, RequestContext, ServerDispatch, ServerEndpoint, ServerHandler,
    Shared, Signal,
};

/// Creates the shared endpoint of a session, or of a request without a session.
pub(super) fn share(
    inner: &Inner,
    hooks: &Arc<Hooks>,
    endpoint: ServerEndpoint,
    session_id: Option<Arc<str>>,
) -> Arc<Shared<ServerEndpoint>> {
    if hooks.runtime.get().is_none()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        let _ = hooks.runtime.set(runtime);
    }
    let readers = Readers::with_limit(inner.options().stream_bytes);
    let dispatch = Arc::new(EndpointDispatch {
        application: ServerDispatch::new(Arc::clone(&hooks.handler)),
        inner: Weak::clone(&hooks.inner),
    });
    let signal = Arc::clone(hooks) as Arc<dyn Signal<ServerEndpoint>>;
    let origin = Origin::HttpSession(session_id);
    Shared::new(endpoint, readers, dispatch, signal, origin)
}

/// Handler of the application and driver notification, which all endpoints of a service share.
pub(super) struct Hooks {
    /// Handler of the application.
    handler: Arc<dyn ServerHandler>,
    /// State of the service.
    inner: Weak<Inner>,
    /// Runtime that serves the requests; needed when a handle is used in a thread outside of the runtime.
    runtime: OnceLock<tokio::runtime::Handle>,
}

impl Hooks {
    pub(super) fn new(handler: Arc<dyn ServerHandler>, inner: &Weak<Inner>) -> Arc<Self> {
        Arc::new(Self {
            handler,
            inner: Weak::clone(inner),
            runtime: OnceLock::new(),
        })
    }
}

/// Receiver of the events of one endpoint.
struct EndpointDispatch {
    /// Passes the events to the handler of the application.
    application: ServerDispatch,
    /// State of the service.
    inner: Weak<Inner>,
}

/// Handles the events of an endpoint before the application's handler.
impl Dispatch<ServerEndpoint> for EndpointDispatch {
    fn dispatch(
        &self,
        shared: &Arc<Shared<ServerEndpoint>>,
        epoch: u64,
        event: ServerEvent<RequestContext>,
    ) {
        if let ServerEvent::Subscribed { .. } = &event
            && let Some(inner) = self.inner.upgrade()
        {
            inner.add_listener(shared);
        }
        self.application.dispatch(shared, epoch, event);
    }
}

/// Calls an endpoint at its deadlines.
impl Signal<ServerEndpoint> for Hooks {
    fn changed(&self, shared: &Arc<Shared<ServerEndpoint>>, deadline: Option<Time>) {
        let Some(deadline) = deadline else {
            return;
        };
        let mut state = shared.lock();
        // A task that waits for a later moment is left to find its deadline gone.
        if state
            .role
            .armed_deadline
            .is_some_and(|armed_deadline| armed_deadline <= deadline)
        {
            return;
        }
        let current = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = current.or_else(|| self.runtime.get().cloned()) else {
            return;
        };
        state.role.armed_deadline = Some(deadline);
        runtime.spawn(wait(Arc::downgrade(shared), deadline));
    }
}

/// Waits until `deadline`, and then handles the expired timeouts of the endpoint.
async fn wait(shared: Weak<Shared<ServerEndpoint>>, deadline: Time) {
    if let Some(instant) = clock::instant(deadline) {
        tokio::time::sleep_until(instant.into()).await;
    }
    let Some(shared) = shared.upgrade() else {
        return;
    };
    shared.call(|state, now| {
        if state.role.armed_deadline == Some(deadline) {
            state.role.armed_deadline = None;
        }
        state.endpoint.handle_timeout(now);
    });
}
