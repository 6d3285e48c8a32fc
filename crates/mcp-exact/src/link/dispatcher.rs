//! Handler of the events of a server's connections: starts and cancels the tasks that answer requests.

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use mcp_exact_session as session;
use mcp_exact_transport::{RequestContext, ServerHandle, ServerHandler};
use session::ServerEvent;
use tokio::task::AbortHandle;

use super::listeners::Subscription;
use super::{PeerError, Reply, Request, RequestKey, RequestLink, lock_ignoring_poison};
use crate::background;
use crate::notification::Notification;
use crate::server::{Answer, Server, call_rule};

/// Request in flight, with the handles that are needed to cancel it.
struct RunningRequest {
    /// Handle of the connection that the request was received on.
    handle: ServerHandle,
    /// Handle that aborts the task of the handler.
    abort_handle: AbortHandle,
    /// Request whose cancellation signal is set on cancellation.
    request: Arc<Request>,
    /// True if the handler continues after a cancellation.
    is_cooperative: bool,
}

impl RunningRequest {
    /// Cancels the request: notifies a cooperative handler, and aborts the task of any other handler.
    fn cancel(self) {
        self.request.token().cancel();
        if !self.is_cooperative {
            self.abort_handle.abort();
        }
    }
}

/// Requests in flight, by key. Keys are unique within one endpoint only.
#[derive(Clone, Default)]
struct RunningRequests(Arc<Mutex<HashMap<RequestKey, Vec<RunningRequest>>>>);

impl RunningRequests {
    /// Adds a request in flight.
    fn insert(&self, key: RequestKey, running: RunningRequest) {
        lock_ignoring_poison(&self.0)
            .entry(key)
            .or_default()
            .push(running);
    }

    /// Removes the request of an endpoint and returns it; `None` if the request has ended.
    fn take(&self, handle: &ServerHandle, key: RequestKey) -> Option<RunningRequest> {
        let mut all = lock_ignoring_poison(&self.0);
        let same_key = all.get_mut(&key)?;
        let at = same_key
            .iter()
            .position(|running| running.handle.is_same(handle))?;
        let running = same_key.swap_remove(at);
        if same_key.is_empty() {
            all.remove(&key);
        }
        Some(running)
    }

    /// Removes all requests of an endpoint and returns them.
    fn take_all(&self, handle: &ServerHandle) -> Vec<RunningRequest> {
        let mut taken = Vec::new();
        lock_ignoring_poison(&self.0).retain(|_, same_key| {
            let of_handle = same_key.extract_if(.., |running| running.handle.is_same(handle));
            taken.extend(of_handle);
            !same_key.is_empty()
        });
        taken
    }
}

/// Calls a function that answers a request, and catches panics outside of the handler: in extractors, visibility rules,
/// layers, and the synchronous part of a handler closure. After a panic, returns the result of `convert` for the error to
/// reply with.
fn catch_panics<T>(answer: impl FnOnce() -> T, convert: impl FnOnce(Reply) -> T) -> T {
    std::panic::catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|panic| {
        let message = crate::server::panic_message(panic);
        tracing::error!(%message, "a request panicked");
        let message = "the handler failed; see the log of the server";
        convert(Reply::Error(PeerError::internal(message)))
    })
}

/// Handler of the events of all connections of a server.
pub(crate) struct Dispatcher {
    /// Server that answers the requests.
    server: Server,
    /// Requests in flight.
    running: RunningRequests,
}

impl Dispatcher {
    pub(crate) fn new(server: &Server) -> Arc<Self> {
        Arc::new(Self {
            server: server.clone(),
            running: RunningRequests::default(),
        })
    }

