//! Builds the test programs with cargo, and lists them from its messages.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use xtask_start::BUILD_TESTS;
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

/// Builds all tests of the workspace and what they run; returns the test programs.
///
/// # Errors
/// Returns an error if something does not compile.
pub(super) fn build(root: &Path, locked: bool) -> anyhow::Result<Vec<Program>> {
    let mut programs = Vec::new();
    for arguments in BUILD_TESTS {
        let mut command = cargo(root);
        command
            .args(arguments)
            .args(WHOLE_WORKSPACE)
            .arg("--message-format=json-render-diagnostics")
            .stdout(Stdio::piped());
        if locked {
            command.arg("--locked");
        }
        let mut child = command
            .spawn()
            .context("cannot start cargo; install Rust: https://rustup.rs")?;
        if let Some(messages) = child.stdout.take() {
            for line in BufReader::new(messages).lines() {
                programs.extend(program(&line?));
            }
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("the tests do not compile ({status}); the errors are above");
        }
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
    use std::collections::BTreeMap;

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

    /// Whatever `cargo xtask` consists of is part of the tests too, with the same features and the same dependencies: cargo would
    /// compile it twice otherwise. If this fails, the features of what is named differ, or those of its dependencies: add the ones
    /// that the tests need to the unused dependencies in `xtask/Cargo.toml`.
    #[test]
    fn no_dependency_is_compiled_twice() {
        let root = crate::workspace_root();
        let tests =
            BUILD_TESTS.map(|arguments| units(&root, &[arguments, &WHOLE_WORKSPACE].concat()));
        let whole: Units = tests.into_iter().flatten().collect();
        let own = units(&root, &["build", "--package", "xtask"]);
        let other = own.iter().filter(|(unit, _)| !whole.contains_key(*unit));
        let causes =
            other.filter(|(_, (_, uses))| uses.iter().all(|unit| whole.contains_key(unit)));
        let causes: Vec<&String> = causes.map(|(_, (what, _))| what).collect();
        assert!(own.len() > 100 && causes.is_empty(), "{causes:#?}");
    }

    /// What a command of cargo compiles: hashes of the units, each with its description and the hashes of its dependencies.
    type Units = BTreeMap<String, (String, Vec<String>)>;

    /// Returns what a command of cargo compiles.
    fn units(root: &Path, arguments: &[&str]) -> Units {
        let mut command = cargo(root);
        command.args(arguments);
        // The graph is an unstable feature; nothing is compiled.
        command.args(["--locked", "--unit-graph", "-Zunstable-options"]);
        let output = command.env("RUSTC_BOOTSTRAP", "1").output();
        let output = output.expect("cargo starts");
        let graph: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let graph = graph["units"].as_array().expect("units");
        let (mut units, mut hashes) = (Units::new(), vec![None; graph.len()]);
        for index in 0..graph.len() {
            add(graph, index, &mut hashes, &mut units);
        }
        units
    }

    /// Adds a unit of the graph and its dependencies; returns its hash.
    fn add(
        graph: &[Value],
        index: usize,
        hashes: &mut [Option<String>],
        units: &mut Units,
    ) -> String {
        if let Some(hash) = &hashes[index] {
            return hash.clone();
        }
        let unit = &graph[index];
        let what = format!(
            "{} {} {} {} {}",
            unit["pkg_id"],
            unit["target"]["kind"],
            unit["mode"],
            unit["features"],
            unit["profile"]["opt_level"]
        );
        let uses = unit["dependencies"].as_array().expect("dependencies");
        let uses = uses.iter().map(|used| {
            let at = used["index"].as_u64().expect("an index");
            add(graph, usize::try_from(at).expect("an index"), hashes, units)
        });
        let uses: Vec<String> = uses.collect();
        let hash = codegen::sha256(format!("{what} {uses:?}").as_bytes());
        hashes[index] = Some(hash.clone());
        units.insert(hash.clone(), (what, uses));
        hash
    }
}
