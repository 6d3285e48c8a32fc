//! Values with 100,000 nested levels: complete values are preserved as untyped JSON; truncated values, and nested
//! values of known types, give errors.
//!
//! The tests run on small stacks, so that recursion that depends on the input would overflow.

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{
    Decode, Encode, Json, JsonObject, MAX_DEPTH, MAX_POINTER, Map, ReadResult, Reader, Validate,
    Writer, from_slice,
};

use super::{check_round_trip, decode_error_of, error_at, with_stack};

/// Number of nested levels.
const LEVELS: usize = 100_000;
/// Stack size of the threads that decode untyped JSON, in KiB.
const SMALL_STACK_KIB: usize = 64;
/// Stack size of the threads that decode typed values and messages, in KiB.
const TYPED_VALUE_STACK_KIB: usize = 128;

/// A kind of nesting: the text that opens a level, the text that closes it, and its part of the JSON pointer.
#[derive(Clone, Copy)]
struct Nesting {
    /// Text that opens a level.
    open: &'static str,
    /// Text that closes a level.
    close: &'static str,
    /// Part of the JSON pointer that one level adds.
    pointer: &'static str,
}

/// Arrays in arrays.
const NESTED_ARRAYS: Nesting = Nesting {
    open: "[",
    close: "]",
    pointer: "/0",
};
/// Objects in objects.
const NESTED_OBJECTS: Nesting = Nesting {
    open: r#"{"a":"#,
    close: "}",
    pointer: "/a",
};
/// Objects in arrays.
const MIXED_NESTING: Nesting = Nesting {
    open: r#"[{"a":"#,
    close: "}]",
    pointer: "/0/a",
};
/// Objects in the fourth item of arrays, with other items before and after.
const NESTED_FOURTH_ITEMS: Nesting = Nesting {
    open: r#"[[],{},{"b":[]},{"":"]","a":"#,
    close: "},{},[0]]",
    pointer: "/3/a",
};
/// All kinds of nesting.
const NESTINGS: [Nesting; 4] = [
    NESTED_ARRAYS,
    NESTED_OBJECTS,
    MIXED_NESTING,
    NESTED_FOURTH_ITEMS,
];

impl Nesting {
    /// Returns a complete value with [`LEVELS`] levels.
    fn closed_text(self) -> String {
        self.unclosed_text() + "1" + &self.close.repeat(LEVELS)
    }

    /// Returns only the opening text of [`LEVELS`] levels.
    fn unclosed_text(self) -> String {
        self.open.repeat(LEVELS)
    }
}

/// Deeply nested untyped JSON is preserved.
#[test]
fn untyped_json_round_trips() {
    with_stack(SMALL_STACK_KIB, || {
        for tower in NESTINGS {
            let json: Json = check_round_trip(&tower.closed_text());
            assert!(json.clone() == json);
        }
        check_round_trip::<Json>(&("[".repeat(LEVELS) + &"]".repeat(LEVELS)));
    });
}

/// The members of a deeply nested untyped object can be read and added.
#[test]
fn untyped_objects_are_read_by_member() {
    with_stack(SMALL_STACK_KIB, || {
        let mut object: JsonObject = check_round_trip(&NESTED_OBJECTS.closed_text());
        assert_eq!(object.len(), 1);
        object.insert("b", 1);
        assert_eq!(object.get("b").expect("it is there").text(), "1");
        let inner = object.get("a").expect("it is there");
        assert!(
            inner.text()
                == &NESTED_OBJECTS.closed_text()[5..NESTED_OBJECTS.closed_text().len() - 1]
        );
        inner.decode_as::<JsonObject>().expect("it is an object");
    });
}

