//! A revision with the tables that a reader of values needs: the form in which the program `mcp-exact` embeds revisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Dispatch, Ir};

/// Representation of a revision, with the dispatch of its unions and with its extensions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Representation of the revision.
    #[serde(flatten)]
    pub ir: Ir,
    /// Dispatch among the variants of each union, by the name of the union's definition.
    pub dispatch: BTreeMap<String, Dispatch>,
    /// Extensions of the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Model>,
}
