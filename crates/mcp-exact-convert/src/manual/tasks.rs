//! Task execution of tools, which only 2025-11-25 has.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::members::ABSENCE_REASON;
use crate::node::Node;

/// Removes `execution` from a tool, and reports the effect on a client that does not support tasks.
pub fn without_execution<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let Some(mut execution) = node.take("execution") else {
        return Ok(());
    };
    let support = execution.member("taskSupport");
    let support = support.and_then(|support| support.string().map(String::from));
    let is_alone = execution
        .members()
        .is_some_and(|members| members.len() <= usize::from(support.is_some()));
    let (name, target) = ("execution", cx.step.1);
    let reason = match support.as_deref() {
        None | Some("forbidden") if is_alone => {
            cx.record_loss(name, execution.at, LossKind::Rewritten, ABSENCE_REASON);
            return Ok(());
        }
        Some("required") => format!(
            "this tool requires task execution, which {target} does not have: plain calls of it fail"
        ),
        _ => format!(
            "{target} has no task execution: calls of this tool are answered when it is done"
        ),
    };
    cx.record_drop(name, &execution, reason);
    Ok(())
}
