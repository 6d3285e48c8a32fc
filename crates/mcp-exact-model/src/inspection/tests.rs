//! Limits and positions of inspections. That they agree with the types is tested in `tests/agreement`.

use std::collections::BTreeMap;

use mcp_exact_wire::{MAX_DEPTH, MAX_LISTED};

use super::{Inspection, Wanted};
use crate::{Definition, Ir, Member, MemberValue, Model, Shape, Type};

/// Creates an optional member.
fn member(name: &str, value: Type) -> Member {
    Member {
        name: name.to_owned(),
        required: false,
        description: None,
        value: MemberValue::Type(value),
    }
}

/// Returns the model of a list, whose objects have an integer `value` and a list as `next`.
fn model(closed: bool) -> Model {
    let next = Type::Ref {
        name: "List".to_owned(),
    };
    let minimum = crate::Bounds {
        minimum: Some(1),
        maximum: None,
    };
    let sizes = Type::Array {
        items: Box::new(Type::Integer(minimum)),
        min_items: None,
        max_items: None,
    };
    let members = vec![
        member("next", next),
        member("value", Type::Integer(crate::Bounds::default())),
        member("values", Type::Map(Box::new(Type::Boolean))),
        member("sizes", sizes),
    ];
    let list = Definition {
        name: "List".to_owned(),
        official: true,
        pointers: Vec::new(),
        description: None,
        closed,
        shape: Shape::Struct(members),
    };
    Model {
        ir: Ir {
            revision: "1".to_owned(),
            definitions: vec![list],
            methods: Vec::new(),
        },
        dispatch: BTreeMap::new(),
        extensions: Vec::new(),
    }
}

/// Inspects text as a list.
fn inspect(text: &str, closed: bool) -> Inspection {
    let model = model(closed);
    let wanted = Wanted {
        unknown_outside: Some(&[]),
        encoded: true,
    };
    assert_eq!(model.inspect("Other", b"{}", wanted), None);
    model
        .inspect("List", text.as_bytes(), wanted)
        .expect("it is defined")
}

/// Returns the pointer, offset, kind and message of each deviation.
fn deviations(inspection: &Inspection) -> Vec<(&str, usize, &str, &str)> {
    let found = inspection.deviations.iter();
    found
        .map(|found| (&*found.pointer, found.offset, found.kind, &*found.message))
        .collect()
}

/// Deviations are in the order of the document; of a member that is there twice, the second name has one.
#[test]
fn deviations_have_positions() {
    let text = r#" {"value":1.5, "next":{"value":"x"},"value":2e0,"values":{"a":1,"\u0061":true}}"#;
    let inspection = inspect(text, false);
    let twice = "the member is there twice";
    assert_eq!(
        deviations(&inspection),
        [
            ("/value", 10, "type", "expected an integer"),
            ("/next/value", 31, "type", "expected a number"),
            ("/value", 36, "duplicate", twice),
            ("/values/a", 62, "type", "expected a boolean"),
            ("/values/a", 64, "duplicate", twice),
        ]
    );
    assert_eq!((inspection.count, inspection.encoded), (5, None));
}

/// A document that decodes is encoded in the order of the schema, with the spelling of its numbers.
#[test]
fn documents_are_encoded() {
    let text = r#"{ "x" : [1, 2], "value":1.0e0,"\u006eext" : { } }"#;
    let inspection = inspect(text, false);
    let encoded = r#"{"next":{},"value":1.0e0,"x":[1, 2]}"#;
    assert_eq!(inspection.encoded.as_deref(), Some(encoded));
    assert!(inspection.is_valid());
    let [unknown] = &*inspection.unknown else {
        panic!("{inspection:?}");
    };
    assert_eq!((&*unknown.pointer, unknown.offset), ("/x", 2));
    assert_eq!(*unknown.missing_members, ["values", "sizes"]);
    for unknown_outside in [None, Some(&["x"][..])] {
        let wanted = Wanted {
            unknown_outside,
            encoded: false,
        };
        let unasked = model(false).inspect("List", text.as_bytes(), wanted);
        let unasked = unasked.expect("it is defined");
        assert!(unasked.decodes);
        assert_eq!((unasked.unknown_count, unasked.encoded), (0, None));
    }
    let closed = inspect(text, true);
    let message = "the object allows no other members than its own";
    assert_eq!(
        deviations(&closed),
        [("/x", 2, "additionalProperties", message)]
    );
    assert!(closed.encoded.is_some() && closed.unknown.is_empty());
}

/// Objects of known types are inspected to the depth that the decoders read; untyped values have no limit.
#[test]
fn depth_is_limited() {
    let nested = |depth: usize| format!("{}{{}}{}", r#"{"next":"#.repeat(depth), "}".repeat(depth));
    let limit = MAX_DEPTH as usize;
    assert!(inspect(&nested(limit - 1), false).is_valid());
    let deep = inspect(&nested(100_000), false);
    let message = "typed values are nested deeper than 128 levels";
    let pointer = "/next".repeat(limit);
    assert_eq!(
        deviations(&deep),
        [(&*pointer, 8 * limit, "depth", message)]
    );
    let untyped = format!(r#"{{"x":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(inspect(&untyped, false).is_valid());
}

/// Deviations beyond the maximum are counted.
#[test]
fn excess_deviations_are_counted() {
    let members: Vec<String> = (0..150).map(|at| format!(r#""{at}":0"#)).collect();
    let inspection = inspect(&format!(r#"{{"values":{{{}}}}}"#, members.join(",")), false);
    assert_eq!(
        (inspection.deviations.len(), inspection.count),
        (MAX_LISTED, 150)
    );
    // Values that do not decode come first, then values below their minimum, or all are of one kind.
    for refused in [0, 60, 149] {
        let items = [vec!["true"; refused], vec!["0"; 150 - refused]].concat();
        let inspection = inspect(&format!(r#"{{"sizes":[{}]}}"#, items.join(",")), false);
        let kinds = inspection
            .deviations
            .iter()
            .filter(|found| found.kind == "minimum");
        let expected = MAX_LISTED.saturating_sub(refused);
        assert_eq!((inspection.count, kinds.count()), (150, expected));
    }
}

/// Of a large object, too, every name that is there twice is found, however it is spelt.
#[test]
fn large_objects_have_no_name_twice() {
    let members: Vec<String> = (0..20_000).map(|at| format!(r#""m{at}":true"#)).collect();
    let members = members.join(",");
    let unique = inspect(&format!(r#"{{"values":{{{members}}}}}"#), false);
    assert!(unique.is_valid());
    let text = format!(r#"{{"values":{{{members},"\u006d7":true,"m19999":true}}}}"#);
    let inspection = inspect(&text, false);
    let found: Vec<(&str, &str)> = inspection
        .deviations
        .iter()
        .map(|found| (&*found.pointer, found.kind))
        .collect();
    assert_eq!(
        found,
        [("/values/m7", "duplicate"), ("/values/m19999", "duplicate")]
    );
}
