//! Effects that a handler does not repeat when it runs again.
//!
//! The result of each effect is recorded in the `requestState`. The `requestState` is not a durable store; [`Cx::once`]
//! describes the guarantee.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Cx;
use crate::error::Error;
use crate::protocol::Json;
use crate::replay::ExecutionContext;

/// Error of [`Cx::once`]: the result of the effect cannot be recorded or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// The result cannot be serialised to JSON.
    #[error(
        "the result of once({key:?}) cannot be recorded: {reason}; return a value that serialises to JSON"
    )]
    NotRecordable {
        /// Key of the effect.
        key: String,
        /// Description of the problem.
        reason: String,
    },
    /// An earlier run has recorded a result of another type under the same key.
    #[error(
        "the result of once({key:?}) has another type than before: {reason}; use one key for each effect"
    )]
    NotReadable {
        /// Key of the effect.
        key: String,
        /// Description of the problem.
        reason: String,
    },
}

/// Guard that counts an effect of [`Cx::once`] as running until the guard is dropped.
struct RunningEffect<'c> {
    cx: &'c Cx,
    /// Task or thread that runs the effect.
    current_task: ExecutionContext,
}

impl Drop for RunningEffect<'_> {
    fn drop(&mut self) {
        self.cx.handler_run().end_once(self.current_task, None);
    }
}

thread_local! {
    /// Context whose effect this thread polls; null if this thread polls no effect.
    static POLLED_EFFECT: Cell<*const super::CxInner> = const { Cell::new(std::ptr::null()) };
}

/// Guard that marks this thread as polling an effect of a context until the guard is dropped.
struct PollingGuard(*const super::CxInner);

impl PollingGuard {
    /// Marks the thread as polling an effect of the context.
    fn enter(cx: &Cx) -> Self {
        Self(POLLED_EFFECT.replace(Arc::as_ptr(&cx.0)))
    }
}

impl Drop for PollingGuard {
    fn drop(&mut self) {
        POLLED_EFFECT.set(self.0);
    }
}

impl Cx {
    /// Returns true if this thread polls an effect of [`once`](Self::once) of this context.
    pub(super) fn is_in_effect(&self) -> bool {
        POLLED_EFFECT.get() == Arc::as_ptr(&self.0)
    }

    /// Returns true if the caller runs outside of the handler's task while an effect runs in another task. In this case
    /// no input request is possible: the effect may wait for the caller, and the request cannot end before the effect.
    pub(super) fn has_other_effect(&self) -> bool {
        self.handler_run()
            .has_effect_elsewhere(ExecutionContext::current())
    }

    /// Runs an effect, or returns the recorded result if an earlier run of the handler for the same request has run the
    /// effect.
    ///
    /// An effect that has returned `Ok` is not repeated by later retries of the request, and no input request ends the
    /// request while the effect runs. An error is not recorded, so the next run executes the effect again. If the
    /// process ends during the effect, or if a client sends an older `requestState` again, the effect may happen twice;
    /// an application that must prevent a repeated effect needs a store with an idempotency key.
    ///
    /// The key must be unique in the handler; a second call with the same key returns the first result. Up to
    /// 2025-11-25, handlers and their effects run once. In a task, the result has been written to the store when this
    /// method returns.
    ///
    /// An effect cannot send input requests, because the request would end during the effect. An input request in an
    /// effect fails with [`InputRequestErrorKind::InsideOnce`](crate::InputRequestErrorKind::InsideOnce) in every revision; send it before the
    /// effect and move the answer into the effect. While an effect runs, input requests in spawned tasks fail as well,
    /// because the effect may wait for such a task.
    ///
    /// # Errors
    /// The error of the effect, or [`OnceError`].
    pub async fn once<T, E, F>(&self, key: &str, effect: F) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Error>,
        F: Future<Output = Result<T, E>>,
    {
        let recorded = self.handler_run().once_result(key).cloned();
        if let Some(recorded) = recorded {
            let read = crate::decode::decode::<T>(&recorded);
            return read.map_err(|error| {
                Error::from(OnceError::NotReadable {
                    key: key.to_owned(),
                    reason: error.to_string(),
                })
            });
        }
        let place = ExecutionContext::current();
        self.handler_run().start_once(place);
        let running = RunningEffect {
            cx: self,
            current_task: place,
        };
        let mut effect = pin!(effect);
        let polled = poll_fn(|task| {
            let _polling = PollingGuard::enter(self);
            effect.as_mut().poll(task)
        });
        let value = polled.await.map_err(Into::into)?;
        let json = Json::from_serialize(&value).map_err(|error| OnceError::NotRecordable {
            key: key.to_owned(),
            reason: error.to_string(),
        })?;
        std::mem::forget(running);
        self.handler_run().end_once(place, Some((key, json)));
        if let Some(task) = self.task() {
            let saved = task.save_progress().await;
            saved.map_err(crate::task::TaskError::from)?;
        }
        Ok(value)
    }
}
