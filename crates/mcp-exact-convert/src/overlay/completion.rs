//! Completion: at most a hundred values, which 2026-07-28 insists on.

use mcp_2025_11_25 as older;

use crate::{Context, LossKind, Refused};

const MOST: usize = 100;

/// Leaves out what comes after the hundredth value, and says that there is more.
pub fn first_hundred(
    mut completion: older::CompleteResultCompletion,
    cx: &mut Context,
) -> Result<older::CompleteResultCompletion, Refused> {
    if completion.values.len() > MOST {
        let reason = "2026-07-28 allows a hundred values";
        for index in MOST..completion.values.len() {
            let pointer = format!("{}/{index}", cx.pointer_of("values"));
            cx.report(pointer, LossKind::Dropped, reason);
        }
        completion.values.truncate(MOST);
        let kind = match completion.has_more.replace(true) {
            None => Some(LossKind::Defaulted),
            Some(false) => Some(LossKind::Replaced),
            Some(true) => None,
        };
        if let Some(kind) = kind {
            cx.lost("hasMore", kind, "there are more than a hundred values");
        }
    }
    Ok(completion)
}
