//! Clients of connections that carry all messages in order.
//!
//! A task drives the connection; the handle of the client can be used after the task has ended.

use std::future::poll_fn;
use std::sync::Arc;

use mcp_exact_session::{Binding, CachedNegotiation, ClientEndpoint, ClientSettings};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::clock;
use crate::duplex::{ConnectionOptions, Driver, Wake};
use crate::endpoint::{
    ClientConnection, ClientDispatch, ClientHandle, ClientHandler, ConnectError, DisconnectGuard,
    EventFilter, Origin, Shared,
};
use crate::observe;
use crate::transport::Transport;

/// Connects a client over a transport.
///
/// The driver runs as a task of the current tokio runtime until the handle is [closed](ClientHandle::close) or the
/// connection ends. `prior` is the result of an earlier negotiation with the same server. [`ClientHandle::ready`]
/// returns an error if client and server have no common revision.
pub fn connect(
    settings: Arc<ClientSettings>,
    prior: Option<&CachedNegotiation>,
    handler: Arc<dyn ClientHandler>,
    transport: impl Transport,
    options: ConnectionOptions,
) -> (ClientHandle, JoinHandle<()>) {
    let endpoint = ClientEndpoint::new(settings, Binding::Duplex, prior, clock::now());
    let notify = Arc::new(Notify::new());
    let name = transport.name();
    let shared = new_client_endpoint(endpoint, handler, &notify, name, Box::new(|_, _| false));
    let mut driver = Driver::new(Arc::clone(&shared), transport, (), notify, options);
    let handle = ClientHandle::of(&shared);
    let end = DisconnectGuard(Arc::clone(&shared));
    let task = tokio::spawn(async move {
        let _end = end;
        let serving = poll_fn(|cx| driver.poll(cx));
        let result = observe::connection(name, None, serving).await;
        let reason = match result {
            Ok(()) => ConnectError::Transport("the server closed the connection".to_owned()),
            Err(error) => ConnectError::Transport(format!("the connection broke: {error}")),
        };
        drop(driver);
        shared.lock().role.fail(reason);
    });
    (handle, task)
}

/// Creates the shared endpoint of a client connection and its metrics entry; the filter `internal` receives every event
/// before the handler.
pub(crate) fn new_client_endpoint(
    endpoint: ClientEndpoint,
    handler: Arc<dyn ClientHandler>,
    notify: &Arc<Notify>,
    transport: &'static str,
    internal: EventFilter,
) -> Arc<Shared<ClientEndpoint>> {
    let signal = Arc::new(Wake(Arc::clone(notify)));
    let dispatch = Arc::new(ClientDispatch { handler, internal });
    Shared::new(
        endpoint,
        ClientConnection::default(),
        dispatch,
        signal,
        Origin::Transport(transport),
    )
}
