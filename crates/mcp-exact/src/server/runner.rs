//! Runs one handler until it finishes, asks, fails or panics.
//!
//! Takes the handler's future; gives how it ended. Notices questions that end the request, and limits the time that the
//! handler works, without the time that it waits for answers.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::cx::Cx;
use crate::error::Error;
use crate::handler::BoxFuture;
use crate::link::Lifecycle;
use crate::replay::{ReplayError, Suspension};

/// How a run of a handler ended.
pub(super) enum End<O> {
    Finished(Result<O, Error>),
    Suspended(Suspension),
    Diverged(ReplayError),
    Panicked(String),
    TimedOut,
}

/// Runs a handler. `limit` is how long it may work.
pub(super) async fn run<O>(
    mut handler: BoxFuture<Result<O, Error>>,
    cx: &Cx,
    limit: Option<Duration>,
) -> End<O> {
    let suspends = cx.lifecycle() == Lifecycle::Discover && cx.may_ask();
    let mut budget = limit.map(Budget::new);
    std::future::poll_fn(move |task| {
        if suspends {
            cx.run().set_runner(task.waker());
        }
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(task)));
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(End::Finished(result)),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(End::Panicked(message_of(&*panic))),
        }
        if suspends {
            match cx.run().suspend() {
                Ok(None) => {}
                Ok(Some(suspension)) => return Poll::Ready(End::Suspended(suspension)),
                Err(error) => return Poll::Ready(End::Diverged(error)),
            }
        }
        let mut spent = |budget: &mut Budget| budget.is_spent(cx.is_waiting(), task);
        if budget.as_mut().is_some_and(&mut spent) {
            return Poll::Ready(End::TimedOut);
        }
        Poll::Pending
    })
    .await
}

/// Catches a panic of everything that answers a request beside its handler: extractors, rules, layers, the part of a closure
/// before its async block.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|task| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task)));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(message_of(&*panic))),
        }
    })
    .await
}

/// Time that a handler may still work.
struct Budget {
    left: Duration,
    /// Since when it works; `None` while a question waits for its answer.
    since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Budget {
    fn new(limit: Duration) -> Self {
        Self {
            left: limit,
            since: Some(Instant::now()),
            timer: Box::pin(tokio::time::sleep(limit)),
        }
    }

    fn is_spent(&mut self, waiting: bool, task: &mut Context<'_>) -> bool {
        match (waiting, self.since) {
            (true, Some(start)) => {
                self.left = self.left.saturating_sub(start.elapsed());
                self.since = None;
            }
            (false, None) => {
                let now = Instant::now();
                self.since = Some(now);
                self.timer.as_mut().reset(now + self.left);
            }
            _ => {}
        }
        self.since.is_some() && self.timer.as_mut().poll(task).is_ready()
    }
}

pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
