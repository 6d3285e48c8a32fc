//! Finds revisions and definitions by name, and says what there is when a name is unknown.
//!
//! Takes the table of `revisions.rs`, gives references into it. Knows no revision by itself.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::Context;
use mcp_exact_model::Ir;
use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::Definition;

use crate::revisions::COMPILED;

/// Longer names than this are shown shortened, and nothing similar is looked for.
const MAX_NAME: usize = 64;

/// A revision that is compiled in.
#[derive(Debug, Clone, Copy)]
pub struct CompiledRevision {
    /// Its row in the table of revisions.
    pub spec: &'static RevisionSpec,
    /// Its definitions, sorted by name.
    pub definitions: &'static [Definition],
    /// What it says, as the JSON text of `mcp_exact_model::Ir`.
    pub model_json: &'static str,
}

/// One revision, with its definitions by name.
#[derive(Debug)]
pub struct Entry {
    /// The revision.
    pub revision: &'static CompiledRevision,
    by_name: HashMap<&'static str, &'static Definition>,
}

/// All revisions that are compiled in.
#[derive(Debug)]
pub struct Registry {
    by_id: HashMap<&'static str, Entry>,
}

/// A name that is not there.
#[derive(Debug, Clone)]
pub struct Unknown {
    /// What is wrong, with a similar name if there is one.
    pub problem: String,
    /// All names there are.
    pub known: String,
}

impl CompiledRevision {
    /// What the specification calls it.
    pub fn id(&self) -> &'static str {
        self.spec.id()
    }

    /// What the revision says, for comparisons.
    pub fn model(&self) -> anyhow::Result<Ir> {
        serde_json::from_str(self.model_json).with_context(|| {
            format!(
                "the data of {} is damaged; build the program again",
                self.id()
            )
        })
    }
}

impl From<Unknown> for anyhow::Error {
    fn from(unknown: Unknown) -> Self {
        anyhow::anyhow!("{}\n  {}", unknown.problem, unknown.known)
    }
}

impl Registry {
    /// The revisions of the table.
    pub fn new() -> Self {
        let entry = |revision: &'static CompiledRevision| Entry {
            revision,
            by_name: revision.definitions.iter().map(|d| (d.name, d)).collect(),
        };
        Self {
            by_id: COMPILED.iter().map(|r| (r.id(), entry(r))).collect(),
        }
    }

    /// The revision `id`.
    pub fn revision(&self, id: &str) -> Result<&Entry, Unknown> {
        self.by_id.get(id).ok_or_else(|| {
            let mut problem = format!("unknown revision `{}`", shortened(id));
            suggest(&mut problem, id, COMPILED.iter().map(CompiledRevision::id));
            Unknown {
                problem,
                known: match COMPILED {
                    [] => "this program was built without any; build it with its default features"
                        .to_owned(),
                    _ => format!(
                        "this program has {}",
                        listed(COMPILED.iter().map(CompiledRevision::id))
                    ),
                },
            }
        })
    }
}

impl Entry {
    /// The definition `name`, if the revision has it.
    pub fn find(&self, name: &str) -> Option<&'static Definition> {
        self.by_name.get(name).copied()
    }

    /// The definition `name`.
    pub fn definition(&self, name: &str) -> Result<&'static Definition, Unknown> {
        self.find(name).ok_or_else(|| {
            let id = self.revision.id();
            let names = || self.revision.definitions.iter().map(|d| d.name);
            let mut problem = format!("unknown type `{}` in revision {id}", shortened(name));
            suggest(&mut problem, name, names());
            Unknown {
                problem,
                known: format!("{id} has {}", listed(names())),
            }
        })
    }
}

/// The names in lines of about a hundred characters.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::new();
    let mut width = 0;
    for name in names {
        match width {
            0 => {}
            1..100 => list.push_str(", "),
            _ => {
                list.push_str(",\n  ");
                width = 0;
            }
        }
        list.push_str(name);
        width += name.len() + 2;
    }
    list
}

/// A name from outside, fit for a message.
pub fn shortened(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Adds a name of `known` that is similar to `name`, if there is one.
pub fn suggest<'a>(problem: &mut String, name: &str, known: impl Iterator<Item = &'a str>) {
    if let Some(similar) = nearest(name, known) {
        // Writing to a `String` does not fail.
        let _ = write!(problem, "; did you mean `{similar}`?");
    }
}

/// The name that differs least from `name`, if it differs in about a third of its characters at most.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let wanted = name.to_lowercase();
    let limit = (wanted.len() / 3).max(2).min(wanted.len() / 2);
    known
        .filter(|known| known.len().abs_diff(wanted.len()) <= limit)
        .map(|known| {
            let distance = strsim::osa_distance(&wanted, &known.to_lowercase());
            (distance, known)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, similar: Option<&str>) {
        let known = ["Tool", "ToolAnnotations", "CallToolResult", "Task"];
        assert_eq!(nearest(name, known.into_iter()), similar);
    }

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        check("Tolo", Some("Tool"));
        check("CallToolResults", Some("CallToolResult"));
    }

    #[test]
    fn case_does_not_count() {
        check("calltoolresult", Some("CallToolResult"));
    }

    #[test]
    fn nothing_similar_gives_no_suggestion() {
        check("Resource", None);
        check("", None);
        check(&"Tool".repeat(1000), None);
    }

    #[test]
    fn long_names_are_shortened_between_characters() {
        assert_eq!(shortened("Tool"), "Tool");
        assert_eq!(
            shortened(&"é".repeat(100)),
            format!("{}…", "é".repeat(MAX_NAME))
        );
    }
}
