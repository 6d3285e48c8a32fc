//! Runs a handler until it finishes, sends an input request, fails or panics.
//!
//! Detects input requests that end the current request (from 2026-07-28 on), and enforces the time limit of handlers,
//! excluding the time that they wait for answers.

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
use crate::replay::{Place, ReplayError, Suspension};
use crate::task::{LiveTask, TaskError};

/// End of a run of a handler.
pub(super) enum End<O> {
    Finished(Result<O, Error>),
    Suspended(Suspension),
    Diverged(ReplayError),
    Panicked(String),
    TimedOut,
}

/// Progress of a handler's run.
pub(super) enum Step<O> {
    Ended(End<O>),
    /// The handler waits until its call has become a task.
    WantsTask,
    /// The input requests that a task waits for have changed.
    SendsInputRequests,
}

/// Runs a handler for its request. `limit` is the time limit of the handler.
pub(super) async fn run<O>(
    handler: BoxFuture<Result<O, Error>>,
    cx: &Cx,
    limit: Option<Duration>,
) -> End<O> {
    let mut running = Running::new(handler, cx, limit);
    loop {
        match running.run_in_request().await {
            Step::Ended(end) => return end,
            // Only calls of tools become tasks.
            Step::WantsTask | Step::SendsInputRequests => cx.refuse_task(TaskError::NotConfigured),
        }
    }
}

/// Running handler: first as part of its request, then possibly as a task.
pub(super) struct Running<O> {
    handler: BoxFuture<Result<O, Error>>,
    cx: Cx,
    budget: Option<Budget>,
}

impl<O> Running<O> {
    pub(super) fn new(
        handler: BoxFuture<Result<O, Error>>,
        cx: &Cx,
        limit: Option<Duration>,
    ) -> Self {
        Self {
            handler,
            cx: cx.clone(),
            budget: limit.map(Budget::new),
        }
    }

    /// Removes the time limit, because a task has a lifetime instead.
    pub(super) fn without_time_limit(&mut self) {
        self.budget = None;
    }

    /// Runs the handler until it ends, sends an input request, or asks to become a task.
    pub(super) async fn run_in_request(&mut self) -> Step<O> {
        let suspends = self.cx.lifecycle() == Lifecycle::Discover && self.cx.can_send_requests();
        std::future::poll_fn(|task| {
            if let Some(end) = self.poll(suspends, task) {
                return Poll::Ready(Step::Ended(end));
            }
            if suspends && self.cx.wants_task() {
                return Poll::Ready(Step::WantsTask);
            }
            if suspends {
                match self.cx.run().suspend() {
                    Ok(None) => {}
                    Ok(Some(suspension)) => {
                        return Poll::Ready(Step::Ended(End::Suspended(suspension)));
                    }
                    Err(error) => return Poll::Ready(Step::Ended(End::Diverged(error))),
                }
            }
            if self.is_spent(self.cx.is_waiting(), task) {
                Poll::Ready(Step::Ended(End::TimedOut))
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// Runs the handler of a task until it ends, or its pending input requests change. A handler that waits for answers
    /// keeps running.
    pub(super) async fn run_in_task(&mut self, live: &LiveTask) -> Step<O> {
        std::future::poll_fn(|task| {
            if let Some(end) = self.poll(true, task) {
                return Poll::Ready(Step::Ended(end));
            }
            let asks = match self.cx.run().suspend() {
                Ok(suspension) => suspension.map(|suspension| suspension.input_requests),
                Err(error) => return Poll::Ready(Step::Ended(End::Diverged(error))),
            };
            if live.set_input_requests(asks.unwrap_or_default()) {
                return Poll::Ready(Step::SendsInputRequests);
            }
            if self.is_spent(live.is_waiting(), task) {
                Poll::Ready(Step::Ended(End::TimedOut))
            } else {
                Poll::Pending
            }
        })
        .await
    }

    fn poll(&mut self, asks: bool, task: &mut Context<'_>) -> Option<End<O>> {
        {
            let mut run = self.cx.run();
            run.set_handler(Place::current());
            if asks {
                run.set_runner(task.waker());
            }
        }
        let poll = || self.handler.as_mut().poll(task);
        #[cfg(feature = "logs")]
        let poll = || crate::logs::CURRENT.sync_scope(self.cx.clone(), poll);
        let polled = std::panic::catch_unwind(AssertUnwindSafe(poll));
        match polled {
            Ok(Poll::Ready(result)) => Some(End::Finished(result)),
            Ok(Poll::Pending) => None,
            Err(panic) => Some(End::Panicked(panic_message(&*panic))),
        }
    }

    fn is_spent(&mut self, waiting: bool, task: &mut Context<'_>) -> bool {
        let budget = self.budget.as_mut();
        budget.is_some_and(|budget| budget.is_spent(waiting, task))
    }
}

/// Remaining time of a handler.
struct Budget {
    remaining_time: Duration,
    /// Time since which the handler has been working; `None` while it waits for an answer.
    since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Budget {
    fn new(limit: Duration) -> Self {
        Self {
            remaining_time: limit,
            since: Some(Instant::now()),
            timer: Box::pin(tokio::time::sleep(limit)),
        }
    }

    fn is_spent(&mut self, waiting: bool, task: &mut Context<'_>) -> bool {
        match (waiting, self.since) {
            (true, Some(start)) => {
                self.remaining_time = self.remaining_time.saturating_sub(start.elapsed());
                self.since = None;
            }
            (false, None) => {
                let now = Instant::now();
                self.since = Some(now);
                self.timer.as_mut().reset(now + self.remaining_time);
            }
            _ => {}
        }
        self.since.is_some() && self.timer.as_mut().poll(task).is_ready()
    }
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
