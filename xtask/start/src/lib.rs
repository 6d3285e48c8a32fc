//! What the first step of `cargo xtask` and its commands have in common.

/// Arguments that select all packages with one set of features: whoever builds with them shares all artefacts.
pub const WHOLE_WORKSPACE: [&str; 3] = ["--workspace", "--features", "mcp-exact-cli/full"];
