//! Losses of conversions for operators: the report of a loss, its policy by rules, and the function that hears of it.

use std::fmt;
use std::sync::Arc;

use mcp_exact_convert::Loss;
use mcp_exact_session::{LossPolicy, Revision};

/// Policy for some losses.
///
/// The last rule that matches a loss applies; without a matching rule, the policy is
/// [`Rules::losses`](crate::Rules::losses).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossRule {
    /// Patterns of the losses that the rule applies to, by [`LossReport::id`]; `*` matches any characters.
    pub losses: Vec<String>,
    /// Policy for these losses.
    pub policy: LossPolicy,
}

impl LossRule {
    /// Creates a rule from patterns and a policy.
    pub fn new(losses: impl IntoIterator<Item = impl Into<String>>, policy: LossPolicy) -> Self {
        Self {
            losses: losses.into_iter().map(Into::into).collect(),
            policy,
        }
    }
}

/// Loss in the conversion of a message to the revision of its receiver.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LossReport<'a> {
    /// Method of the message whose params, result or error was converted.
    pub method: &'a str,
    /// Revision of the sender.
    pub from: Revision,
    /// Revision of the receiver.
    pub to: Revision,
    /// Loss that was reported.
    pub loss: &'a Loss,
}

impl LossReport<'_> {
    /// Returns the id of the kind of loss: method, kind and JSON pointer, such as `tools/list:dropped:/tools/*/icons`.
    /// Array indices are replaced by `*`.
    pub fn id(&self) -> String {
        let tokens = self.loss.pointer.split('/');
        let tokens = tokens.map(|token| match token.parse::<usize>() {
            Ok(_) => "*",
            Err(_) => token,
        });
        let place = tokens.collect::<Vec<_>>().join("/");
        format!("{}:{}:{place}", self.method, self.loss.kind.name())
    }
}

/// Function of the application that is called for every loss, while the message is relayed. The function must not
/// block.
#[derive(Clone)]
pub struct LossHook(pub(crate) Arc<dyn Fn(&LossReport<'_>) + Send + Sync>);

impl LossHook {
    /// Creates a hook that calls a function with the report of each loss.
    pub fn new(hook: impl Fn(&LossReport<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for LossHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LossHook")
    }
}
