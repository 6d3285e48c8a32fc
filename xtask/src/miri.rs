//! `cargo xtask miri`: runs unit tests of `mcp-exact-wire` under Miri, for the modules with unsafe code and the modules
//! that they use.
//!
//! Requires the nightly toolchain with the components `miri` and `rust-src`. Runs the tests twice: for x86-64 with
//! byte shuffles, and for a big-endian target without vector code in this project and memchr.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Modules with unsafe code, modules that produce the input of such modules, and modules that replace such modules on
/// other targets.
const TESTED_MODULES: &[&str] = &[
    "decode::",
    "escape::",
    "escape_ssse3::",
    "scan::",
    "simd::",
    "skip::",
    "unescape::",
];

/// One run: the interpreted target, and its additional processor features.
struct MiriRun {
    /// Target triple.
    target: &'static str,
    /// Additional processor features.
    features: &'static str,
}

/// Interpreted targets: x86-64 with vector code, and a big-endian target without vector code.
const RUNS: &[MiriRun] = &[
    MiriRun {
        target: "x86_64-unknown-linux-gnu",
        features: "+ssse3,+popcnt",
    },
    MiriRun {
        target: "s390x-unknown-linux-gnu",
        features: "",
    },
];

/// Runs the tests under Miri in `root`.
pub fn run(root: &Path) -> anyhow::Result<()> {
    for run in RUNS {
        let line = miri_arguments(run);
        println!("running: rustup {}", line.join(" "));
        let mut command = Command::new("rustup");
        command.args(&line).current_dir(root);
        if !run.features.is_empty() {
            command.env("RUSTFLAGS", format!("-C target-feature={}", run.features));
        }
        let status = command
            .status()
            .context("cannot start rustup; install it from https://rustup.rs")?;
        if !status.success() {
            bail!(
                "Miri failed for {} ({status}); without Miri, run `rustup toolchain install nightly --component miri \
                 --component rust-src`",
                run.target
            );
        }
    }
    Ok(())
}

/// Returns the arguments of cargo for a run.
fn miri_arguments(run: &MiriRun) -> Vec<String> {
    let fixed = ["run", "nightly", "cargo", "miri", "test", "--locked"];
    let what = [
        "-p",
        "mcp-exact-wire",
        "--lib",
        "--target",
        run.target,
        "--",
    ];
    let words = fixed.iter().chain(&what).chain(TESTED_MODULES);
    words.map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests run on x86-64 with vector code, and on another target with portable code.
    #[test]
    fn portable_code_is_tested() {
        let targets: Vec<&str> = RUNS.iter().map(|run| run.target).collect();
        assert!(targets.iter().any(|target| target.starts_with("x86_64")));
        assert!(targets.iter().any(|target| !target.starts_with("x86_64")));
    }

    /// Every module with unsafe code must have tests, in its file or in `MODULE/tests.rs`, and be listed in
    /// `TESTED_MODULES`.
    #[test]
    fn modules_with_unsafe_code_are_tested() {
        let sources = crate::workspace_root().join("crates/mcp-exact-wire/src");
        let mut files = Vec::new();
        crate::codegen::collect_files(&sources, &mut files).expect("the sources are there");
        let mut found = Vec::new();
        for path in files {
            let text = std::fs::read_to_string(&path).expect("text");
            if !text.contains("unsafe {") {
                continue;
            }
            let module = path
                .strip_prefix(&sources)
                .expect("a path below the sources");
            let name = module
                .with_extension("")
                .display()
                .to_string()
                .replace('/', "::");
            let tests = path.with_extension("").join("tests.rs");
            assert!(
                text.contains("#[test]") || tests.is_file(),
                "{name} has no tests"
            );
            found.push(name);
        }
        assert!(found.len() > 3, "{found:?}");
        for name in &found {
            assert!(
                TESTED_MODULES
                    .iter()
                    .any(|module| format!("{name}::").starts_with(module)),
                "{name}"
            );
        }
    }
}
