//! Definitions of tools as hosts and models get them: schemas that widely used hosts accept, other names and arguments, and what
//! has changed. Everything here is a pure function of definitions, for gateways and hosts alike.
//!
//! A [`Catalogue`] gives tools other names, texts and annotations, hides them, and fixes arguments. A [`ToolFilter`] has the tools that
//! the entry of a server switches on or off. [`canonical`] and [`differences`]
//! compare definitions with those that somebody has approved. A [`ToolIndex`] finds tools by words, where a model shall not be shown
//! all of them. [`is_accepted_name`] says which names providers of models accept.
//!
//! The specification allows all shapes that hosts refuse. [`deviations`] finds them, and [`rewrite`] replaces those that have
//! an equivalent. `docs/repairs.md` lists the shapes, their replacements, and public reports of each. Keywords that
//! this crate does not know stay unchanged. Neither function resolves references to other documents.

mod arguments;
mod canonical;
mod catalogue;
mod filter;
mod keywords;
mod merge;
mod names;
mod references;
mod rewrite;
mod search;
mod shapes;
mod tree;

use mcp_exact_wire::JsonObject;

pub use canonical::{Difference, canonical, differences};
pub use catalogue::{
    ArgumentError, Catalogue, CatalogueError, CatalogueProblem, ServerCatalogue, ToolEntry,
};
pub use filter::ToolFilter;
pub use names::{MAX_NAME_LENGTH, is_accepted_in_names, is_accepted_name};
pub use search::ToolIndex;
pub use shapes::{Deviation, Shape};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// Values that a schema describes, which decides how exact its equivalent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaOf {
    /// Arguments of a tool (`inputSchema`). An equivalent accepts the same arguments, except that it does not offer `null` for a
    /// property that may be absent, and that formats such as `uint32` become the bounds that they mean.
    Arguments,
    /// Structured results of a tool (`outputSchema`). An equivalent accepts exactly the same results.
    Results,
}

/// Schema after [`rewrite`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewritten {
    /// The equivalent schema; `None` if the schema stays as it is.
    pub schema: Option<JsonObject>,
    /// Shapes that are left, in the equivalent schema or, without one, in the schema itself.
    pub remaining: Vec<Deviation>,
}

/// Returns the shapes in a schema that hosts refuse, in the order of the text.
pub fn deviations(schema: &JsonObject) -> Vec<Deviation> {
    shapes::deviations(&tree::Tree::of_root(schema.text()).root)
}

/// Returns an equivalent schema without the shapes that hosts refuse, as far as there is one.
///
/// Unknown keywords are kept. Definitions that references name are copied in their place up to a total size of `room` bytes;
/// beyond it, and where definitions contain themselves, references stay.
pub fn rewrite(schema: &JsonObject, of: SchemaOf, room: usize) -> Rewritten {
    rewrite::rewrite(schema, of, room)
}
