//! Drivers of connections that carry all messages in order: stdio, Unix sockets, in-memory pairs and custom transports.
//!
//! One future per connection reads, writes and runs the timers of its endpoint. All output that is ready is sent with
//! one write. The driver stops reading while the endpoint's queues are full, and output stays in the endpoint until the
//! connection can accept it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_exact_session::{
    Binding, FrameContext, ReceiveError, ServerSettings, StreamEnd, StreamId, Time, Transmit,
};
use tokio::sync::{Notify, futures::OwnedNotified};
use tokio::task::coop;
use tokio::time::{Instant, Sleep};

use crate::clock;
use crate::endpoint::{
    Endpoint, Origin, Readers, RequestContext, ServerDispatch, ServerEndpoint, ServerHandler,
    Shared, Signal, State,
};
use crate::observe;
use crate::transport::{KeptMessage, Received, Transport};

/// Number of unsent bytes in a transport at which the driver stops moving output from the endpoint to the transport.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// Maximum number of messages that are received before output is written and other tasks can run.
const MAX_MESSAGES_PER_TURN: u32 = 128;

/// Time limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// Time to wait for pending replies after the end of input or a shutdown.
    pub drain: Duration,
    /// Time that the peer may take to read the remaining output when the connection closes.
    pub close: Duration,
    /// Time without a message of the peer after which a ping is sent (`basic/utilities/ping`). If no message is
    /// received for the same time after the ping, the connection is closed. `None` disables pings. No pings are sent
    /// before the negotiation and in 2026-07-28, which does not define them.
    pub ping: Option<Duration>,
}

impl Default for ConnectionOptions {
    /// Returns two seconds for `drain` and for `close`, without pings.
    fn default() -> Self {
        Self {
            drain: Duration::from_secs(2),
            close: Duration::from_secs(2),
            ping: None,
        }
    }
}

/// Error that has ended a connection; the end of input and a shutdown are not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

/// Signal that wakes the driver task of a connection.
pub(crate) struct Wake(pub(crate) Arc<Notify>);

impl<E: Endpoint> Signal<E> for Wake {
    fn changed(&self, _: &Arc<Shared<E>>, _: Option<Time>) {
        self.0.notify_one();
    }
}

/// Serves one client over a transport until its input ends, the connection breaks, or `shutdown` completes. `options`
/// limits the time to wait for pending replies.
///
/// # Errors
/// Returns [`ServeError`] if reading or writing fails.
pub async fn serve(
    settings: Arc<ServerSettings>,
    handler: Arc<dyn ServerHandler>,
    transport: impl Transport,
    options: ConnectionOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let endpoint = ServerEndpoint::new(settings, Binding::Duplex, clock::now());
    let notify = Arc::new(Notify::new());
    let signal = Arc::new(Wake(Arc::clone(&notify)));
    let dispatch = Arc::new(ServerDispatch::new(handler));
    let name = transport.name();
    let (readers, origin) = (Readers::default(), Origin::Transport(name));
    let shared = Shared::<ServerEndpoint>::new(endpoint, readers, dispatch, signal, origin);
    let context = FrameContext::new(RequestContext::default());
    let mut driver = Driver::new(shared, transport, context, notify, options);
    let mut shutdown = std::pin::pin!(shutdown);
    let serving = poll_fn(|cx| {
        if !driver.is_draining && shutdown.as_mut().poll(cx).is_ready() {
            driver.drain();
        }
        driver.poll(cx)
    });
    let result = observe::connection(name, None, serving).await;
    drop(driver);
    Ok(result?)
}

/// Driver of a connection: passes messages between its transport and its endpoint, and runs the timers.
pub(crate) struct Driver<E: Endpoint, T> {
    /// The endpoint.
    shared: Arc<Shared<E>>,
    /// Transport of the connection.
    transport: T,
    /// Context of every received message.
    context: E::Context,
    /// Message that the endpoint rejected because its queues were full; it is delivered again before other messages are
    /// received.
    rejected_message: Option<KeptMessage>,
    /// Notified if the endpoint may have output.
    notify: Arc<Notify>,
    /// Future that completes at the next notification by `notify`.
    notified: Pin<Box<OwnedNotified>>,
    /// Timer that expires at the next deadline.
    timer: Pin<Box<Sleep>>,
    /// Time limits of the connection.
    options: ConnectionOptions,
    /// Deadline for pending replies after the end of input or at a shutdown, or for the remaining output after the
    /// endpoint has ended the connection.
    deadline: Option<Instant>,
    /// Time of the last received message, or of the last check at which the endpoint accepted no input.
    last_received_at: Instant,
    /// True if a ping was sent to the peer after `last_received_at`.
    has_sent_ping: bool,
    /// True if no more input is read, and pending replies are awaited.
    is_draining: bool,
    /// True if the transport is being closed.
    is_closing: bool,
    /// True if the connection has ended.
    has_ended: bool,
}

