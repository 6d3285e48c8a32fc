//! The lifecycle of a client: its state, and the negotiated session.
//!
//! [`State`] has one variant per state. [`SenderMeta`] holds the metadata that each request carries from 2026-07-28 on.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::{Json, JsonObject, JsonRef, ObjectRef, ObjectWith};

use super::discovery::DiscoverResult;
use crate::Time;
use crate::capabilities::{DeclaredCapabilities, DeclaredNames};
use crate::config::ClientSettings;
use crate::meta;
use crate::rules::Rules;
use crate::session_info::SessionInfo;

/// State of a client: negotiating, operating or ended.
#[derive(Debug)]
pub(super) enum State {
    /// The client waits for the answer to a probe.
    ExpectDiscovery(NegotiationProgress),
    /// The client waits for the answer to `initialize`.
    ExpectInitializeResult(NegotiationProgress),
    /// The client waits for a new server process.
    ExpectRestart(NegotiationProgress),
    /// A revision is negotiated, and requests can be sent.
    Operating(Arc<NegotiatedSession>),
    /// The negotiation has failed, or the session has ended.
    Ended,
}

/// Negotiated revision, capabilities and identities of a session.
#[derive(Debug)]
pub(super) struct NegotiatedSession {
    /// Properties of the negotiated revision.
    pub(super) spec: &'static RevisionSpec,
    /// Negotiated revision, and capabilities and identity of the server.
    pub(super) session_info: SessionInfo,
    /// Precomputed lookup of the server's capabilities.
    declared_capabilities: DeclaredNames,
    /// Sender metadata of requests, in revisions in which each request describes its sender.
    pub(super) sender_meta: Option<SenderMeta>,
}

/// Revisions that were offered and probes that were sent so far in a negotiation.
#[derive(Debug, Default)]
pub(super) struct NegotiationProgress {
    /// Revisions that were already offered to the server.
    pub(super) offered: BTreeSet<&'static str>,
    /// Number of probes that were sent, at most two.
    pub(super) probes: u8,
    /// True if the probe was sent again because no response to it began.
    pub(super) was_repeated: bool,
    /// True if the probe timed out; the server may be slow or may not support the probe.
    pub(super) probe_timed_out: bool,
    /// True if the probe was left out, because the lifecycle of the server is remembered.
    pub(super) is_remembered: bool,
    /// True if a probe of this negotiation, or of the remembered one, was not answered in time.
    pub(super) probe_was_silent: bool,
    /// Wire ids of probes that timed out, whose late answers count.
    pub(super) late_probes: Vec<u64>,
    /// Late answer to a probe, kept until the answer to `initialize`.
    pub(super) late_discovery: Option<DiscoverResult>,
    /// True if `initialize` was sent for an older revision because the error may refuse the revision.
    pub(super) tried_older: bool,
    /// Time at which the negotiation ends; `None` before its first request.
    pub(super) deadline: Option<Time>,
}

impl State {
    /// Creates the state before the first message.
    pub(super) fn start() -> Self {
        Self::ExpectDiscovery(NegotiationProgress::default())
    }

    /// Returns the session once a revision is negotiated.
    pub(super) fn session(&self) -> Option<&Arc<NegotiatedSession>> {
        match self {
            Self::Operating(session) => Some(session),
            _ => None,
        }
    }

    /// Returns the progress of a negotiation.
    pub(super) fn progress_mut(&mut self) -> Option<&mut NegotiationProgress> {
        match self {
            Self::ExpectDiscovery(progress)
            | Self::ExpectInitializeResult(progress)
            | Self::ExpectRestart(progress) => Some(progress),
            Self::Operating(_) | Self::Ended => None,
        }
    }

    /// Removes and returns the progress of a negotiation; the state becomes `Ended`.
    pub(super) fn take_progress(&mut self) -> Option<NegotiationProgress> {
        match std::mem::replace(self, Self::Ended) {
            Self::ExpectDiscovery(progress)
            | Self::ExpectInitializeResult(progress)
            | Self::ExpectRestart(progress) => Some(progress),
            Self::Operating(_) | Self::Ended => None,
        }
    }
}

