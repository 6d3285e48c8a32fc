//! Endpoints of the HTTP server: what they tell the service, and their timers.
//!
//! A timer runs as a task only while an endpoint has a deadline, which is while a request of the server waits.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use mcp_exact_session::{ServerEvent, Time};

use super::service::Inner;
use crate::clock;
use crate::endpoint::{
    Dispatch, Readers, RequestContext, ServerDispatch, ServerEndpoint, Shared, Signal,
};

/// Creates the shared endpoint of a session or of a request.
pub(super) fn share(
    inner: &Arc<Inner>,
    endpoint: ServerEndpoint,
    session_id: Option<Arc<str>>,
) -> Arc<Shared<ServerEndpoint>> {
    let timer = Arc::new_cyclic(|me| Timer {
        me: Weak::clone(me),
        shared: OnceLock::new(),
        armed: Mutex::default(),
    });
    let dispatch = Arc::new(HttpDispatch {
        program: ServerDispatch(Arc::clone(inner.handler())),
        inner: Arc::downgrade(inner),
    });
    let readers = Readers::with_limit(inner.options().stream_bytes);
    let signal = Arc::clone(&timer) as Arc<dyn Signal>;
    let shared = Shared::new(endpoint, readers, dispatch, signal, session_id);
    let _ = timer.shared.set(Arc::downgrade(&shared));
    shared
}

/// Sees the events of an endpoint before the program's handler.
struct HttpDispatch {
    program: ServerDispatch,
    inner: Weak<Inner>,
}

impl Dispatch<ServerEndpoint> for HttpDispatch {
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
        self.program.dispatch(shared, epoch, event);
    }
}

/// Calls an endpoint at its deadlines.
struct Timer {
    me: Weak<Self>,
    shared: OnceLock<Weak<Shared<ServerEndpoint>>>,
    /// What the task waits for, while there is one.
    armed: Mutex<Option<Time>>,
}

impl Signal for Timer {
    fn changed(&self, deadline: Option<Time>) {
        let (Some(deadline), Some(shared)) = (deadline, self.shared.get()) else {
            return;
        };
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        // A task that waits for a later moment is left to find its deadline gone.
        if armed.is_some_and(|armed| armed <= deadline) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        *armed = Some(deadline);
        runtime.spawn(wait(Weak::clone(shared), Weak::clone(&self.me), deadline));
    }
}

async fn wait(shared: Weak<Shared<ServerEndpoint>>, timer: Weak<Timer>, deadline: Time) {
    if let Some(instant) = clock::instant(deadline) {
        tokio::time::sleep_until(instant.into()).await;
    }
    let (Some(shared), Some(timer)) = (shared.upgrade(), timer.upgrade()) else {
        return;
    };
    let mut armed = timer.armed.lock().unwrap_or_else(PoisonError::into_inner);
    if *armed == Some(deadline) {
        *armed = None;
    }
    drop(armed);
    shared.call(|state, now| state.endpoint.handle_timeout(now));
}
