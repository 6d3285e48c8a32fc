//! Validates values with the `jsonschema` crate against any definition of a schema document.
//!
//! Formats are asserted in every dialect; `byte` is RFC 4648 base64 with padding. A reference to another document
//! causes a panic.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::schema::definitions_of;
use crate::text::Doc;

/// JSON Schema validator for every definition of one document.
pub struct Oracle<'s> {
    /// The schema document.
    document: &'s Value,
    /// Validator of each definition, built at the first use.
    validators: BTreeMap<&'s str, OnceLock<Validator>>,
}

impl<'s> Oracle<'s> {
    /// Creates the validator; the validators of definitions are built on first use.
    ///
    /// # Panics
    ///
    /// If the document has neither `definitions` nor `$defs`.
    pub fn new(document: &'s Value) -> Self {
        let names = definitions_of(document).keys();
        Self {
            document,
            validators: names.map(|name| (name.as_str(), OnceLock::new())).collect(),
        }
    }

    /// Returns true if the value is a valid instance of the definition.
    ///
    /// # Panics
    ///
    /// If there is no such definition, or it is not a valid schema.
    pub fn is_valid(&self, definition: &str, value: &Value) -> bool {
        self.validator(definition).is_valid(value)
    }

    /// Returns the errors of the value as lines of text, each with the JSON pointer and the message.
    ///
    /// # Panics
    ///
    /// If there is no such definition, or it is not a valid schema.
    pub fn errors(&self, definition: &str, value: &Value) -> Vec<String> {
        self.validator(definition)
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// Returns true if the document is a valid instance of the definition; `None` if `serde_json` cannot represent the
    /// document.
    ///
    /// # Panics
    ///
    /// If there is no such definition, or it is not a valid schema.
    pub fn verdict(&self, definition: &str, doc: &Doc) -> Option<bool> {
        let value = doc.to_value().ok()?;
        Some(self.is_valid(definition, &value))
    }

    /// Returns the validator of a definition.
    fn validator(&self, definition: &str) -> &Validator {
        let (name, cell) = self
            .validators
            .get_key_value(definition)
            .unwrap_or_else(|| panic!("no definition is called {definition:?}"));
        cell.get_or_init(|| self.build(name))
    }

    /// Builds the validator of a definition.
    fn build(&self, definition: &str) -> Validator {
        let key = ["definitions", "$defs"]
            .into_iter()
            .find(|key| self.document.get(key).is_some())
            .expect("the constructor has looked");
        let mut root = Map::new();
        if let Some(dialect) = self.document.get("$schema") {
            root.insert("$schema".to_owned(), dialect.clone());
        }
        root.insert("$ref".to_owned(), format!("#/{key}/{definition}").into());
        root.insert(key.to_owned(), self.document[key].clone());
        jsonschema::options()
            .should_validate_formats(true)
            .with_format("byte", is_base64)
            .build(&Value::Object(root))
            .unwrap_or_else(|error| panic!("{definition} is not a valid schema: {error}"))
    }
}

/// Returns true if a text is base64 in the standard alphabet, with padding, and with zero bits at the end (RFC 4648,
/// section 4).
fn is_base64(text: &str) -> bool {
    STANDARD.decode(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Oracle;

    /// Returns two schema documents with these definitions, one in draft-07 and one in 2020-12.
    fn both_dialects(definitions: Value) -> [Value; 2] {
        [
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": definitions}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}),
        ]
    }

    /// A string that violates its format is invalid in draft-07 and in 2020-12.
    #[test]
    fn formats_are_asserted_in_every_dialect() {
        for document in both_dialects(json!({
            "U": {"type": "string", "format": "uri"},
            "T": {"type": "string", "format": "uri-template"},
            "B": {"type": "string", "format": "byte"},
        })) {
            let oracle = Oracle::new(&document);
            for (definition, good, bad) in [
                ("U", "a:b", "a b"),
                ("T", "{a}", "{a"),
                ("B", "YQ==", "YQ"),
                ("B", "", "YR=="),
            ] {
                assert!(
                    oracle.is_valid(definition, &good.into()),
                    "{definition} {good}"
                );
                assert!(
                    !oracle.is_valid(definition, &bad.into()),
                    "{definition} {bad}"
                );
            }
        }
    }

    /// An error contains the JSON pointer of the invalid value.
    #[test]
    fn errors_name_the_pointer() {
        let [document, _] =
            both_dialects(json!({"X": {"properties": {"a/b": {"type": "integer"}}}}));
        let oracle = Oracle::new(&document);
        assert_eq!(
            oracle.errors("X", &json!({"a/b": 1.5})),
            [r#"/a~1b: 1.5 is not of type "integer""#]
        );
        assert!(oracle.errors("X", &json!({"a/b": 7.0})).is_empty());
    }
}
