//! Options of the page, and the CSS classes of consequences.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diff::Compatibility;

/// Options of a page: its title, its tool and its links.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Name and version of the program that created the page.
    pub generator: String,
    /// Creation date, such as `2026-11-22`; empty for reproducible pages.
    pub date: String,
    /// Locations of the schema files, by revision.
    pub sources: BTreeMap<String, SchemaSource>,
}

/// Location of the definitions of a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct SchemaSource {
    /// URL of the schema file.
    pub url: String,
    /// Line of each definition in the file.
    pub lines: BTreeMap<String, usize>,
}

/// Display of a consequence in legend, cells and badges, with one CSS class and colour each.
#[derive(Debug, Clone, Serialize)]
pub struct Consequence {
    /// CSS class.
    pub class: &'static str,
    /// Name in the legend.
    pub name: &'static str,
    /// Explanation in the legend.
    pub words: &'static str,
}

/// All consequences, the most severe first.
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
