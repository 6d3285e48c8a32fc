//! State of a connection: open, lost or closed, and who waits for a change of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_exact_transport::ClientHandle;

use super::{ClientLink, LinkState, PRESENT};
use crate::client::error::{ClientError, CloseReason};
use crate::client::event::ConnectionEvent;
use crate::protocol::{Revision, SendError};

/// Value of [`ClientLink::absence`]: the last request did not reach the server.
const UNREACHABLE: u8 = 1;
/// Value of [`ClientLink::absence`]: the server has ended the session, and the next one is not negotiated.
const WITHOUT_SESSION: u8 = 2;

/// Maximum time to wait for the reason of an end, such as the exit status of the server's process.
const MAX_REASON_WAIT: Duration = Duration::from_secs(1);

impl ClientLink {
    /// Returns true once the connection has ended for good; false while attempts to connect again are made.
    pub(in crate::client) fn is_closed(&self) -> bool {
        match &*self.state.borrow() {
            LinkState::Closed(_) => true,
            LinkState::Reconnecting(_) => false,
            LinkState::Open => self.dialer.policy.is_none() && self.handle().is_closed(),
        }
    }

    /// Returns true if the latest connection is open.
    pub(in crate::client) fn is_open(&self) -> bool {
        matches!(&*self.state.borrow(), LinkState::Open) && !self.handle().is_closed()
    }

    /// Returns true while attempts to connect again are made.
    pub(in crate::client) fn is_reconnecting(&self) -> bool {
        matches!(&*self.state.borrow(), LinkState::Reconnecting(_))
    }

    /// Returns true if the client connects again after the loss of its connection.
    pub(in crate::client) fn reconnects(&self) -> bool {
        self.dialer.policy.is_some()
    }

    /// Returns the reason why the connection has ended for good; `None` before.
    pub(in crate::client) fn close_reason(&self) -> Option<CloseReason> {
        match &*self.state.borrow() {
            LinkState::Closed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Waits until the connection has ended for good and nothing is left of it; the future does not keep the connection open.
    pub(in crate::client) fn closed(&self) -> impl Future<Output = CloseReason> + Send + use<> {
        let mut state = self.state.subscribe();
        let remains = self.dialer.remains.clone();
        async move {
            let closed = state.wait_for(|state| matches!(state, LinkState::Closed(_)));
            let reason = match closed.await.as_deref() {
                Ok(LinkState::Closed(reason)) => reason.clone(),
                // The last clone of the client was dropped.
                _ => CloseReason::ByClient,
            };
            remains.gone().await;
            reason
        }
    }

    /// Returns the reason why a request has lost its connection, `handle`, or why it cannot be sent. Waits a short time for what is not
    /// known yet, such as the exit status of the server's process.
    pub(in crate::client) async fn loss_of(&self, handle: &ClientHandle) -> CloseReason {
        if let LinkState::Closed(reason) = &*self.state.borrow() {
            return reason.clone();
        }
        // The state may be that of a later connection.
        if handle.is_closed() {
            let ended = tokio::time::timeout(MAX_REASON_WAIT, handle.closed()).await;
            if let Ok(ended) = ended {
                return self.close_reason_of(&ended);
            }
        }
        if let LinkState::Reconnecting(reason) = &*self.state.borrow() {
            return reason.clone();
        }
        let known = handle.last_error();
        CloseReason::Lost(known.unwrap_or_else(|| "the server ended the connection".to_owned()))
    }

    /// Waits until the connection is open, if the client connects again.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if the connection has ended for good.
    pub(in crate::client) async fn wait_until_connected(&self) -> Result<(), ClientError> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                LinkState::Closed(reason) => {
                    return Err(ClientError::disconnected(reason.clone(), false));
                }
                LinkState::Open if !self.reconnects() || !self.handle().is_closed() => {
                    return Ok(());
                }
                LinkState::Open | LinkState::Reconnecting(_) => {}
            }
            // The sender is a field of this value.
            let _ = state.changed().await;
        }
    }

    /// Returns the delay before a request is sent again that did not reach the server, although the connection is open, as over
    /// HTTP; `None` if the policy allows no other attempt.
    pub(in crate::client) fn repeat_delay(&self, failures: u32) -> Option<Duration> {
        self.dialer.policy.as_ref()?.delay_after(failures)
    }

    /// Records whether the server of an open connection can be reached, and reports a change to the application.
    pub(in crate::client) fn set_unreachable(&self, reason: Option<&CloseReason>) {
        let (before, after) = match reason {
            Some(_) => (PRESENT, UNREACHABLE),
            None => (UNREACHABLE, PRESENT),
        };
        let is_open = matches!(&*self.state.borrow(), LinkState::Open);
        let order = Ordering::AcqRel;
        let is_change = |link: &Self| {
            let changed = link
                .absence
                .compare_exchange(before, after, order, Ordering::Acquire);
            changed.is_ok()
        };
        if !is_open || !is_change(self) {
            return;
        }
        let event = match reason {
            Some(reason) => ConnectionEvent::Lost(reason.clone()),
            None => ConnectionEvent::Restored {
                revision: self.revision(),
            },
        };
        self.events.report_connection(event);
        if reason.is_none() {
            // Subscriptions that have ended meanwhile begin again without their pause.
            self.state.send_modify(|_| {});
        }
    }

    /// Returns true if the last request did not reach the server.
    pub(in crate::client) fn is_unreachable(&self) -> bool {
        self.absence.load(Ordering::Relaxed) == UNREACHABLE
    }

    /// Reports that the server has ended the session, unless the loss is reported.
    pub(super) fn report_session_end(&self) {
        if self.absence.swap(WITHOUT_SESSION, Ordering::AcqRel) == PRESENT {
            let reason = "the server does not know the session any more".to_owned();
            self.events
                .report_connection(ConnectionEvent::Lost(CloseReason::Lost(reason)));
        }
    }

    /// Reports that another session has replaced the one before.
    pub(super) fn report_next_session(&self, revision: Revision) {
        self.absence.store(PRESENT, Ordering::Release);
        self.events
            .report_connection(ConnectionEvent::Restored { revision });
    }

    /// Converts the error of a message that was not sent; for a connection that is gone, with the reason as far as it is known.
    pub(in crate::client) fn send_error(&self, error: SendError) -> ClientError {
        match (error, &*self.state.borrow()) {
            (SendError::Closed, LinkState::Reconnecting(reason) | LinkState::Closed(reason)) => {
                ClientError::disconnected(reason.clone(), false)
            }
            (error, _) => error.into(),
        }
    }

    /// Waits for the next connection in place of a lost one, and until the application has been told of it.
    pub(in crate::client) fn next_connection(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut state, is_announced) = (self.state.subscribe(), Arc::clone(&self.is_announced));
        async move {
            let is_there = |state: &LinkState| match state {
                LinkState::Reconnecting(_) => false,
                LinkState::Open => is_announced.load(Ordering::Acquire),
                LinkState::Closed(_) => true,
            };
            let _ = state.changed().await;
            let _ = state.wait_for(is_there).await;
        }
    }
}
