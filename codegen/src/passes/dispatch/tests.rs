//! Tests of dispatch plans for small unions, one line per case: tags, members, kinds, ties and arrays. Each test plans
//! a schema and compares the description of its union `Thing`.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::ir::{Dispatch, DispatchCase, ObjectDispatch, Tag, Union};
use crate::testing::build_ir;

/// Plans a schema and checks the union `Thing`.
fn check(definitions: Value, expected: Expect) {
    expected.assert_eq(&match build_ir(definitions) {
        Err(error) => format!("{error}\n"),
        Ok(ir) => match ir.unions.get("Thing") {
            Some(union) => describe_union(union),
            None => format!("no union: {:?}\n", ir.get("Thing")),
        },
    });
}

/// Describes how a union selects its variants, one line per kind of JSON value.
fn describe_union(union: &Union) -> String {
    let Dispatch {
        values: _,
        string,
        number,
        boolean,
        null,
        arrays,
        items,
        objects,
        open,
    } = &union.dispatch;
    let name = |at: usize| union.variants[at].name.as_str();
    let mut out = String::new();
    for (kind, variant) in [
        ("string", string),
        ("number", number),
        ("boolean", boolean),
        ("null", null),
    ] {
        if let Some(variant) = variant {
            out += &format!("{kind}: {}\n", name(*variant));
        }
    }
    for variant in arrays {
        out += &format!("array: {}\n", name(*variant));
    }
    for (what, plan) in [("item", items), ("object", objects)] {
        if let Some(plan) = plan {
            out += &describe_plan(what, plan, &name);
        }
    }
    out + &format!("open: {open}\n")
}

/// Describes the dispatch among objects, one line per case; `what` begins each line, and `name` returns the name of a
/// variant.
fn describe_plan<'n>(
    what: &str,
    plan: &ObjectDispatch,
    name: &impl Fn(usize) -> &'n str,
) -> String {
    let probe = |at: &usize| match &plan.probes[*at] {
        (member, None) => member.clone(),
        (member, Some(inner)) => format!("{member}/{inner}"),
    };
    let case = |case: &DispatchCase| {
        let tag = match (&plan.tag, &case.tag) {
            (Some(tag), Tag::Is(value)) => format!(" {tag}={value}"),
            (Some(tag), Tag::Absent) => format!(" no {tag}"),
            _ => String::new(),
        };
        let has: String = case
            .has
            .iter()
            .map(|at| format!(" {}", probe(at)))
            .collect();
        format!("{what}:{tag}{has} => {}\n", name(case.variant))
    };
    let exclusive = plan.exclusive.iter();
    let exclusive = exclusive.map(|(a, b)| format!("{what}: {} excludes {}\n", probe(a), probe(b)));
    plan.cases.iter().map(case).chain(exclusive).collect()
}

/// Creates a reference to a definition.
fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// Creates a union of definitions.
fn union(names: &[&str]) -> Value {
    json!({ "anyOf": names.iter().map(|name| reference(name)).collect::<Vec<_>>() })
}

