//! Handler of the events of a connection: starts and cancels the tasks that answer requests.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use mcp_exact_session as session;
use mcp_exact_transport::{
    ConnectionHandler, RequestContext, RequestTask, RequestTasks, ServerHandle, ServerHandler,
};
use session::ServerEvent;

use super::listeners::{Listener, Subscription};
use super::{Reply, Request, RequestLink};
use crate::background;
use crate::background::BoxFuture;
use crate::notification::Notification;
use crate::panics::catch_panic;
use crate::protocol::{PeerError, RequestKey};
use crate::server::{Answer, Server, call_rule};

/// Request in flight, as its cancellation needs it.
struct RunningRequest {
    /// Request whose cancellation signal is set on cancellation.
    request: Arc<Request>,
    /// True if the handler continues after a cancellation.
    is_cooperative: bool,
}

/// Cancels a request: notifies a cooperative handler, and aborts the task of any other handler.
fn cancel(running: RequestTask<RunningRequest>) {
    let RunningRequest {
        request,
        is_cooperative,
    } = running.data;
    request.token().cancel();
    if !is_cooperative {
        running.abort.abort();
    }
}

/// Calls a function that answers a request, and catches panics outside of the handler: in extractors, visibility rules,
/// layers, and the synchronous part of a handler closure. After a panic, returns the result of `convert` for the error to
/// reply with.
fn catch_panics<T>(answer: impl FnOnce() -> T, convert: impl FnOnce(Reply) -> T) -> T {
    catch_panic(answer).unwrap_or_else(|message| {
        tracing::error!(%message, "a request panicked");
        let message = "the handler failed; see the log of the server";
        convert(Reply::Error(PeerError::internal(message)))
    })
}

impl ServerHandler for Server {
    fn connect(self: Arc<Self>, _: &ServerHandle) -> Arc<dyn ConnectionHandler> {
        Arc::new(Dispatcher {
            server: Server::clone(&self),
            running: RequestTasks::default(),
            listens: AtomicBool::new(false),
        })
    }
}

/// Handler of the events of a connection.
struct Dispatcher {
    /// Server that answers the requests.
    server: Server,
    /// Tasks of the requests in flight.
    running: RequestTasks<RunningRequest>,
    /// True from the first session or subscription on: [`Listeners`](super::Listeners) knows the connection.
    listens: AtomicBool,
}

impl Dispatcher {
    /// Changes the entry of the connection among those that are notified of changes.
    fn update_listener(&self, handle: &ServerHandle, change: impl FnOnce(&mut Listener)) {
        self.listens.store(true, Ordering::Relaxed);
        self.server.listeners().update(handle, change);
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
        let (mut rest, is_cooperative) = match catch_panics(begin, Answer::Ready) {
            Answer::Ready(reply) => return link.send_reply(reply),
            Answer::Pending {
                rest,
                is_cooperative,
            } => (rest, is_cooperative),
        };
        let running = RunningRequest {
            request,
            is_cooperative,
        };
        // Boxed, so that a program contains the code of the task only once.
        let answer: BoxFuture<()> = Box::pin(async move {
            let reply = poll_fn(|cx| catch_panics(|| rest.as_mut().poll(cx), Poll::Ready)).await;
            link.send_reply(reply);
        });
        self.running.spawn(key, running, answer);
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
        self.update_listener(handle, |listener| listener.subscriptions.push(subscription));
        handle.acknowledge_part(key, filter);
        if let Some(ids) = tasks.filter(|ids| !ids.is_empty()) {
            let (server, link) = (self.server.clone(), RequestLink::new(handle, key));
            background::spawn(async move { server.send_task_states(ids, &request, &link).await });
        }
    }
}

impl ConnectionHandler for Dispatcher {
    fn handle(&self, handle: &ServerHandle, event: ServerEvent<RequestContext>) {
        match event {
            ServerEvent::Request(incoming) => self.answer_or_spawn(handle, incoming),
            ServerEvent::Cancelled { key, .. } => {
                if let Some(running) = self.running.take(key) {
                    cancel(running);
                } else if self.listens.load(Ordering::Relaxed) {
                    self.update_listener(handle, |listener| {
                        listener.subscriptions.retain(|one| one.key != key)
                    });
                }
            }
            ServerEvent::Negotiated(_) => {
                self.update_listener(handle, |listener| listener.is_session = true)
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
                if self.listens.load(Ordering::Relaxed) {
                    self.update_listener(handle, |listener| {
                        listener.is_session = false;
                        listener.subscriptions.clear();
                    });
                }
                self.running.take_all().into_iter().for_each(cancel);
            }
            _ => {}
        }
    }
}