/// Messages with deeply nested untyped JSON are preserved.
#[test]
fn untyped_json_in_messages_round_trips() {
    with_stack(TYPED_VALUE_STACK_KIB, || {
        for tower in NESTINGS {
            let tower = tower.closed_text();
            let params = format!(r#"{{"name":"t","arguments":{{"x":{tower}}}}}"#);
            check_round_trip::<mcp::ClientRequest>(&format!(
                r#"{{"method":"tools/call","params":{params},"x":{tower}}}"#
            ));
            check_round_trip::<mcp::JSONRPCMessage>(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#
            ));
            check_round_trip::<mcp::JSONRPCMessage>(&format!(
                r#"{{"jsonrpc":"2.0","error":{{"code":1,"message":"","data":{tower}}},"id":1}}"#
            ));
            check_round_trip::<mcp::ContentBlock>(&format!(r#"{{"type":"hologram","x":{tower}}}"#));
        }
    });
}

/// JSON Schema documents with deeply nested values are preserved, and their validation does not overflow the stack.
#[test]
fn schema_documents_round_trip_and_validate() {
    with_stack(TYPED_VALUE_STACK_KIB, || {
        for tower in NESTINGS {
            let tower = tower.closed_text();
            let tool: mcp::Tool = check_round_trip(&format!(
                r#"{{"inputSchema":{{"type":"object","x":{tower}}},"name":"t","x":{tower}}}"#
            ));
            assert!(tool.validate().is_empty());
            tool.input_schema.view().expect("it has a view");
            let tool: mcp::Tool = check_round_trip(&format!(
                r#"{{"inputSchema":{{"type":"object","properties":{tower}}},"name":"t"}}"#
            ));
            let _ = tool.validate();
        }
    });
}

/// Returns an ASCII pointer as errors contain it: truncated if it is too long.
fn cut_pointer(mut pointer: String) -> String {
    if pointer.len() > MAX_POINTER {
        pointer.truncate(MAX_POINTER);
        pointer.push('…');
    }
    pointer
}

/// The error for a nested value that is not closed contains the pointer of the innermost value.
#[test]
fn unclosed_values_are_reported_with_position() {
    with_stack(SMALL_STACK_KIB, || {
        for tower in NESTINGS {
            let end = cut_pointer(tower.pointer.repeat(LEVELS));
            assert!(
                decode_error_of::<Json>(tower.unclosed_text()) == error_at("syntax", end.as_str())
            );
            assert!(
                decode_error_of::<Json>(tower.unclosed_text() + "1")
                    == error_at("syntax", end.as_str())
            );
            let one_missing = tower.closed_text();
            let one_missing = &one_missing[..one_missing.len() - 1];
            assert_eq!(decode_error_of::<Json>(one_missing).0, "syntax");
        }
    });
}

/// The error for a message with a nested value that is not closed contains the pointer of the innermost value.
#[test]
fn unclosed_values_in_messages_are_reported() {
    with_stack(TYPED_VALUE_STACK_KIB, || {
        for tower in NESTINGS {
            let open = tower.unclosed_text();
            let inside =
                cut_pointer("/params/arguments/x".to_owned() + &tower.pointer.repeat(LEVELS));
            let params = format!(r#"{{"name":"t","arguments":{{"x":{open}"#);
            let request = format!(r#"{{"method":"tools/call","params":{params}"#);
            assert!(
                decode_error_of::<mcp::ClientRequest>(request)
                    == error_at("syntax", inside.as_str())
            );
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}"#);
            assert!(
                decode_error_of::<mcp::JSONRPCMessage>(message)
                    == error_at("syntax", inside.as_str())
            );
            let tool = format!(r#"{{"name":"t","inputSchema":{open}"#);
            assert_eq!(decode_error_of::<mcp::Tool>(tool).0, "syntax");
        }
    });
}

/// A closing bracket of the wrong kind is reported with its offset.
#[test]
fn wrong_closing_brackets_are_errors() {
    with_stack(SMALL_STACK_KIB, || {
        let text = "[".repeat(LEVELS) + &"]".repeat(LEVELS / 2) + "}";
        let error = from_slice::<Json>(text.as_bytes()).expect_err("it is not JSON");
        assert_eq!(error.offset(), LEVELS + LEVELS / 2);
        assert_eq!(error.pointer(), cut_pointer("/0".repeat(LEVELS / 2)));
        let text = r#"{"a":"#.repeat(LEVELS) + "1" + &"}".repeat(LEVELS / 2) + "]";
        let error = from_slice::<Json>(text.as_bytes()).expect_err("it is not JSON");
        assert_eq!(error.offset(), 5 * LEVELS + 1 + LEVELS / 2);
    });
}

/// A deeply nested value in the place of a string, number or other known type is refused with the pointer of its first
/// level.
#[test]
fn typed_positions_refuse_nested_values() {
    with_stack(TYPED_VALUE_STACK_KIB, || {
        for tower in NESTINGS {
            let tower = tower.closed_text();
            let tool = format!(r#"{{"name":{tower},"inputSchema":{{"type":"object"}}}}"#);
            assert_eq!(
                decode_error_of::<mcp::Tool>(tool),
                error_at("type", "/name")
            );
            let request = format!(r#"{{"method":{tower},"params":{{}}}}"#);
            assert_eq!(
                decode_error_of::<mcp::ClientRequest>(request),
                error_at("type", "/method")
            );
            let message = format!(r#"{{"jsonrpc":"2.0","id":{tower},"method":"ping"}}"#);
            assert_eq!(
                decode_error_of::<mcp::JSONRPCMessage>(message),
                error_at("type", "/id")
            );
            assert_eq!(decode_error_of::<String>(&tower), error_at("type", ""));
            assert_eq!(decode_error_of::<bool>(&tower), error_at("type", ""));
            assert_eq!(
                decode_error_of::<mcp::Integer>(&tower),
                error_at("type", "")
            );
        }
        let arrays = format!(r#"{{"tools":{}}}"#, NESTED_ARRAYS.closed_text());
        assert_eq!(
            decode_error_of::<mcp::ListToolsResult>(arrays),
            error_at("type", "/tools/0")
        );
        let objects = format!(r#"{{"tools":{}}}"#, NESTED_OBJECTS.closed_text());
        assert_eq!(
            decode_error_of::<mcp::ListToolsResult>(objects),
            error_at("type", "/tools")
        );
    });
}

/// A map accepts deeply nested values only if the type of its values is untyped JSON.
#[test]
fn typed_maps_refuse_typed_nesting() {
    with_stack(SMALL_STACK_KIB, || {
        check_round_trip::<Map<Json>>(&NESTED_OBJECTS.closed_text());
        assert_eq!(
            decode_error_of::<Map<String>>(NESTED_OBJECTS.closed_text()),
            error_at("type", "/a")
        );
        assert_eq!(
            decode_error_of::<Map<Json>>(NESTED_ARRAYS.closed_text()),
            error_at("type", "")
        );
        let open = NESTED_OBJECTS.unclosed_text();
        assert!(
            decode_error_of::<Map<Json>>(open)
                == error_at("syntax", cut_pointer(NESTED_OBJECTS.pointer.repeat(LEVELS)))
        );
    });
}

/// Deeply nested untyped JSON is preserved when serde_json decodes and encodes it.
#[test]
fn serde_json_handles_untyped_json() {
    with_stack(TYPED_VALUE_STACK_KIB, || {
        for tower in NESTINGS {
            let text = tower.closed_text();
            let json: Json = serde_json::from_str(&text).expect("it is JSON");
            assert!(json.text() == text);
            assert!(serde_json::to_string(&json).expect("it is JSON") == text);
        }
    });
}

/// Recursive type: an array of values of the same type.
struct Tree(Vec<Tree>);

impl Decode for Tree {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.array().map(Self)
    }
}

impl Encode for Tree {
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}

/// Recursive type that alternates between arrays and maps; the field is the number of levels.
struct Chain(usize);

impl Decode for Chain {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        let items: Vec<Map<Self>> = r.array()?;
        let below = items.into_iter().flatten().map(|(_, Self(levels))| levels);
        Ok(Self(below.max().map_or(1, |levels| levels + 2)))
    }
}

/// A value of a recursive type is refused if it has more than [`MAX_DEPTH`] levels.
#[test]
fn typed_nesting_is_limited() {
    /// Maximum number of typed levels.
    const LIMIT: usize = MAX_DEPTH as usize;
    with_stack(512, || {
        let tower = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        check_round_trip::<Tree>(&tower(LIMIT));
        let beyond = error_at("depth", "/0".repeat(LIMIT));
        assert_eq!(decode_error_of::<Tree>(tower(LIMIT + 1)), beyond);
        assert_eq!(decode_error_of::<Tree>(tower(LEVELS)), beyond);
        assert_eq!(
            decode_error_of::<Tree>(NESTED_ARRAYS.unclosed_text()),
            beyond
        );
        let chain = |turns: usize| {
            MIXED_NESTING.open.repeat(turns) + "[]" + &MIXED_NESTING.close.repeat(turns)
        };
        let turns = LIMIT / 2 - 1;
        let Chain(levels) = from_slice(chain(turns).as_bytes()).expect("it is not too deep");
        assert_eq!(levels, 2 * turns + 1);
        let beyond = error_at("depth", "/0/a".repeat(LIMIT / 2));
        assert_eq!(decode_error_of::<Chain>(chain(LIMIT / 2)), beyond);
        assert_eq!(
            decode_error_of::<Chain>(MIXED_NESTING.closed_text()),
            beyond
        );
        let pair: Vec<Tree> = check_round_trip(&format!("[{0},{0}]", tower(LIMIT - 1)));
        assert_eq!(pair.len(), 2, "closing a level gives it back");
    });
}
