//! Finds requests and notifications, which are definitions with a constant `method`.
//!
//! Adds the methods to an intermediate representation, with their params, result and senders.

use crate::ir::{Definition, Ir, MemberValue, Method, Shape, Type};

/// Adds the methods, sorted by name.
pub fn find(ir: &mut Ir) {
    let mut methods: Vec<Method> = ir
        .definitions
        .iter()
        .filter_map(|d| find_method(ir, d))
        .collect();
    methods.sort_by(|a, b| (&a.method, &a.definition).cmp(&(&b.method, &b.definition)));
    ir.methods = methods;
}

/// Returns the method of a definition that is a request or a notification; `None` for another definition.
fn find_method(ir: &Ir, definition: &Definition) -> Option<Method> {
    let Shape::Struct(members) = &definition.shape else {
        return None;
    };
    let MemberValue::ConstString(method) = &members.iter().find(|m| m.name == "method")?.value
    else {
        return None;
    };
    let stem = definition.name.strip_suffix("Request");
    let params = members.iter().find(|m| m.name == "params");
    let sent_by = |side: &str| {
        let kind = if stem.is_some() {
            "Request"
        } else {
            "Notification"
        };
        is_member(ir, &format!("{side}{kind}"), &definition.name)
    };
    Some(Method {
        method: method.clone(),
        definition: definition.name.clone(),
        request: stem.is_some(),
        params: params.and_then(|member| match &member.value {
            MemberValue::Type(value) => Some(value.clone()),
            _ => None,
        }),
        params_required: params.is_some_and(|member| member.required),
        result: stem.and_then(|stem| {
            let own = format!("{stem}Result");
            let name = [own.as_str(), "EmptyResult"]
                .into_iter()
                .find(|name| ir.get(name).is_some());
            name.map(str::to_owned)
        }),
        outcomes: Vec::new(),
        from_client: sent_by("Client"),
        from_server: sent_by("Server"),
    })
}

/// Returns true if `union` is a union with the definition `name` as a variant, an alias of `name`, or `name` itself.
fn is_member(ir: &Ir, union: &str, name: &str) -> bool {
    let is = |value: &Type| matches!(value, Type::Ref { name: found, .. } if found == name);
    match ir.get(union).map(|definition| &definition.shape) {
        Some(Shape::Union(union)) => union.iter().any(is),
        Some(Shape::Alias(value)) => is(value),
        _ => union == name,
    }
}
