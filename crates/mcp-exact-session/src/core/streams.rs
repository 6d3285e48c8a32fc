//! Streams of an endpoint, each with its own queue of output, limits and sequence numbers.
//!
//! A slow reader of one stream delays no other stream, and its queue cannot exceed the limit of the stream. The roles queue
//! frames; the transport removes them, by stream or in the order in which they were queued.

use std::collections::VecDeque;

use super::ordered::OrderedMap;
use crate::limits::{Limit, Limits};
use crate::stream::{HttpHints, RequestKey, StreamId, StreamKind, Transmit};

/// Frame that is queued for the transport.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Stream that carries the frame.
    pub(crate) stream: StreamId,
    /// The message, without a line end.
    pub(crate) bytes: Vec<u8>,
    /// Incoming request that the frame belongs to.
    pub(crate) incoming_request: Option<RequestKey>,
    /// Key of the local peer's request, if the frame is a request.
    pub(crate) local_request: Option<RequestKey>,
    /// True if the frame is the last output of the stream.
    pub(crate) is_last: bool,
    /// Headers and hints for an HTTP transport.
    pub(crate) http: HttpHints,
    /// True if the endpoint generated the frame, such as a refusal; the frame may then use the reserved bytes.
    pub(crate) uses_reserve: bool,
}

impl Frame {
    /// Creates a frame that belongs to no request and is not the last output of its stream.
    pub(crate) fn new(stream: StreamId, bytes: Vec<u8>) -> Self {
        Self {
            stream,
            bytes,
            incoming_request: None,
            local_request: None,
            is_last: false,
            http: HttpHints::default(),
            uses_reserve: false,
        }
    }

    /// Sets the incoming request that the frame belongs to.
    pub(crate) fn with_incoming_request(mut self, request: RequestKey) -> Self {
        self.incoming_request = Some(request);
        self
    }

    /// Sets whether the frame is the last output of the stream.
    pub(crate) fn with_last(mut self, last: bool) -> Self {
        self.is_last = last;
        self
    }

    /// Sets the HTTP status of the response.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.http.status = Some(status);
        self
    }

    /// Allows the frame to use the reserved bytes.
    pub(crate) fn with_reserve(mut self) -> Self {
        self.uses_reserve = true;
        self
    }
}

/// Queued output of a stream.
#[derive(Debug)]
enum Output {
    /// A message in a frame.
    Frame(Frame),
    /// An HTTP status without a body.
    Status(u16),
    /// The end of the stream.
    Close,
}

/// State and queued output of a stream.
#[derive(Debug)]
struct Stream {
    /// Purpose of the stream.
    kind: StreamKind,
    /// True if the connection is lost; the stream may be resumed on a new connection.
    is_detached: bool,
    /// True if no further output is accepted; queued frames are still written.
    is_finished: bool,
    /// True if the stream carries a request without a session.
    is_stateless: bool,
    /// Queued outputs, each with its position in the order of all streams.
    queue: VecDeque<(u64, Output)>,
    /// Size of the queued frames in bytes.
    bytes: usize,
    /// Number of frames that were passed to the transport.
    sequence: u64,
    /// Number of outputs at the front of the queue that an event log records, so that they cannot be withdrawn.
    committed_outputs: usize,
}

/// Reason why a frame was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueError {
    /// The stream is not open.
    Closed,
    /// The reserve for refusals is exhausted, because the peer does not read.
    ReserveExhausted,
}

/// All streams of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Number of the last stream.
    last_id: u64,
    /// Streams that are open or have queued output.
    by_id: OrderedMap<StreamId, Stream>,
    /// Attached streams with output, ordered by the position of their oldest output.
    ready: OrderedMap<(u64, StreamId), ()>,
    /// Position of the next queued output in the order of all streams.
    next_position: u64,
    /// Number of queued outputs of all streams.
    queued_outputs: usize,
    /// Size in bytes of the queued frames of all streams.
    bytes: usize,
    /// Size in bytes of the queued frames that use the reserve.
    reserved_bytes: usize,
    /// Requests that wait for `notifications/initialized`.
    deferred_requests: VecDeque<Frame>,
    /// Size of the deferred requests in bytes.
    deferred_bytes: usize,
}