/// Creates an object with string members, or members with the given schemas; members whose names end in `?` are
/// optional.
fn object(members: &[(&str, Value)]) -> Value {
    let name = |name: &str| name.trim_end_matches('?').to_owned();
    let properties: serde_json::Map<String, Value> = members
        .iter()
        .map(|(n, value)| (name(n), value.clone()))
        .collect();
    let required: Vec<_> = members
        .iter()
        .filter(|(n, _)| !n.ends_with('?'))
        .map(|(n, _)| n)
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Creates the schema of strings.
fn string() -> Value {
    json!({ "type": "string" })
}

/// Creates a constant string.
fn constant(value: &str) -> Value {
    json!({ "const": value, "type": "string" })
}

#[test]
fn kind_of_value_selects_variant() {
    check(
        json!({ "Thing": { "type": ["string", "number", "boolean"] } }),
        expect![[r#"
            string: String
            number: Number
            boolean: Boolean
            open: false
        "#]],
    );
}

#[test]
fn constant_selects_variant() {
    let definitions = json!({
        "A": object(&[("type", constant("a")), ("x", string())]),
        "B": object(&[("type", constant("b"))]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        object: type=a => A
        object: type=b => B
        open: true
    "#]],
    );
}

/// A member whose constant is the same in all variants is no discriminant.
#[test]
fn most_distinguishing_constant_is_tag() {
    let definitions = json!({
        "A": object(&[("jsonrpc", constant("2.0")), ("method", constant("a"))]),
        "B": object(&[("jsonrpc", constant("2.0")), ("method", constant("b"))]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        object: method=a => A
        object: method=b => B
        open: true
    "#]],
    );
}

/// A discriminant may be an enum: each of its values selects the variant.
#[test]
fn enum_values_select_variant() {
    let definitions = json!({
        "A": object(&[("type", json!({ "type": "string", "enum": ["number", "integer"] }))]),
        "B": object(&[("type", constant("string"))]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        object: type=integer => A
        object: type=number => A
        object: type=string => B
        open: true
    "#]],
    );
}

/// The absence of an optional constant selects the variant with this constant.
#[test]
fn absent_constant_selects_variant() {
    let definitions = json!({
        "A": object(&[("kind", constant("a"))]),
        "B": object(&[("kind?", constant("b"))]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        object: kind=a => A
        object: kind=b => B
        object: no kind => B
        open: true
    "#]],
    );
}

/// A discriminant selects the variant before the presence of other members is tested.
#[test]
fn tag_precedes_members() {
    let definitions = json!({
        "A": object(&[("type", constant("string")), ("values", string())]),
        "B": object(&[("type", constant("string")), ("values", string()), ("labels", string())]),
        "C": object(&[("type", constant("number"))]),
        "Thing": union(&["A", "B", "C"]),
    });
    check(
        definitions,
        expect![[r#"
        object: type=number => C
        object: type=string labels => B
        object: type=string => A
        open: true
    "#]],
    );
}

#[test]
fn most_specific_members_come_first() {
    let definitions = json!({
        "A": object(&[("id", string())]),
        "B": object(&[("id", string()), ("method", string())]),
        "C": object(&[("id", string()), ("method", string()), ("more", string())]),
        "Thing": union(&["A", "B", "C"]),
    });
    check(
        definitions,
        expect![[r#"
        object: method more => C
        object: method => B
        object: => A
        open: false
    "#]],
    );
}

/// Variants with the same members are distinguished by required members inside the values of these members.
#[test]
fn nested_members_select_variant() {
    let inner = |member: &str| object(&[(member, string())]);
    let definitions = json!({
        "A": object(&[("data", inner("a"))]),
        "B": object(&[("data", inner("b"))]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        object: data/a => A
        object: data/b => B
        open: false
    "#]],
    );
}

/// An optional member that only one variant has selects this variant if the required members are the same.
#[test]
fn exclusive_members_decide_between_equals() {
    let definitions = json!({
        "A": object(&[("type", string()), ("a?", string())]),
        "B": object(&[("type", string()), ("b?", string())]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        object: a => A
        object: b => B
        object: => A
        open: false
    "#]],
    );
}

#[test]
fn indistinguishable_variants_are_refused() {
    let definitions = json!({
        "A": object(&[("a", string())]),
        "B": object(&[("a", json!({ "type": "integer" }))]),
        "Thing": union(&["A", "B"]),
    });
    check(
        definitions,
        expect![[r#"
        test at /definitions/Thing: nothing tells the member `B` from those before it; take it out by an erratum
    "#]],
    );
}

/// The result of a request may be any of several objects that have no distinguishing member.
#[test]
fn results_need_no_discriminant() {
    let definitions = json!({
        "EmptyResult": object(&[("_meta?", json!({ "type": "object" }))]),
        "Result": object(&[("_meta?", json!({ "type": "object" }))]),
        "ServerResult": union(&["Result", "EmptyResult"]),
        "Thing": union(&["ServerResult", "Other"]),
        "Other": string(),
    });
    check(
        definitions,
        expect![[r#"
        string: Other
        object: => ServerResult
        open: false
    "#]],
    );
}

#[test]
fn result_and_error_are_exclusive() {
    let id = || ("id", string());
    let version = || ("jsonrpc", constant("2.0"));
    let definitions = json!({
        "JSONRPCError": object(&[version(), id(), ("error", string())]),
        "JSONRPCRequest": object(&[version(), id(), ("method", string())]),
        "JSONRPCResponse": object(&[version(), id(), ("result", string())]),
        "Thing": union(&["JSONRPCError", "JSONRPCRequest", "JSONRPCResponse"]),
    });
    check(
        definitions,
        expect![[r#"
        object: error => Error
        object: method => Request
        object: result => Response
        object: result excludes error
        open: false
    "#]],
    );
}

#[test]
fn first_item_selects_array_variant() {
    let list = |name: &str| json!({ "type": "array", "items": reference(name) });
    let definitions = json!({
        "A": object(&[("a", string())]),
        "As": list("A"),
        "B": object(&[("b", string())]),
        "Bs": list("B"),
        "Thing": union(&["A", "As", "Bs"]),
    });
    check(
        definitions,
        expect![[r#"
        array: As
        array: Bs
        item: a => As
        item: b => Bs
        object: => A
        open: false
    "#]],
    );
}

#[test]
fn nested_unions_are_flattened() {
    let definitions = json!({
        "A": object(&[("type", constant("a"))]),
        "B": object(&[("type", constant("b"))]),
        "C": object(&[("type", constant("c"))]),
        "Both": union(&["A", "B"]),
        "Thing": union(&["Both", "C"]),
    });
    check(
        definitions,
        expect![[r#"
        object: type=a => Both
        object: type=b => Both
        object: type=c => C
        open: true
    "#]],
    );
}

/// A variant for untyped objects is selected only if no object with members matches.
#[test]
fn untyped_object_comes_last() {
    let definitions = json!({
        "A": object(&[("a", string())]),
        "Thing": { "anyOf": [{ "type": "object" }, reference("A")] },
    });
    check(
        definitions,
        expect![[r#"
        object: a => A
        object: => Object
        open: false
    "#]],
    );
}
