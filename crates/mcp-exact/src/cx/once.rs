//! Effects that a handler does not repeat when it runs again.
//!
//! Results are recorded in the state of the request. Not a store: [`Cx::once`] describes the guarantee.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Cx;
use crate::error::Error;
use crate::link::Json;

/// A result of [`Cx::once`] cannot be recorded or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError {
    /// The result is no JSON.
    #[error(
        "the result of once({key:?}) cannot be recorded: {reason}; return a value that serialises to JSON"
    )]
    Record {
        /// The key.
        key: String,
        /// Description of the problem.
        reason: String,
    },
    /// An earlier run has recorded a result of another type under the same key.
    #[error(
        "the result of once({key:?}) has another type than before: {reason}; use one key for each effect"
    )]
    Read {
        /// The key.
        key: String,
        /// Description of the problem.
        reason: String,
    },
}

/// Counts a `once` as running until it is dropped, finished or not.
struct Running<'c>(&'c Cx);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.run().once_ended(None);
    }
}

thread_local! {
    /// Context whose effect this thread polls; null while it polls none.
    static EFFECT: Cell<*const super::Inner> = const { Cell::new(std::ptr::null()) };
}

/// Says that this thread polls an effect of a context, until it is dropped.
struct Polling(*const super::Inner);

impl Polling {
    fn of(cx: &Cx) -> Self {
        Self(EFFECT.replace(Arc::as_ptr(&cx.0)))
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        EFFECT.set(self.0);
    }
}

impl Cx {
    /// Returns whether an effect of [`once`](Self::once) is being polled, in this thread.
    pub(super) fn is_in_effect(&self) -> bool {
        EFFECT.get() == Arc::as_ptr(&self.0)
    }

    /// Runs an effect, unless an earlier run of the handler for the same request has done so: then returns its result.
    ///
    /// Guarantee: an effect that has returned `Ok` is not repeated in later runs along the same chain of states, and the
    /// request is not ended by a question while the effect runs. An error is not recorded: the next run tries again. Not
    /// promised: that the effect happens exactly once when the process ends in the middle of it, or when a client sends an
    /// older state again; that needs a store of the program with a key of its own.
    ///
    /// The key has to be unique in the handler; a second call with the same key returns the first result. Up to 2025-11-25
    /// handlers run once, and so does the effect. In a task the result is in the store when this method returns.
    ///
    /// An effect cannot ask: the request would have to end in the middle of it. A question in it fails with
    /// [`AskErrorKind::InOnce`](crate::AskErrorKind::InOnce) in every revision; ask before, and move the answer into the effect.
    ///
    /// # Errors
    /// The error of the effect, or [`OnceError`].
    pub async fn once<T, E, F>(&self, key: &str, effect: F) -> Result<T, Error>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Error>,
        F: Future<Output = Result<T, E>>,
    {
        let recorded = self.run().once_result(key).cloned();
        if let Some(recorded) = recorded {
            let read = recorded.parse::<T>();
            return read.map_err(|error| {
                Error::from(OnceError::Read {
                    key: key.to_owned(),
                    reason: error.to_string(),
                })
            });
        }
        self.run().once_started();
        let running = Running(self);
        let mut effect = pin!(effect);
        let polled = poll_fn(|task| {
            let _polling = Polling::of(self);
            effect.as_mut().poll(task)
        });
        let value = polled.await.map_err(Into::into)?;
        let json = Json::from_serialize(&value).map_err(|error| OnceError::Record {
            key: key.to_owned(),
            reason: error.to_string(),
        })?;
        std::mem::forget(running);
        self.run().once_ended(Some((key, json)));
        if let Some(task) = self.task() {
            let saved = task.save().await;
            saved.map_err(crate::task::TaskError::from)?;
        }
        Ok(value)
    }
}
