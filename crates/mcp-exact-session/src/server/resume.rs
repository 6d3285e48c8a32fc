//! Sessions that outlive their process: snapshots, and endpoints that resume from them.
//!
//! The endpoint creates and reads a [`Snapshot`]; the transport stores it.

use std::sync::Arc;

use mcp_exact_revisions::Lifecycle;
use mcp_exact_wire::{Json, RequestId, from_str};

use super::ServerEndpoint;
use super::handshake::State;
use crate::Time;
use crate::config::ServerSettings;
use crate::core::{Frame, OrderedMap};
use crate::error::{ConfigError, PeerError};
use crate::limits::Limits;
use crate::message;
use crate::snapshot::{Snapshot, SnapshotDue, SnapshotRequest};
use crate::stream::{Binding, StreamId, StreamKind};

/// Number of wire ids and of stream numbers that a snapshot reserves; the next snapshot is due when they are used up.
const RESERVED_IDS: u64 = 256;
/// Maximum number of frames of one stream that can be sent after a snapshot.
const RESERVED_FRAMES: u64 = 1 << 32;

/// Changes by the client since the latest saved snapshot.
#[derive(Debug, Default)]
pub(super) struct UnsavedChanges {
    /// True if the client has chosen a different log level.
    pub(super) level: bool,
    /// URIs of resources whose subscription has changed, sorted: true if it has started, false if it has ended.
    subscriptions: Vec<(String, bool)>,
}

impl UnsavedChanges {
    /// Records that a subscription starts or ends.
    ///
    /// If no snapshot can be saved, ended subscriptions are forgotten before they use more memory than the limit of
    /// subscriptions.
    pub(super) fn record_subscription(
        &mut self,
        uri: &str,
        is_subscription: bool,
        limits: &Limits,
    ) {
        if self.subscriptions.len() >= limits.subscriptions.saturating_mul(2) {
            self.subscriptions.retain(|(_, begins)| *begins);
        }
        match self.index_of(uri) {
            Ok(place) => self.subscriptions[place].1 = is_subscription,
            Err(place) => {
                let entry = (uri.to_owned(), is_subscription);
                self.subscriptions.insert(place, entry);
            }
        }
    }

    /// Returns true if the subscription to `uri` has started, and false if it has ended; `None` if it is unchanged.
    fn subscription_change(&self, uri: &str) -> Option<bool> {
        let index = self.index_of(uri).ok()?;
        Some(self.subscriptions[index].1)
    }

