//! Requests whose answers are kept, and answers from what is kept.

use std::sync::Arc;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{IncomingRequest, PeerError, Reply};
use mcp_exact_transport::RequestContext;

use crate::around::cache::{CacheTicket, CachedAnswer, is_cacheable};
use crate::route::call::finish;
use crate::route::translate::Translation;
use crate::servers::backend::Backend;

/// Returns the ticket of a request, if its answer may be kept. `session` is the number of the client's session.
pub(crate) fn ticket(
    backend: &Backend,
    request: &IncomingRequest<RequestContext>,
    session: Option<u64>,
) -> Option<Arc<CacheTicket>> {
    if !backend.layers().has_cache || !is_cacheable(request.method()) {
        return None;
    }
    // What a principal has been shown is compared with pins, and remembered, each time.
    if request.method_id() == MethodId::ToolsList && backend.has_pins() {
        return None;
    }
    // The same text can mean another capability in another revision: what the server sees counts.
    let declared = &request.client().capabilities;
    let translation = Translation::to_newest(request.revision());
    let capabilities = translation
        .definition("ClientCapabilities", declared)
        .ok()?;
    let ticket = backend
        .answers()
        .ticket(request, capabilities.text(), session);
    ticket.map(Arc::new)
}

/// Returns the reply for a client whose request has an answer that is kept.
pub(crate) fn reply(
    backend: &Backend,
    request: &IncomingRequest<RequestContext>,
    answer: &CachedAnswer,
) -> Result<Reply, PeerError> {
    let losses = backend.losses().of_server(&backend.repairs());
    let translation = Translation::new(request.revision(), answer.revision, losses);
    let translation = translation.of_request(&request.context().app_data);
    finish(backend, request, &translation.reversed(), answer.result())
}
