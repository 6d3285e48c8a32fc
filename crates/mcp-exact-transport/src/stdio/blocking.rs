//! Server over stdio with threads, without an async runtime.
//!
//! The calling thread reads messages and calls the handler. The replies to a burst of requests are written at once; a
//! thread that replies later writes its reply itself.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcp_exact_session::{
    Binding, FrameContext, ReceiveError, ServerSettings, StreamEnd, StreamId, Time, Transmit,
};

use super::claim::claim;
use crate::clock;
use crate::endpoint::{
    Endpoint, Origin, Readers, RequestContext, ServerDispatch, ServerEndpoint, ServerHandler,
    Shared, Signal,
};
use crate::line::Lines;
use crate::transport::Received;

/// Maximum time for which the replies of a burst are collected before they are written.
///
/// The time is a few times the duration of a write, so that a client with many calls in flight can process the first
/// replies while the server computes the other replies.
const MAX_BURST_TIME: Duration = Duration::from_micros(25);
/// Maximum number of bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Interval at which a message is passed to the endpoint again while the endpoint's queues are full.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Serves the client on standard input and output until the end of input, and then waits up to two seconds for the
/// replies of other threads. No async runtime is needed: the handler runs on the calling thread and may block it.
///
/// After this call, other output of the process to standard output goes to standard error, and standard input is at its
/// end.
///
/// # Errors
/// An IO error if the streams are already reserved, or if reading or writing fails.
pub fn serve_blocking(
    settings: Arc<ServerSettings>,
    handler: Arc<dyn ServerHandler>,
) -> io::Result<()> {
    let mut lines = Lines::new(settings.limits.message_bytes);
    let endpoint = ServerEndpoint::new(settings, Binding::Duplex, clock::now());
    let claimed = claim()?;
    let writer = Writer::new(claimed.output);
    let signal = Arc::clone(&writer) as Arc<dyn Signal<ServerEndpoint>>;
    let dispatch = Arc::new(ServerDispatch::new(handler));
    let (readers, origin) = (Readers::default(), Origin::Transport("stdio"));
    let shared = Shared::<ServerEndpoint>::new(endpoint, readers, dispatch, signal, origin);
    let _ = writer.shared.set(Arc::downgrade(&shared));
    let result = read_all(&shared, &writer, claimed.input, &mut lines);
    let how = match &result {
        Ok(()) => StreamEnd::Clean,
        Err(_) => StreamEnd::Lost,
    };
    shared.call(|state, now| state.endpoint.handle_close(StreamId::DUPLEX, how, now));
    let until = Instant::now() + Duration::from_secs(2);
    while !shared.lock().endpoint.is_closed() && Instant::now() < until {
        std::thread::sleep(RETRY_INTERVAL);
    }
    shared.call(|state, now| state.endpoint.shutdown(now));
    writer.stop_timer();
    result.and(writer.take_error())
}

/// Reads standard input to its end and passes its messages to the endpoint.
fn read_all(
    shared: &Arc<Shared<ServerEndpoint>>,
    writer: &Writer,
    mut input: File,
    lines: &mut Lines,
) -> io::Result<()> {
    let context = FrameContext::new(RequestContext::default());
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let count = match input.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        lines.buffer().extend_from_slice(&bytes[..count]);
        let is_over = count == 0;
        let burst = writer.begin();
        let mut since = Instant::now();
        while let Some(received) = if is_over { lines.rest() } else { lines.next() } {
            let wants_more = receive(shared, received, &context, || writer.write(shared));
            if !wants_more || since.elapsed() > MAX_BURST_TIME {
                writer.write(shared);
                since = Instant::now();
            }
        }
        drop(burst);
        writer.write(shared);
        writer.take_error()?;
        if is_over {
            return Ok(());
        }
    }
}

/// Passes a message to the endpoint; returns true if the endpoint accepts more messages.
///
/// If the queues of the endpoint are full while another thread handles its events, calls `write` and retries.
fn receive<E: Endpoint>(
    shared: &Arc<Shared<E>>,
    received: Received<'_>,
    context: &E::Context,
    write: impl Fn(),
) -> bool {
    loop {
        match shared.receive(StreamId::DUPLEX, received, context.clone()) {
            (Err(ReceiveError::Full), _) => {
                write();
                std::thread::sleep(RETRY_INTERVAL);
            }
            (_, wants_more) => return wants_more,
        }
    }
}

/// Writer of the endpoint's output and timer of the endpoint, which all threads share.
struct Writer {
    /// Reference to the writer itself, for the timer thread.
    me: Weak<Self>,
    /// Standard output.
    output: Mutex<Output>,
    /// The endpoint.
    shared: OnceLock<Weak<Shared<ServerEndpoint>>>,
    /// True while the reading thread handles a burst of messages.
    ///
    /// The thread resets the flag before it writes the output at the end of the burst, so that output that other
    /// threads have queued in the meantime is also written.
    is_in_burst: AtomicBool,
    /// State of the timer thread.
    timer: Mutex<Timer>,
    /// True if the timer thread has a deadline to wait for.
    is_armed: AtomicBool,
    /// Notifies the timer thread that the deadline has changed or that the thread must end.
    changed: Condvar,
}

