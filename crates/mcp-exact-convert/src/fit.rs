//! Converts untyped objects to types with known members: members that do not match are dropped and reported.

use std::borrow::Cow;

use mcp_exact_wire::order::sorted;
use mcp_exact_wire::{Reader, from_str};

use crate::conversion::Conversion;
use crate::decode::decode;
use crate::layout::{Definition, Layout, Type};
use crate::loss::{LossKind, Step};
use crate::node::{Body, Node};

impl<'t> Conversion<'_, 't> {
    /// Converts an untyped object to a type; members that do not match are dropped and reported.
    pub(crate) fn fit(&mut self, node: &mut Node<'t>, value: u16) -> Step<()> {
        if let Type::Definition(place) = Type::at(value)
            && let Some(layout) = Definition::at(place).layout()
        {
            self.drop_invalid_names(node);
            self.drop_duplicates(node);
            self.drop_mismatching_members(node, layout);
        }
        *node = decode(node, value).map_err(|mismatch| self.mismatch(mismatch.reason))?;
        Ok(())
    }

    /// Drops members whose names are not valid Unicode, which untyped JSON allows and typed objects do not.
    fn drop_invalid_names(&mut self, node: &mut Node<'t>) {
        let Body::Text(text) = &node.body else {
            return;
        };
        let (mut r, mut first, mut misspelt) = (Reader::new(text), true, Vec::new());
        while let Ok(Some(member)) = r.open_member(&mut first) {
            let is_spelt = |name: &Cow<'_, str>| {
                let is_plain = matches!(name, Cow::Borrowed(_)) || !name.contains('\u{fffd}');
                is_plain || from_str::<String>(member.quoted).is_ok()
            };
            misspelt.push(!is_spelt(&member.name));
        }
        if misspelt.contains(&true) {
            let reason = "free before, of a type now: a string holds a lone surrogate";
            self.drop_where(node, reason, |at| misspelt[at]);
        }
    }

    /// Drops all but the last of several members with one name, which untyped JSON allows and typed objects do not.
    fn drop_duplicates(&mut self, node: &mut Node<'t>) {
        let Some(members) = node.members() else {
            return;
        };
        let order = sorted(members.len(), &|a, b| members[a].name.cmp(&members[b].name));
        let mut is_twice = vec![false; members.len()];
        for pair in order.windows(2) {
            is_twice[pair[0]] = members[pair[0]].name == members[pair[1]].name;
        }
        if is_twice.contains(&true) {
            let reason = "free before, of a type now: the member is there twice";
            self.drop_where(node, reason, |at| is_twice[at]);
        }
    }

    /// Drops the known members whose values have another type.
    fn drop_mismatching_members(&mut self, node: &mut Node<'t>, layout: &Layout) {
        let mut changed = false;
        for member in node.members().into_iter().flatten() {
            let Some(index) = layout.find(&member.name) else {
                continue;
            };
            let place = self.place_of(&member.name, member.value.at);
            match self.decode_untyped(&mut member.value, layout.type_of(index), &place) {
                Ok(read) => {
                    changed |= read.changed;
                    member.value = read;
                }
                Err(mismatch) => {
                    let reason = format!("free before, of a type now: {}", mismatch.reason);
                    self.record_drop(&member.name, &member.value, reason);
                    member.value.body = Body::Removed;
                    changed = true;
                }
            }
        }
        if changed {
            drop_removed(node);
        }
    }

    /// Drops and reports the members at the indexes for which `is_dropped` returns true.
    fn drop_where(
        &mut self,
        node: &mut Node<'t>,
        reason: &'static str,
        is_dropped: impl Fn(usize) -> bool,
    ) {
        let members = node.members().into_iter().flatten();
        for (at, member) in members.enumerate() {
            if is_dropped(at) {
                self.record_loss(&member.name, member.value.at, LossKind::Dropped, reason);
                member.value.body = Body::Removed;
            }
        }
        drop_removed(node);
    }
}

/// Removes the members that are marked as removed.
fn drop_removed(node: &mut Node<'_>) {
    if let Some(members) = node.members() {
        members.retain(|member| !member.value.is_removed());
    }
    node.changed = true;
}
