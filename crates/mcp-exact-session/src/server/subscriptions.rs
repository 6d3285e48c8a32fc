//! Resources that the client of a session is subscribed to (`server/resources`, "Subscriptions").
//!
//! Takes URIs, each once; counts their bytes. Asks nobody whether there is room for one more.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Subscribed {
    uris: BTreeSet<String>,
    bytes: usize,
}

impl Subscribed {
    /// Whether the URI was not there before.
    pub(super) fn insert(&mut self, uri: String) -> bool {
        let bytes = uri.len();
        let new = self.uris.insert(uri);
        if new {
            self.bytes += bytes;
        }
        new
    }

    /// Whether the URI was there.
    pub(super) fn remove(&mut self, uri: &str) -> bool {
        let there = self.uris.remove(uri);
        if there {
            self.bytes -= uri.len();
        }
        there
    }

    pub(super) fn contains(&self, uri: &str) -> bool {
        self.uris.contains(uri)
    }

    pub(super) fn len(&self) -> usize {
        self.uris.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
