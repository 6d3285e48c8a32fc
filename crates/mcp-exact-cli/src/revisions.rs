//! Table of the compiled revisions, oldest first, each enabled by a feature with its name.
//!
//! Drafts are excluded: they change, and a published program would keep an old one.

use crate::registry::CompiledRevision;

/// Defines [`COMPILED`] with an entry for each revision whose feature is enabled.
macro_rules! compiled {
    ($($id:literal $marker:ident $library:ident $spec:ident;)*) => {
        /// Every compiled revision.
        pub static COMPILED: &[CompiledRevision] = &[$(
            #[cfg(feature = $id)]
            CompiledRevision {
                spec: mcp_exact_revisions::$spec,
                model_json: include_str!(concat!("../data/", $id, ".json")),
            },
        )*];
    };
}

mcp_exact_revisions::for_each_revision!(compiled);
