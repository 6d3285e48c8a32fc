//! Builds the test programs with cargo, and lists them from its messages.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

pub(crate) use xtask_start::WHOLE_WORKSPACE;

/// Test program that cargo has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Name of the package.
    pub(super) package: String,
    /// Name of the target, with its kind if it is not an integration test.
    pub(super) target: String,
    /// Path of the executable.
    pub(super) executable: PathBuf,
    /// Folder of the package, in which the program runs.
    pub(super) folder: PathBuf,
}

/// Returns true if the executable can be started.
pub(super) fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Returns a command of the cargo that runs this program.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Builds all tests, examples and programs of the workspace; returns the test programs.
///
/// # Errors
/// Returns an error if something does not compile.
pub(super) fn build(root: &Path, locked: bool) -> anyhow::Result<Vec<Program>> {
    let mut command = cargo(root);
    command
        .arg("test")
        .args(WHOLE_WORKSPACE)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stdout(Stdio::piped());
    if locked {
        command.arg("--locked");
    }
    let mut child = command
        .spawn()
        .context("cannot start cargo; install Rust: https://rustup.rs")?;
    let mut programs = Vec::new();
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).lines() {
            programs.extend(program(&line?));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the tests do not compile ({status}); the errors are above");
    }
    Ok(programs)
}

/// Returns the test program of a message of cargo; other messages have none.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = &message["target"];
    let name = target["name"].as_str()?;
    let target = match target["kind"][0].as_str()? {
        "test" => name.to_owned(),
        kind => format!("{kind} {name}"),
    };
    Some(Program {
        package: package_name(message["package_id"].as_str()?)?.to_owned(),
        target,
        executable,
        folder: folder.to_owned(),
    })
}

/// Returns the name in the id of a package: `path+file:///a/name#0.1.0`, or `path+file:///a/folder#name@0.1.0`.
pub(crate) fn package_name(id: &str) -> Option<&str> {
    let (path, version) = id.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_listed() {
        let message = |test: bool, kind: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///w/tests/docs#mcp-exact-tests-docs@0.1.0",
                "manifest_path":"/w/tests/docs/Cargo.toml","target":{{"kind":["{kind}"],"name":"docs"}},
                "profile":{{"test":{test}}},"executable":"/w/target/debug/deps/docs-1"}}"#
            )
        };
        let found = program(&message(true, "test")).expect("a program");
        assert_eq!(
            (found.package.as_str(), found.target.as_str()),
            ("mcp-exact-tests-docs", "docs")
        );
        assert_eq!(found.folder, Path::new("/w/tests/docs"));
        let unit = program(&message(true, "lib")).expect("a program");
        assert_eq!(unit.target, "lib docs");
        assert_eq!(program(&message(false, "bin")), None);
        assert_eq!(
            program(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert_eq!(program("not JSON"), None);
    }

    #[test]
    fn package_ids_have_two_forms() {
        assert_eq!(package_name("path+file:///w/xtask#0.1.0"), Some("xtask"));
        assert_eq!(package_name("path+file:///w/a#b@0.1.0"), Some("b"));
    }

    #[test]
    fn missing_programs_are_not_installed() {
        assert!(is_installed("rustc"));
        assert!(!is_installed("no-such-program-anywhere"));
    }

    /// The features of every dependency of `cargo xtask` are those of the tests, because different ones would compile the
    /// dependency twice. If this fails, add the feature to the unused dependencies in `xtask/Cargo.toml`.
    #[test]
    fn no_dependency_is_compiled_twice() {
        let root = crate::workspace_root();
        let whole = features(
            &root,
            &[&WHOLE_WORKSPACE[..], &["-e", "normal,build,dev"]].concat(),
        );
        let own = features(&root, &["--package", "xtask", "-e", "normal,build"]);
        let other: Vec<_> = own.difference(&whole).collect();
        assert!(!own.is_empty() && other.is_empty(), "{other:#?}");
    }

    /// Returns the lines `package version|features` of a tree of dependencies.
    fn features(root: &Path, arguments: &[&str]) -> std::collections::BTreeSet<String> {
        let mut command = cargo(root);
        command.args([
            "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}",
        ]);
        let output = command.args(arguments).arg("--no-dedupe").output();
        let output = output.expect("cargo starts");
        let text = String::from_utf8(output.stdout).expect("text");
        let line = |line: &str| line.trim_end_matches(" (*)").replace(" (proc-macro)", "");
        text.lines().map(line).collect()
    }
}
