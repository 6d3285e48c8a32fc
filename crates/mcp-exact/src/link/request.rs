//! Requests of clients, and the answers to them.

use std::fmt;

use mcp_exact_session as session;
use mcp_exact_transport::RequestContext;
use mcp_exact_wire::ObjectRef;

use crate::cancellation::CancellationToken;
use crate::protocol::{
    InputRequest, InputResponses, JsonObject, Lifecycle, MethodId, MirroredParam, PeerError,
    Principal, Revision, SessionInfo, TraceContext, TypedRequest, extension, lifecycle_of,
};

/// Received request, with the session and connection data of its sender.
pub struct Request {
    /// Request as delivered by the session.
    pub(super) incoming: session::IncomingRequest<RequestContext>,
    /// Cancellation signal of the request.
    pub(super) token: CancellationToken,
}

impl Request {
    pub(super) fn new(incoming: session::IncomingRequest<RequestContext>) -> Self {
        Self {
            incoming,
            token: CancellationToken::default(),
        }
    }

    /// Creates the request of a resumed task; no client waits for its reply. Returns `None` if the revision is unknown.
    pub(crate) fn for_resumed_task(
        method: &str,
        params: JsonObject,
        client: SessionInfo,
        principal: Option<Principal>,
    ) -> Option<Self> {
        let context = session::FrameContext {
            principal,
            ..session::FrameContext::default()
        };
        let incoming = session::IncomingRequest::from_parts(method, Some(params), client, context)?;
        Some(Self::new(incoming))
    }

    /// Returns true if the revision has extensions of results (from 2026-07-28 on) and the client has declared this one.
    pub(crate) fn has_extension(&self, id: &str) -> bool {
        self.lifecycle() == Lifecycle::Discover
            && extension::settings_in(self.client_capabilities(), id).is_some()
    }

    /// Returns the cancellation signal.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(crate) fn method(&self) -> &str {
        self.incoming.method()
    }

    pub(crate) fn method_id(&self) -> MethodId {
        self.incoming.method_id()
    }

    pub(crate) fn params(&self) -> Option<&JsonObject> {
        self.incoming.params()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.incoming.revision()
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        lifecycle_of(self.revision())
    }

    pub(crate) fn client_capabilities(&self) -> &JsonObject {
        &self.incoming.client().capabilities
    }

    pub(crate) fn client_info(&self) -> Option<&JsonObject> {
        self.incoming.client().implementation.as_ref()
    }

    pub(crate) fn trace_context(&self) -> Option<TraceContext> {
        self.incoming.trace_context()
    }

    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.incoming.context().principal.as_ref()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.context().header(name)
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.context().headers()
    }

    /// Returns the claims of the request's access token; `None` if no token was verified.
    #[cfg(feature = "oauth-server")]
    pub(crate) fn access(&self) -> Option<&mcp_exact_auth::server::Access> {
        let http = self.incoming.context().app_data.http.as_ref()?;
        http.extensions.get()
    }

    /// Returns the transport's information about the request.
    pub(crate) fn context(&self) -> &RequestContext {
        &self.incoming.context().app_data
    }

    /// Returns the request in the types of the revision `H`, converted from the negotiated revision.
    pub(crate) fn typed_as<H: session::Home>(&self) -> Result<TypedRequest<H>, PeerError> {
        let converted = self.incoming.typed_as::<H>(session::LossPolicy::Report)?;
        // The losses are created when they are read.
        if tracing::Level::DEBUG <= tracing::level_filters::LevelFilter::current() {
            for loss in converted.losses.iter().filter(|loss| loss.kind.is_lossy()) {
                tracing::debug!(method = self.method(), %loss, "a conversion lost information");
            }
        }
        Ok(converted.value)
    }

    /// Checks the headers that mirror arguments of a tool, on a request over HTTP (from 2026-07-28 on).
    pub(crate) fn check_mirrored(
        &self,
        mirrored: &[MirroredParam],
        arguments: ObjectRef<'_>,
    ) -> Result<(), PeerError> {
        match &self.incoming.context().http {
            Some(http) if self.lifecycle() == Lifecycle::Discover => {
                let arguments = arguments.to_object();
                let checked = session::http::check_params(http, mirrored, Some(&arguments));
                checked.map_err(|refusal| refusal.error())
            }
            _ => Ok(()),
        }
    }

    /// Returns the decrypted `requestState` of a retry.
    pub(crate) fn state(&self) -> Option<&str> {
        self.incoming.state.as_deref()
    }

    /// Returns the client's answers to earlier input requests; empty unless the request is a retry.
    pub(crate) fn input_responses(&self) -> &InputResponses {
        &self.incoming.responses
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.incoming, f)
    }
}

/// Answer to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Result in the form of the negotiated revision.
    Result(JsonObject),
    /// Error that ends the request.
    Error(PeerError),
    /// Input requests that end the request (from 2026-07-28 on).
    InputRequired {
        /// Input requests by key.
        input_requests: Vec<(String, InputRequest)>,
        /// Unsealed state, which the client returns as `requestState` with its retry.
        state: String,
    },
}

impl From<Reply> for session::Reply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Result(result) => Self::Result(result.into()),
            Reply::Error(error) => Self::Error(error),
            Reply::InputRequired {
                input_requests,
                state,
            } => Self::InputRequired {
                requests: input_requests,
                state: Some(state),
            },
        }
    }
}
