//! Options of a page, and the classes of consequences that all of its parts show.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diff::Compatibility;

/// Options of a page: its title, its tool and its links.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// The program that wrote the page, with its version.
    pub generator: String,
    /// The day on which it was written, such as `2026-11-22`; empty for pages that have to be the same every day.
    pub date: String,
    /// Schema files, by revision.
    pub sources: BTreeMap<String, SchemaSource>,
}

/// Location of the definitions of a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct SchemaSource {
    /// Address of the schema file.
    pub url: String,
    /// Line of each definition in it.
    pub lines: BTreeMap<String, usize>,
}

/// Consequence of a change, as legend, cells and badges show it: one class, hence one colour, for each.
#[derive(Debug, Clone, Serialize)]
pub struct Consequence {
    pub class: &'static str,
    pub name: &'static str,
    pub words: &'static str,
}

/// All consequences, the gravest first.
pub const CONSEQUENCES: [Compatibility; 5] = [
    Compatibility::BreaksBoth,
    Compatibility::BreaksWriting,
    Compatibility::BreaksReading,
    Compatibility::Additive,
    Compatibility::Neutral,
];

impl Consequence {
    /// Returns the consequence that the page shows for a compatibility.
    pub fn of(compatibility: Compatibility) -> Self {
        let (class, words) = match compatibility {
            Compatibility::Neutral => ("neutral", "the same is sent as before"),
            Compatibility::Additive => (
                "additive",
                "something new can be sent, and nobody has to know it",
            ),
            Compatibility::BreaksReading => (
                "reading",
                "the newer side sends what the older one does not understand",
            ),
            Compatibility::BreaksWriting => (
                "writing",
                "what was right to send is wrong now, or has no effect",
            ),
            Compatibility::BreaksBoth => ("both", "both of the above"),
        };
        Self {
            class,
            name: compatibility.words(),
            words,
        }
    }
}
