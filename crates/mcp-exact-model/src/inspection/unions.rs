//! Inspects values of unions: the selected variant, or an object that the union keeps without knowing it.

use mcp_exact_wire::{DecodeErrorKind, Path, RequestId, ViolationKind};

use super::inspector::Inspector;
use super::select::{Mismatch, Selected, select};
use super::value::{Member, Value};
use crate::{Definition, Ir, Shape, Type};

/// Members of the JSON-RPC envelope (JSON-RPC 2.0, sections 4 and 5), none of which a message may have twice.
const ENVELOPE_MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Role of the objects of a union that keeps unknown variants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Values inside a message.
    Value,
    /// Requests or notifications without `jsonrpc` and `id`, as in the schemas up to 2025-06-18.
    Bare,
    /// Requests with `jsonrpc` and `id`.
    Request,
    /// Notifications with `jsonrpc`.
    Notification,
}

impl Role {
    /// Returns the role of the objects of the union with this name and discriminant.
    fn of(ir: &Ir, union: &str, tag: &str) -> Self {
        match union {
            "ClientRequest" | "ServerRequest" if has_envelope_in_types(ir) => Self::Request,
            "ClientNotification" | "ServerNotification" if has_envelope_in_types(ir) => {
                Self::Notification
            }
            _ if tag == "method" => Self::Bare,
            _ => Self::Value,
        }
    }
}

/// Returns true if the types of messages have `jsonrpc` and `id` themselves.
fn has_envelope_in_types(ir: &Ir) -> bool {
    let mut sent = ir
        .methods
        .iter()
        .filter(|method| method.from_client || method.from_server);
    sent.any(
        |method| match ir.get(&method.definition).map(|found| &found.shape) {
            Some(Shape::Struct(members)) => members.iter().any(|member| member.name == "jsonrpc"),
            _ => false,
        },
    )
}

impl<'i> Inspector<'i> {
    /// Inspects a value as the union variant that the dispatch table selects.
    pub(super) fn inspect_union(
        &mut self,
        definition: &'i Definition,
        variants: &'i [Type],
        value: Value<'_>,
        path: &Path<'_>,
    ) {
        let name = &definition.name;
        let Some(dispatch) = self.model.dispatch.get(name) else {
            let message = || format!("the model lacks the dispatch of `{name}`");
            return self.refuse(value.at, path, DecodeErrorKind::Union, message);
        };
        let selected = select(dispatch, name, value).map(Some);
        match self.parts(value, path, selected) {
            Some(Selected::Variant(index)) => self.inspect_value(&variants[index], value, path),
            Some(Selected::Unrecognized(tag)) => {
                let tag = mcp_exact_wire::spans::quoted(&tag);
                let message = || format!("{tag:?} is not known to this revision");
                self.report(value.at, path, ViolationKind::Tag, message);
                let objects = dispatch.objects.as_ref();
                let tag = objects
                    .and_then(|objects| objects.tag.as_deref())
                    .unwrap_or_default();
                let role = Role::of(&self.model.ir, name, tag);
                self.inspect_unrecognized(role, tag, value, path);
            }
            Some(Selected::Mismatch(mismatch)) => self.refuse_mismatch(mismatch, path),
            // The value could not be read, which is a deviation by now.
            None => {}
        }
    }

    /// Adds the deviation that a value matches no variant.
    fn refuse_mismatch(&mut self, mismatch: Mismatch<'_>, path: &Path<'_>) {
        let item = path.index(0);
        let path = if mismatch.is_in_first_item {
            &item
        } else {
            path
        };
        let member = mismatch.member.map(|name| path.member(name));
        let path = member.as_ref().unwrap_or(path);
        let message = || mismatch.message;
        self.refuse(mismatch.at, path, mismatch.kind, message);
    }

    /// Inspects an object whose discriminant `tag` the union does not know: nothing else checks its names and its envelope.
    fn inspect_unrecognized(&mut self, role: Role, tag: &str, value: Value<'_>, path: &Path<'_>) {
        let is_unique = |name: &str| match role {
            Role::Value => name == tag,
            _ => ENVELOPE_MEMBERS.contains(&name),
        };
        let mut members = Vec::new();
        for member in value.members() {
            let member = self.parts(value, path, member.map(Some));
            members.extend(member.filter(|member| is_unique(&member.name)));
        }
        let mut seen = Vec::new();
        for member in &members {
            let path = &path.member(&member.name);
            if seen.contains(&&*member.name) {
                let message = || "the member is there twice".to_owned();
                self.refuse(member.at, path, DecodeErrorKind::Duplicate, message);
            } else {
                seen.push(&*member.name);
            }
            let is_message = matches!(role, Role::Request | Role::Notification);
            if is_message && matches!(&*member.name, "result" | "error") {
                let message =
                    || "a message with a `method` has neither `result` nor `error`".to_owned();
                self.refuse(member.at, path, DecodeErrorKind::Exclusive, message);
            }
        }
        if matches!(role, Role::Request | Role::Notification) {
            self.inspect_envelope(role, &members, value, path);
        }
    }

    /// Inspects `jsonrpc` and `id` of a message whose method the union does not know; `members` has those of its envelope.
    fn inspect_envelope(
        &mut self,
        role: Role,
        members: &[Member<'_>],
        value: Value<'_>,
        path: &Path<'_>,
    ) {
        let find = |name: &str| members.iter().find(|member| member.name == name);
        match find("jsonrpc") {
            Some(version) => self.inspect_constant("2.0", version.value, &path.member("jsonrpc")),
            None => {
                let message = || "missing member `jsonrpc`".to_owned();
                self.refuse(value.at, path, DecodeErrorKind::Required, message);
            }
        }
        match (role, find("id")) {
            (Role::Request, Some(id)) => {
                _ = self.decode::<RequestId>(id.value, &path.member("id"));
            }
            (Role::Request, None) => {
                let message = || "missing member `id`".to_owned();
                self.refuse(value.at, path, DecodeErrorKind::Required, message);
            }
            (_, Some(_)) => {
                let message = || "a notification has no `id`".to_owned();
                self.refuse(value.at, path, DecodeErrorKind::Exclusive, message);
            }
            (_, None) => {}
        }
    }
}
