//! Seal of the cursors of lists that handlers supply, so that clients can neither read nor make one.

use std::fmt;
use std::sync::Arc;

use crate::protocol::{Principal, Seal};

/// Seal of the cursors of a server.
pub(super) struct CursorSeal {
    pub(super) seal: Arc<dyn Seal>,
    /// Name of the server: servers that share their keys do not accept each other's cursors.
    pub(super) server: String,
}

impl fmt::Debug for CursorSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CursorSeal").finish_non_exhaustive()
    }
}

impl CursorSeal {
    /// Returns the context in which the cursors of a principal are valid.
    pub(super) fn context(&self, principal: Option<&Principal>) -> Vec<u8> {
        let principal = principal.map(|Principal(name)| name.as_str());
        let context = serde_json::json!(["resources/list", self.server, principal]);
        context.to_string().into_bytes()
    }
}
