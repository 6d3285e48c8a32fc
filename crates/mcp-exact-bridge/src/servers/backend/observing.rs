//! What all connections to a server say about the server: which answers of it are kept no longer, and what is known of its tools no
//! longer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_exact_session::{Change, ClientEvent};

use super::Backend;
use crate::around::cache::Answers;
use crate::around::live::LiveRules;
use crate::servers::connection::{Observer, may_change_tools};
use crate::servers::tools::KnownTools;

/// Observer of a server.
pub(super) struct ServerObserver {
    /// Name of the server.
    pub(super) server: String,
    pub(super) live: Arc<LiveRules>,
    pub(super) tools: Arc<KnownTools>,
    pub(super) answers: Arc<Answers>,
}

impl Observer for ServerObserver {
    fn observe(&self, event: &ClientEvent) {
        if may_change_tools(event) {
            self.live.pins().set_changed(&self.server);
        }
        match event {
            ClientEvent::Changed { change, .. } => {
                if *change == Change::Tools {
                    self.tools.forget_hints();
                }
                self.answers.end(change);
            }
            // The server may have been replaced.
            ClientEvent::SessionLost => self.miss_changes(),
            _ => {}
        }
    }

    fn miss_changes(&self) {
        self.answers.clear();
        self.tools.forget_hints();
    }
}

impl Backend {
    /// Ends what is kept of the server, because changes may have been missed. Before clients are told so: what they request then is
    /// newer.
    pub(crate) fn miss_changes(&self) {
        self.observer.miss_changes();
    }

    /// Records that a subscription that clients without sessions share has broken.
    pub(crate) fn set_gap(&self) {
        self.has_gap.store(true, Ordering::Release);
        self.miss_changes();
    }

    /// Records that the server has accepted a subscription that clients without sessions share.
    pub(crate) fn end_gap(&self) {
        if self.has_gap.swap(false, Ordering::AcqRel) {
            self.miss_changes();
        }
    }
}
