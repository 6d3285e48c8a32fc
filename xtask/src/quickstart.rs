//! `cargo xtask quickstart`: runs the README's steps for a new user, unchanged, in an empty folder.
//!
//! The steps are the code blocks between `<!-- quickstart -->` and `<!-- quickstart: end -->`: commands, files, and
//! expected output. `git clone` clones this checkout instead of the published repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::conformance;

/// Mark in the README before the first step.
const BEGIN_MARK: &str = "<!-- quickstart -->";
/// Mark in the README after the last step.
const END_MARK: &str = "<!-- quickstart: end -->";
/// Maximum total time that the README promises.
const PROMISED_TIME: Duration = Duration::from_secs(10 * 60);
/// Output line that marks the end of a block's output.
const END_OF_BLOCK: &str = "== quickstart: block";

/// A fenced code block of the README.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    /// Shell commands.
    Commands(String),
    /// A command that runs until the end of the test, and the address that it listens on.
    Server(String),
    /// A file: its path relative to the current folder of the commands, and its contents.
    File(String, String),
    /// Line that must be part of the output of the earlier commands.
    ExpectedOutput(String),
}

/// Runs the blocks of the README and prints the total time.
pub fn run(root: &Path) -> anyhow::Result<()> {
    if cfg!(windows) {
        bail!(
            "the commands of the README are those of a shell of Unix; run this on Linux or macOS"
        );
    }
    let readme = fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    let blocks = parse_blocks(&readme)?;
    let node = conformance::install_node(root)?;
    let folder = std::env::temp_dir().join(format!("mcp-exact-quickstart-{}", std::process::id()));
    fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let start = Instant::now();
    let ran = execute(root, &node, &folder, &blocks);
    let took = start.elapsed();
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    ran?;
    println!(
        "quickstart: {} blocks in {} s ({} s are promised)",
        blocks.len(),
        took.as_secs(),
        PROMISED_TIME.as_secs()
    );
    Ok(())
}

/// Runs the blocks in a shell with an empty home folder, and checks their output.
fn execute(root: &Path, node: &Path, folder: &Path, blocks: &[Block]) -> anyhow::Result<()> {
    let script = shell_script(blocks);
    let log = folder.join("output.txt");
    let output = fs::File::create(&log).context("cannot create the log")?;
    let repository = env!("CARGO_PKG_REPOSITORY");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folder_of_node = node
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folders = folder_of_node.map(Path::to_owned).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)))?;
    let home = folder.join("home");
    fs::create_dir(&home).context("cannot create a home folder")?;
    let homes = tool_folders();
    let mut command = Command::new("bash");
    command
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        // npm tools write to the home folder.
        .env("HOME", &home)
        .envs(homes)
        // Maps `git clone` of the published URL to this checkout.
        .env("GIT_CONFIG_COUNT", "1")
        .env(
            "GIT_CONFIG_KEY_0",
            format!("url.{}.insteadOf", root.display()),
        )
        .env("GIT_CONFIG_VALUE_0", repository)
        // A new user has no cargo environment variables of this process.
        .env_remove("CARGO")
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let status = command.status().context("cannot start bash")?;
    let printed = fs::read_to_string(&log).context("cannot read the log")?;
    println!("{printed}");
    if !status.success() {
        bail!("the commands of the README failed ({status}); the output above says where");
    }
    check_output(blocks, &printed)
}

/// Returns the folders of cargo, rustup and npm, whose defaults depend on the home folder.
fn tool_folders() -> Vec<(&'static str, PathBuf)> {
    let Some(home) = std::env::home_dir() else {
        return Vec::new();
    };
    let places = [
        ("CARGO_HOME", ".cargo"),
        ("RUSTUP_HOME", ".rustup"),
        ("NPM_CONFIG_USERCONFIG", ".npmrc"),
    ];
    let unset = places
        .into_iter()
        .filter(|(name, _)| std::env::var_os(name).is_none());
    unset
        .map(|(name, folder)| (name, home.join(folder)))
        .collect()
}

