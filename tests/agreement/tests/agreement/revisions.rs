//! Every revision of `schema/revisions.toml`, with its corrected schema, its intermediate representation and its types.
//! Every test fails if a revision has no types. This module does not depend on the behaviour of the types.

use std::fmt::{self, Debug, Write};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use codegen::ir::RustIr;
use mcp_exact_model::Model;
use mcp_exact_tests_types::definitions::Definition;
use mcp_exact_wire::{
    Decode, DecodeError, Encode, JsonSchemas, Validate, Violations, from_slice, to_string,
};
use serde_json::Value;

use crate::traversal::Schema;

/// Types of one revision or extension.
pub struct Types {
    /// Identifier of the revision or extension.
    pub id: &'static str,
    /// Table of the definitions of the schema, with their types.
    pub definitions: &'static [Definition],
    /// JSON Schemas of the types.
    pub json_schemas: &'static JsonSchemas,
    /// All unions, including those without a name in the schema.
    pub unions: &'static [Union],
}

/// Defines a table with the types of each listed revision or extension.
macro_rules! types {
    ($table:ident $($id:literal $types:ident { $($union:ident)* })*) => {
        static $table: &[Types] = &[$(Types {
            id: $id,
            definitions: mcp_exact_tests_types::definitions::$types::DEFINITIONS,
            json_schemas: &mcp_exact_tests_types::$types::JSON_SCHEMAS,
            unions: &[$(Union::of::<mcp_exact_tests_types::$types::$union>(stringify!($union))),*],
        }),*];
    };
}

/// Defines the table `REVISIONS`.
macro_rules! revision_types {
    ($($rows:tt)*) => { types! { REVISIONS $($rows)* } };
}

/// Defines the table `EXTENSIONS`.
macro_rules! extension_types {
    ($($rows:tt)*) => { types! { EXTENSIONS $($rows)* } };
}

mcp_exact_tests_types::for_each_unions!(revision_types);
mcp_exact_tests_types::for_each_extension_unions!(extension_types);

/// Name of a union, with a function that decodes documents as the union.
pub struct Union {
    /// Name of the union's type.
    pub name: &'static str,
    /// Decodes a document as the union, and encodes and validates the value.
    pub decode: fn(&[u8]) -> Result<Decoded, DecodeError>,
}

/// Outcome of decoding a document as a union.
pub struct Decoded {
    /// Name of the variant.
    pub variant: String,
    /// Text of the encoded value.
    pub encoded: String,
    /// Violations of the schema that the value contains.
    pub violations: Violations,
}

impl Union {
    /// Creates the entry for the union type `T` with this name.
    const fn of<T: Decode + Encode + Validate + Debug>(name: &'static str) -> Self {
        Self {
            name,
            decode: decode::<T>,
        }
    }
}

/// Decodes a document as a union; the variant's name is the first word of its `Debug` output.
fn decode<T: Decode + Encode + Validate + Debug>(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let value: T = from_slice(bytes)?;
    let mut variant = FirstWordWriter::default();
    // The writer fails on purpose after the first word.
    let _ = write!(variant, "{value:?}");
    Ok(Decoded {
        variant: variant.0,
        encoded: to_string(&value),
        violations: value.validate(),
    })
}

/// Writer that keeps the text before the first opening parenthesis, and then fails, which ends the writing.
#[derive(Default)]
struct FirstWordWriter(String);

impl Write for FirstWordWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let word = text.split('(').next().unwrap_or_default();
        self.0.push_str(word);
        if word.len() < text.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// Revision or extension with its official schema and its types.
pub struct Revision {
    /// Types of the revision.
    pub types: &'static Types,
    /// Official schema, without errata.
    pub official: Value,
    /// Schema with errata and without keywords that the types do not check, prepared for traversals.
    pub schema: Schema,
    /// Intermediate representation from which the types were generated.
    pub ir: RustIr,
    /// The representation with the dispatch of its unions, as the program `mcp-exact` embeds it.
    pub model: Model,
    /// True if a person has reviewed the revision after its release. The types of every revision must agree with its
    /// schema, but only a reviewed revision must have the definitions that some tests use.
    pub is_reviewed: bool,
    /// True for an extension; some definitions of an extension are types of its revision.
    pub is_extension: bool,
}

impl Revision {
    /// Returns the identifier of the revision or extension.
    pub fn id(&self) -> &'static str {
        self.types.id
    }

    /// Returns the definition `name`; panics if the revision does not have it.
    pub fn definition(&self, name: &str) -> &'static Definition {
        let mut definitions = self.types.definitions.iter();
        definitions
            .find(|definition| definition.name == name)
            .unwrap_or_else(|| panic!("{}: no type is called {name}", self.id()))
    }
}

/// Environment variable that limits the tests to one revision.
const REVISION_VARIABLE: &str = "MCP_EXACT_REVISION";

/// Returns the revision to which the environment variable limits the tests, if it is set.
pub fn selected_revision() -> Option<String> {
    std::env::var(REVISION_VARIABLE).ok()
}

