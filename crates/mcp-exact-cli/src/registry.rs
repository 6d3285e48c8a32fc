//! Looks up compiled revisions and their definitions by name, and lists the known names if a name is unknown.
//!
//! The table of revisions is in `revisions.rs`.

use std::cell::OnceCell;
use std::collections::HashMap;

use anyhow::Context;
use mcp_exact_model::render::SchemaSource;
use mcp_exact_model::{Definition, Ir, Method, Model};
use mcp_exact_revisions::RevisionSpec;

use crate::names::{suggest, truncate_name};
use crate::revisions::COMPILED;

/// A revision that is compiled in.
#[derive(Debug, Clone, Copy)]
pub struct CompiledRevision {
    /// Properties of the revision.
    pub spec: &'static RevisionSpec,
    /// JSON text of the [`Model`] of the revision.
    pub model_json: &'static str,
}

/// A compiled revision, with its parsed model.
#[derive(Debug)]
pub struct Entry {
    /// The revision.
    pub revision: &'static CompiledRevision,
    /// Model of the revision, parsed on first use.
    model: OnceCell<Model>,
}

/// All revisions that are compiled in.
#[derive(Debug)]
pub struct Registry {
    /// Revisions by identifier.
    by_id: HashMap<&'static str, Entry>,
}

/// Error for an unknown name of a revision, definition or method.
#[derive(Debug, Clone)]
pub struct UnknownName {
    /// Error message, with the most similar names.
    pub problem: String,
    /// Text that lists all known names, or states how to list them.
    pub known_names: String,
}

impl CompiledRevision {
    /// Returns the identifier of the revision.
    pub fn id(&self) -> &'static str {
        self.spec.id()
    }

    /// Parses the representation of the revision, which is used for comparisons.
    pub fn ir(&self) -> anyhow::Result<Ir> {
        self.model().map(|model| model.ir)
    }

    /// Parses the model of the revision.
    pub fn model(&self) -> anyhow::Result<Model> {
        serde_json::from_str(self.model_json).with_context(|| {
            format!(
                "the data of {} is damaged; build the program again",
                self.id()
            )
        })
    }
}

impl CompiledRevision {
    /// Parses the location of the schema from which the revision was generated.
    pub fn source(&self) -> anyhow::Result<SchemaSource> {
        /// Part of the model's JSON text that contains the location of the schema.
        #[derive(serde::Deserialize)]
        struct Embedded {
            /// Location of the schema.
            source: SchemaSource,
        }
        let embedded: Embedded = serde_json::from_str(self.model_json).with_context(|| {
            format!(
                "the data of {} is damaged; build the program again",
                self.id()
            )
        })?;
        Ok(embedded.source)
    }
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.problem, self.known_names)
    }
}

impl std::error::Error for UnknownName {}

impl Registry {
    /// Creates a registry of the compiled revisions.
    pub fn new() -> Self {
        let entry = |revision: &'static CompiledRevision| Entry {
            revision,
            model: OnceCell::new(),
        };
        Self {
            by_id: COMPILED.iter().map(|r| (r.id(), entry(r))).collect(),
        }
    }

    /// Returns the revision with the identifier `id`.
    pub fn revision(&self, id: &str) -> Result<&Entry, UnknownName> {
        self.by_id.get(id).ok_or_else(|| UnknownName {
            problem: format!("unknown revision `{}`", truncate_name(id)),
            known_names: match COMPILED {
                [] => "this program was built without any; build it with its default features"
                    .to_owned(),
                _ => format!(
                    "this program has {}",
                    format_names(COMPILED.iter().map(CompiledRevision::id))
                ),
            },
        })
    }
}

impl Entry {
    /// Returns true if the schema of the revision has a definition with this name.
    pub fn defines(&self, name: &str) -> bool {
        let model = self.model();
        model.is_ok_and(|model| model.ir.get(name).is_some_and(|found| found.official))
    }

    /// Returns the model of the revision, which is parsed on first use.
    pub fn model(&self) -> anyhow::Result<&Model> {
        if let Some(model) = self.model.get() {
            return Ok(model);
        }
        let model = self.revision.model()?;
        Ok(self.model.get_or_init(|| model))
    }

    /// Returns the model of the revision, and those of its extensions.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        let model = self.model().into_iter();
        model.flat_map(|model| std::iter::once(model).chain(&model.extensions))
    }

    /// Returns the methods of the revision's extensions, whose schemas do not say who sends them.
    pub fn extension_methods(&self) -> impl Iterator<Item = &Method> {
        let extensions = self.models().skip(1);
        extensions.flat_map(|model| &model.ir.methods)
    }

    /// Returns the names of the results of extensions that answer methods of the revision: results that answer no method of
    /// their own extension.
    pub fn extension_results(&self) -> impl Iterator<Item = &str> {
        let is_result = |model: &Model, found: &Definition| {
            let answers = |method: &Method| method.result.as_deref() == Some(&*found.name);
            found.official
                && found.name.ends_with("Result")
                && !model.ir.methods.iter().any(answers)
        };
        self.models().skip(1).flat_map(move |model| {
            let definitions = model.ir.definitions.iter();
            let results = definitions.filter(move |found| is_result(model, found));
            results.map(|found| &*found.name)
        })
    }

    /// Checks that the schema of the revision or of an extension of it has the definition with this name; the error contains
    /// similar names.
    pub fn check_name(&self, name: &str) -> Result<(), UnknownName> {
        let is_official = |model: &Model| model.ir.get(name).is_some_and(|found| found.official);
        if self.models().any(is_official) {
            return Ok(());
        }
        let id = self.revision.id();
        let mut problem = format!("unknown type `{}` in revision {id}", truncate_name(name));
        let own = self
            .models()
            .take(1)
            .flat_map(|model| official_definitions(&model.ir));
        suggest(&mut problem, name, own.map(|found| &*found.name));
        Err(UnknownName {
            problem,
            known_names: format!("`mcp-exact show --revision {id}` lists all of them"),
        })
    }
}

/// Returns the definitions that the official schema names.
pub fn official_definitions(ir: &Ir) -> impl Iterator<Item = &Definition> {
    ir.definitions
        .iter()
        .filter(|definition| definition.official)
}

/// Formats names as a list with lines of about a hundred characters.
pub fn format_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::new();
    let mut width = 0;
    for name in names {
        match width {
            0 => {}
            1..100 => list.push_str(", "),
            _ => {
                list.push_str(",\n");
                width = 0;
            }
        }
        list.push_str(name);
        width += name.len() + 2;
    }
    list
}
