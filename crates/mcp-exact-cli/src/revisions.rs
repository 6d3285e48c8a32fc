//! The revisions that are compiled in, oldest first, each switched on by the feature of its name.
//!
//! Holds nothing but this table; what reads it is in `registry.rs`. Drafts are not in it: their crates are never published,
//! so that nothing that is published can use them.

use crate::registry::CompiledRevision;

macro_rules! compiled {
    ($($id:literal $marker:ident $library:ident $spec:ident;)*) => {
        /// Every revision that this program knows.
        pub static COMPILED: &[CompiledRevision] = &[$(
            #[cfg(feature = $id)]
            CompiledRevision {
                spec: mcp_exact_revisions::$spec,
                definitions: $library::DEFINITIONS,
                model_json: include_str!(concat!("../data/", $id, ".json")),
            },
        )*];
    };
}

mcp_exact_revisions::for_each_revision!(compiled);