impl NegotiatedSession {
    pub(super) fn new(
        spec: &'static RevisionSpec,
        info: SessionInfo,
        settings: &ClientSettings,
    ) -> Self {
        let discover = spec.lifecycle() == Lifecycle::Discover;
        let sender = discover.then(|| SenderMeta::new(settings, spec));
        Self {
            spec,
            declared_capabilities: DeclaredNames::from_object(&info.capabilities),
            session_info: info,
            sender_meta: sender,
        }
    }

    /// Returns true if the revision belongs to the lifecycle without handshake.
    pub(super) fn is_discover(&self) -> bool {
        self.spec.lifecycle() == Lifecycle::Discover
    }

    /// Returns the rules for the messages between the client and this server.
    pub(super) fn rules_for_server<'a>(&'a self, settings: &'a ClientSettings) -> Rules<'a> {
        Rules {
            spec: self.spec,
            local_role: Side::Client,
            capabilities: DeclaredCapabilities::new(
                &settings.capabilities,
                Some(settings.declared_capabilities),
            ),
            peer_capabilities: DeclaredCapabilities::new(
                &self.session_info.capabilities,
                Some(self.declared_capabilities),
            ),
            extensions: &settings.extensions,
        }
    }
}

/// Members of `_meta` that describe the sender in every request (2026-07-28: `basic`, "_meta").
#[derive(Debug)]
pub(super) struct SenderMeta {
    /// Revision of the requests, as JSON string.
    version: Json,
    /// Capabilities of the client.
    capabilities: JsonObject,
    /// `Implementation` of the client.
    info: JsonObject,
    /// Complete `_meta` object with all sender members.
    meta: JsonObject,
}

impl SenderMeta {
    /// Creates the metadata of requests in this revision from the configuration of the client.
    pub(super) fn new(settings: &ClientSettings, spec: &RevisionSpec) -> Self {
        let version = Json::string(spec.id());
        let capabilities = settings.capabilities_for(spec);
        let info = settings.identity.to_object(spec);
        let meta = JsonObject::from_iter([
            (meta::PROTOCOL_VERSION, version.clone()),
            (meta::CLIENT_CAPABILITIES, capabilities.clone().into()),
            (meta::CLIENT_INFO, info.clone().into()),
        ]);
        Self {
            version,
            capabilities,
            info,
            meta,
        }
    }

    /// Returns the `_meta` of a request whose application adds no members.
    pub(super) fn meta(&self) -> &JsonObject {
        &self.meta
    }

    /// Returns the `_meta` of a request with the members of the application.
    ///
    /// The application may replace the client information, but not the revision. The application can replace the
    /// capabilities only by [`CallOptions::capabilities`](crate::CallOptions::capabilities).
    pub(super) fn merged_meta<'a>(
        &'a self,
        app_meta: ObjectRef<'a>,
        capabilities: Option<&'a JsonObject>,
    ) -> ObjectWith<'a, 3> {
        let info = app_meta.find(meta::CLIENT_INFO);
        let capabilities = capabilities.unwrap_or(&self.capabilities);
        app_meta.with([
            (meta::PROTOCOL_VERSION, Some(self.version.view())),
            (
                meta::CLIENT_CAPABILITIES,
                Some(capabilities.as_json().view()),
            ),
            (
                meta::CLIENT_INFO,
                info.is_none().then_some(self.info.as_json().view()),
            ),
        ])
    }
}

/// How a session has ended, as far as the status of a POST shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionEnd {
    /// The server has ended the session, and has not processed the message: "after which it MUST respond to requests containing
    /// that session ID with HTTP 404 Not Found" (`basic/transports`, "Session Management").
    Certain,
    /// The server has refused the message, which it has not processed (RFC 9110, sections 15.5.1 and 15.5.2), probably because it
    /// does not know the session.
    Refused,
    /// The session is in conflict with the state of the server; the message may have been processed.
    Unclear,
}

/// Returns the unescaped string value of a member of an object.
pub(super) fn string_member(object: &JsonObject, name: &str) -> Option<String> {
    let text = object.view().find(name).and_then(JsonRef::as_str);
    text.map(std::borrow::Cow::into_owned)
}
