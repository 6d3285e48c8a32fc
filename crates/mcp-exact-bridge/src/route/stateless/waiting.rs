//! Calls that wait for their client's answers, and the `requestState` values that identify them.
//!
//! A `requestState` is accepted once, for the same call of the same principal, until it expires.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{IncomingRequest, Lifecycle, PeerError, Principal, RequestKey};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::connections::{Connections, Lease};
use crate::around::limits::Holder;
use crate::around::options::Options;
use crate::around::retry::end_of;
use crate::route::relay::ProgressReceiver;
use crate::route::translate::Translation;
use crate::route::undeclared::UndeclaredCapabilities;
use crate::servers::connection::{Connection, PendingServerRequest};
use crate::servers::users::Caller;

/// Prefix of the `requestState` of every waiting call.
pub(super) const STATE_PREFIX: &str = "mcp-exact-bridge:";

/// Call during which the server may send requests to the client.
pub(super) struct RunningCall {
    // Fields are dropped in order, so the request is cancelled before the connection is returned.
    /// Upstream request that relays the call.
    pub(super) pending: PendingRequest,
    /// Channel of the requests that the server sends during the call.
    pub(super) server_requests: mpsc::UnboundedReceiver<PendingServerRequest>,
    /// Number of server requests that have received a key in `inputRequests`.
    pub(super) asked: usize,
    /// Undeclared capabilities that refused requests of the server needed during the call.
    pub(super) undeclared: Arc<UndeclaredCapabilities>,
    /// Client request that receives the progress of the call.
    pub(super) progress: ProgressReceiver,
    /// Conversion of the call's messages, with the losses so far.
    pub(super) translation: Translation,
    /// Connection on which the call runs.
    pub(super) connection: Arc<Connection>,
    /// Exclusive use of the connection.
    pub(super) lease: Lease,
    /// Permits of a call that has waited at least once; calls of principals count towards the share of their principal alone.
    /// The permits are returned only when the call ends, so that the server of the call can send further input requests.
    pub(super) waiting_permits: Option<Vec<OwnedSemaphorePermit>>,
}

/// Task that ends a waiting call when its time limit expires or the session with the server ends. Dropping the value
/// cancels the task.
pub(super) struct Expiry(AbortHandle);

impl Drop for Expiry {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Call that waits for the client's answers.
pub(super) struct WaitingCall {
    pub(super) call: RunningCall,
    /// Requests of the server to the client, in the order of their keys in `inputRequests`.
    pub(super) server_requests: Vec<PendingServerRequest>,
    /// Principal of the client.
    owner: Option<String>,
    /// Caller with whose credentials the call was sent, if each has their own.
    caller: Option<Caller>,
    /// Endpoint and request of the client.
    request: (usize, RequestKey),
    /// True if the client has a session; the retry of a client without one is another request, of any endpoint.
    has_session: bool,
    /// Method of the call, for the log.
    method: String,
    /// Principal, method and params of the call, which a retry has, too.
    binding: Vec<u8>,
    /// `requestState` that identifies the call.
    state: String,
    /// Time at which the call expires.
    until: Instant,
    /// Task that ends the call when it expires.
    pub(super) expiry: Expiry,
}

/// Calls that wait for their client's answers.
pub(super) struct WaitingCalls {
    /// Calls by `requestState`.
    all: Arc<Mutex<ByState>>,
    /// Time limit for the response of the client to a request of the server.
    answer_within: Duration,
    /// Maximum number of calls.
    most: usize,
    /// Connections of which the calls hold a share.
    connections: Arc<Connections>,
}

/// Calls by `requestState`.
type ByState = HashMap<String, WaitingCall>;

impl WaitingCalls {
    pub(super) fn new(options: &Options, connections: &Arc<Connections>) -> Self {
        Self {
            all: Arc::default(),
            answer_within: options.answer_within,
            most: options.waiting_calls,
            connections: Arc::clone(connections),
        }
    }

    /// Returns the number of calls.
    pub(super) fn len(&self) -> usize {
        self.all.lock().len()
    }

