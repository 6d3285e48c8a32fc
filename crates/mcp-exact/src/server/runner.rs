//! Runs a handler until it finishes, sends an input request, fails or panics.
//!
//! Detects input requests that end the current request (from 2026-07-28 on), and enforces the time limit of handlers,
//! excluding the time that they wait for answers.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::background::BoxFuture;
use crate::cx::Cx;
use crate::error::Error;
use crate::panics::catch_panic;
use crate::protocol::Lifecycle;
use crate::replay::{ExecutionContext, ReplayError, Suspension};
use crate::task::{LiveTask, TaskError};

/// End of a run of a handler.
pub(super) enum RunEnd<O> {
    /// The handler has returned this result.
    Finished(Result<O, Error>),
    /// Input requests end the request; the client sends a retry.
    Suspended(Suspension),
    /// The handler has sent a new input request without repeating those of its earlier runs.
    Diverged(ReplayError),
    /// The handler has panicked with this message.
    Panicked(String),
    /// The handler has exceeded its time limit.
    TimedOut,
}

/// Event that interrupts or ends a handler's run.
pub(super) enum RunStep<O> {
    /// The run has ended.
    Ended(RunEnd<O>),
    /// The handler waits until its call has become a task.
    WantsTask,
    /// The input requests that a task waits for have changed.
    SendsInputRequests,
}

/// Runs a handler, which was polled once, to the end of its request.
pub(super) async fn run_handler<O>(running: &mut RunningHandler<O>, cx: &Cx) -> RunEnd<O> {
    loop {
        match running.run_in_request().await {
            RunStep::Ended(end) => return end,
            // Only calls of tools become tasks.
            RunStep::WantsTask | RunStep::SendsInputRequests => {
                cx.refuse_task(TaskError::NotConfigured)
            }
        }
    }
}

/// Running handler: first as part of its request, then possibly as a task.
pub(crate) struct RunningHandler<O> {
    /// Future of the handler.
    handler: BoxFuture<Result<O, Error>>,
    /// Context of the call.
    cx: Cx,
    /// Remaining time; `None` without a time limit.
    budget: Option<TimeBudget>,
}

impl<O> RunningHandler<O> {
    pub(super) fn new(
        handler: BoxFuture<Result<O, Error>>,
        cx: &Cx,
        limit: Option<Duration>,
    ) -> Self {
        Self {
            handler,
            cx: cx.clone(),
            budget: limit.map(TimeBudget::new),
        }
    }

    /// Removes the time limit, because a task has a lifetime instead.
    pub(super) fn remove_time_limit(&mut self) {
        self.budget = None;
    }

    /// Runs the handler until it ends, sends an input request, or asks to become a task.
    pub(super) async fn run_in_request(&mut self) -> RunStep<O> {
        std::future::poll_fn(|task| self.poll_in_request(task)).await
    }

    /// Polls the handler; ready once it ends, sends an input request, or asks to become a task.
    pub(super) fn poll_in_request(&mut self, task: &mut Context<'_>) -> Poll<RunStep<O>> {
        let suspends = self.cx.lifecycle() == Lifecycle::Discover && self.cx.can_send_requests();
        if let Some(end) = self.poll(suspends, task) {
            return Poll::Ready(RunStep::Ended(end));
        }
        if suspends && self.cx.wants_task() {
            return Poll::Ready(RunStep::WantsTask);
        }
        if suspends {
            match self.cx.handler_run().suspend() {
                Ok(None) => {}
                Ok(Some(suspension)) => {
                    return Poll::Ready(RunStep::Ended(RunEnd::Suspended(suspension)));
                }
                Err(error) => return Poll::Ready(RunStep::Ended(RunEnd::Diverged(error))),
            }
        }
        if self.is_time_spent(self.cx.is_waiting(), task) {
            Poll::Ready(RunStep::Ended(RunEnd::TimedOut))
        } else {
            Poll::Pending
        }
    }

    /// Runs the handler of a task until it ends, or its pending input requests change. A handler that waits for answers
    /// keeps running.
    pub(super) async fn run_in_task(&mut self, live: &LiveTask) -> RunStep<O> {
        std::future::poll_fn(|task| {
            if let Some(end) = self.poll(true, task) {
                return Poll::Ready(RunStep::Ended(end));
            }
            // The lock is held until the input requests are set: an answer that arrives in between must not leave a request
            // that it has answered.
            let run = self.cx.handler_run();
            let input_requests = match run.suspend() {
                Ok(suspension) => suspension.map(|suspension| suspension.input_requests),
                Err(error) => return Poll::Ready(RunStep::Ended(RunEnd::Diverged(error))),
            };
            let has_changed = live.set_input_requests(input_requests.unwrap_or_default());
            drop(run);
            if has_changed {
                return Poll::Ready(RunStep::SendsInputRequests);
            }
            if self.is_time_spent(live.is_waiting(), task) {
                Poll::Ready(RunStep::Ended(RunEnd::TimedOut))
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// Polls the handler; returns the end of its run, if it has ended. With `may_suspend`, the task is also woken by
    /// input requests of other tasks.
    fn poll(&mut self, may_suspend: bool, task: &mut Context<'_>) -> Option<RunEnd<O>> {
        {
            let mut run = self.cx.handler_run();
            run.set_handler(ExecutionContext::current());
            if may_suspend {
                run.set_runner(task.waker());
            }
        }
        let poll = || self.handler.as_mut().poll(task);
        #[cfg(feature = "logs")]
        let poll = || crate::logs::CURRENT_CX.sync_scope(self.cx.clone(), poll);
        match catch_panic(poll) {
            Ok(Poll::Ready(result)) => Some(RunEnd::Finished(result)),
            Ok(Poll::Pending) => None,
            Err(message) => Some(RunEnd::Panicked(message)),
        }
    }

    /// Returns true if the time limit of the handler has elapsed. `waiting` is true while the handler waits for an
    /// answer, which pauses the time.
    fn is_time_spent(&mut self, waiting: bool, task: &mut Context<'_>) -> bool {
        let budget = self.budget.as_mut();
        budget.is_some_and(|budget| budget.is_time_spent(waiting, task))
    }
}

/// Remaining time of a handler; the time that it waits for answers does not count.
struct TimeBudget {
    /// Time left when the handler last started to work.
    remaining_time: Duration,
    /// Time since which the handler has been working; `None` while it waits for an answer.
    working_since: Option<Instant>,
    /// Timer that fires when the remaining time has elapsed.
    timer: Pin<Box<Sleep>>,
}

impl TimeBudget {
    fn new(limit: Duration) -> Self {
        Self {
            remaining_time: limit,
            working_since: Some(Instant::now()),
            timer: Box::pin(tokio::time::sleep(limit)),
        }
    }

    /// Returns true if the time limit has elapsed. `waiting` is true while the handler waits for an answer, which
    /// pauses the time.
    fn is_time_spent(&mut self, waiting: bool, task: &mut Context<'_>) -> bool {
        match (waiting, self.working_since) {
            (true, Some(start)) => {
                self.remaining_time = self.remaining_time.saturating_sub(start.elapsed());
                self.working_since = None;
            }
            (false, None) => {
                let now = Instant::now();
                self.working_since = Some(now);
                // A limit that is too long for the clock does not end the handler.
                match now.checked_add(self.remaining_time) {
                    Some(end) => self.timer.as_mut().reset(end),
                    None => self.timer.set(tokio::time::sleep(self.remaining_time)),
                }
            }
            _ => {}
        }
        self.working_since.is_some() && self.timer.as_mut().poll(task).is_ready()
    }
}
