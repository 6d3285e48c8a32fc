//! A tool call of a host: whether the policies allow it, and its report to the audit.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::HostError;
use crate::client::ToolOutput;
use crate::protocol::JsonObject;

/// Policies that a tool call must satisfy: one for all servers of the host, and one per server.
#[derive(Clone, Default)]
pub(super) struct Policies {
    /// Policy for the calls of all servers.
    pub(super) host: Option<Arc<CallPolicy>>,
    /// Additional policies, by server.
    pub(super) servers: BTreeMap<String, Arc<CallPolicy>>,
}

impl Policies {
    /// Returns true if all policies for a call allow it.
    pub(super) fn is_allowed(&self, call: &HostCall<'_>) -> bool {
        let server = self.servers.get(call.server);
        let mut policies = self.host.iter().chain(server);
        policies.all(|policy| policy(call))
    }
}

/// Function that decides whether a call is allowed.
pub(super) type CallPolicy = dyn Fn(&HostCall<'_>) -> bool + Send + Sync;
/// Function that receives calls with their results.
pub(super) type AuditFn = dyn Fn(&HostCall<'_>, &Result<ToolOutput, HostError>) + Send + Sync;
/// Call that a host is about to send or has sent.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HostCall<'c> {
    /// Name of the server.
    pub server: &'c str,
    /// Name of the tool, as the server defines it.
    pub tool: &'c str,
    /// Arguments of the call, with those that the [catalogue](super::HostBuilder::catalogue) gives.
    pub arguments: &'c JsonObject,
}

/// Guard that reports a call to the audit: with its result, or as dropped if the future of the call is dropped before
/// the result is received.
pub(super) struct AuditGuard<'c> {
    pub(super) call: HostCall<'c>,
    /// Audit function; `None` once the call was reported.
    pub(super) audit: Option<&'c AuditFn>,
}

impl AuditGuard<'_> {
    /// Reports the result of the call to the audit.
    pub(super) fn report(mut self, result: &Result<ToolOutput, HostError>) {
        if let Some(audit) = self.audit.take() {
            audit(&self.call, result);
        }
    }
}

impl Drop for AuditGuard<'_> {
    fn drop(&mut self) {
        if let Some(audit) = self.audit.take() {
            let dropped = HostError::CallDropped {
                server: self.call.server.to_owned(),
                tool: self.call.tool.to_owned(),
            };
            audit(&self.call, &Err(dropped));
        }
    }
}
