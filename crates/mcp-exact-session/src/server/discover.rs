//! Requests that name their revision in `_meta` (2026-07-28: `basic`, `basic/versioning`, `server/discover`).
//!
//! Each request is handled independently of earlier requests. All state is removed at the end of the request.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{JsonObject, JsonRef, RequestId};

use super::ServerEndpoint;
use super::handshake::unsupported_version;
use super::incoming::{ClientContext, FrameContext};
use super::receive::{ReceivedRequest, RetryInput};
use super::request_meta::{LastMeta, RequestMeta};
use crate::config::{InputMode, ResultMembers};
use crate::core::{Arrival, Endpoint};
use crate::header_values::header_differs;
use crate::heap_size::HeapSize;
use crate::http::{VERSION_HEADER, check_names, check_params, version_header};
use crate::message::Call;
use crate::refusal::Refusal;
use crate::rules::{self, Handler};
use crate::seal::{self, Payload};
use crate::stream::{Binding, RequestKey, StreamId};

/// Stateless request that has passed the checks.
pub(super) struct AdmittedRequest {
    /// Sender of the request, as the request describes it.
    client: Arc<ClientContext>,
    /// Handler of the request, as the rules determine it.
    handler: Handler,
    /// Input responses and state of a retry; empty for other requests.
    input: RetryInput,
}

