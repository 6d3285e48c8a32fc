//! Calls whose question waits for their client, and the states that find them again.
//!
//! A state works once, for the same call of the same principal, until it expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_exact_session::{IncomingRequest, JsonObject, PeerError};
use mcp_exact_transport::{PendingRequest, RequestContext};
use tokio::sync::mpsc;

use super::Stateless;
use super::connections::{Lease, Owner};
use crate::translate::Way;
use crate::upstream::Question;

/// Begins every state of a call that waits here.
pub(super) const STATE_PREFIX: &str = "mcp-exact-bridge:";

/// Call whose question waits for the client.
pub(super) struct WaitingCall {
    pub(super) lease: Lease,
    pub(super) pending: PendingRequest,
    pub(super) questions: mpsc::UnboundedReceiver<Question>,
    /// Questions to the client, in the order of the names.
    pub(super) asked: Vec<Question>,
    /// Losses until now are on it.
    pub(super) way: Way,
    pub(super) owner: Option<String>,
    pub(super) method: String,
    /// Params of the call without the members that a retry changes.
    pub(super) params: serde_json::Value,
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
        call: WaitingCall,
    ) -> Result<String, PeerError> {
        let state = random_state()?;
        {
            let mut all = locked(&self.waiting);
            if all.len() >= self.most_waiting {
                return Err(PeerError::internal(
                    "too many calls wait for answers of their clients; try again later",
                ));
            }
            all.insert(state.clone(), call);
        }
        let (all, found, within) = (
            Arc::downgrade(&self.waiting),
            state.clone(),
            self.answer_within,
        );
        let method = request.method().to_owned();
        tokio::spawn(async move {
            tokio::time::sleep(within).await;
            let expired = all.upgrade().and_then(|all| locked(&all).remove(&found));
            if expired.is_some() {
                tracing::info!(
                    method,
                    "a call has ended: its client gave no answer in time"
                );
            }
        });
        Ok(state)
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
