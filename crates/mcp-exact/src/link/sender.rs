//! Messages to the client of a request in flight: progress, logs, input requests, and the answer.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mcp_exact_session as session;
use mcp_exact_transport::{PendingRequest, ServerHandle};

use super::{Reply, Request};
use crate::background;
use crate::protocol::{
    InputRequest, Json, JsonObject, Level, PeerError, Progress, RequestKey, SendError, method,
};
use crate::sync::lock;

/// Link that sends messages about one request to its client.
#[derive(Debug, Clone)]
pub(crate) struct RequestLink {
    /// Handle of the connection; `None` if the connection is closed, so that nothing can be sent.
    pub(super) handle: Option<ServerHandle>,
    /// Key of the request.
    pub(super) key: RequestKey,
    /// Latest unsent progress, set once the client reads too slowly to receive every notification.
    delayed_progress: OnceLock<Arc<Mutex<Option<Progress>>>>,
}

impl RequestLink {
    pub(super) fn new(handle: &ServerHandle, key: RequestKey) -> Self {
        Self {
            handle: Some(handle.clone()),
            key,
            delayed_progress: OnceLock::new(),
        }
    }

    /// Creates the link of a resumed task, which has no connection.
    pub(crate) fn for_resumed_task(request: &Request) -> Self {
        Self {
            handle: None,
            key: request.incoming.key,
            delayed_progress: OnceLock::new(),
        }
    }

    /// Returns the handle, or an error if the connection is closed.
    fn handle(&self) -> Result<&ServerHandle, SendError> {
        self.handle.as_ref().ok_or(SendError::UnknownRequest)
    }

    /// Records for spans and metrics that the method and the target of the request are known.
    pub(crate) fn set_target_known(&self, request: &Request) {
        if let Some(handle) = &self.handle {
            handle.set_target_known(&request.incoming);
        }
    }

    /// Sends a progress notification. If the client reads slowly, only the latest progress is sent, later.
    pub(crate) fn send_progress(&self, progress: Progress) -> Result<(), SendError> {
        let sent = self.handle()?.progress(self.key, &progress)?;
        if sent != session::SendOutcome::Dropped {
            return Ok(());
        }
        // A thread outside of a runtime cannot wait, so its value is dropped and the next one supersedes it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return Ok(());
        };
        let delayed = self.delayed_progress.get_or_init(Arc::default);
        if lock(delayed).replace(progress).is_none() {
            let work = self.clone().send_delayed_progress(Arc::clone(delayed));
            background::spawn_on(&runtime, work);
        }
        Ok(())
    }

    /// Sends the latest unsent progress as soon as the client reads messages again.
    async fn send_delayed_progress(self, delayed: Arc<Mutex<Option<Progress>>>) {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Some(latest) = lock(&delayed).clone() else {
                return;
            };
            let sent = self.handle();
            if let Ok(session::SendOutcome::Dropped) =
                sent.and_then(|handle| handle.progress(self.key, &latest))
            {
                continue;
            }
            // The value was sent or superseded, or the request has ended. A later value may have been recorded
            // meanwhile.
            let mut waiting = lock(&delayed);
            if waiting.as_ref() == Some(&latest) {
                waiting.take();
                return;
            }
        }
    }

    /// Sends a log message about the request.
    pub(crate) fn send_log(
        &self,
        level: Level,
        logger: Option<&str>,
        data: Json,
    ) -> Result<(), SendError> {
        let scope = session::Scope::During(self.key);
        self.handle()?.log(scope, level, logger, data).map(drop)
    }

    /// Sends a task status notification to a subscription.
    pub(crate) fn notify_task_status(&self, task: &JsonObject) {
        if let Err(error) = self.send_notification(method::NOTIFICATIONS_TASKS, Some(task.clone()))
        {
            tracing::debug!(%error, "the status of a task was not sent");
        }
    }

    /// Sends a notification about the request.
    pub(crate) fn send_notification(
        &self,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<(), SendError> {
        let scope = session::Scope::During(self.key);
        self.handle()?.notify(scope, method, params).map(drop)
    }

    /// Sends an input request as a request of the server (up to 2025-11-25). The default time limit is one day.
    /// Dropping the returned value cancels the request.
    pub(crate) fn send_server_request(
        &self,
        request: InputRequest,
        limit: Option<Duration>,
    ) -> Result<PendingRequest, SendError> {
        // An input request waits for a person, so the default time limit is one day.
        let limit = limit.unwrap_or(Duration::from_secs(24 * 3600));
        let timeout = session::RequestTimeout {
            idle: limit,
            reset_on_progress: false,
            total: limit,
        };
        let options = session::CallOptions {
            timeout: Some(timeout),
            ..session::CallOptions::default()
        };
        let scope = session::Scope::During(self.key);
        self.handle()?
            .request(scope, &request.method, request.params, options, None)
    }

    /// Answers the request. If the endpoint rejects the answer, the reason is sent as the error of the request.
    pub(super) fn send_reply(&self, reply: Reply) {
        let Some(handle) = &self.handle else {
            return;
        };
        let Err(error) = handle.reply(self.key, reply) else {
            return;
        };
        tracing::debug!(%error, "a reply was refused");
        let error = PeerError::internal(error.to_string());
        if let Err(error) = handle.reply(self.key, error) {
            tracing::debug!(%error, "a request could not be answered");
        }
    }
}
