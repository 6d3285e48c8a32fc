//! Parses the bytes of a schema file to a validated JSON document with sorted members.
//!
//! The input is the bytes of the file and the revision's entry in the list. Bytes that are not a schema of the protocol
//! are refused and never repaired.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::input::lists::Revision;

/// The schema of one revision.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Identifier of the revision.
    pub revision: String,
    /// The JSON document.
    pub root: Value,
    /// Name of the member with the definitions: `definitions` or `$defs`.
    pub definitions: &'static str,
}

impl Schema {
    /// Creates an error about the value at the JSON pointer `pointer` of this schema.
    pub fn error(
        &self,
        pointer: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Error {
        Error::new(&self.revision, pointer, problem, remedy)
    }

    /// Returns the JSON pointer of the definition `name`.
    pub fn pointer(&self, name: &str) -> String {
        format!("/{}/{}", self.definitions, escape(name))
    }

    /// Returns the name of the definition that a `$ref` refers to; `None` if the reference has another form.
    pub fn target<'r>(&self, reference: &'r str) -> Option<&'r str> {
        reference
            .strip_prefix("#/")?
            .strip_prefix(self.definitions)?
            .strip_prefix('/')
    }
}

/// Escapes a name as a reference token of a JSON pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the SHA-256 digest of `bytes` in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Parses a schema file.
///
/// # Errors
/// Returns an error if the hash differs, or the bytes are not a JSON Schema document with definitions of the protocol.
pub fn load(revision: &Revision, bytes: &[u8]) -> Result<Schema> {
    let schema = load_extension(revision, bytes)?;
    check_protocol(&schema)?;
    Ok(schema)
}

/// Parses the schema file of an extension, which does not define the base messages of the protocol.
///
/// # Errors
/// Returns an error if the hash differs, or the bytes are not a JSON Schema document with definitions.
pub fn load_extension(revision: &Revision, bytes: &[u8]) -> Result<Schema> {
    let found = sha256(bytes);
    if found != revision.sha256 {
        let problem = format!(
            "the schema file has sha256 {found}, not {}",
            revision.sha256
        );
        let remedy = format!("run `cargo xtask schema fetch {}`", revision.id);
        return Err(Error::new(&revision.id, "", problem, remedy));
    }
    let schema = parse(&revision.id, bytes)?;
    check_dialect(&schema)?;
    Ok(schema)
}

/// Parses the bytes of a schema file, and checks its dialect.
fn parse(revision: &str, bytes: &[u8]) -> Result<Schema> {
    let remedy = "take the file `schema.json` of the official repository, whole";
    let fail = |problem: String| Error::new(revision, "", problem, remedy);
    let mut root: Value = serde_json::from_slice(bytes).map_err(|error| {
        let what = if error.to_string().starts_with("recursion limit") {
            "is nested deeper than 127 levels"
        } else {
            "is not JSON"
        };
        fail(format!("the schema file {what}: {error}"))
    })?;
    root.sort_all_objects();
    let definitions = ["$defs", "definitions"]
        .into_iter()
        .find(|key| root.get(key).is_some_and(Value::is_object))
        .ok_or_else(|| fail("the file has no `definitions` and no `$defs`".into()))?;
    Ok(Schema {
        revision: revision.into(),
        root,
        definitions,
    })
}

/// URIs of the supported dialects, without `#`.
const KNOWN_DIALECTS: &[&str] = &[
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Checks that the dialect is supported and that the schema is valid in it.
fn check_dialect(schema: &Schema) -> Result<()> {
    let dialect = schema.root["$schema"].as_str().unwrap_or_default();
    if !KNOWN_DIALECTS.contains(&dialect.trim_end_matches('#')) {
        let problem = format!("the dialect {dialect:?} is not known");
        return Err(schema.error("/$schema", problem, "use draft-07 or 2020-12"));
    }
    jsonschema::meta::validate(&schema.root).map_err(|error| {
        let pointer = error.instance_path().to_string();
        let problem = format!("the file breaks the rules of its dialect: {error}");
        schema.error(&pointer, problem, "take the official file, unchanged")
    })
}

/// Refuses a schema without the base messages of MCP, for which the generated types would be useless.
fn check_protocol(schema: &Schema) -> Result<()> {
    for name in ["JSONRPCMessage", "ClientRequest", "ServerResult"] {
        if schema.root[schema.definitions].get(name).is_none() {
            let problem =
                format!("there is no definition `{name}`, so this is not a schema of the protocol");
            let remedy = "take the file `schema.json` of the official repository";
            return Err(schema.error(&format!("/{}", schema.definitions), problem, remedy));
        }
    }
    Ok(())
}