/// Standard output with its buffer.
struct Output {
    /// Standard output.
    file: File,
    /// Bytes that were not yet written.
    buffer: Vec<u8>,
    /// First error of a write; after an error, nothing more is written.
    error: Option<io::Error>,
}

/// State of the timer thread.
#[derive(Default)]
struct Timer {
    /// Next deadline of the endpoint.
    deadline: Option<Time>,
    /// True if the timer thread was started.
    is_running: bool,
    /// True if the timer thread must end.
    is_stopped: bool,
}

/// Guard of a burst: while it exists, the reading thread handles messages and other threads do not write.
struct Burst<'a>(&'a Writer);

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        self.0.is_in_burst.store(false, Ordering::SeqCst);
    }
}

/// Locks a mutex, even if a thread has panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writer {
    fn new(file: File) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            output: Mutex::new(Output {
                file,
                buffer: Vec::new(),
                error: None,
            }),
            shared: OnceLock::new(),
            is_in_burst: AtomicBool::new(false),
            timer: Mutex::default(),
            is_armed: AtomicBool::new(false),
            changed: Condvar::new(),
        })
    }

    /// Starts a burst of messages.
    fn begin(&self) -> Burst<'_> {
        self.is_in_burst.store(true, Ordering::SeqCst);
        Burst(self)
    }

    /// Writes all queued output of the endpoint, in order.
    fn write(&self, shared: &Arc<Shared<ServerEndpoint>>) {
        let mut output = lock(&self.output);
        let Output {
            file,
            buffer,
            error,
            ..
        } = &mut *output;
        let mut state = shared.lock();
        while let Some(transmit) = state.poll_transmit(buffer) {
            if matches!(transmit, Transmit::Frame { .. }) {
                buffer.push(b'\n');
            }
        }
        drop(state);
        if !buffer.is_empty() && error.is_none() {
            *error = file.write_all(buffer).err();
        }
        buffer.clear();
    }

    /// Returns and removes the first error of a write, if any.
    fn take_error(&self) -> io::Result<()> {
        lock(&self.output).error.take().map_or(Ok(()), Err)
    }

    /// Handles the timeouts of the endpoint at its deadlines until the timer is stopped.
    fn run_timer(&self) {
        let mut timer = lock(&self.timer);
        while !timer.is_stopped {
            let instant = timer.deadline.and_then(clock::instant);
            let wait = instant.map(|at| at.saturating_duration_since(Instant::now()));
            let waited = wait.unwrap_or(Duration::from_secs(3600));
            if instant.is_none() || waited > Duration::ZERO {
                let guard = self.changed.wait_timeout(timer, waited);
                timer = guard.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(timer);
            if let Some(shared) = self.shared.get().and_then(Weak::upgrade) {
                shared.call(|state, now| state.endpoint.handle_timeout(now));
            }
            timer = lock(&self.timer);
        }
    }

    /// Makes the timer thread end.
    fn stop_timer(&self) {
        lock(&self.timer).is_stopped = true;
        self.changed.notify_all();
    }

    /// Sets the next deadline; the first deadline starts the timer thread.
    fn arm(&self, deadline: Option<Time>) {
        if deadline.is_none() && !self.is_armed.load(Ordering::SeqCst) {
            return;
        }
        let mut timer = lock(&self.timer);
        self.is_armed.store(deadline.is_some(), Ordering::SeqCst);
        if timer.deadline == deadline {
            return;
        }
        timer.deadline = deadline;
        if !std::mem::replace(&mut timer.is_running, true)
            && let Some(writer) = self.me.upgrade()
        {
            let builder = std::thread::Builder::new().name("mcp-timer".to_owned());
            timer.is_running = builder.spawn(move || writer.run_timer()).is_ok();
        }
        self.changed.notify_all();
    }
}

impl Signal<ServerEndpoint> for Writer {
    fn changed(&self, shared: &Arc<Shared<ServerEndpoint>>, deadline: Option<Time>) {
        self.arm(deadline);
        if !self.is_in_burst.load(Ordering::SeqCst) {
            self.write(shared);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::endpoint::fake::FullEndpoint;

    /// A message that the endpoint rejects because its queues are full is passed to the endpoint again, and queued
    /// output is written in the meantime.
    #[test]
    fn refused_message_is_delivered_again() {
        let shared = FullEndpoint::shared(2);
        let writes = Cell::new(0);
        let write = || writes.set(writes.get() + 1);
        assert!(receive(&shared, Received::Frame(b"one"), &(), write));
        assert_eq!(shared.lock().endpoint.accepted_messages, ["one"]);
        assert_eq!(writes.get(), 2);
    }
}
