//! Calls whose question waits for their client, and the states that find them again.
//!
//! A state works once, for the same call of the same principal, until it expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_exact_session::{IncomingRequest, JsonObject, PeerError, Principal};
use mcp_exact_transport::{PendingRequest, RequestContext};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout_at};

use super::Stateless;
use super::connections::{Lease, Owner};
use crate::relay::ProgressReceiver;
use crate::translate::Way;
use crate::upstream::{Connection, Question};

/// Begins every state of a call that waits here.
pub(super) const STATE_PREFIX: &str = "mcp-exact-bridge:";

/// Call of a server that may ask something in the middle of it.
pub(super) struct RunningCall {
    // The connection is given back after the request was cancelled: fields are dropped in order.
    pub(super) pending: PendingRequest,
    pub(super) questions: mpsc::UnboundedReceiver<Question>,
    pub(super) progress: ProgressReceiver,
    /// Conversion of the call, with its losses until now.
    pub(super) way: Way,
    pub(super) connection: Arc<Connection>,
    pub(super) lease: Lease,
}

/// Call whose question waits for the client.
pub(super) struct WaitingCall {
    pub(super) call: RunningCall,
    /// Questions to the client, in the order of the names.
    pub(super) asked: Vec<Question>,
    owner: Option<String>,
    method: String,
    /// Params of the call without the members that a retry changes.
    params: serde_json::Value,
    /// State that finds the call again.
    state: String,
    until: Instant,
    /// Place among the waiting calls of clients without a principal; the others hold connections of their share.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// Calls whose question waits for their client, by state.
pub(super) type WaitingCalls = HashMap<String, WaitingCall>;

pub(super) fn locked(calls: &Mutex<WaitingCalls>) -> MutexGuard<'_, WaitingCalls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stateless {
    /// Keeps a call until its client has answered; returns the state that finds it again.
    pub(super) fn keep(
        &self,
        request: &IncomingRequest<RequestContext>,
        call: RunningCall,
        asked: Vec<Question>,
    ) -> Result<String, PeerError> {
        let too_many = || {
            PeerError::internal("too many calls wait for answers of their clients; try again later")
        };
        let principal = request.context().principal.as_ref();
        let place = match principal {
            Some(_) => None,
            None => Some(self.connections.waiting_place().ok_or_else(too_many)?),
        };
        let (state, until) = (random_state()?, Instant::now() + self.answer_within);
        let session_end = call.connection.session_end();
        let waiting = WaitingCall {
            call,
            asked,
            owner: principal.map(|Principal(name)| name.clone()),
            method: request.method().to_owned(),
            params: bound_params(request),
            state: state.clone(),
            until,
            place,
        };
        {
            let mut all = locked(&self.waiting);
            if all.len() >= self.most_waiting {
                return Err(too_many());
            }
            all.insert(state.clone(), waiting);
        }
        let (all, found) = (Arc::downgrade(&self.waiting), state.clone());
        let take = move || all.upgrade().and_then(|all| locked(&all).remove(&found));
        tokio::spawn(async move {
            // A call that is not here at the end of the session can be put back until it expires.
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
        Ok(state)
    }

    /// Lets a call wait on, for the same state.
    pub(super) fn put_back(&self, waiting: WaitingCall) {
        let mut all = locked(&self.waiting);
        // Under the lock: the task that ends it at this time has not been here.
        if Instant::now() < waiting.until {
            all.insert(waiting.state.clone(), waiting);
        } else {
            drop(all);
            drop(waiting);
        }
    }

    /// Takes the call that a retry continues. It has to be the same call of the same principal (2026-07-28,
    /// `basic/patterns/mrtr`).
    pub(super) fn take_waiting(
        &self,
        state: &str,
        owner: &Owner,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<WaitingCall, PeerError> {
        let params = bound_params(request);
        let mut all = locked(&self.waiting);
        let is_its = all.get(state).is_some_and(|waiting| {
            waiting.owner == owner.principal
                && waiting.method == request.method()
                && waiting.params == params
        });
        let taken = is_its.then(|| all.remove(state)).flatten();
        taken.ok_or_else(|| {
            PeerError::invalid_params(
                "`requestState` belongs to no call that waits: it has expired, was used, or is of another call; \
                 begin the call anew",
            )
        })
    }
}

/// Returns an unguessable state.
fn random_state() -> Result<String, PeerError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| PeerError::internal("the system gave no random numbers"))?;
    Ok(format!("{STATE_PREFIX}{:032x}", u128::from_be_bytes(bytes)))
}

/// Returns the params of a call without the members that a retry changes, as a value: a retry may spell them in another way.
pub(super) fn bound_params(request: &IncomingRequest<RequestContext>) -> serde_json::Value {
    let text = request.params().map_or("{}", JsonObject::text);
    let mut params: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        for name in ["_meta", "inputResponses", "requestState"] {
            params.remove(name);
        }
    }
    params
}
