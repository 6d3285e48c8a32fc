//! Facts of a revision that no schema contains: its lifecycle, and the listed properties.
//!
//! Parses `schema/revisions.toml`, and checks that each entry has exactly the listed properties.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::ir::properties::{PROPERTIES, Source, Value};

/// Path of the file with the facts, for error messages.
const FILE: &str = "schema/revisions.toml";

/// Handshake by which client and server establish the revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// The request `initialize` begins a session, and the revision belongs to the session.
    Initialize,
    /// The metadata of each request names the revision, and `server/discover` lists the supported revisions.
    Discover,
}

impl Lifecycle {
    /// Returns [`Self::Initialize`] if the revision defines the request `initialize`, else [`Self::Discover`].
    pub fn new(has_initialize: bool) -> Self {
        if has_initialize {
            Self::Initialize
        } else {
            Self::Discover
        }
    }

    /// Returns the request that distinguishes this lifecycle: `initialize` or `server/discover`.
    pub fn opening_request(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Discover => "server/discover",
        }
    }
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Initialize => "initialize",
            Self::Discover => "discover",
        })
    }
}

/// Properties of a revision in `schema/revisions.toml`, in addition to its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionFacts {
    /// Identifier of the revision.
    pub id: String,
    /// Lifecycle of the revision.
    pub lifecycle: Lifecycle,
    /// Values of the listed properties, by the names of their accessors.
    pub properties: BTreeMap<String, Value>,
}

impl RevisionFacts {
    /// Returns the facts of a revision whose properties are assumed.
    pub fn new(id: &str, lifecycle: Lifecycle, assumed: &AssumedProperties) -> Self {
        let properties = assumed.values.iter();
        Self {
            id: id.to_owned(),
            lifecycle,
            properties: properties
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect(),
        }
    }
}

/// The file `schema/revisions.toml`.
#[derive(Deserialize)]
struct File {
    /// Entries of the file.
    #[serde(default)]
    revision: Vec<Entry>,
}

/// Entry of `schema/revisions.toml` as written, before its facts are checked.
#[derive(Deserialize)]
struct Entry {
    /// Identifier of the revision.
    id: String,
    /// Name of the lifecycle of the revision.
    lifecycle: Option<String>,
    /// Values of the listed properties, by the names of their accessors.
    #[serde(default)]
    properties: BTreeMap<String, Value>,
}

/// Reads the facts of every revision, in the order of the list.
///
/// # Errors
/// Returns an error if the text has another form, a lifecycle is missing or unknown, or a property is missing, unknown
/// or of another type.
pub fn revision_facts(text: &str) -> Result<Vec<RevisionFacts>> {
    let file: File = toml::from_str(text).map_err(|error| {
        let remedy = "give each revision an id, a lifecycle and a table of properties";
        Error::new(FILE, "", error.message(), remedy)
    })?;
    file.revision.into_iter().map(check_facts).collect()
}

/// Checks the lifecycle and the listed properties of an entry, and returns its facts.
fn check_facts(entry: Entry) -> Result<RevisionFacts> {
    let Entry {
        id,
        lifecycle,
        properties,
    } = entry;
    let lifecycle = match lifecycle.as_deref() {
        Some("initialize") => Lifecycle::Initialize,
        Some("discover") => Lifecycle::Discover,
        other => {
            let problem = match other {
                Some(other) => format!("the lifecycle {other:?} of {id} is unknown"),
                None => format!("{id} has no lifecycle"),
            };
            let remedy = "write lifecycle = \"initialize\" or lifecycle = \"discover\"";
            return Err(Error::new(FILE, "", problem, remedy));
        }
    };
    check_names(&id, &properties)?;
    Ok(RevisionFacts {
        id,
        lifecycle,
        properties,
    })
}

/// Checks that an entry has exactly the listed properties.
fn check_names(id: &str, properties: &BTreeMap<String, Value>) -> Result<()> {
    for (name, example) in listed_properties(Lifecycle::Initialize) {
        let problem = match (properties.get(name), example) {
            (Some(Value::Flag(_)), Value::Flag(_)) | (Some(Value::Code(_)), Value::Code(_)) => {
                continue;
            }
            (None, _) => format!("{id} has no property `{name}`"),
            (Some(value), _) => format!("the property `{name}` of {id} cannot be {value}"),
        };
        let kind = match example {
            Value::Flag(_) => "true or false",
            Value::Code(_) => "an error code",
        };
        let remedy = format!("write {name} = {kind} into its [revision.properties]");
        return Err(Error::new(FILE, "", problem, remedy));
    }
    let is_listed =
        |name: &str| listed_properties(Lifecycle::Initialize).any(|(listed, _)| listed == name);
    match properties.keys().find(|name| !is_listed(name)) {
        None => Ok(()),
        Some(name) => {
            let problem = format!("the property `{name}` of {id} is not a listed one");
            let names: Vec<&str> = listed_properties(Lifecycle::Initialize)
                .map(|(name, _)| name)
                .collect();
            let remedy = format!(
                "remove it, or correct its name; listed are {}",
                names.join(", ")
            );
            Err(Error::new(FILE, "", problem, remedy))
        }
    }
}

/// Returns the listed properties, with the values that are assumed for the first revision of a lifecycle.
fn listed_properties(lifecycle: Lifecycle) -> impl Iterator<Item = (&'static str, Value)> {
    PROPERTIES
        .iter()
        .filter_map(move |property| match property.source {
            Source::Schema(_) => None,
            Source::Listed {
                initialize,
                discover,
            } => Some(match lifecycle {
                Lifecycle::Initialize => (property.name, initialize),
                Lifecycle::Discover => (property.name, discover),
            }),
        })
}

