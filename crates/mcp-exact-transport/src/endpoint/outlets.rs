//! Output of an endpoint by stream, for transports with several streams.
//!
//! Takes what the endpoint sends and keeps it until the connection of its stream takes it. Each stream has its own queue and
//! its own waker; a stream whose queue exceeds the limit is closed, so that a slow reader costs nobody else anything.

use std::collections::{HashMap, VecDeque};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use mcp_exact_session::{HttpHints, StreamId, Transmit};

use super::Endpoint;

/// Output on a stream.
#[derive(Debug)]
pub(crate) enum Output {
    /// A message.
    Frame {
        bytes: Bytes,
        /// Number in the stream, from 1 on.
        sequence: u64,
        /// Whether the stream ends with it.
        last: bool,
        http: Box<HttpHints>,
    },
    /// An HTTP status without a body.
    Status(u16),
}

/// Next output of a stream.
#[derive(Debug)]
pub(crate) enum Peeked {
    Frame {
        bytes: Bytes,
        sequence: u64,
        last: bool,
    },
    Status,
}

#[derive(Debug, Default)]
struct Outlet {
    queue: VecDeque<Output>,
    bytes: usize,
    sequence: u64,
    waker: Option<Waker>,
    /// Nothing is added any more.
    has_ended: bool,
}

/// Output by stream.
#[derive(Debug)]
pub(crate) struct Outlets {
    limit: usize,
    streams: HashMap<StreamId, Outlet>,
    overflowed: Vec<StreamId>,
    /// Wakes whoever opens connections for new streams: a client.
    waker: Option<Waker>,
    fresh: VecDeque<StreamId>,
    /// Whether a stream that is not known is new rather than over.
    opens_streams: bool,
    /// Streams that the endpoint has closed without a message.
    closed: Vec<StreamId>,
}

impl Default for Outlets {
    fn default() -> Self {
        Self {
            limit: 8 << 20,
            streams: HashMap::new(),
            overflowed: Vec::new(),
            waker: None,
            fresh: VecDeque::new(),
            opens_streams: false,
            closed: Vec::new(),
        }
    }
}

impl Outlets {
    /// Creates the outlets of a client, whose messages open streams.
    pub(crate) fn of_client() -> Self {
        Self {
            opens_streams: true,
            ..Self::default()
        }
    }

    /// Forgets all streams: another endpoint numbers its own.
    pub(crate) fn restart(&mut self) {
        self.streams.clear();
        self.overflowed.clear();
        self.fresh.clear();
        self.closed.clear();
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Creates the outlets of a server, whose streams hold so many bytes at most.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Creates the queue of a stream.
    pub(crate) fn open(&mut self, stream: StreamId) {
        self.streams.entry(stream).or_default();
    }

    /// Forgets a stream and what waits on it.
    pub(crate) fn remove(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    /// Returns the streams whose queues exceeded the limit since the last call. They have ended.
    pub(crate) fn take_overflowed(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.overflowed)
    }

    /// Returns the streams that the endpoint has closed since the last call.
    pub(crate) fn take_closed(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.closed)
    }

