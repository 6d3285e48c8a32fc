//! `cargo xtask nightly fuzz`: runs the targets of `fuzz/` under libFuzzer, each for some minutes.
//!
//! Requires the nightly toolchain, and installs cargo-fuzz into `target/` if it is missing. An input that violates a
//! property is stored in `fuzz/artifacts/`; after the defect is repaired, move it to `fuzz/corpus/`, which every test
//! run reads.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::nightly::install_program;

/// Version of cargo-fuzz that is installed.
const CARGO_FUZZ_VERSION: &str = "0.13.2";
/// Maximum memory of a target, in MiB.
const MAX_MEMORY_MIB: u32 = 4096;

/// Runs the named targets, or all targets if none is named, for `seconds` seconds each.
pub fn run(root: &Path, selected_targets: &[String], seconds: u64) -> anyhow::Result<()> {
    let known = list_targets(root)?;
    if let Some(name) = selected_targets.iter().find(|name| !known.contains(name)) {
        bail!("no fuzz target `{name}`; there are {}", known.join(", "));
    }
    let program = install_program(root, "cargo-fuzz", CARGO_FUZZ_VERSION)?;
    let chosen = if selected_targets.is_empty() {
        &known[..]
    } else {
        selected_targets
    };
    let mut failed = Vec::new();
    for target in chosen {
        println!("fuzzing {target} for {seconds} s");
        let (found, corpus) = (
            fuzz_path(root, "target/corpus", target),
            fuzz_path(root, "corpus", target),
        );
        std::fs::create_dir_all(&found)
            .with_context(|| format!("cannot create {}", found.display()))?;
        let mut command = Command::new("rustup");
        command.args(["run", "nightly"]).arg(&program);
        // New inputs go into the first folder; those of the corpus are chosen by hand.
        command.args(["run", target]).arg(&found).arg(&corpus);
        command.args(libfuzzer_limits(seconds)).current_dir(root);
        let status = command
            .status()
            .context("cannot start rustup; install it from https://rustup.rs")?;
        if !status.success() {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "{}: a property does not hold, or nothing was built; the output above says why. Inputs that show it are in \
         `fuzz/artifacts/`; without a nightly toolchain, run `rustup toolchain install nightly`",
        failed.join(", ")
    )
}

/// Returns the path of a target's data in a folder of `fuzz/`.
fn fuzz_path(root: &Path, folder: &str, target: &str) -> PathBuf {
    root.join("fuzz").join(folder).join(target)
}

/// Returns the arguments that limit the time and the memory of libFuzzer.
fn libfuzzer_limits(seconds: u64) -> [String; 3] {
    let time = format!("-max_total_time={seconds}");
    [
        "--".to_owned(),
        time,
        format!("-rss_limit_mb={MAX_MEMORY_MIB}"),
    ]
}

/// Returns the sorted names of the targets in `fuzz/fuzz_targets`.
fn list_targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let place = root.join("fuzz").join("fuzz_targets");
    let files = std::fs::read_dir(&place);
    let files = files.with_context(|| format!("cannot read {}", place.display()))?;
    let mut names = Vec::new();
    for file in files {
        let path = file?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        names.extend(stem.map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every target has a corpus, from which fuzzing starts and which test runs repeat.
    #[test]
    fn every_target_has_a_corpus() {
        let root = crate::workspace_root();
        let targets = list_targets(&root).expect("a folder");
        assert!(targets.len() >= 6, "{targets:?}");
        for target in targets {
            let corpus = fuzz_path(&root, "corpus", &target);
            assert!(corpus.is_dir(), "{}", corpus.display());
        }
    }

    #[test]
    fn unknown_targets_are_refused() {
        let root = crate::workspace_root();
        let refused = run(&root, &["nonsense".to_owned()], 1);
        let words = refused.expect_err("refused").to_string();
        assert!(words.starts_with("no fuzz target `nonsense`; there are conversion, "));
    }
}
