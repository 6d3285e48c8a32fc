//! State of a conversion besides the value: the knowledge of its caller, and the losses.
//!
//! Pointers always lead into the input, whichever step of a longer path reports.

use std::borrow::Cow;

use mcp_exact_wire::{JsonObject, RequestId};

use crate::KnownRevision;
use crate::loss::{Loss, LossKind};

/// Policy for members that only the newer revision defines, on the way to the older one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Newer {
    /// They are left out and reported.
    #[default]
    Report,
    /// They stay as members that the older revision does not know, which it allows everywhere; hints only: a member that
    /// decides the meaning of the message is converted or refused all the same.
    KeepInExtra,
}

/// Knowledge of the caller of a conversion, and the losses of the conversion. Make one for each message.
#[derive(Debug, Clone, Default)]
pub struct Context {
    pub(crate) known: Known,
    losses: Vec<Loss>,
}

/// Knowledge of the caller of a conversion.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub newer: Newer,
    pub request_id: Option<RequestId>,
    pub request_meta: Option<JsonObject>,
    pub requested_uri: Option<String>,
    pub has_read_input: bool,
    pub is_json: bool,
    pub is_decoded: bool,
}

impl Known {
    /// The text of a member of a request's `_meta`.
    pub fn meta(&self, name: &str) -> Option<String> {
        let json = self.request_meta.as_ref()?.get(name)?;
        Some(json.text().to_owned())
    }
}

impl Context {
    /// Returns a context that reports losses, and has no other knowledge.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what becomes of newer members on the way down.
    #[must_use]
    pub fn newer(mut self, newer: Newer) -> Self {
        self.known.newer = newer;
        self
    }

    /// Sets the id of the request that is converted: from 2025-11-25 on the types of requests hold it.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<RequestId>) -> Self {
        self.known.request_id = Some(id.into());
        self
    }

    /// Sets the members of `_meta` that each request of 2026-07-28 needs and the session knows: `protocolVersion`,
    /// `clientCapabilities` and so on, by their full names (`io.modelcontextprotocol/clientCapabilities`).
    ///
    /// Specification 2026-07-28: `basic`, "Per-Request Protocol Fields".
    #[must_use]
    pub fn request_meta(mut self, meta: JsonObject) -> Self {
        self.known.request_meta = Some(meta);
        self
    }

    /// Sets the URI that the request asked for, when the answer to `resources/read` is converted.
    #[must_use]
    pub fn requested_uri(mut self, uri: impl Into<String>) -> Self {
        self.known.requested_uri = Some(uri.into());
        self
    }

    /// Says that the caller has read `inputResponses` and `requestState` of the request: they are left out without a loss.
    /// Without this, a request that carries a user's answers is refused if the other revision cannot express them.
    #[must_use]
    pub fn has_read_input(mut self) -> Self {
        self.known.has_read_input = true;
        self
    }

    /// Says that the text is JSON already, as that of a [`JsonObject`] is: it is not checked a second time. What becomes of
    /// other text is not specified.
    #[must_use]
    pub fn text_is_json(mut self) -> Self {
        self.known.is_json = true;
        self
    }

    /// Says that the caller decodes the output as a type of the target revision. Text that no step changes is not checked
    /// before that, as that of types that are the same in both revisions.
    #[must_use]
    pub fn text_is_decoded(mut self) -> Self {
        self.known.is_decoded = true;
        self
    }

    /// Returns the losses so far, in the order in which they were found.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Returns the losses.
    pub fn into_losses(self) -> Vec<Loss> {
        self.losses
    }

    /// Returns true if a member was dropped, replaced or defaulted, which a strict caller does not accept.
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|loss| loss.kind.is_lossy())
    }

    pub(crate) fn add(&mut self, losses: impl IntoIterator<Item = Loss>) {
        self.losses.extend(losses);
    }

    pub(crate) fn report(
        &mut self,
        pointer: impl Into<String>,
        kind: LossKind,
        revision: KnownRevision,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let (pointer, reason) = (pointer.into(), reason.into());
        self.losses.push(Loss {
            pointer,
            subject: None,
            kind,
            revision,
            reason,
        });
    }
}
