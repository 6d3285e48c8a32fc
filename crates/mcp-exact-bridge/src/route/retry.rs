//! Which requests may be repeated.

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{IncomingRequest, is_repeatable};
use mcp_exact_transport::RequestContext;

use crate::around::retry::RetryPolicy;
use crate::around::target;
use crate::servers::backend::Backend;
use crate::servers::tasks;

/// Returns the policy by which a request is repeated; `None` if it is not, because the server has no policy or a second execution
/// may have an effect.
pub(crate) fn policy_for(
    backend: &Backend,
    request: &IncomingRequest<RequestContext>,
) -> Option<RetryPolicy> {
    let policy = backend.layers().retry?;
    // The input that a retry of the client carries is used up by the first attempt.
    if target::has_input(request) {
        return None;
    }
    let covers = if request.method_id() == MethodId::ToolsCall {
        // A call that becomes a task has the effect that the task exists.
        let may_be_task = request.param("task").is_some()
            || tasks::declares_extension(&request.client().capabilities);
        policy.tools && !may_be_task && backend.tools.is_repeatable(request)
    } else {
        is_repeatable(request.revision(), request.method())
    };
    covers.then_some(policy)
}
