//! Subscriptions of the client of a session (up to 2025-11-25: `server/resources`, "Subscriptions"), and the changes that
//! wait for a stream.
//!
//! Each URI is stored once, and the bytes of the URIs are counted. The caller checks the limits.

use std::collections::BTreeSet;

use crate::change::Change;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: BTreeSet<String>,
    bytes: usize,
    /// Changes that were published while no stream could carry them, without duplicates. They are sent on the next standalone
    /// stream. Their number is limited by the number of subscriptions.
    kept: Vec<Change>,
}

impl Subscriptions {
    /// Adds a URI.
    pub(super) fn insert(&mut self, uri: String) {
        let bytes = uri.len();
        if self.uris.insert(uri) {
            self.bytes += bytes;
        }
    }

    /// Removes a URI.
    pub(super) fn remove(&mut self, uri: &str) {
        if self.uris.remove(uri) {
            self.bytes -= uri.len();
            let gone = |change: &Change| matches!(change, Change::Resource(known) if known == uri);
            self.kept.retain(|change| !gone(change));
        }
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.uris.contains(uri)
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.uris.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a change for the next stream.
    pub(super) fn keep(&mut self, change: &Change) {
        if !self.kept.contains(change) {
            self.kept.push(change.clone());
        }
    }

    pub(super) fn take_kept(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.kept)
    }
}
