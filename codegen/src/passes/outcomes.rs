//! Finds requests with several possible results.
//!
//! A request with several possible results gets the union of these results. If the schema defines the union in
//! `XResultResponse`, that definition is used; if only the params allow a task, the union is generated. The pass does
//! not depend on the identifier of the revision.

use crate::ir::{Definition, Ir, Member, MemberValue, Method, Shape, Type};

/// Member of the params that requests a task, and definition of the result for a created task.
const TASK_MEMBER_AND_RESULT: (&str, &str) = ("task", "CreateTaskResult");

/// Determines the possible results of every request, and adds the unions that the schema does not define.
pub fn find(ir: &mut Ir) {
    let mut methods = std::mem::take(&mut ir.methods);
    let mut made = Vec::new();
    for method in methods.iter_mut().filter(|method| method.request) {
        let Some(plain) = method.result.clone() else {
            continue;
        };
        if let Some((name, outcomes)) = schema_outcomes(ir, method, &plain) {
            method.result = Some(name);
            method.outcomes = outcomes;
        } else if may_become_a_task(ir, method) && plain != TASK_MEMBER_AND_RESULT.1 {
            let request = &method.definition;
            let stem = request.strip_suffix("Request").unwrap_or(request);
            let outcome = result_union(
                format!("{stem}Outcome"),
                &[&plain, TASK_MEMBER_AND_RESULT.1],
            );
            if ir.get(&outcome.name).is_none() {
                method.result = Some(outcome.name.clone());
                method.outcomes = vec![plain, TASK_MEMBER_AND_RESULT.1.to_owned()];
                made.push(outcome);
            }
        }
    }
    ir.methods = methods;
    ir.definitions.extend(made);
    ir.definitions.sort_by(|a, b| a.name.cmp(&b.name));
    ir.definitions.dedup_by(|a, b| a.name == b.name);
}

/// Returns the name and the variants of the union of results that the schema allows in the response to a request;
/// `None` if the response has one possible result.
fn schema_outcomes(ir: &Ir, method: &Method, plain: &str) -> Option<(String, Vec<String>)> {
    let stem = method.definition.strip_suffix("Request")?;
    let result = member(ir, &format!("{stem}ResultResponse"), "result")?;
    let MemberValue::Type(Type::Ref { name, .. }) = &result.value else {
        return None;
    };
    let Shape::Union(union) = &ir.get(name)?.shape else {
        return None;
    };
    let outcomes: Option<Vec<String>> = union.iter().map(referenced_name).collect();
    let outcomes = outcomes.filter(|outcomes| outcomes.iter().any(|name| name == plain))?;
    Some((name.clone(), outcomes))
}

/// Returns the name of the definition that a type refers to.
fn referenced_name(variant: &Type) -> Option<String> {
    match variant {
        Type::Ref { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// Returns true if the params of a request may have the member that requests a task.
fn may_become_a_task(ir: &Ir, method: &Method) -> bool {
    let asks = |value: &Type| match value {
        Type::Ref { name, .. } => member(ir, name, TASK_MEMBER_AND_RESULT.0).is_some(),
        _ => false,
    };
    let asks = match &method.params {
        Some(Type::Ref { name, .. }) => match ir.get(name).map(|definition| &definition.shape) {
            Some(Shape::Union(union)) => union.iter().any(asks),
            _ => method.params.iter().any(asks),
        },
        _ => false,
    };
    asks && ir.get(TASK_MEMBER_AND_RESULT.1).is_some()
}

/// Returns a member of a definition that is an object.
fn member<'i>(ir: &'i Ir, definition: &str, member: &str) -> Option<&'i Member> {
    match &ir.get(definition)?.shape {
        Shape::Struct(members) => members.iter().find(|known| known.name == member),
        _ => None,
    }
}

/// Creates the union of several results.
fn result_union(name: String, results: &[&str]) -> Definition {
    let variants = results.iter().map(|result| Type::Ref {
        name: (*result).to_owned(),
    });
    Definition {
        name,
        official: false,
        pointers: Vec::new(),
        description: None,
        closed: false,
        shape: Shape::Union(variants.collect()),
    }
}
