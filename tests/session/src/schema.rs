//! Checks messages against the schema of a revision; panics with the validator's errors if a message is invalid.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use mcp_exact_tests_support::Oracle;
use serde_json::Value;

/// Returns the official schemas by revision.
///
/// # Panics
/// If a schema cannot be read.
pub fn schema_documents() -> &'static BTreeMap<&'static str, Value> {
    /// Official schema of each revision, parsed at the first use.
    static DOCUMENTS: OnceLock<BTreeMap<&'static str, Value>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let read = |id: &'static str| {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
            let bytes = std::fs::read(root.join(id).join("schema.json")).expect(id);
            (id, serde_json::from_slice(&bytes).expect(id))
        };
        crate::all_revisions().into_iter().map(read).collect()
    })
}

/// Returns the validator of a revision's schema.
fn schema_validator(revision: &str) -> &'static Oracle<'static> {
    /// Validator of each revision, created at the first use.
    static VALIDATORS: OnceLock<BTreeMap<&'static str, Oracle<'static>>> = OnceLock::new();
    let oracles = VALIDATORS.get_or_init(|| {
        let documents = schema_documents().iter();
        documents
            .map(|(id, document)| (*id, Oracle::new(document)))
            .collect()
    });
    oracles.get(revision).expect("a known revision")
}

/// Checks the envelope of a message, and its content according to its method.
///
/// `answers` is the method of the request that a response answers.
///
/// # Panics
///
/// If the message is not valid.
#[track_caller]
pub fn check_message(revision: &str, from_client: bool, answers: Option<&str>, message: &Value) {
    let errors = message_errors(revision, from_client, answers, message);
    assert!(
        errors.is_empty(),
        "not valid in {revision}: {message}\n{}",
        errors.join("\n")
    );
}

/// Returns the schema errors of a message; empty if it is valid.
///
/// `answers` is the method of the request that a response answers.
pub fn message_errors(
    revision: &str,
    from_client: bool,
    answers: Option<&str>,
    message: &Value,
) -> Vec<String> {
    let errors = |definition: &str, value: &Value| {
        let errors = schema_validator(revision).errors(definition, value);
        let named = errors
            .into_iter()
            .map(|error| format!("{definition}: {error}"));
        named.collect::<Vec<_>>()
    };
    let mut all = errors("JSONRPCMessage", message);
    let (side, other) = if from_client {
        ("Client", "Server")
    } else {
        ("Server", "Client")
    };
    if let Some(method) = message["method"].as_str() {
        let kind = if message["id"].is_null() {
            "Notification"
        } else {
            "Request"
        };
        if has_method(revision, &format!("{side}{kind}"), method) {
            all.extend(errors(&format!("{side}{kind}"), message));
        } else if has_method(revision, &format!("{other}{kind}"), method) {
            all.push("the other side sends it".to_owned());
        }
    } else if let (Some(method), Some(result)) = (answers, message.get("result")) {
        all.extend(errors(&result_definition(revision, method, result), result));
    }
    all
}

/// Returns true if the schema of a revision contains this definition.
///
/// # Panics
///
/// If the revision is unknown.
pub fn has_definition(revision: &str, definition: &str) -> bool {
    schema_definitions(revision).contains_key(definition)
}

/// Returns true if the schema of a revision requires an id in every error response, so that a message without a
/// readable id cannot be answered.
///
/// # Panics
///
/// If the revision is unknown, or does not define errors.
pub fn errors_require_id(revision: &str) -> bool {
    let names = ["JSONRPCErrorResponse", "JSONRPCError"];
    let error = names
        .iter()
        .find_map(|name| schema_definitions(revision).get(*name));
    let required = error.and_then(|error| error["required"].as_array());
    required.expect("errors").iter().any(|name| name == "id")
}

/// Checks that a frame is not a batch.
///
/// # Panics
///
/// If it is a batch.
#[track_caller]
pub fn check_single_message(message: &Value) {
    assert!(message.is_object(), "no single message: {message}");
}

/// Returns the definitions in the schema of a revision.
fn schema_definitions(revision: &str) -> &'static serde_json::Map<String, Value> {
    let document = &schema_documents()[revision];
    let table = document
        .get("definitions")
        .or_else(|| document.get("$defs"));
    table.and_then(Value::as_object).expect("definitions")
}

/// Returns true if a union of a revision's schema has a variant with this method.
fn has_method(revision: &str, union: &str, method: &str) -> bool {
    schema_definitions(revision)
        .get(union)
        .is_some_and(|union| {
            let members = union["anyOf"]
                .as_array()
                .cloned()
                .unwrap_or_else(|| vec![union.clone()]);
            members.iter().any(|member| {
                let name = member["$ref"]
                    .as_str()
                    .and_then(|path| path.rsplit('/').next());
                let definition = name.map_or(member, |name| &schema_definitions(revision)[name]);
                definition["properties"]["method"]["const"] == method
            })
        })
}

/// Returns the name of the definition that a method's result must match, derived from the name of the request's
/// definition.
fn result_definition(revision: &str, method: &str, result: &Value) -> String {
    match result["resultType"].as_str() {
        None | Some("complete") => {}
        Some("input_required") => return "InputRequiredResult".to_owned(),
        // A type of an extension, whose schema is another one.
        Some(_) => return "Result".to_owned(),
    }
    let requests = schema_definitions(revision)
        .iter()
        .filter(|(name, definition)| {
            name.ends_with("Request") && definition["properties"]["method"]["const"] == method
        });
    let named = requests.map(|(name, _)| name.replace("Request", "Result"));
    named
        .into_iter()
        .find(|name| schema_definitions(revision).contains_key(name))
        .unwrap_or_else(|| "Result".to_owned())
}
