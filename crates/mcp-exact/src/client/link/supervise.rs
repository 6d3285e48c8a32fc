//! Supervision of a connection: notices its end, and connects again if the application has set a policy.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::{Lifecycle, Outcome};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use transport::{ClientHandle, ConnectError};

use super::dial::Opened;
use super::remains::{Remains, Remnant};
use super::{ClientLink, LinkState, PRESENT};
use crate::client::error::{ClientError, CloseReason};
use crate::client::event::ConnectionEvent;
use crate::client::reconnect::Reconnect;
use crate::protocol::{lifecycle_of, method};

/// Number of checks without an answer after which a connection ends, even if other requests wait for an answer: a server may do
/// one thing at a time.
const MAX_SILENT_CHECKS: usize = 6;
/// Time for the answer to a request that finds out whether an HTTP server can be reached, if the policy has no time for checks.
const MAX_ASK_WAIT: Duration = Duration::from_secs(10);
/// Reason of the end of a connection that a check has ended.
const SILENT: &str = "the server answers nothing any more";

/// Reason of the end of a connection whose tasks were dropped with their runtime.
const RUNTIME_ENDED: &str = "the tokio runtime in which the client was connected has ended; connect it in a runtime that lives as long \
                             as the client";

/// Task that supervises the connections of a client. If it is dropped before it has ended, because the runtime has ended, so has
/// the connection.
pub(super) struct Supervisor {
    link: Weak<ClientLink>,
    _counted: Remnant,
}

impl Supervisor {
    /// Creates the owner of the task, before the task is spawned: it may be dropped without being run.
    pub(super) fn new(link: Weak<ClientLink>, remains: &Remains) -> Self {
        Self {
            link,
            _counted: remains.count(),
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(link) = self.link.upgrade() {
            link.finish(CloseReason::Lost(RUNTIME_ENDED.to_owned()));
        }
    }
}

/// Tries to connect until an attempt succeeds or the policy allows no other one. A process of the server has ended before the
/// next one is started, because it may hold what the next one needs.
async fn connect_again(
    link: &Weak<ClientLink>,
    (policy, reason): (&Reconnect, &CloseReason),
    driver: JoinHandle<()>,
    failures: &mut u32,
) -> Result<Opened, ClientError> {
    let _ = driver.await;
    let mut last = ClientError::disconnected(reason.clone(), false);
    while let Some(delay) = policy.delay_after(*failures) {
        tokio::time::sleep(delay).await;
        let Some(known) = link.upgrade() else { break };
        let (dialer, events) = (Arc::clone(&known.dialer), Arc::clone(&known.events));
        drop(known);
        let error = match dialer.open(&events, None).await {
            Ok(opened) => {
                // A connection that does not last counts as a failure.
                *failures += 1;
                return Ok(opened);
            }
            // Signing in may take longer than the limit of a request.
            Err(_) if dialer.authorization.wait_for_sign_in().await => continue,
            Err(error) => dialer.authorization.explain(error),
        };
        *failures += 1;
        let retry_in = policy.delay_after(*failures);
        let retry_in = retry_in.filter(|_| !error.is_permanent());
        events.report_connection(ConnectionEvent::AttemptFailed {
            attempt: *failures,
            error: error.clone(),
            retry_in,
        });
        let is_last = retry_in.is_none();
        last = error;
        if is_last {
            break;
        }
    }
    Err(last)
}

impl ClientLink {
    /// Waits for the end of the connection, and connects again as long as the policy allows it.
    pub(super) async fn supervise(
        supervisor: Supervisor,
        mut stop: watch::Receiver<LinkState>,
        mut handle: ClientHandle,
        mut driver: JoinHandle<()>,
    ) {
        let link = &supervisor.link;
        let mut failures = 0;
        loop {
            let opened = Instant::now();
            let ended = handle.closed().await;
            let Some(known) = link.upgrade() else { return };
            let reason = known.close_reason_of(&ended);
            let (Some(policy), CloseReason::Lost(text)) = (&known.dialer.policy, &reason) else {
                return known.finish(reason);
            };
            if opened.elapsed() >= Reconnect::STABLE_AFTER {
                failures = 0;
            }
            let (policy, text) = (policy.clone(), text.clone());
            if !known.begin_reconnecting(&reason) {
                return;
            }
            drop(known);
            let attempts = connect_again(link, (&policy, &reason), driver, &mut failures);
            let connected = tokio::select! {
                biased;
                // The application has closed the client or dropped it.
                _ = stop.wait_for(|state| matches!(state, LinkState::Closed(_))) => return,
                connected = attempts => connected,
            };
            let Some(known) = link.upgrade() else { return };
            match connected {
                Ok(opened) => (handle, driver) = known.install(opened),
                Err(error) => {
                    return known.finish(CloseReason::GaveUp {
                        reason: text,
                        attempts: failures,
                        error: Box::new(error),
                    });
                }
            }
        }
    }

    /// Converts the reason that the transport gives.
    pub(super) fn close_reason_of(&self, ended: &ConnectError) -> CloseReason {
        match ended {
            ConnectError::Closed if self.was_closed.load(Ordering::Acquire) => {
                CloseReason::ByClient
            }
            ConnectError::Closed => CloseReason::Lost(SILENT.to_owned()),
            ended => CloseReason::Lost(ended.to_string()),
        }
    }

    /// Changes the state, unless the connection has ended for good; returns true if it has not.
    fn change_state(&self, next: LinkState) -> bool {
        self.state.send_if_modified(|state| {
            let is_open = !matches!(state, LinkState::Closed(_));
            if is_open {
                *state = next;
            }
            is_open
        })
    }

