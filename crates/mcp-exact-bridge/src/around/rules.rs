//! Rules of a bridge, which can change while it runs.

use mcp_exact_session::LossPolicy;
use mcp_exact_tool_schema::Catalogue;

use crate::around::access::AccessRule;
use crate::around::limits::PrincipalLimits;
use crate::around::loss_rules::LossRule;
use crate::around::pins::Pins;
use crate::around::search::ToolSearch;

/// Rules that can change while the bridge runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Rules {
    /// Rules that show or hide tools, prompts and resources.
    pub access: Vec<AccessRule>,
    /// What clients see of tools instead of the definitions of their servers. Access rules, hooks and servers know tools by the
    /// names that the servers themselves have.
    pub catalogue: Catalogue,
    /// Definitions of tools that somebody has approved, and the policy for those that differ; `None` compares nothing.
    pub pins: Option<Pins>,
    /// Search that clients see instead of all tools; `None` lists all tools.
    pub search: Option<ToolSearch>,
    /// Policy for messages that the other revision cannot express without a loss.
    pub losses: LossPolicy,
    /// Policies for specific kinds of losses; they have precedence over `losses`.
    pub loss_rules: Vec<LossRule>,
    /// Patterns of methods outside of the specification that are relayed, such as methods of extensions other than tasks and
    /// skills; `*` matches any characters. Access rules do not apply to the items that such requests name, and ids in them are
    /// bound to no principal. With many servers, each server is tried in order. Without a pattern, such requests are relayed only
    /// to a single server without access rules, catalogue, pins and search, also at its own endpoint, and only for clients without a
    /// principal.
    pub extension_methods: Vec<String>,
    /// Limits of each principal; `None` for no limits.
    pub limits: Option<PrincipalLimits>,
}
