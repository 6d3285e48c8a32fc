//! What the first step of `cargo xtask` and its commands have in common.

/// Arguments that select all packages with one set of features: whoever builds with them shares all artefacts.
pub const WHOLE_WORKSPACE: [&str; 3] = ["--workspace", "--features", "mcp-exact-cli/full"];

/// Commands of cargo, with their arguments, that build all tests, and then the examples that tests run. Other examples are compiled by
/// clippy alone.
pub const BUILD_TESTS: [&[&str]; 2] = [
    &["test", "--tests", "--no-run"],
    &[
        "build",
        "--example=hooks",
        "--example=notes",
        "--example=notes_builder",
        "--example=task_server",
    ],
];