    /// Ends the connection for good, unless it has ended.
    pub(super) fn finish(&self, reason: CloseReason) {
        if self.change_state(LinkState::Closed(reason.clone())) {
            self.events.mark_closed();
            self.events
                .report_connection(ConnectionEvent::Closed(reason));
        }
    }

    /// Records the loss of the connection before the attempts to connect again; returns false if the client was closed.
    fn begin_reconnecting(&self, reason: &CloseReason) -> bool {
        let is_open = self.change_state(LinkState::Reconnecting(reason.clone()));
        if is_open {
            self.events.end_connection();
            if self.absence.swap(PRESENT, Ordering::AcqRel) == PRESENT {
                self.events
                    .report_connection(ConnectionEvent::Lost(reason.clone()));
            }
        }
        is_open
    }

    /// Uses a connection in place of the lost one: restores subscriptions and the log level, and ends the wait of requests.
    fn install(self: &Arc<Self>, opened: Opened) -> (ClientHandle, JoinHandle<()>) {
        let (info, negotiation) = (opened.info.clone(), opened.negotiation);
        let (handle, driver) = opened.into_handle();
        let revision = info.revision;
        self.events.mark_open();
        self.set_connected(handle.clone(), info.clone(), negotiation);
        self.is_announced.store(false, Ordering::Release);
        if self.change_state(LinkState::Open) {
            // Subscriptions begin again, and changes that were missed are reported, afterwards.
            self.events
                .report_connection(ConnectionEvent::Restored { revision });
            self.is_announced.store(true, Ordering::Release);
            self.state.send_modify(|_| {});
            self.events.resume_after_reconnect(&handle, &info);
        } else {
            handle.close();
        }
        (handle, driver)
    }

    /// Returns the method of a request that asks for a sign of life.
    fn check_method(&self) -> &'static str {
        match lifecycle_of(self.revision()) {
            Lifecycle::Initialize => method::PING,
            Lifecycle::Discover => method::SERVER_DISCOVER,
        }
    }

    /// Asks an HTTP server by the policy, if the application has set one, until it answers: an event stream broke, a subscription
    /// ended, or the server could not be reached. The loss and the return of the server are reported also if the application sends
    /// no request, and a server that does not know the session any more gets a new one.
    pub(in crate::client) fn check_reachability(self: &Arc<Self>) {
        let Some(policy) = self.dialer.policy.clone() else {
            return;
        };
        if self.is_asking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (link, handle) = (Arc::downgrade(self), self.handle());
        tokio::spawn(async move {
            ask_until_answered(&link, &handle, &policy).await;
            if let Some(link) = link.upgrade() {
                link.is_asking.store(false, Ordering::Release);
            }
        });
    }

    /// Asks the server for a sign of life after it has not answered in time, if the application has set a policy; a connection on
    /// which nothing answers ends.
    pub(in crate::client) fn check_liveness(self: &Arc<Self>) {
        let Some(limit) = self.dialer.policy.as_ref().and_then(Reconnect::check_limit) else {
            return;
        };
        if self.is_checking.swap(true, Ordering::AcqRel) {
            return;
        }
        let (link, handle) = (Arc::downgrade(self), self.handle());
        let method = self.check_method();
        tokio::spawn(async move {
            let is_silent = is_silent(&link, &handle, method, limit).await;
            if let Some(link) = link.upgrade() {
                link.is_checking.store(false, Ordering::Release);
            }
            if is_silent {
                handle.close();
            }
        });
    }
}

/// Returns true if the server answers no check, while no other request of the application waits or for [`MAX_SILENT_CHECKS`].
async fn is_silent(
    link: &Weak<ClientLink>,
    handle: &ClientHandle,
    method: &str,
    limit: Duration,
) -> bool {
    for _ in 0..MAX_SILENT_CHECKS {
        let options = session::CallOptions::default();
        let Ok(request) = handle.request(method, None, options, None) else {
            return false;
        };
        let answered = tokio::time::timeout(limit, request).await;
        if !matches!(answered, Err(_) | Ok(Outcome::TimedOut)) {
            return false;
        }
        match link.upgrade() {
            Some(link) if link.in_flight.load(Ordering::Acquire) > 0 => {}
            Some(_) => return true,
            None => return false,
        }
    }
    true
}

/// Asks an HTTP server by the policy until it answers, the connection ends, or the policy allows no other attempt.
async fn ask_until_answered(link: &Weak<ClientLink>, handle: &ClientHandle, policy: &Reconnect) {
    let limit = policy.check_limit().unwrap_or(MAX_ASK_WAIT);
    let mut next = policy.delay_after(0);
    let (mut failures, mut attempt) = (0, 0);
    while let Some(delay) = next {
        tokio::time::sleep(delay).await;
        let Some(known) = link.upgrade().filter(|_| !handle.is_closed()) else {
            return;
        };
        let (method, options) = (known.check_method(), session::CallOptions::default());
        drop(known);
        let Ok(mut request) = handle.request(method, None, options, None) else {
            return;
        };
        let outcome = tokio::time::timeout(limit, &mut request).await;
        let Some(known) = link.upgrade().filter(|_| !handle.is_closed()) else {
            return;
        };
        if matches!(outcome, Ok(Outcome::Result(_) | Outcome::Error(_))) {
            return known.set_unreachable(None);
        }
        failures += 1;
        next = policy.delay_after(failures);
        if !request.is_unsent() {
            continue;
        }
        let reason = known.loss_of(handle).await;
        if known.is_unreachable() {
            attempt += 1;
            known
                .events
                .report_connection(ConnectionEvent::AttemptFailed {
                    attempt,
                    error: ClientError::Connect(reason.to_string()),
                    retry_in: next,
                });
        }
        known.set_unreachable(Some(&reason));
    }
}