    /// Returns the index of a URI, or the index for its insertion.
    fn index_of(&self, uri: &str) -> Result<usize, usize> {
        self.subscriptions
            .binary_search_by(|(known, _)| known.as_str().cmp(uri))
    }
}

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Resumes a session that another endpoint has served.
    ///
    /// Requests that were in flight are lost. Each lost request is answered with an error on its stream, which is
    /// detached until the client resumes it. [`snapshot_due`](Self::snapshot_due) is [`SnapshotDue::Now`]: save a
    /// snapshot before anything is sent.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the configuration does not offer the revision of the session, or the revision has no
    /// sessions.
    pub fn resume(
        settings: Arc<ServerSettings>,
        binding: Binding,
        snapshot: Snapshot,
        now: Time,
    ) -> Result<Self, ConfigError> {
        let id = snapshot.info.revision.as_str();
        let unknown = || ConfigError::UnknownRevision(id.to_owned());
        let spec = settings.offer.find(id).ok_or_else(unknown)?;
        if spec.lifecycle() != Lifecycle::Initialize {
            let text = format!("`{id}` has no sessions; serve its requests by a new endpoint");
            return Err(ConfigError::Snapshot(text));
        }
        let state = State::resumed(
            spec,
            snapshot.info,
            snapshot.principal,
            snapshot.is_initialized,
        );
        let mut endpoint = Self::with_state(settings, binding, state, snapshot.last_id, now);
        endpoint.chosen_log_level = snapshot.log_level;
        for uri in snapshot.subscriptions {
            endpoint.subscriptions.insert(uri);
        }
        endpoint.core.elicitations.restore(snapshot.elicitations);
        endpoint.snapshot_version = snapshot.version;
        endpoint.is_snapshot_due = true;
        endpoint.core.streams.reserve_ids(snapshot.last_stream);
        if binding == Binding::StreamableHttp {
            endpoint.answer_lost_requests(snapshot.requests);
        }
        Ok(endpoint)
    }

    /// Answers lost requests.
    ///
    /// Several lost requests of one stream were a batch, and are answered by one array (2025-03-26, `basic`,
    /// "Batching").
    fn answer_lost_requests(&mut self, requests: Vec<SnapshotRequest>) {
        let mut streams: OrderedMap<u64, Vec<SnapshotRequest>> = OrderedMap::default();
        for request in requests {
            match streams.get_mut(request.stream) {
                Some(others) => others.push(request),
                None => streams.insert(request.stream, vec![request]),
            }
        }
        let text = "the server was restarted and the request is lost; it may have been executed";
        for (stream, requests) in streams.iter() {
            let stream = StreamId(stream);
            let sequence = requests.iter().map(|request| request.sequence).max();
            let streams = &mut self.core.streams;
            streams.restore(stream, StreamKind::Post, sequence.unwrap_or_default());
            let ids: Vec<RequestId> = requests.iter().map(|request| request.id.clone()).collect();
            let bytes = lost_answers(&ids, text);
            self.core
                .queue_frame(Frame::new(stream, bytes).with_last(true));
        }
    }

    /// Returns the time by which a snapshot must be saved; [`SnapshotDue::NotDue`] without a session.
    pub fn snapshot_due(&self) -> SnapshotDue {
        if self.state.client().is_none() {
            return SnapshotDue::NotDue;
        }
        let now = self.is_snapshot_due || self.core.elicitations.has_changed();
        match (now, self.requests_changed) {
            (true, _) => SnapshotDue::Now,
            (false, true) => SnapshotDue::Soon,
            (false, false) => SnapshotDue::NotDue,
        }
    }

    /// Creates a snapshot of the session, with the next version; `None` without a session.
    ///
    /// The snapshot reserves wire ids and stream numbers beyond those in use, so that not every message needs a new snapshot.
    pub fn take_snapshot(&mut self) -> Option<Snapshot> {
        let client = self.state.client()?;
        let info = client.info.clone();
        self.snapshot_version += 1;
        self.is_snapshot_due = false;
        self.requests_changed = false;
        let (id, stream) = (self.core.pending.last_id(), self.core.streams.last_id());
        self.reserved_id = self.reserved_id.max(id.saturating_add(RESERVED_IDS));
        self.reserved_stream = self
            .reserved_stream
            .max(stream.saturating_add(RESERVED_IDS));
        let elicitations = self.core.elicitations.save_ids();
        let in_flight = self.core.in_flight.iter();
        let in_flight = in_flight.filter(|(_, request)| request.scope.is_none());
        let open = in_flight.map(|(_, request)| (request.stream, request.id.clone()));
        // Answers that wait for others of their batch are lost with the process.
        let lost = open.chain(self.core.batches.answered_requests());
        let requests = lost.map(|(stream, id)| SnapshotRequest {
            stream: stream.0,
            id,
            sequence: self.core.streams.sequence(stream) + RESERVED_FRAMES,
        });
        Some(Snapshot {
            version: self.snapshot_version,
            info,
            principal: self.state.principal().cloned(),
            is_initialized: self.state.is_operating(),
            log_level: self.chosen_log_level,
            subscriptions: self.subscriptions.uris().map(str::to_owned).collect(),
            elicitations,
            last_id: self.reserved_id.max(self.highest_foreign_id),
            last_stream: self.reserved_stream.max(self.highest_foreign_id),
            requests: requests.collect(),
        })
    }

    /// Reserves the wire ids and stream numbers up to `last` for this endpoint, so that no other endpoint of the session uses
    /// them. A newly resumed endpoint then needs no snapshot before its first message.
    pub fn reserve_ids_until(&mut self, last: u64) {
        (self.reserved_id, self.reserved_stream) = (last, last);
        self.saved_ids = (last, last);
        self.is_snapshot_due = false;
    }

    /// Returns true if a wire id or stream number is in use that no saved snapshot has reserved, so that messages have to wait for the
    /// snapshot that is being saved.
    pub fn uses_unsaved_ids(&self) -> bool {
        let (id, stream) = self.saved_ids;
        self.core.pending.last_id() > id || self.core.streams.last_id() > stream
    }

    /// Records that the latest snapshot was saved.
    pub fn record_saved_snapshot(&mut self) {
        self.saved_ids = (self.reserved_id, self.reserved_stream);
        // Later changes are part of the next snapshot.
        if !self.is_snapshot_due {
            self.unsaved_changes = UnsavedChanges::default();
        }
    }

    /// Records that the latest snapshot could not be saved, so that `snapshot_due` requires a new snapshot.
    pub fn record_failed_snapshot(&mut self) {
        self.is_snapshot_due = true;
    }

    /// Returns the version of the latest snapshot that was taken or merged.
    pub fn snapshot_version(&self) -> u64 {
        self.snapshot_version
    }

    /// Adopts log level, subscriptions, elicitations and the state of the handshake from a snapshot that another process has
    /// saved, for example when that process was the first to save the next version. Changes that the client has made at this
    /// endpoint since its latest saved snapshot have precedence. Requests in flight and ids are not adopted; the next snapshot
    /// contains the highest reserved ids of all endpoints.
    pub fn merge_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshot_version = self.snapshot_version.max(snapshot.version);
        let highest_id = snapshot.last_id.max(snapshot.last_stream);
        self.highest_foreign_id = self.highest_foreign_id.max(highest_id);
        if !self.unsaved_changes.level {
            self.chosen_log_level = snapshot.log_level;
        }
        let known: Vec<String> = self.subscriptions.uris().map(str::to_owned).collect();
        let ended = known
            .iter()
            .filter(|uri| !snapshot.subscriptions.contains(uri));
        for uri in ended {
            if self.unsaved_changes.subscription_change(uri) != Some(true) {
                self.subscriptions.remove(uri);
            }
        }
        for uri in snapshot.subscriptions {
            if self.unsaved_changes.subscription_change(&uri) != Some(false) {
                self.subscriptions.insert(uri);
            }
        }
        self.core.elicitations.merge(snapshot.elicitations);
        if snapshot.is_initialized {
            self.complete_handshake();
        }
    }

    /// Merges a snapshot of the same session that another process has saved after the store had lost the latest
    /// snapshot of this endpoint, for example by a failover. The order of the two snapshots is unknown: the session
    /// keeps the subscriptions of both snapshots, and the lower of the two log levels.
    /// [`snapshot_due`](Self::snapshot_due) then requires a snapshot.
    pub fn merge_diverged_snapshot(&mut self, snapshot: Snapshot) {
        self.is_snapshot_due = true;
        let keeps_level = match (self.chosen_log_level, snapshot.log_level) {
            (Some(own), Some(other)) => own <= other,
            (_, other) => other.is_none(),
        };
        self.unsaved_changes.level |= keeps_level;
        for uri in self.subscriptions.uris() {
            self.unsaved_changes
                .record_subscription(uri, true, &self.core.limits);
        }
        self.merge_snapshot(snapshot);
    }

    /// Returns the message that ends a stream if the process of this endpoint is lost: an error for each request of the
    /// stream whose answer the transport has not removed; `None` if there is no such request.
    pub fn loss_report(&self, stream: StreamId) -> Option<Vec<u8>> {
        let in_flight = self.core.in_flight.iter();
        let on_stream = in_flight.filter(|(_, request)| request.stream == stream);
        let open = on_stream.map(|(_, request)| request.id.clone());
        let answered = self.core.batches.answered_requests();
        let answered = answered.filter(|(on, _)| *on == stream).map(|(_, id)| id);
        // Answers that wait on the stream are lost with the process too.
        let waiting = self.core.streams.frames_on(stream);
        let waiting = waiting.flat_map(|(_, frame, _)| answered_ids(frame));
        let lost: Vec<RequestId> = open.chain(answered).chain(waiting).collect();
        if lost.is_empty() {
            return None;
        }
        let text = "the server process that ran the request has ended and the request is lost; it may have been executed";
        Some(lost_answers(&lost, text))
    }

    /// Makes a snapshot due once the wire ids or stream numbers that the latest snapshot has reserved are used up.
    pub(super) fn reserve_ids(&mut self) {
        let ids = self.core.pending.last_id() > self.reserved_id;
        let streams = self.core.streams.last_id() > self.reserved_stream;
        self.is_snapshot_due |= ids || streams;
    }
}

/// Returns the ids of the requests that a frame answers: one message, or the array of a batch.
fn answered_ids(frame: &[u8]) -> Vec<RequestId> {
    let text = std::str::from_utf8(frame).unwrap_or_default();
    let messages: Vec<Json> = if text.starts_with('[') {
        from_str(text).unwrap_or_default()
    } else {
        from_str(text)
            .map(|message| vec![message])
            .unwrap_or_default()
    };
    let ids = messages.iter().filter_map(|message| {
        let message = message.view().object()?;
        let is_answer = message.find("method").is_none();
        message.find("id").filter(|_| is_answer)?.decode_as().ok()
    });
    ids.collect()
}

/// Returns the answers to lost requests of one stream; several requests were a batch, and are answered by one array.
fn lost_answers(ids: &[RequestId], text: &str) -> Vec<u8> {
    let error = PeerError::internal(text);
    let answers = ids.iter().map(|id| message::write_error(Some(id), &error));
    match ids.len() {
        1 => answers.flatten().collect(),
        _ => message::write_batch(answers),
    }
}