impl<E: Endpoint, T: Transport> Driver<E, T> {
    pub(crate) fn new(
        shared: Arc<Shared<E>>,
        transport: T,
        context: E::Context,
        notify: Arc<Notify>,
        options: ConnectionOptions,
    ) -> Self {
        Self {
            shared,
            transport,
            context,
            rejected_message: None,
            notified: Box::pin(Arc::clone(&notify).notified_owned()),
            notify,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            options,
            deadline: None,
            last_received_at: Instant::now(),
            has_sent_ping: false,
            is_draining: false,
            is_closing: false,
            has_ended: false,
        }
    }

    /// Stops reading input and waits for pending replies.
    pub(crate) fn drain(&mut self) {
        if !std::mem::replace(&mut self.is_draining, true) {
            self.deadline = Some(clock::end_of(self.options.drain));
            self.end(StreamEnd::Clean);
        }
    }

    /// Returns true if the endpoint has ended the connection, and then starts to close the transport; queued messages
    /// are still written.
    fn is_closed_by_endpoint(&mut self) -> bool {
        let has_ended = !self.is_closing && self.shared.lock().endpoint.is_closed();
        if has_ended {
            self.is_draining = true;
            self.is_closing = true;
            self.deadline = Some(clock::end_of(self.options.close));
        }
        has_ended
    }

