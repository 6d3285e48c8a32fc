//! Schemas of all revisions that conversions support, with errata applied and without the keywords that the validator
//! does not check.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use mcp_exact_convert::KnownRevision;
use mcp_exact_tests_support::{Oracle, schema_of_types};
use serde_json::Value;

/// Revision with its schema document and a validator.
pub struct Revision {
    /// Revision that the conversions know by this value.
    pub revision: KnownRevision,
    /// Schema document with errata applied.
    pub document: &'static Value,
    /// Validator for instances of the definitions in the document.
    pub oracle: Oracle<'static>,
}

/// Returns all revisions with their schemas, oldest first.
pub fn revisions() -> &'static [Revision] {
    /// All revisions, which are read once.
    static ALL: LazyLock<Vec<Revision>> = LazyLock::new(|| {
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
        let read = |name: &str| fs::read_to_string(schema.join(name)).expect("a file of schema/");
        let (errata, names) = (read("errata.toml"), read("names.toml"));
        let list = codegen::revisions(&read("revisions.toml")).expect("a list of revisions");
        let known = KnownRevision::ALL.iter().map(|known| {
            let entry = list.iter().find(|entry| entry.id == known.as_str());
            let entry = entry.expect("a known revision is in the list");
            let bytes = read(&format!("{known}/schema.json"));
            let tables = codegen::Tables {
                errata: &errata,
                names: &names,
            };
            let document = codegen::corrected_schema(entry, bytes.as_bytes(), tables);
            let document = schema_of_types(&document.expect("a schema"));
            let document: &'static Value = Box::leak(Box::new(document));
            Revision {
                revision: *known,
                document,
                oracle: Oracle::new(document),
            }
        });
        known.collect()
    });
    &ALL
}