/// Values of the listed properties that a new revision is assumed to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumedProperties {
    /// Name and value, in the order of the accessors.
    pub values: Vec<(&'static str, Value)>,
    /// The revision that the values were copied from; `None` when no revision has the same lifecycle.
    pub copied_from: Option<String>,
}

/// Assumes the listed properties of a revision that is inserted into the list at the index `place`.
///
/// The values are those of the nearest revision with the same lifecycle, preferably an older revision. If no revision
/// has the same lifecycle, the values are those that the table of properties assigns to the lifecycle.
pub fn assumed_properties(
    list: &[RevisionFacts],
    place: usize,
    lifecycle: Lifecycle,
) -> AssumedProperties {
    let (older, newer) = list.split_at(place.min(list.len()));
    let mut nearest = older.iter().rev().chain(newer);
    let nearest = nearest.find(|facts| facts.lifecycle == lifecycle);
    let value = |(name, first): (&'static str, Value)| {
        let copied = nearest.and_then(|facts| facts.properties.get(name));
        (name, copied.copied().unwrap_or(first))
    };
    AssumedProperties {
        values: listed_properties(lifecycle).map(value).collect(),
        copied_from: nearest.map(|facts| facts.id.clone()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Creates an entry; `change` writes each property, or omits it.
    fn entry(id: &str, lifecycle: &str, change: impl Fn(&str, Value) -> Option<String>) -> String {
        let properties = listed_properties(Lifecycle::Initialize)
            .filter_map(|(name, value)| change(name, value))
            .map(|line| line + "\n");
        let properties: String = properties.collect();
        format!("[[revision]]\nid = \"{id}\"\n{lifecycle}\n[revision.properties]\n{properties}")
    }

    /// Writes one property as a line of `schema/revisions.toml`.
    fn property_line(name: &str, value: Value) -> Option<String> {
        Some(format!("{name} = {value}"))
    }

    /// Compares the error for the text of a `schema/revisions.toml` file.
    fn check(text: &str, expected: Expect) {
        let error = revision_facts(text).expect_err("refused");
        expected.assert_eq(&error.to_string());
    }

    #[test]
    fn unknown_lifecycles_are_refused() {
        check(
            &entry("a", "lifecycle = \"handshake\"", property_line),
            expect![[
                r#"schema/revisions.toml: the lifecycle "handshake" of a is unknown; write lifecycle = "initialize" or lifecycle = "discover""#
            ]],
        );
        check(
            &entry("a", "", property_line),
            expect![[
                r#"schema/revisions.toml: a has no lifecycle; write lifecycle = "initialize" or lifecycle = "discover""#
            ]],
        );
    }

    #[test]
    fn missing_properties_are_refused() {
        let without =
            |name: &str, value| property_line(name, value).filter(|_| name != "has_http_sse");
        check(
            &entry("a", "lifecycle = \"initialize\"", without),
            expect![
                "schema/revisions.toml: a has no property `has_http_sse`; write has_http_sse = true or false into its [revision.properties]"
            ],
        );
    }

    #[test]
    fn values_of_another_type_are_refused() {
        let code = |name: &str, value| match value {
            Value::Flag(_) => property_line(name, value),
            Value::Code(_) => Some(format!("{name} = true")),
        };
        check(
            &entry("a", "lifecycle = \"initialize\"", code),
            expect![
                "schema/revisions.toml: the property `resource_not_found_code` of a cannot be true; write resource_not_found_code = an error code into its [revision.properties]"
            ],
        );
    }

    #[test]
    fn unknown_properties_are_refused() {
        let text = entry("a", "lifecycle = \"initialize\"", property_line) + "has_wings = true\n";
        let error = revision_facts(&text).expect_err("refused");
        assert_eq!(
            error.problem,
            "the property `has_wings` of a is not a listed one"
        );
    }

    /// A new revision gets the properties of the nearest revision with the same lifecycle.
    #[test]
    fn assumed_values_come_from_the_lifecycle() {
        let other = |name: &str, value| match value {
            Value::Flag(flag) => property_line(name, Value::Flag(!flag)),
            Value::Code(_) => property_line(name, value),
        };
        let text = entry("a", "lifecycle = \"initialize\"", property_line)
            + &entry("b", "lifecycle = \"initialize\"", other)
            + &entry("c", "lifecycle = \"discover\"", property_line);
        let list = revision_facts(&text).expect("facts");
        let copied = |place, lifecycle| assumed_properties(&list, place, lifecycle).copied_from;
        assert_eq!(copied(3, Lifecycle::Initialize).as_deref(), Some("b"));
        assert_eq!(copied(1, Lifecycle::Initialize).as_deref(), Some("a"));
        assert_eq!(copied(0, Lifecycle::Initialize).as_deref(), Some("a"));
        assert_eq!(copied(2, Lifecycle::Discover).as_deref(), Some("c"));
        let copy = assumed_properties(&list, 3, Lifecycle::Initialize).values;
        assert!(
            copy.iter()
                .all(|(name, value)| list[1].properties[*name] == *value)
        );
        let first = assumed_properties(&list[..2], 2, Lifecycle::Discover);
        assert_eq!(first.copied_from, None);
        assert_eq!(
            first.values,
            listed_properties(Lifecycle::Discover).collect::<Vec<_>>()
        );
    }
}