    /// Drives the connection; ready once the connection has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.poll_inner(cx);
        if let Poll::Ready(result) = &result {
            self.end(match result {
                Ok(()) => StreamEnd::Clean,
                Err(_) => StreamEnd::Lost,
            });
        }
        result
    }

    /// Writes output, receives messages and handles timers until none of them makes progress; ready when the transport
    /// is closed.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // Before output is taken, so that output which this reports needs no further turn. Usually ends registered for the
            // next report. Reports that arrive all the time do not keep the connection from its messages.
            if self.poll_notified(cx) && self.poll_notified(cx) {
                cx.waker().wake_by_ref();
            }
            let has_more = self.take_output();
            let flushed = self.transport.poll_flush(cx)?;
            let is_flushed = flushed.is_ready() && self.transport.queued() == 0;
            if self.is_closing && is_flushed && !has_more {
                let closed = self.transport.poll_close(cx);
                // The time limit for closing applies as well when the peer prevents the transport from closing.
                if closed.is_pending() {
                    while self.poll_timer(cx)? {}
                }
                return closed;
            }
            if self.is_closed_by_endpoint() {
                continue;
            }
            // Yields, so that a peer that sends continuously does not starve other tasks.
            ready!(coop::poll_proceed(cx)).made_progress();
            let has_received = self.poll_receive(cx)?.is_ready();
            let is_due = self.poll_timer(cx)?;
            // Written output may have made room for more.
            let has_room = is_flushed && has_more;
            if !(has_received || is_due || has_room) {
                return Poll::Pending;
            }
        }
    }

    /// Moves output of the endpoint into the transport, up to [`MAX_UNSENT_BYTES`]; returns true if the endpoint may
    /// have more output.
    fn take_output(&mut self) -> bool {
        let mut state = self.shared.lock();
        while self.transport.queued() < MAX_UNSENT_BYTES {
            match state.poll_transmit(self.transport.output()) {
                Some(Transmit::Frame { .. }) => self.transport.end_frame(),
                Some(Transmit::Close { .. }) => {
                    self.is_closing = true;
                    self.deadline = Some(clock::end_of(self.options.close));
                }
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    /// Receives messages and passes them to the endpoint; ready if input was received or has ended.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let is_open = !self.is_draining && !self.is_closing;
        if !is_open || !self.shared.lock().endpoint.wants_input() {
            return Ok(Poll::Pending);
        }
        let (shared, context) = (&self.shared, &self.context);
        let (mut rejected_message, mut has_closed, mut count) = (None, false, 0);
        let mut take = |received: Received<'_>| {
            let (result, wants_more) = shared.receive(StreamId::DUPLEX, received, context.clone());
            if result == Err(ReceiveError::Full) {
                rejected_message = Some(KeptMessage::from(received));
                return false;
            }
            has_closed |= result == Err(ReceiveError::Closed);
            count += 1;
            wants_more && count < MAX_MESSAGES_PER_TURN
        };
        let before = self.rejected_message.take();
        let polled = if before.is_none_or(|message| take(message.received())) {
            self.transport.poll_receive(cx, &mut take)?
        } else {
            Poll::Pending
        };
        self.rejected_message = rejected_message;
        if polled.is_pending() && count == 0 {
            return Ok(Poll::Pending);
        }
        if self.options.ping.is_some() {
            self.restart_ping_interval();
        }
        if polled == Poll::Ready(false) || has_closed {
            self.drain();
        }
        charge(count, cx);
        Ok(Poll::Ready(()))
    }

    /// Returns true if the endpoint has reported possible output since the previous call.
    fn poll_notified(&mut self, cx: &mut Context<'_>) -> bool {
        let is_notified = self.notified.as_mut().poll(cx).is_ready();
        if is_notified {
            let next = Arc::clone(&self.notify).notified_owned();
            self.notified.set(next);
        }
        is_notified
    }

    /// Handles the timers that have expired; returns true if a timer has expired.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let endpoint_timeout = self.shared.lock().endpoint.poll_timeout();
        let endpoint_deadline = endpoint_timeout.and_then(clock::instant);
        let deadline = self.deadline.map(Instant::into_std);
        let ping_deadline = self.ping_deadline().map(Instant::into_std);
        let deadlines = [endpoint_deadline, deadline, ping_deadline];
        let Some(next) = deadlines.into_iter().flatten().min() else {
            return Ok(false);
        };
        if self.timer.deadline().into_std() != next {
            self.timer.as_mut().reset(Instant::from_std(next));
        }
        // Input that is no message, and never ends, leaves nothing of the task's budget.
        let timer = std::pin::pin!(coop::unconstrained(self.timer.as_mut()));
        if timer.poll(cx).is_pending() {
            return Ok(false);
        }
        let now = Instant::now().into_std();
        if deadline.is_some_and(|deadline| deadline <= now) {
            if self.is_closing {
                let message = "the peer did not read what was left";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            self.shut_down();
        }
        if ping_deadline.is_some_and(|deadline| deadline <= now) {
            self.ping()?;
        }
        self.shared
            .call(|state, now| state.endpoint.handle_timeout(now));
        Ok(true)
    }

    /// Starts a new ping interval, because input was received or the endpoint accepts no input.
    fn restart_ping_interval(&mut self) {
        self.last_received_at = Instant::now();
        self.has_sent_ping = false;
    }

    /// Returns the time at which a ping is due, or at which the connection ends because the peer has not answered a
    /// ping.
    fn ping_deadline(&self) -> Option<Instant> {
        let limit = self.options.ping.filter(|_| !self.is_draining)?;
        let after = if self.has_sent_ping { 2 * limit } else { limit };
        Some(self.last_received_at + after)
    }

    /// Sends a ping to a silent peer.
    ///
    /// # Errors
    /// Returns a timeout error if the peer has not answered the previous ping.
    fn ping(&mut self) -> io::Result<()> {
        let Some(limit) = self.options.ping else {
            return Ok(());
        };
        // While the endpoint accepts no input, silence of the peer is not an error.
        let listens = self.shared.lock().endpoint.wants_input();
        if listens && self.has_sent_ping {
            let message = "the peer answers no ping";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        // The timeout of the ping is longer than the time limit for silence, so that the ping is not cancelled.
        let timeout = 4 * limit;
        let ping = |state: &mut State<E>, now| state.endpoint.ping(timeout, now);
        if listens && self.shared.call(ping) {
            self.has_sent_ping = true
        } else {
            self.restart_ping_interval()
        }
        Ok(())
    }

    /// Ends the session locally; queued messages are still written.
    fn shut_down(&mut self) {
        self.shared.call(|state, now| state.endpoint.shutdown(now));
        self.is_draining = true;
        self.is_closing = true;
        self.deadline = Some(clock::end_of(self.options.close));
    }

    /// Records that the connection has ended, and notifies the endpoint of the end.
    fn end(&mut self, how: StreamEnd) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.shared
                .call(|state, now| state.endpoint.closed(StreamId::DUPLEX, how, now));
        }
    }
}

/// Charges received messages to the cooperative budget of the tokio task, except the first message, which is already
/// charged.
fn charge(count: u32, cx: &mut Context<'_>) {
    for _ in 1..count {
        match coop::poll_proceed(cx) {
            Poll::Ready(unit) => unit.made_progress(),
            Poll::Pending => return,
        }
    }
}