    /// Begins to answer a request, and spawns a task only if the handler waits, because handlers that never wait need no
    /// task.
    fn answer_or_spawn(
        &self,
        handle: &ServerHandle,
        incoming: session::IncomingRequest<RequestContext>,
    ) {
        let key = incoming.key;
        let request = Arc::new(Request::new(incoming));
        let link = RequestLink::new(handle, key);
        let begin = || {
            self.server
                .answer_request(Arc::clone(&request), link.clone())
        };
        let mut rest = match catch_panics(begin, Answer::Ready) {
            Answer::Ready(reply) => return link.send_reply(reply),
            Answer::Pending(rest) => rest,
        };
        let cooperative = self.server.is_cooperative(&request);
        let (running, done) = (self.running.clone(), handle.clone());
        // The task waits until it is registered, so that it cannot end before.
        let (known, is_known) = tokio::sync::oneshot::channel::<()>();
        let task = background::spawn(async move {
            let _ = is_known.await;
            let reply = poll_fn(|cx| catch_panics(|| rest.as_mut().poll(cx), Poll::Ready)).await;
            running.take(&done, key);
            link.send_reply(reply);
        });
        self.running.insert(
            key,
            RunningRequest {
                handle: handle.clone(),
                abort_handle: task.abort_handle(),
                request,
                is_cooperative: cooperative,
            },
        );
        let _ = known.send(());
    }
}

impl Dispatcher {
    /// Starts a subscription, limited to the resources and tasks that are visible to its sender.
    fn handle_subscription(
        &self,
        handle: &ServerHandle,
        key: RequestKey,
        mut filter: session::Filter,
        incoming: session::IncomingRequest<RequestContext>,
    ) {
        let request = Arc::new(Request::new(incoming));
        filter
            .uris
            .retain(|uri| call_rule(|| self.server.may_subscribe(&request, uri)));
        let tasks = filter.extension_members.get("taskIds");
        let tasks = tasks.and_then(|ids| ids.decode_as::<Vec<String>>().ok());
        let subscription = Subscription {
            key,
            request: Arc::clone(&request),
            tasks: Vec::new(),
        };
        let listeners = self.server.listeners();
        listeners.update(handle, |listener| listener.subscriptions.push(subscription));
        handle.acknowledge_part(key, filter);
        if let Some(ids) = tasks.filter(|ids| !ids.is_empty()) {
            let (server, link) = (self.server.clone(), RequestLink::new(handle, key));
            background::spawn(async move { server.send_task_states(ids, &request, &link).await });
        }
    }
}

impl ServerHandler for Dispatcher {
    fn handle(&self, handle: &ServerHandle, event: ServerEvent<RequestContext>) {
        let listeners = self.server.listeners();
        match event {
            ServerEvent::Request(incoming) => self.answer_or_spawn(handle, incoming),
            ServerEvent::Cancelled { key, .. } => {
                if let Some(running) = self.running.take(handle, key) {
                    running.cancel();
                } else {
                    listeners.update(handle, |listener| {
                        listener.subscriptions.retain(|one| one.key != key)
                    });
                }
            }
            ServerEvent::Negotiated(_) => {
                listeners.update(handle, |listener| listener.is_session = true)
            }
            ServerEvent::Subscribed {
                key,
                filter,
                request,
            } => self.handle_subscription(handle, key, filter, request),
            ServerEvent::Notification(notification) => {
                self.server.handle_notification(&Notification {
                    method: notification.method().to_owned(),
                    params: notification.params().cloned(),
                    revision: notification.revision(),
                    principal: notification.context().principal.clone(),
                });
            }
            ServerEvent::Repaired(repaired) => {
                let reports = self.server.repair_reports();
                reports.report(&repaired.method, repaired.repairs);
            }
            ServerEvent::Violation(violation) => {
                tracing::debug!(%violation, "the client broke a rule")
            }
            ServerEvent::Closed => {
                listeners.update(handle, |listener| {
                    listener.is_session = false;
                    listener.subscriptions.clear();
                });
                self.running
                    .take_all(handle)
                    .into_iter()
                    .for_each(RunningRequest::cancel);
            }
            _ => {}
        }
    }
}