impl Streams {
    /// Creates the streams of a duplex transport: a single stream, which is open from the start.
    pub(crate) fn with_duplex_stream() -> Self {
        let mut streams = Self::default();
        streams.insert_stream(StreamId::DUPLEX, StreamKind::Duplex);
        streams
    }

    /// Inserts an open stream.
    pub(crate) fn insert_stream(&mut self, id: StreamId, kind: StreamKind) {
        let stream = Stream {
            kind,
            is_detached: false,
            is_finished: false,
            is_stateless: false,
            queue: VecDeque::new(),
            bytes: 0,
            sequence: 0,
            committed_outputs: 0,
        };
        self.by_id.insert(id, stream);
    }

    /// Releases unused memory.
    pub(crate) fn release_memory(&mut self) {
        self.by_id.release_memory();
        self.ready.release_memory();
    }

    /// Opens a stream and returns its id.
    pub(crate) fn open(&mut self, kind: StreamKind) -> StreamId {
        self.last_id += 1;
        let id = StreamId(self.last_id);
        self.insert_stream(id, kind);
        id
    }

    /// Opens a stream with a given id and the number of frames that the stream has carried so far.
    pub(crate) fn restore(&mut self, id: StreamId, kind: StreamKind, sequence: u64) {
        self.last_id = self.last_id.max(id.0);
        self.insert_stream(id, kind);
        if let Some(stream) = self.by_id.get_mut(id) {
            stream.sequence = sequence;
            stream.is_detached = true;
        }
    }

    /// Makes new stream numbers start after `last_id`.
    pub(crate) fn reserve_ids(&mut self, last_id: u64) {
        self.last_id = self.last_id.max(last_id);
    }

    /// Returns the last assigned stream number.
    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Returns true if the stream is open or has queued output.
    pub(crate) fn contains(&self, id: StreamId) -> bool {
        self.by_id.get(id).is_some()
    }

    /// Returns true if the stream accepts output.
    pub(crate) fn is_open(&self, id: StreamId) -> bool {
        self.kind(id).is_some()
    }

    /// Returns the kind of a stream that still accepts output.
    pub(crate) fn kind(&self, id: StreamId) -> Option<StreamKind> {
        let stream = self.by_id.get(id)?;
        (!stream.is_finished).then_some(stream.kind)
    }

    /// Returns true if the stream is an open POST.
    pub(crate) fn is_post(&self, id: StreamId) -> bool {
        self.kind(id) == Some(StreamKind::Post)
    }

