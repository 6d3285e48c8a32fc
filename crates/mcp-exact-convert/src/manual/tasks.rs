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
    match support.as_deref() {
        None | Some("forbidden") if is_alone => {
            cx.record_loss(
                "execution",
                execution.at,
                LossKind::Rewritten,
                ABSENCE_REASON,
            );
        }
        Some("required") => {
            let reason = format!(
                "this tool requires task execution, which {} does not have: plain calls of it fail",
                cx.step.1
            );
            cx.record_drop("execution", &execution, reason);
        }
        _ => {
            let reason = format!(
                "{} has no task execution: calls of this tool are answered when it is done",
                cx.step.1
            );
            cx.record_drop("execution", &execution, reason);
        }
    }
    Ok(())
}