impl AdmittedRequest {
    /// Returns the sender of the request.
    pub(super) fn client(&self) -> &Arc<ClientContext> {
        &self.client
    }
}

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Keeps the metadata of an admitted request for the next request on the same connection.
    pub(super) fn remember_meta(&mut self, call: &Call, client: &Arc<ClientContext>) {
        let text = call.meta_text().filter(|text| {
            let last = self.last_meta.as_ref();
            last.is_none_or(|last| &*last.text != *text)
        });
        if let Some(text) = text.filter(|_| self.core.binding == Binding::Duplex) {
            self.last_meta = LastMeta::new(text, client).map(Box::new);
        }
    }

    /// Returns the sender that a request describes.
    fn sender_of(
        &self,
        call: &Call,
        meta: &RequestMeta<'_>,
        spec: &'static RevisionSpec,
    ) -> Result<Arc<ClientContext>, Refusal> {
        let text = call.meta_text();
        match &self.last_meta {
            Some(last) if std::ptr::eq(last.client.spec, spec) && text == Some(&*last.text) => {
                Ok(Arc::clone(&last.client))
            }
            _ => meta.client_context(spec).map(Arc::new),
        }
    }

    /// Returns true if a request does not belong to a session.
    ///
    /// The mere presence of `_meta` is no evidence, because older clients also send it.
    pub(super) fn is_stateless(
        &self,
        call: &Call,
        meta: &RequestMeta<'_>,
        context: &FrameContext<C>,
    ) -> bool {
        // HTTP with SSE is a transport of sessions (2024-11-05).
        if !self.settings.offers_discover || self.core.binding == Binding::HttpSse {
            return false;
        }
        let header = context.http.as_ref().and_then(|http| {
            let version = http.header("mcp-protocol-version")?;
            crate::find_revision(version.trim())
        });
        let named = header.is_some_and(|spec| spec.lifecycle() == Lifecycle::Discover);
        let is_alone = !self.settings.offers_initialize;
        // The answer to `initialize` names the revisions of a server that does not know it (`basic/versioning`).
        let named = if is_alone {
            !rules::is_initialize(&call.method)
        } else {
            named
        };
        named || meta.version.is_some()
    }

    /// Handles a request without a session: delivers, answers or refuses it.
    pub(super) fn handle_stateless_request(
        &mut self,
        received: ReceivedRequest,
        admitted: Result<AdmittedRequest, Refusal>,
        context: &Arc<FrameContext<C>>,
    ) {
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                return self.refuse_request(received.arrival, &received.id, &refusal, false);
            }
        };
        let AdmittedRequest {
            client,
            handler,
            input,
        } = admitted;
        match handler {
            Handler::Discover => {
                let bytes = self.discover_result(&received, client.spec);
                self.send_answer(received.arrival, bytes, 200);
            }
            Handler::Listen => self.handle_listen(received, client, context),
            _ => self.deliver_request(received, client, context, input),
        }
    }

    /// Checks the header with the revision, the required metadata, the revision, the method, the capabilities, the
    /// limits and the other headers of a request, in this order; then reads the input of a retry.
    pub(super) fn admit_stateless(
        &self,
        arrival: Arrival,
        call: &Call,
        meta: &RequestMeta<'_>,
        context: &FrameContext<C>,
    ) -> Result<AdmittedRequest, Refusal> {
        let version = self.requested_revision(meta, context)?;
        let mut offered = self.settings.offer.specs_of_lifecycle(Lifecycle::Discover);
        let spec = offered.find(|spec| spec.id() == version);
        let spec = spec.ok_or_else(|| unsupported_version(&self.settings, &version))?;
        let client = self.sender_of(call, meta, spec)?;
        let rules = client.rules_for_client(&self.settings);
        let handler = rules.check_received_request(&call.method, call.params.as_ref())?;
        self.admit_resources(arrival, call, handler, client.info.heap_size())?;
        if let Some(http) = &context.http {
            let params = call.params.as_ref();
            check_names(http, &call.method, params, spec, &self.settings.extensions)?;
            self.check_tool_headers(http, call, spec)?;
        }
        let input = if rules.may_require_input(&call.method) {
            self.read_retry_input(call, meta, context)?
        } else {
            RetryInput::default()
        };
        Ok(AdmittedRequest {
            client,
            handler,
            input,
        })
    }

    /// Returns the revision that a request names; over HTTP the header must name the same revision.
    ///
    /// # Errors
    ///
    /// A request that names its revision only in the header, as older clients send, is refused as unsupported, so that
    /// the client negotiates again.
    fn requested_revision<'m>(
        &self,
        meta: &RequestMeta<'m>,
        context: &FrameContext<C>,
    ) -> Result<Cow<'m, str>, Refusal> {
        let revision_id = meta.required_version();
        let Some(http) = &context.http else {
            return revision_id;
        };
        let header = version_header(http)?;
        match revision_id {
            Ok(version) if header == version => Ok(version),
            Ok(_) => Err(header_differs(VERSION_HEADER)),
            Err(_) if self.settings.offer.find(header).is_none() => {
                Err(unsupported_version(&self.settings, header))
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Checks the headers that mirror the arguments of a tool call, if the application has configured them.
    fn check_tool_headers(
        &self,
        http: &crate::http_request::HttpRequest,
        call: &Call,
        spec: &RevisionSpec,
    ) -> Result<(), Refusal> {
        let mirrors = rules::client_request(&call.method, spec).is_some_and(|r| r.mirrors_params);
        let (Some(tools), true) = (&self.settings.tool_headers, mirrors) else {
            return Ok(());
        };
        let name = call.param("name").and_then(JsonRef::as_str);
        let Some(mirrored) = name.and_then(|name| tools.params_of(&name)) else {
            return Ok(());
        };
        let arguments = call.param("arguments").and_then(JsonRef::object);
        let arguments = arguments.map(|arguments| arguments.to_object());
        check_params(http, &mirrored, arguments.as_ref())
    }

    /// Reads the retry count, state and responses of a repeated request.
    ///
    /// A state is refused if this server has not sealed it for the same principal and request, or if it has expired.
    /// Without a seal, the number of attempts is unknown, and a request with responses counts as the first retry.
    fn read_retry_input(
        &self,
        call: &Call,
        meta: &RequestMeta<'_>,
        context: &FrameContext<C>,
    ) -> Result<RetryInput, Refusal> {
        // There cannot be more responses than allowed input requests.
        let responses = meta.input_responses(self.core.limits.input_requests)?;
        let retries = u32::from(!responses.is_empty());
        let Some(state) = meta.state else {
            return Ok(RetryInput {
                retries,
                state: None,
                responses,
            });
        };
        let state = state.as_str().ok_or(Refusal::InvalidRequestState)?;
        if self.settings.input == InputMode::PassThrough {
            return Ok(RetryInput {
                retries: 1,
                state: Some(state.into_owned()),
                responses,
            });
        }
        // Sealing makes a state longer, and base64 adds a third; a much larger state was not sealed by this server.
        if state.len() > 2 * self.core.limits.state_bytes + 4096 {
            return Err(Refusal::InvalidRequestState);
        }
        let seal = self
            .settings
            .seal
            .as_ref()
            .ok_or(Refusal::InvalidRequestState)?;
        let opened = seal.open(&state, &state_context(call, context));
        let payload = opened.and_then(|text| Payload::from_text(&text));
        let payload = payload.filter(|payload| payload.expires_at > self.core.now);
        let payload = payload.ok_or(Refusal::InvalidRequestState)?;
        Ok(RetryInput {
            retries: payload.retries,
            state: payload.state,
            responses,
        })
    }

    /// Returns the answer to `server/discover`.
    fn discover_result(&self, received: &ReceivedRequest, spec: &RevisionSpec) -> Vec<u8> {
        let rule = rules::client_request(&received.call.method, spec);
        match self.settings.result_defaults(spec) {
            Some(defaults) => {
                let members = ResultMembers::find(defaults.discover_result(), rule);
                defaults.build_message(&received.id, defaults.discover_result(), &members)
            }
            None => Vec::new(),
        }
    }

    /// Builds the message of a result with the members that every result of the revision carries.
    pub(super) fn result_message(
        &self,
        id: &RequestId,
        result: &JsonObject,
        spec: &RevisionSpec,
    ) -> Vec<u8> {
        match self.settings.result_defaults(spec) {
            Some(defaults) => {
                defaults.build_message(id, result, &ResultMembers::find(result, None))
            }
            None => crate::message::write_result(id, result),
        }
    }

    /// Returns the revision and handler of a notification without a session, which an extension must define.
    ///
    /// The revision is that of `_meta` or of the header; otherwise the most preferred revision applies.
    pub(super) fn handle_stateless_notification(
        &self,
        call: &Call,
        context: &FrameContext<C>,
    ) -> Result<(&'static RevisionSpec, Handler), Refusal> {
        let refused = || Refusal::UnknownNotification(call.method.to_string());
        let meta = RequestMeta::read(call, None);
        let header = context.http.as_ref();
        let header = header.and_then(|http| http.header("mcp-protocol-version"));
        let named = meta.version.and_then(JsonRef::as_str);
        let named = named.or_else(|| header.map(|header| Cow::Borrowed(header.trim())));
        let mut offered = self.settings.offer.specs_of_lifecycle(Lifecycle::Discover);
        let spec = match named {
            Some(id) => match offered.find(|spec| spec.id() == id) {
                Some(spec) => spec,
                None => return Err(unsupported_version(&self.settings, &id)),
            },
            None => offered.next().ok_or_else(refused)?,
        };
        // Nothing is inferred from earlier requests: a notification without capabilities is checked against the list of
        // extensions.
        let peer = match meta.capabilities() {
            Some(capabilities) => capabilities,
            None => self.settings.capabilities_for(spec),
        };
        let client = ClientContext::for_notification(spec, peer);
        let handler = client
            .rules_for_client(&self.settings)
            .check_received_notification(&call.method)?;
        Ok((spec, handler))
    }

    /// Handles the end of a stream, which cancels the sessionless requests of the stream.
    pub(super) fn handle_stream_end(&mut self, stream: StreamId) {
        let keys: Vec<RequestKey> = self
            .core
            .in_flight
            .keys_where(|request| request.scope == Some(stream));
        for key in keys {
            self.cancel_request(key, None);
        }
    }
}

/// Returns the context in which the state of a request is sealed.
pub(super) fn state_context<C>(call: &Call, context: &FrameContext<C>) -> Vec<u8> {
    let principal = context.principal.as_ref().map(|principal| &*principal.0);
    seal::seal_context(principal, &call.method, call.params.as_ref())
}