    /// Iterates over the streams that still accept output, with their kinds, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (StreamId, StreamKind)> {
        let open = self.by_id.iter().filter(|(_, stream)| !stream.is_finished);
        open.map(|(id, stream)| (id, stream.kind))
    }

    /// Returns the number of streams that accept output.
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns the number of streams that are open or have queued output.
    pub(crate) fn stored_count(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the number of the next frame of a stream.
    pub(crate) fn sequence(&self, id: StreamId) -> u64 {
        self.by_id.get(id).map_or(0, |stream| stream.sequence)
    }

    /// Returns the newest attached standalone stream, or else the newest detached one.
    pub(crate) fn standalone(&self) -> Option<StreamId> {
        let newest = |detached: bool| {
            let fits = |stream: &Stream| {
                stream.kind == StreamKind::Standalone
                    && !stream.is_finished
                    && stream.is_detached == detached
            };
            let mut all = self.by_id.iter().rev();
            all.find(|(_, stream)| fits(stream)).map(|(id, _)| id)
        };
        newest(false).or_else(|| newest(true))
    }

    /// Queues a frame on its stream.
    pub(crate) fn push(&mut self, frame: Frame, limits: &Limits) -> Result<(), QueueError> {
        let id = frame.stream;
        if !self.is_open(id) {
            return Err(QueueError::Closed);
        }
        let mut frame = frame;
        frame.uses_reserve &= self.reached_limit(id, limits).is_some();
        if frame.uses_reserve {
            let reserve = self.reserved_bytes + frame.bytes.len();
            if id == StreamId::DUPLEX && reserve > limits.reserved_bytes {
                return Err(QueueError::ReserveExhausted);
            }
            self.reserved_bytes = reserve;
        }
        let last = frame.is_last;
        self.enqueue(id, Output::Frame(frame));
        if last {
            self.finish_stream(id);
        }
        Ok(())
    }

    /// Calls `update` with each queued frame, whose length may change.
    pub(crate) fn for_each_frame(&mut self, mut update: impl FnMut(&mut Frame)) {
        for stream in self.by_id.values_mut() {
            for (_, output) in &mut stream.queue {
                let before = output.bytes();
                if let Output::Frame(frame) = output {
                    update(frame);
                }
                stream.bytes = stream.bytes + output.bytes() - before;
                self.bytes = self.bytes + output.bytes() - before;
            }
        }
    }

    /// Queues an HTTP status without a body, and ends the stream.
    pub(crate) fn push_status(&mut self, id: StreamId, status: u16) {
        if self.is_open(id) {
            self.enqueue(id, Output::Status(status));
            self.finish_stream(id);
        }
    }

    /// Queues the end of a stream.
    ///
    /// A detached stream without output is removed, because nothing can be resumed.
    pub(crate) fn push_close(&mut self, id: StreamId) {
        let idle = |stream: &Stream| stream.is_detached && stream.queue.is_empty();
        if self.by_id.get(id).is_some_and(idle) {
            self.remove(id);
        } else if self.is_open(id) {
            self.enqueue(id, Output::Close);
            self.finish_stream(id);
        }
    }

    /// Drops the queued output of every stream and queues the end of each.
    pub(crate) fn abort(&mut self) {
        let ids: Vec<StreamId> = self.by_id.iter().map(|(id, _)| id).collect();
        for id in ids {
            let open = self.is_open(id);
            self.discard_queue(id);
            if open {
                self.push_close(id)
            } else {
                self.remove(id)
            }
        }
        self.deferred_requests.clear();
        self.deferred_bytes = 0;
    }

    /// Queues the end of every open stream after its queued output.
    ///
    /// Detached streams are removed, because no client can resume them after the end of the session.
    pub(crate) fn close_all(&mut self) {
        let detached = self.by_id.iter().filter(|(_, stream)| stream.is_detached);
        let detached: Vec<StreamId> = detached.map(|(id, _)| id).collect();
        detached.into_iter().for_each(|id| self.remove(id));
        let ids: Vec<StreamId> = self.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.push_close(id);
        }
    }

    /// Removes a stream whose connection has ended, and its queued output.
    pub(crate) fn remove(&mut self, id: StreamId) {
        self.discard_queue(id);
        self.by_id.remove(id);
    }

    /// Removes all streams and their output.
    pub(crate) fn clear(&mut self) {
        *self = Self {
            last_id: self.last_id,
            next_position: self.next_position,
            ..Self::default()
        };
    }

    /// Removes all streams and their output, except the streams for which `keeps` returns true.
    pub(crate) fn clear_except(&mut self, keeps: impl Fn(StreamId) -> bool) {
        let ids = self.by_id.iter().map(|(id, _)| id);
        let removed: Vec<StreamId> = ids.filter(|id| !keeps(*id)).collect();
        if removed.len() == self.by_id.len() {
            return self.clear();
        }
        removed.into_iter().for_each(|id| self.remove(id));
        self.deferred_requests.clear();
        self.deferred_bytes = 0;
    }

    /// Records that a stream carries a request without a session.
    pub(crate) fn set_stateless(&mut self, id: StreamId) {
        if let Some(stream) = self.by_id.get_mut(id) {
            stream.is_stateless = true;
        }
    }

    /// Returns true if the stream carries a request without a session.
    pub(crate) fn is_stateless(&self, id: StreamId) -> bool {
        self.by_id.get(id).is_some_and(|stream| stream.is_stateless)
    }

    /// Removes the oldest detached stream of a kind.
    pub(crate) fn remove_oldest_detached(&mut self, kind: StreamKind) {
        let fits = |stream: &Stream| stream.is_detached && stream.kind == kind;
        let oldest = self.by_id.iter().find(|(_, stream)| fits(stream));
        if let Some(id) = oldest.map(|(id, _)| id) {
            self.remove(id);
        }
    }

    /// Records that the connection of a stream is lost; the output waits for a new connection.
    pub(crate) fn detach(&mut self, id: StreamId) {
        if let Some(stream) = self.by_id.get_mut(id)
            && !stream.is_detached
        {
            stream.is_detached = true;
            if let Some((place, _)) = stream.queue.front() {
                self.ready.remove((*place, id));
            }
        }
    }

    /// Reattaches a detached stream; returns false if the stream no longer exists.
    pub(crate) fn attach(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.by_id.get_mut(id) else {
            return false;
        };
        if std::mem::take(&mut stream.is_detached)
            && let Some((place, _)) = stream.queue.front()
        {
            self.ready.insert((*place, id), ());
        }
        true
    }

    /// Removes the queued and deferred frames that belong to an incoming request; returns the keys of the local peer's
    /// requests among them.
    pub(crate) fn withdraw_frames_of_request(
        &mut self,
        id: StreamId,
        request: RequestKey,
    ) -> Vec<RequestKey> {
        let is_about = |frame: &Frame| frame.incoming_request == Some(request);
        let mut withdrawn = self.withdraw_deferred(&is_about);
        withdrawn.extend(self.withdraw_where(id, &is_about));
        withdrawn
    }

    /// Removes a request of the local peer that was not sent; returns true if the request was still queued.
    pub(crate) fn withdraw_request(&mut self, id: StreamId, request: RequestKey) -> bool {
        let carries = |frame: &Frame| frame.local_request == Some(request);
        !self.withdraw_deferred(&carries).is_empty()
            || !self.withdraw_where(id, &carries).is_empty()
    }

    /// Removes deferred requests; returns their keys.
    fn withdraw_deferred(&mut self, matches: &dyn Fn(&Frame) -> bool) -> Vec<RequestKey> {
        let mut requests = Vec::new();
        let bytes = &mut self.deferred_bytes;
        self.deferred_requests.retain(|frame| {
            let is_withdrawn = matches(frame);
            if is_withdrawn {
                *bytes -= frame.bytes.len();
                requests.extend(frame.local_request);
            }
            !is_withdrawn
        });
        requests
    }

    /// Removes the queued frames of a stream for which `matches` returns true; returns the keys of the local peer's
    /// requests among them.
    fn withdraw_where(
        &mut self,
        id: StreamId,
        matches: &dyn Fn(&Frame) -> bool,
    ) -> Vec<RequestKey> {
        let Some(stream) = self.by_id.get_mut(id) else {
            return Vec::new();
        };
        let is_withdrawn =
            |output: &Output| matches!(output, Output::Frame(frame) if matches(frame));
        let committed = stream.committed_outputs;
        let mut rest = stream.queue.iter().skip(committed);
        if !rest.any(|(_, output)| is_withdrawn(output)) {
            return Vec::new();
        }
        let front = stream.queue.front().map(|(place, _)| *place);
        let rest = stream.queue.split_off(committed);
        let (left, kept): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|(_, output)| is_withdrawn(output));
        stream.queue.extend(kept);
        let next = stream.queue.front().map(|(place, _)| *place);
        let attached = !stream.is_detached;
        if let Some(place) = front {
            self.ready.remove((place, id));
        }
        if let Some(place) = next.filter(|_| attached) {
            self.ready.insert((place, id), ());
        }
        let mut requests = Vec::new();
        for (_, output) in left {
            self.subtract_output(id, &output);
            if let Output::Frame(frame) = output {
                requests.extend(frame.local_request);
            }
        }
        requests
    }

    /// Defers a request until [`release_deferred`](Self::release_deferred).
    pub(crate) fn defer(&mut self, frame: Frame) {
        self.deferred_bytes += frame.bytes.len();
        self.deferred_requests.push_back(frame);
    }

    /// Queues the deferred requests whose streams are still open; returns the keys of requests whose streams are closed.
    pub(crate) fn release_deferred(&mut self, limits: &Limits) -> Vec<RequestKey> {
        self.deferred_bytes = 0;
        let mut lost = Vec::new();
        for frame in std::mem::take(&mut self.deferred_requests) {
            let request = frame.local_request;
            if self.push(frame, limits).is_err() {
                lost.extend(request);
            }
        }
        lost
    }

    /// Removes and returns the oldest output of all attached streams.
    pub(crate) fn pop(&mut self) -> Option<(Transmit, Vec<u8>)> {
        let (_, id) = self.ready.first()?;
        self.pop_on(id)
    }

    /// Removes and returns the oldest output of a stream, which may be detached.
    pub(crate) fn pop_on(&mut self, id: StreamId) -> Option<(Transmit, Vec<u8>)> {
        let stream = self.by_id.get_mut(id)?;
        let (place, output) = stream.queue.pop_front()?;
        stream.committed_outputs = stream.committed_outputs.saturating_sub(1);
        if !stream.is_detached {
            self.ready.remove((place, id));
            if let Some((next, _)) = stream.queue.front() {
                self.ready.insert((*next, id), ());
            }
        }
        let sequence = stream.sequence;
        let drained = stream.queue.is_empty() && stream.is_finished;
        if matches!(output, Output::Frame(_)) {
            stream.sequence += 1;
        }
        self.subtract_output(id, &output);
        if drained {
            self.by_id.remove(id);
        }
        Some(match output {
            Output::Frame(frame) => {
                let transmit = Transmit::Frame {
                    stream: id,
                    sequence,
                    related_request: frame.incoming_request,
                    is_last: frame.is_last,
                    http: frame.http,
                };
                (transmit, frame.bytes)
            }
            Output::Status(status) => (Transmit::Status { stream: id, status }, Vec::new()),
            Output::Close => (Transmit::Close { stream: id }, Vec::new()),
        })
    }

    /// Returns the oldest output of a stream without removing it.
    pub(crate) fn peek_on(&self, id: StreamId) -> Option<(Transmit, &[u8])> {
        let stream = self.by_id.get(id)?;
        let (_, output) = stream.queue.front()?;
        Some(match output {
            Output::Frame(frame) => {
                let transmit = Transmit::Frame {
                    stream: id,
                    sequence: stream.sequence,
                    related_request: frame.incoming_request,
                    is_last: frame.is_last,
                    http: frame.http.clone(),
                };
                (transmit, &frame.bytes)
            }
            Output::Status(status) => {
                let status = *status;
                (Transmit::Status { stream: id, status }, &[])
            }
            Output::Close => (Transmit::Close { stream: id }, &[]),
        })
    }

    /// Iterates over the frames at the front of a stream's queue without removing them. The items are the number of a frame,
    /// its bytes, and true if it is the last frame of the stream.
    pub(crate) fn frames_on(&self, id: StreamId) -> impl Iterator<Item = (u64, &[u8], bool)> {
        let stream = self.by_id.get(id);
        let outputs = stream.into_iter().flat_map(|stream| {
            let numbers = stream.sequence..;
            numbers.zip(stream.queue.iter().map(|(_, output)| output))
        });
        outputs.map_while(|(number, output)| match output {
            Output::Frame(frame) => Some((number, &*frame.bytes, frame.is_last)),
            Output::Status(_) | Output::Close => None,
        })
    }

    /// Commits the frames at the front of a stream up to this number. Committed frames cannot be withdrawn.
    pub(crate) fn commit_through(&mut self, id: StreamId, number: u64) {
        if let Some(stream) = self.by_id.get_mut(id) {
            let count = (number + 1).saturating_sub(stream.sequence);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            stream.committed_outputs = stream.committed_outputs.max(count.min(stream.queue.len()));
        }
    }

    /// Iterates over the attached streams with output, ordered by the age of their oldest output.
    pub(crate) fn writable(&self) -> impl Iterator<Item = StreamId> {
        self.ready.iter().map(|((_, id), ())| id)
    }

    /// Returns the limit that the queue of a stream, or all queues together, have reached.
    ///
    /// Deferred requests do not count, because the endpoint must accept `notifications/initialized`, which releases
    /// them.
    pub(crate) fn reached_limit(&self, id: StreamId, limits: &Limits) -> Option<Limit> {
        self.reached_total_limit(limits).or_else(|| {
            let stream = self.by_id.get(id)?;
            let own = stream.kind != StreamKind::Duplex && !stream.queue.is_empty();
            (own && stream.bytes >= limits.stream_bytes).then_some(Limit::StreamBytes)
        })
    }

    /// Returns true if refusals have exhausted the reserve.
    pub(crate) fn is_reserve_exhausted(&self, limits: &Limits) -> bool {
        self.reserved_bytes >= limits.reserved_bytes
    }

    /// Returns the limit that all queues together have reached.
    pub(crate) fn reached_total_limit(&self, limits: &Limits) -> Option<Limit> {
        limits.reached_by_queue(self.queued_outputs, self.bytes)
    }

    /// Returns the limit that all queues together with the deferred requests have reached; it applies to requests of the
    /// application.
    pub(crate) fn reached_application_limit(&self, limits: &Limits) -> Option<Limit> {
        let entries = self.queued_outputs + self.deferred_requests.len();
        limits.reached_by_queue(entries, self.bytes + self.deferred_bytes)
    }

    /// Returns the number of queued frames, statuses and stream ends, including deferred requests.
    pub(crate) fn queued_count(&self) -> usize {
        self.queued_outputs + self.deferred_requests.len()
    }

    /// Returns the size in bytes of the queued frames of all streams and of the deferred requests.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.bytes + self.deferred_bytes
    }

    /// Returns the number of bytes that are queued on one stream.
    pub(crate) fn queued_bytes_on(&self, id: StreamId) -> usize {
        self.by_id.get(id).map_or(0, |stream| stream.bytes)
    }

    /// Adds an output to the queue of a stream.
    fn enqueue(&mut self, id: StreamId, output: Output) {
        self.next_position += 1;
        let Some(stream) = self.by_id.get_mut(id) else {
            return;
        };
        if stream.queue.is_empty() && !stream.is_detached {
            self.ready.insert((self.next_position, id), ());
        }
        let bytes = output.bytes();
        stream.bytes += bytes;
        self.bytes += bytes;
        self.queued_outputs += 1;
        stream.queue.push_back((self.next_position, output));
    }

    /// Stops accepting output on a stream; the stream is removed once its queue is empty.
    fn finish_stream(&mut self, id: StreamId) {
        let Some(stream) = self.by_id.get_mut(id) else {
            return;
        };
        stream.is_finished = true;
        if stream.queue.is_empty() {
            self.by_id.remove(id);
        }
    }

    /// Drops the queued output of a stream.
    fn discard_queue(&mut self, id: StreamId) {
        let Some(stream) = self.by_id.get_mut(id) else {
            return;
        };
        if let Some((place, _)) = stream.queue.front() {
            self.ready.remove((*place, id));
        }
        stream.committed_outputs = 0;
        for (_, output) in std::mem::take(&mut stream.queue) {
            self.subtract_output(id, &output);
        }
    }

    /// Subtracts the size of a removed output from the counters.
    fn subtract_output(&mut self, id: StreamId, output: &Output) {
        let bytes = output.bytes();
        self.queued_outputs -= 1;
        self.bytes -= bytes;
        if let Output::Frame(frame) = output
            && frame.uses_reserve
        {
            self.reserved_bytes -= bytes;
        }
        if let Some(stream) = self.by_id.get_mut(id) {
            stream.bytes -= bytes;
        }
    }
}

impl Output {
    /// Returns the size of the output in bytes; zero unless it is a frame.
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.bytes.len(),
            Self::Status(_) | Self::Close => 0,
        }
    }
}