impl<E: Endpoint, T> Drop for Driver<E, T> {
    /// Completes all pending futures, because the connection has ended.
    fn drop(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            let (stream, how) = (StreamId::DUPLEX, StreamEnd::Lost);
            self.shared
                .call(|state, now| state.endpoint.closed(stream, how, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{RawWaker, RawWakerVTable, Waker};

    use super::*;
    use crate::endpoint::fake::FullEndpoint;
    use crate::memory::memory_pair;

    /// Waker that notifies the driver each time it is cloned, so that output is reported whenever the driver starts to
    /// wait.
    #[derive(Default)]
    struct Flood {
        /// Notification that the waker triggers and for which the driver waits.
        notify: Arc<Notify>,
        /// Number of reports so far.
        reports: AtomicU32,
        /// Number of wake-ups of the driver.
        wakes: AtomicU32,
    }

    /// Number of reports after which the flood ends, so that a driver that waits for the end of the flood fails the
    /// test instead of hanging.
    const REPORTS: u32 = 10_000;

    /// Functions of the waker: clone, wake, wake by reference, drop.
    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            let flood = Flood::of(data);
            if flood.reports.fetch_add(1, Ordering::Relaxed) < REPORTS {
                flood.notify.notify_one();
            }
            RawWaker::new(data, &VTABLE)
        },
        Flood::wake,
        Flood::wake,
        |_| {},
    );

    #[allow(unsafe_code)]
    impl Flood {
        /// Returns the flood to which the data pointer of a waker refers.
        fn of(data: *const ()) -> &'static Self {
            // SAFETY: `waker` alone makes wakers of this table, from a reference that lives for ever.
            unsafe { &*data.cast::<Self>() }
        }

        /// Counts a wake-up.
        fn wake(data: *const ()) {
            Self::of(data).wakes.fetch_add(1, Ordering::Relaxed);
        }

        /// Creates a waker of this flood.
        fn waker(&'static self) -> Waker {
            let raw = RawWaker::new(std::ptr::from_ref(self).cast(), &VTABLE);
            // SAFETY: the functions of the table do nothing but use shared references, which threads may share.
            unsafe { Waker::from_raw(raw) }
        }
    }

    /// Continuous reports of output do not prevent the driver from receiving messages and yielding to other tasks.
    #[tokio::test]
    async fn flood_of_reports_starves_nothing() {
        let flood: &'static Flood = Box::leak(Box::default());
        let (mut near, far) = memory_pair(1024, 1024);
        near.output().extend_from_slice(b"one");
        near.end_frame();
        assert!(
            near.poll_flush(&mut Context::from_waker(Waker::noop()))
                .is_ready()
        );
        let shared = FullEndpoint::shared(0);
        let (notify, options) = (Arc::clone(&flood.notify), ConnectionOptions::default());
        let mut driver = Driver::new(Arc::clone(&shared), far, (), notify, options);
        let waker = flood.waker();
        flood.notify.notify_one();
        assert!(driver.poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(shared.lock().endpoint.accepted_messages, ["one"]);
        let reports = flood.reports.load(Ordering::Relaxed);
        assert!(reports < 100, "{reports} reports were waited for");
        assert!(flood.wakes.load(Ordering::Relaxed) > 0, "a report is lost");
    }

    /// A message that the endpoint rejects because its queues are full is delivered again, in the original order.
    #[tokio::test]
    async fn refused_message_is_delivered_again() {
        let (mut near, far) = memory_pair(1024, 1024);
        for message in ["one", "two", "three"] {
            near.output().extend_from_slice(message.as_bytes());
            near.end_frame();
        }
        let mut cx = Context::from_waker(Waker::noop());
        assert!(near.poll_flush(&mut cx).is_ready());
        let shared = FullEndpoint::shared(2);
        let (notify, options) = (Arc::default(), ConnectionOptions::default());
        let mut driver = Driver::new(Arc::clone(&shared), far, (), notify, options);
        for _ in 0..4 {
            assert!(driver.poll(&mut cx).is_pending());
        }
        assert_eq!(
            shared.lock().endpoint.accepted_messages,
            ["one", "two", "three"]
        );
    }

    /// Transport of a peer that sends blank lines without end: reading them uses up the budget of the task.
    struct BlankLines(Vec<u8>);

    impl Transport for BlankLines {
        fn poll_receive(
            &mut self,
            cx: &mut Context<'_>,
            _: &mut dyn FnMut(Received<'_>) -> bool,
        ) -> Poll<io::Result<bool>> {
            loop {
                ready!(coop::poll_proceed(cx)).made_progress();
            }
        }

        fn output(&mut self) -> &mut Vec<u8> {
            &mut self.0
        }

        fn end_frame(&mut self) {}

        fn queued(&self) -> usize {
            0
        }

        fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Input that is no message, and never ends, does not keep the timeouts from expiring.
    #[tokio::test(start_paused = true)]
    async fn endless_input_stops_no_timer() {
        let shared = FullEndpoint::shared(0);
        let timeout = Duration::from_secs(1);
        shared.lock().endpoint.deadline = Some(clock::now().saturating_add(timeout));
        let (notify, options) = (Arc::default(), ConnectionOptions::default());
        let transport = BlankLines(Vec::new());
        let mut driver = Driver::new(Arc::clone(&shared), transport, (), notify, options);
        for _ in 0..3 {
            let pending = poll_fn(|cx| Poll::Ready(driver.poll(cx).is_pending()));
            assert!(pending.await);
            tokio::time::advance(timeout).await;
        }
        assert_eq!(shared.lock().endpoint.deadline, None);
    }
}