    /// Returns the next stream that the endpoint has opened by a message.
    pub(crate) fn poll_fresh(&mut self, cx: &Context<'_>) -> Poll<StreamId> {
        match self.fresh.pop_front() {
            Some(stream) => Poll::Ready(stream),
            None => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Takes everything that the endpoint sends.
    pub(super) fn pump<E: Endpoint>(&mut self, endpoint: &mut E) {
        let mut bytes = Vec::new();
        while let Some(transmit) = endpoint.poll_transmit(&mut bytes) {
            let frame = std::mem::take(&mut bytes);
            match transmit {
                Transmit::Frame {
                    stream,
                    sequence,
                    last,
                    http,
                    ..
                } => self.frame(stream, sequence + 1, frame, last, http),
                Transmit::Status { stream, status } => {
                    self.push(stream, Output::Status(status), 0);
                    self.end(stream);
                }
                Transmit::Close { stream } => {
                    self.end(stream);
                    self.closed.push(stream);
                    if let Some(waker) = self.waker.take() {
                        waker.wake();
                    }
                }
                _ => {}
            }
        }
    }

    fn frame(&mut self, on: StreamId, sequence: u64, bytes: Vec<u8>, last: bool, http: HttpHints) {
        if self.opens_streams && !self.streams.contains_key(&on) {
            self.open(on);
            self.fresh.push_back(on);
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
        let Some(outlet) = self.streams.get_mut(&on) else {
            return;
        };
        outlet.sequence = sequence;
        let size = bytes.len();
        let http = Box::new(http);
        let frame = Output::Frame {
            bytes: bytes.into(),
            sequence,
            last,
            http,
        };
        self.push(on, frame, size);
        if last {
            self.end(on);
        }
    }

    fn push(&mut self, stream: StreamId, output: Output, size: usize) {
        let Some(outlet) = self.streams.get_mut(&stream) else {
            return;
        };
        if outlet.has_ended {
            return;
        }
        if !outlet.queue.is_empty() && outlet.bytes + size > self.limit {
            self.overflowed.push(stream);
            return self.end(stream);
        }
        outlet.bytes += size;
        outlet.queue.push_back(output);
        if let Some(waker) = outlet.waker.take() {
            waker.wake();
        }
    }

    /// Ends a stream after what waits on it.
    pub(crate) fn end(&mut self, stream: StreamId) {
        if let Some(outlet) = self.streams.get_mut(&stream) {
            outlet.has_ended = true;
            if let Some(waker) = outlet.waker.take() {
                waker.wake();
            }
        }
    }

    /// Takes the next output of a stream; `None` when the stream has ended.
    pub(crate) fn poll_next(&mut self, stream: StreamId, cx: &Context<'_>) -> Poll<Option<Output>> {
        let Some(outlet) = self.streams.get_mut(&stream) else {
            return Poll::Ready(None);
        };
        match outlet.queue.pop_front() {
            Some(output) => {
                if let Output::Frame { bytes, .. } = &output {
                    outlet.bytes -= bytes.len();
                }
                Poll::Ready(Some(output))
            }
            None if outlet.has_ended => Poll::Ready(None),
            None => {
                outlet.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Returns what comes next on a stream and leaves it there, for a reader that has to decide or to record first; `None` when
    /// the stream has ended.
    pub(crate) fn poll_peek(&mut self, stream: StreamId, cx: &Context<'_>) -> Poll<Option<Peeked>> {
        let Some(outlet) = self.streams.get_mut(&stream) else {
            return Poll::Ready(None);
        };
        match outlet.queue.front() {
            Some(Output::Frame {
                bytes,
                sequence,
                last,
                ..
            }) => Poll::Ready(Some(Peeked::Frame {
                bytes: bytes.clone(),
                sequence: *sequence,
                last: *last,
            })),
            Some(Output::Status(_)) => Poll::Ready(Some(Peeked::Status)),
            None if outlet.has_ended => Poll::Ready(None),
            None => {
                outlet.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Drops the messages of a stream up to this number: they were recorded and sent.
    pub(crate) fn drop_through(&mut self, stream: StreamId, through: u64) {
        let Some(outlet) = self.streams.get_mut(&stream) else {
            return;
        };
        while let Some(Output::Frame {
            sequence, bytes, ..
        }) = outlet.queue.front()
            && *sequence <= through
        {
            outlet.bytes -= bytes.len();
            outlet.queue.pop_front();
        }
    }

    /// Returns the number of the last message that was taken from a stream.
    pub(crate) fn taken(&self, stream: StreamId) -> u64 {
        let outlet = self.streams.get(&stream);
        outlet.map_or(0, |outlet| match outlet.queue.front() {
            Some(Output::Frame { sequence, .. }) => sequence - 1,
            _ => outlet.sequence,
        })
    }

    /// Returns true if nothing waits on the stream and nothing more comes.
    pub(crate) fn is_over(&self, stream: StreamId) -> bool {
        let outlet = self.streams.get(&stream);
        outlet.is_none_or(|outlet| outlet.has_ended && outlet.queue.is_empty())
    }

    /// Wakes the reader of a stream, so that it sees that another one has taken over.
    pub(crate) fn wake(&mut self, stream: StreamId) {
        let outlet = self.streams.get_mut(&stream);
        if let Some(waker) = outlet.and_then(|outlet| outlet.waker.take()) {
            waker.wake();
        }
    }

    /// Ends every stream after what waits on it.
    pub(crate) fn end_all(&mut self) {
        let streams: Vec<StreamId> = self.streams.keys().copied().collect();
        for stream in streams {
            self.end(stream);
        }
    }
}
