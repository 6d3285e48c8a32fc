//! Subscriptions of the client of a session (up to 2025-11-25: `server/resources`, "Subscriptions"), and the changes that
//! wait for a stream.
//!
//! Each URI is stored once, and the bytes of the URIs are counted. The caller checks the limits.

use crate::change::Change;

/// Subscribed resources of a session, and changes that wait for a stream.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// URIs of the resources, sorted so that the text of a snapshot is stable.
    uris: Vec<String>,
    /// Total length of the URIs in bytes.
    bytes: usize,
    /// Changes, without duplicates, that were published while no stream could carry them, and that are sent on the next
    /// standalone stream.
    ///
    /// The number of waiting changes is limited by the number of subscriptions.
    waiting_changes: Vec<Change>,
}

impl Subscriptions {
    /// Adds the URI of a subscribed resource.
    pub(super) fn insert(&mut self, uri: String) {
        if let Err(place) = self.index_of(&uri) {
            self.bytes += uri.len();
            self.uris.insert(place, uri);
        }
    }

    /// Removes the URI of a resource whose subscription has ended.
    pub(super) fn remove(&mut self, uri: &str) {
        if let Ok(place) = self.index_of(uri) {
            self.uris.remove(place);
            self.bytes -= uri.len();
            let is_change_of_uri =
                |change: &Change| matches!(change, Change::Resource(known) if known == uri);
            self.waiting_changes
                .retain(|change| !is_change_of_uri(change));
        }
    }

    /// Returns true if the client subscribes to the resource with this URI.
    pub(super) fn contains(&self, uri: &str) -> bool {
        self.index_of(uri).is_ok()
    }

    /// Returns the index of a URI, or the index for its insertion.
    fn index_of(&self, uri: &str) -> Result<usize, usize> {
        self.uris.binary_search_by(|known| known.as_str().cmp(uri))
    }

    /// Iterates over the URIs of the subscribed resources.
    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(String::as_str)
    }

    /// Returns the number of subscribed resources.
    pub(super) fn len(&self) -> usize {
        self.uris.len()
    }

    /// Returns the total length of the subscribed URIs in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a change for the next standalone stream, unless the same change already waits.
    pub(super) fn keep_change(&mut self, change: &Change) {
        if !self.waiting_changes.contains(change) {
            self.waiting_changes.push(change.clone());
        }
    }

    /// Removes and returns the changes that wait for a standalone stream.
    pub(super) fn take_waiting_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.waiting_changes)
    }
}
