//! Generates rules between objects; `members.rs` generates the rules of each member.

use super::Step;
use super::members::Members;
use crate::convert::rules::Body;
use crate::ir::{Definition, Member};

impl<'i> Step<'_, 'i> {
    /// Returns the conversion between two objects.
    pub(super) fn convert_structs(
        &self,
        source: &'i Definition,
        old: &'i [Member],
        target: &'i Definition,
        new: &'i [Member],
    ) -> Body {
        let request = new.iter().chain(old).any(|m| m.name == "method");
        let lacks = |name: &str| {
            let has = |members: &[Member]| members.iter().any(|member| member.name == name);
            request && has(old) && !has(new)
        };
        let members = Members {
            step: self,
            source,
            target,
            is_message: request,
            has_id: lacks("id"),
        };
        let gone = old.iter().enumerate();
        let gone = gone.filter(|(_, old)| new.iter().all(|new| new.name != old.name));
        let gone: Vec<_> = gone
            .filter_map(|(at, member)| members.find_removal(at, member))
            .collect();
        let steps = new.iter().enumerate().filter_map(|(at, member)| {
            let before = old.iter().find(|old| old.name == member.name);
            members.member(at, before, member)
        });
        let steps: Vec<_> = steps.collect();
        // A member that only the source has is kept as an unknown member, which changes no text.
        if gone.is_empty() && steps.is_empty() {
            return Body::Keep;
        }
        Body::Object(gone, steps)
    }
}