/// Returns the shell script that runs the blocks.
fn shell_script(blocks: &[Block]) -> String {
    let mut script =
        "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n".to_owned();
    for (number, block) in blocks.iter().enumerate() {
        match block {
            Block::Commands(commands) => script += commands,
            Block::Server(command) => {
                // The server is ready when its last address responds.
                let port = command.rsplit(':').next().unwrap_or_default().trim();
                let command = command.lines().next().unwrap_or_default();
                script += &format!(
                    "{command} &\nuntil (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null; do kill -0 $!; sleep 0.2; done\n"
                );
            }
            Block::File(path, text) => {
                script += &format!("cat > {path} <<'END_OF_FILE'\n{text}END_OF_FILE\n");
            }
            Block::ExpectedOutput(_) => script += &format!("echo '{END_OF_BLOCK} {number}'\n"),
        }
    }
    script
}

/// Checks that the commands before each block of expected output have printed it.
fn check_output(blocks: &[Block], printed: &str) -> anyhow::Result<()> {
    let mut rest = printed;
    for (number, block) in blocks.iter().enumerate() {
        let Block::ExpectedOutput(expected) = block else {
            continue;
        };
        let mark = format!("{END_OF_BLOCK} {number}\n");
        let (before, after) = rest
            .split_once(&mark)
            .with_context(|| format!("block {number} was not reached"))?;
        let mut lines = before.lines().map(str::trim);
        for line in expected.lines().map(str::trim) {
            if !lines.any(|found| found == line) {
                bail!("the README says that {line:?} is printed, and it is not");
            }
        }
        rest = after;
    }
    Ok(())
}

/// Parses the code blocks of the README.
fn parse_blocks(readme: &str) -> anyhow::Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut rest = readme;
    while let Some((_, after)) = rest.split_once(BEGIN_MARK) {
        let (part, after) = after
            .split_once(END_MARK)
            .with_context(|| format!("README.md has {BEGIN_MARK} without {END_MARK}"))?;
        let mut lines = part.lines();
        while let Some(line) = lines.next() {
            let Some(kind) = line.strip_prefix("```") else {
                continue;
            };
            let text: String = lines
                .by_ref()
                .take_while(|line| *line != "```")
                .flat_map(|line| [line, "\n"])
                .collect();
            blocks.push(parse_block(kind, text)?);
        }
        rest = after;
    }
    if blocks.is_empty() {
        bail!("README.md has no block between {BEGIN_MARK} and {END_MARK}")
    } else {
        Ok(blocks)
    }
}

/// Parses the kind of a code block.
fn parse_block(kind: &str, text: String) -> anyhow::Result<Block> {
    Ok(match kind {
        "sh" => Block::Commands(text),
        "sh server" => Block::Server(text),
        "text" => Block::ExpectedOutput(text),
        _ => {
            let path = text
                .lines()
                .next()
                .and_then(|line| line.strip_prefix("// "));
            let path = path.with_context(|| {
                format!("a block of {kind:?} has to begin with the path of its file in a comment")
            })?;
            Block::File(path.to_owned(), text)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// README with marks and blocks of every kind.
    const README: &str = "# Title\n\n```sh\nnot this\n```\n<!-- quickstart -->\n```sh\ncd a\n```\ntext\n```rust\n// src/main.rs\nfn main() {}\n```\n```text\none\ntwo\n```\n<!-- quickstart: end -->\n";

    #[test]
    fn marked_blocks_are_parsed() {
        let expected = [
            Block::Commands("cd a\n".to_owned()),
            Block::File(
                "src/main.rs".to_owned(),
                "// src/main.rs\nfn main() {}\n".to_owned(),
            ),
            Block::ExpectedOutput("one\ntwo\n".to_owned()),
        ];
        assert_eq!(parse_blocks(README).expect("blocks"), expected);
        assert!(parse_blocks("nothing").is_err());
    }

    #[test]
    fn missing_output_is_an_error() {
        let blocks = parse_blocks(README).expect("blocks");
        check_output(&blocks, "zero\none\n two\n== quickstart: block 2\n").expect("all lines");
        let error = check_output(&blocks, "two\none\n== quickstart: block 2\n");
        assert!(
            error
                .expect_err("another order")
                .to_string()
                .contains("\"two\"")
        );
        assert!(
            check_output(&blocks, "one\ntwo\n").is_err(),
            "the block was not reached"
        );
    }

    /// The blocks of the README can be parsed; `cargo xtask quickstart` runs them.
    #[test]
    fn readme_blocks_are_parsed() {
        let readme = crate::workspace_root().join("README.md");
        let blocks = parse_blocks(&fs::read_to_string(readme).expect("a file")).expect("blocks");
        let printed = blocks
            .iter()
            .any(|block| matches!(block, Block::ExpectedOutput(_)));
        assert!(printed, "nothing of the output is checked");
    }
}