    /// Stores a call until its client has answered; returns the `requestState` that identifies the call.
    pub(super) fn store(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        mut call: RunningCall,
        server_requests: Vec<PendingServerRequest>,
    ) -> Result<String, PeerError> {
        let too_many = || {
            PeerError::internal("too many calls wait for answers of their clients; try again later")
        };
        let principal = request.context().principal.as_ref();
        if call.waiting_permits.is_none() {
            let permits = self.connections.waiting_permits(&Holder::of(request));
            call.waiting_permits = Some(permits.ok_or_else(too_many)?);
        }
        let (state, until) = (random_state()?, end_of(Instant::now(), self.answer_within));
        let session_end = call.connection.session_end();
        let mut all = self.all.lock();
        if all.len() >= self.most {
            return Err(too_many());
        }
        let waiting = WaitingCall {
            call,
            server_requests,
            owner: principal.map(|Principal(name)| name.clone()),
            caller: self.connections.backend().caller(request),
            request: (client.number(), request.key),
            has_session: request.spec().lifecycle() == Lifecycle::Initialize,
            method: request.method().to_owned(),
            binding: request.retry_binding(),
            expiry: self.expiry(state.clone(), until, session_end),
            state: state.clone(),
            until,
        };
        all.insert(state.clone(), waiting);
        Ok(state)
    }

    /// Starts the task that ends a waiting call when its time limit expires or when `session_end` completes.
    fn expiry(
        &self,
        state: String,
        until: Instant,
        session_end: impl Future<Output = ()> + Send + 'static,
    ) -> Expiry {
        let all = Arc::downgrade(&self.all);
        let take = move || all.upgrade().and_then(|all| all.lock().remove(&state));
        let expiring = tokio::spawn(async move {
            // A call that a retry has removed when the session ends can be stored again until it expires.
            if timeout_at(until, session_end).await.is_ok()
                && let Some(WaitingCall { method, .. }) = take()
            {
                tracing::info!(method, "a call has ended: its connection was lost");
                return;
            }
            tokio::time::sleep_until(until).await;
            if let Some(WaitingCall { method, .. }) = take() {
                tracing::info!(
                    method,
                    "a call has ended: its client gave no answer in time"
                );
            }
        });
        Expiry(expiring.abort_handle())
    }

    /// Ends the waiting calls of a client: the call of the `request` that was cancelled or whose input requests were not
    /// sent, or all calls of a disconnected client with a session if `request` is `None`.
    pub(super) fn end(&self, client: &ServerHandle, request: Option<RequestKey>) {
        let ended: Vec<WaitingCall> = {
            let mut all = self.all.lock();
            let is_ended = |_: &String, waiting: &mut WaitingCall| {
                let (endpoint, key) = waiting.request;
                let is_named = match request {
                    Some(request) => request == key,
                    None => waiting.has_session,
                };
                endpoint == client.number() && is_named
            };
            all.extract_if(is_ended)
                .map(|(_, waiting)| waiting)
                .collect()
        };
        if !ended.is_empty() {
            // Dropping a call acquires locks of endpoints, which the caller may hold.
            tokio::spawn(async move { drop(ended) });
        }
    }

    /// Returns true if this `requestState` identifies a waiting call.
    pub(super) fn is_stored(&self, state: &str) -> bool {
        self.all.lock().contains_key(state)
    }

    /// Returns true if this `requestState` identifies a waiting call of this principal.
    pub(super) fn is_waiting(&self, state: &str, principal: Option<&str>) -> bool {
        let all = self.all.lock();
        let waiting = all.get(state);
        waiting.is_some_and(|waiting| waiting.owner.as_deref() == principal)
    }

    /// Stores a call again under the same `requestState`.
    pub(super) fn store_again(&self, waiting: WaitingCall) {
        let mut all = self.all.lock();
        // The lock is held, so the task that ends the call at this time has not run yet.
        if Instant::now() < waiting.until {
            all.insert(waiting.state.clone(), waiting);
        } else {
            drop(all);
            drop(waiting);
        }
    }

    /// Removes and returns the call that a retry continues. Method, params and principal of the retry must equal the
    /// method, params and principal of the call (2026-07-28, `basic/patterns/mrtr`), and the scopes of their tokens where the call was
    /// sent with credentials of the user.
    pub(super) fn take(
        &self,
        state: &str,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<WaitingCall, PeerError> {
        let binding = request.retry_binding();
        let caller = self.connections.backend().caller(request);
        let mut all = self.all.lock();
        let waiting = all.get(state);
        let is_its =
            waiting.is_some_and(|waiting| waiting.binding == binding && waiting.caller == caller);
        let taken = is_its.then(|| all.remove(state)).flatten();
        taken.ok_or_else(unknown_state_error)
    }
}

/// Returns the error for a `requestState` that identifies no waiting call of the client.
pub(super) fn unknown_state_error() -> PeerError {
    PeerError::invalid_params(
        "`requestState` belongs to no call that waits: it has expired, was used, or is of another call; \
         begin the call anew",
    )
}

/// Returns an unguessable `requestState`.
fn random_state() -> Result<String, PeerError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| PeerError::internal("the system gave no random numbers"))?;
    Ok(format!("{STATE_PREFIX}{:032x}", u128::from_be_bytes(bytes)))
}
