//! Finds the metadata that the params of a client's request require, such as version and capabilities of the client.
//!
//! The session provides the metadata for a request of an older revision, so decoders take it from the caller where the
//! text has none.

use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};

/// Name of the member with the metadata.
const META: &str = "_meta";

/// Returns the definition of the metadata; `None` if no params require metadata, or params require different metadata.
pub fn find(ir: &Ir) -> Option<&str> {
    let mut found = ir.definitions.iter().filter_map(|definition| {
        let Shape::Struct(members) = &definition.shape else {
            return None;
        };
        let mut types = members.iter().filter_map(required_meta);
        types.next().filter(|_| is_client_params(ir, definition))
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// Returns true if the member is the required metadata of the params of a client's request.
pub fn is_provided(ir: &Ir, definition: &Definition, member: &Member) -> bool {
    let meta = required_meta(member).filter(|_| is_client_params(ir, definition));
    meta.is_some() && meta == find(ir)
}

/// Returns the definition of a required member `_meta`.
fn required_meta(member: &Member) -> Option<&str> {
    match &member.value {
        MemberValue::Type(Type::Ref { name, .. }) if member.required && member.name == META => {
            Some(name)
        }
        _ => None,
    }
}

/// Returns true if the definition is the params of a request that clients send.
fn is_client_params(ir: &Ir, definition: &Definition) -> bool {
    let is = |params: &Type| matches!(params, Type::Ref { name, .. } if *name == definition.name);
    let mut requests = ir.methods.iter().filter(|m| m.request && m.from_client);
    requests.any(|method| method.params.as_ref().is_some_and(is))
}