/// Returns all revisions in the order of `schema/revisions.toml`, then all extensions; if [`REVISION_VARIABLE`] is set,
/// only the revision or extension that it names.
pub fn revisions() -> &'static [Revision] {
    /// All revisions and extensions, read at the first use.
    static REVISIONS: LazyLock<Vec<Revision>> = LazyLock::new(read_revisions);
    &REVISIONS
}

/// Number of definitions in the official schema of each revision and extension.
pub const DEFINITION_COUNTS: [(&str, usize); 7] = [
    ("2024-11-05", 79),
    ("2025-03-26", 83),
    ("2025-06-18", 91),
    ("2025-11-25", 145),
    ("2026-07-28", 155),
    ("ext-tasks", 24),
    ("ext-apps", 39),
];

/// Returns the released revisions that a person has reviewed, for tests that depend on their content.
pub fn reviewed_revisions() -> impl Iterator<Item = &'static Revision> {
    revisions().iter().filter(|revision| revision.is_reviewed)
}

/// Returns the types of all revisions and extensions.
pub fn all_types() -> impl Iterator<Item = &'static Types> {
    REVISIONS.iter().chain(EXTENSIONS)
}

/// Returns two lists of identifiers: those in `schema/revisions.toml` and `schema/extensions.toml`, and those in the
/// tables of this package.
pub fn identifiers() -> (Vec<String>, Vec<&'static str>) {
    let listed = listed_revisions().into_iter().map(|revision| revision.id);
    let extensions = extensions().into_iter().map(|listed| listed.revision.id);
    let tables = REVISIONS.iter().chain(EXTENSIONS);
    (
        listed.chain(extensions).collect(),
        tables.map(|types| types.id).collect(),
    )
}

/// Returns the entries of `schema/revisions.toml`.
fn listed_revisions() -> Vec<codegen::Revision> {
    codegen::revisions(&read_schema_file("revisions.toml")).expect("the list can be read")
}

/// Returns the entries of `schema/extensions.toml`.
fn extensions() -> Vec<codegen::ListedExtension> {
    codegen::extensions(&read_schema_file("extensions.toml")).expect("the list can be read")
}

/// Reads the schemas of all revisions and extensions.
fn read_revisions() -> Vec<Revision> {
    let (errata, names) = (
        read_schema_file("errata.toml"),
        read_schema_file("names.toml"),
    );
    let tables = codegen::Tables {
        errata: &errata,
        names: &names,
    };
    let wanted = selected_revision();
    let is_wanted = |id: &str| wanted.as_deref().is_none_or(|wanted| wanted == id);
    let mut revisions = Vec::new();
    for revision in listed_revisions()
        .iter()
        .filter(|revision| is_wanted(&revision.id))
    {
        let text = read_schema_file(&format!("{}/schema.json", revision.id));
        let lowered = codegen::lower(revision, text.as_bytes(), tables);
        revisions.push(build_revision(REVISIONS, revision, &text, lowered));
    }
    for extension in extensions() {
        let revision = &extension.revision;
        if !is_wanted(&revision.id) {
            continue;
        }
        let text = |id: &str| read_schema_file(&format!("{id}/schema.json"));
        let (schema, base_schema) = (text(&revision.id), text(&extension.extends));
        let base = listed_revisions()
            .into_iter()
            .find(|base| base.id == extension.extends);
        let base = base.expect("an extension stands on a revision that is listed");
        let base = codegen::lower(&base, base_schema.as_bytes(), tables);
        let base = base.expect("the generator knows the schema");
        let extension = codegen::Extension {
            list_entry: &extension,
            schema: schema.as_bytes(),
        };
        let lowered = codegen::lower_extension(extension, &base, tables);
        revisions.push(Revision {
            is_extension: true,
            ..build_revision(EXTENSIONS, revision, &schema, lowered)
        });
    }
    assert!(
        !revisions.is_empty(),
        "{REVISION_VARIABLE} names no revision"
    );
    revisions
}

/// Creates a revision or extension from its schema text, its intermediate representation and its types.
fn build_revision(
    table: &'static [Types],
    revision: &codegen::Revision,
    text: &str,
    lowered: codegen::Result<codegen::Lowered>,
) -> Revision {
    let lowered = lowered.expect("the generator knows the schema");
    let types = table.iter().find(|types| types.id == revision.id);
    Revision {
        is_reviewed: !revision.is_draft()
            && DEFINITION_COUNTS.iter().any(|(id, _)| *id == revision.id),
        is_extension: false,
        types: types.unwrap_or_else(|| panic!("{}: run `cargo xtask codegen`", revision.id)),
        official: serde_json::from_str(text).expect("a schema is JSON"),
        schema: Schema::new(&lowered.corrected(), &lowered.ir),
        model: lowered.ir.model(),
        ir: lowered.ir,
    }
}

/// Returns the text of a file in `schema/`.
fn read_schema_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../schema")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
