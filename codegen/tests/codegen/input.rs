//! Creates input for the generator: small schemas of the protocol, with optional errata and names; compares the
//! generator's errors.

use codegen::{Files, Revision, Tables, generate, sha256};
use expect_test::Expect;
use serde_json::{Value, json};

/// Tables without entries.
pub const NO_TABLES: Tables<'_> = Tables {
    errata: "",
    names: "",
};

/// Returns a revision with the hash of these bytes.
pub fn revision(bytes: &[u8]) -> Revision {
    Revision {
        id: "2000-01-01".to_owned(),
        status: "release".to_owned(),
        sha256: sha256(bytes),
    }
}

/// Returns a schema of the protocol with these definitions and the definitions that every schema has.
pub fn schema(definitions: Value) -> Value {
    let mut all = json!({
        "ClientRequest": { "type": "object" },
        "JSONRPCMessage": { "type": "object" },
        "ServerResult": { "type": "object" },
    });
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), definitions) {
        all.extend(more);
    }
    json!({ "$schema": "http://json-schema.org/draft-07/schema#", "definitions": all })
}

/// Generates the crate of a schema with these definitions.
pub fn generate_from(definitions: Value, tables: Tables<'_>) -> codegen::Result<Files> {
    let bytes = schema(definitions).to_string().into_bytes();
    generate(&revision(&bytes), &bytes, tables)
}

/// Compares the generator's result for the bytes of a schema file: an error, or `accepted`.
pub fn check_bytes(bytes: &[u8], expected: &Expect) {
    expected.assert_eq(&error_text(generate(&revision(bytes), bytes, NO_TABLES)));
}

/// Compares the generator's result for a schema with these definitions: an error, or `accepted`.
pub fn check(definitions: Value, expected: &Expect) {
    expected.assert_eq(&error_text(generate_from(definitions, NO_TABLES)));
}

/// Compares the generator's result for a schema with the definition `Thing`: an error, or `accepted`.
pub fn check_thing(thing: Value, expected: &Expect) {
    check(json!({ "Thing": thing }), expected);
}

/// Returns the text of an error on one line, or `accepted`.
pub fn error_text(generated: codegen::Result<Files>) -> String {
    match generated {
        Ok(_) => "accepted\n".to_owned(),
        Err(error) => format!("{error}\n"),
    }
}
