//! Conversion context: what the caller knows about the message, and the losses that were found.
//!
//! JSON pointers of losses refer to the input of the conversion, even if a later step of the path finds the loss.

use mcp_exact_wire::{JsonObject, RequestId};

use crate::KnownRevision;
use crate::loss::{Loss, LossKind};
use crate::repair::{Repair, Tolerance};

/// Policy for members that only the newer revision defines, when a message is converted to the older revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum NewerMembers {
    /// The members are dropped and reported as losses.
    #[default]
    Report,
    /// The members stay as unknown members; if they determine the message's meaning, they are converted or refused.
    KeepInExtra,
}

/// Context of the conversion of one message: what the caller knows, and the losses. Create one context per message.
#[derive(Debug, Clone, Default)]
pub struct Context {
    pub(crate) known: CallerFacts,
    pub(crate) losses: Vec<Loss>,
    pub(crate) repairs: Vec<Repair>,
}

/// Default limit on the losses of one conversion; see [`Context::max_losses`].
pub const MAX_LOSSES: usize = 20_000;

/// Facts about the message that the caller of a conversion provides.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallerFacts {
    /// Limit on the losses of one conversion, if not [`MAX_LOSSES`].
    pub max_losses: Option<usize>,
    /// Policy for members that only the newer revision defines.
    pub newer: NewerMembers,
    pub request_id: Option<RequestId>,
    /// Members of `_meta` that the session provides for a request.
    pub request_meta: Option<JsonObject>,
    /// URI of the `resources/read` request whose response is converted.
    pub requested_uri: Option<String>,
    /// True if the caller has read `inputResponses` and `requestState`.
    pub has_read_input: bool,
    /// True if the input is known to be valid JSON.
    pub is_json: bool,
    /// True if input that does not have its type is repaired.
    pub is_tolerant: bool,
}

impl CallerFacts {
    /// Returns the JSON text of a member of `_meta` that the session provides.
    pub fn meta(&self, name: &str) -> Option<String> {
        let json = self.request_meta.as_ref()?.get(name)?;
        Some(json.text().to_owned())
    }
}

impl Context {
    /// Creates a context that reports all losses and has no information from the caller.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the policy for newer members in conversions to an older revision.
    #[must_use]
    pub fn newer_members(mut self, newer: NewerMembers) -> Self {
        self.known.newer = newer;
        self
    }

    /// Sets the id of the request that is converted; the request types include the id from 2025-11-25 on.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<RequestId>) -> Self {
        self.known.request_id = Some(id.into());
        self
    }

    /// Sets the members of `_meta` that the session provides for each 2026-07-28 request, by their full names, such as
    /// `io.modelcontextprotocol/clientCapabilities` (specification: `basic`, "Per-Request Protocol Fields").
    #[must_use]
    pub fn request_meta(mut self, meta: JsonObject) -> Self {
        self.known.request_meta = Some(meta);
        self
    }

    /// Sets the URI of the `resources/read` request whose response is converted.
    #[must_use]
    pub fn requested_uri(mut self, uri: impl Into<String>) -> Self {
        self.known.requested_uri = Some(uri.into());
        self
    }

    /// States that the caller has read `inputResponses` and `requestState`, so that they are dropped without a loss.
    #[must_use]
    pub fn assume_input_read(mut self) -> Self {
        self.known.has_read_input = true;
        self
    }

    /// States that the input is valid JSON, so that it is not validated again; otherwise, the result is unspecified.
    #[must_use]
    pub fn assume_json(mut self) -> Self {
        self.known.is_json = true;
        self
    }

    /// Sets the policy for input that does not have its type in the source revision; [`Tolerance::Strict`] by default.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.known.is_tolerant = tolerance == Tolerance::Lenient;
        self
    }

    /// Returns what was repaired so far; empty with [`Tolerance::Strict`].
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// Consumes the context and returns what was repaired.
    pub fn into_repairs(self) -> Vec<Repair> {
        self.repairs
    }

    /// Sets the number of losses beyond which a conversion is refused, [`MAX_LOSSES`] by default: it bounds the time and
    /// the memory that hostile text of megabytes takes. Losses that later steps undo or repeat count as well.
    #[must_use]
    pub fn max_losses(mut self, losses: usize) -> Self {
        self.known.max_losses = Some(losses);
        self
    }

    /// Returns the losses so far, in the order in which the conversion found them.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Consumes the context and returns the losses.
    pub fn into_losses(self) -> Vec<Loss> {
        self.losses
    }

    /// Returns true if a member was dropped, replaced or defaulted; a strict caller rejects such a conversion.
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|loss| loss.kind.is_lossy())
    }

    pub(crate) fn report(
        &mut self,
        pointer: &str,
        kind: LossKind,
        revision: KnownRevision,
        reason: &'static str,
    ) {
        self.losses.push(Loss {
            pointer: pointer.into(),
            subject: None,
            kind,
            revision,
            reason: reason.into(),
        });
    }
}
