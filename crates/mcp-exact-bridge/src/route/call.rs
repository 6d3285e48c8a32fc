//! One request of a client on one connection to a server: its conversion, sending it, and the reply for the client. Clients
//! with and without sessions differ in whose connection it is.

use std::sync::Arc;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::code::INVALID_PARAMS;
use mcp_exact_session::{
    CallOptions, IncomingRequest, JsonObject, Outcome, PeerError, Principal, RawResult, Reply,
    RequestKey,
};
use mcp_exact_transport::{PendingRequest, RequestContext};

use crate::around::apps::{self, ToolPages};
use crate::around::cache::CacheTicket;
use crate::around::gate::Admitted;
use crate::around::hooks::MessageHooks;
use crate::around::pin_states::PinnedList;
use crate::route::relay::{self, ProgressReceiver};
use crate::route::result_size;
use crate::route::translate::Translation;
use crate::servers::backend::Backend;
use crate::servers::connection::Connection;
use crate::servers::errors::{self, RelayError};

/// Request that is relayed on a connection.
pub(crate) struct RelayedCall<'a> {
    pub(crate) request: &'a IncomingRequest<RequestContext>,
    pub(crate) connection: &'a Arc<Connection>,
    /// Translation from the revision of the client to that of the connection.
    pub(crate) translation: Translation,
    /// Hooks for the messages during the request.
    pub(crate) messages: MessageHooks,
    /// The server.
    pub(crate) backend: &'a Backend,
    /// Comparison of the list of tools that is requested with pins.
    list: Option<PinnedList>,
    /// Where the answer is kept; `None` if it is not.
    ticket: Option<&'a CacheTicket>,
}

impl<'a> RelayedCall<'a> {
    pub(crate) fn new(
        request: &'a IncomingRequest<RequestContext>,
        connection: &'a Arc<Connection>,
        backend: &'a Backend,
        messages: MessageHooks,
    ) -> Self {
        let losses = backend.losses().of_server(&connection.repairs);
        let lists_tools = request.method_id() == MethodId::ToolsList;
        let list = (lists_tools && backend.has_pins()).then(|| {
            let principal = request.context().principal.as_ref();
            let principal = principal.map(|Principal(name)| name.as_str());
            backend.begin_list(principal, request.param("cursor").is_none())
        });
        let translation = Translation::new(request.revision(), connection.info.revision, losses);
        Self {
            request,
            connection,
            translation: translation.of_request(&request.context().app_data),
            messages,
            backend,
            list,
            ticket: None,
        }
    }

    /// Returns the call; its answer is kept where `admitted` says.
    pub(crate) fn keeping_answer(mut self, admitted: &'a Admitted) -> Self {
        self.ticket = admitted.ticket().map(|ticket| &**ticket);
        self
    }

    /// Converts the params and sends the request. `keeps_task` is true if the server may turn the call into a task of the
    /// client. `begun` is called with the key of the request before messages of the server that belong to it are handled.
    pub(crate) fn send(
        &self,
        params: Option<&JsonObject>,
        keeps_task: bool,
        progress: &ProgressReceiver,
        options: CallOptions,
        begun: impl FnOnce(RequestKey),
    ) -> Result<PendingRequest, RelayError> {
        let request = self.request;
        let client_meta = relay::client_meta(request.client());
        let method = request.method();
        let params = self
            .translation
            .params(method, params, client_meta, keeps_task)?;
        let progress = progress.callback(request, self.messages.clone());
        let options = CallOptions {
            progress: progress.is_some(),
            trace: relay::trace(request),
            // Pins are compared with what the endpoint has repaired, whatever revision the client has; other clients get the same.
            checks_result: self.list.is_none()
                && self.ticket.is_none()
                && self.translation.checks_result(method),
            ..options
        };
        let client = &self.connection.client;
        let sent = client.request_with_key(method, params, options, progress, begun);
        sent.map_err(|error| self.connection.unsent_error(&error))
    }

    /// Returns the reply for the client, converted from the outcome of the request.
    pub(crate) fn reply(&self, outcome: Outcome) -> Result<Reply, PeerError> {
        let back = self.translation.reversed();
        let (method, uri) = (self.request.method(), relay::uri_of(self.request));
        match outcome {
            Outcome::Result(result) => {
                let lists_tools = self.request.method_id() == MethodId::ToolsList;
                let mut result = result;
                if let Some(ticket) = self.ticket {
                    ticket.keep(&result, self.connection.info.revision);
                }
                if lists_tools {
                    // The tools of a server with credentials per user may depend on the user.
                    if self.backend.users().is_none() {
                        self.backend.tools.update(result.object());
                    }
                }
                if let Some(list) = &self.list {
                    result = self.backend.with_pinned_tools(list, result);
                }
                finish(self.backend, self.request, &back, result)
            }
            Outcome::Error(error) => {
                if let Some(ticket) = self.ticket
                    && error.code() == Some(INVALID_PARAMS)
                {
                    ticket.end_pages();
                }
                let error = errors::with_remedy(error);
                Err(back.error(method, &error, uri.as_deref()))
            }
            other => Err(self.connection.missing_answer(&other)),
        }
    }
}

/// Returns the reply with a result in the revision of the server, converted and limited for the client.
pub(crate) fn finish(
    backend: &Backend,
    request: &IncomingRequest<RequestContext>,
    back: &Translation,
    result: RawResult,
) -> Result<Reply, PeerError> {
    let (method, uri) = (request.method(), relay::uri_of(request));
    let lists_tools = request.method_id() == MethodId::ToolsList;
    let (mut result, mut pages) = (result, ToolPages::default());
    if lists_tools && !apps::shows_pages(&request.client().capabilities) {
        result = apps::without_tools_of_pages(result);
    } else if lists_tools && back.from != back.to {
        (pages, result) = ToolPages::take(result);
    }
    result = back.result(method, result, uri.as_deref())?;
    if lists_tools {
        result = backend.with_portable_schemas(pages.put_back(result));
    }
    if let Some(most) = backend.result_bytes() {
        result = result_size::limited(request, result, most)?;
    }
    Ok(Reply::Result(result))
}
