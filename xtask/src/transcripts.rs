//! `cargo xtask transcripts`: runs the commands in the documentation again, and updates their output.
//!
//! The `console` code blocks of `docs/cli.md` contain commands after `$ `, each with its output. The server that the
//! commands use is pinned in `docs/transcripts/`; the files that they read are in the same folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Page with the commands.
const PAGE_PATH: &str = "docs/cli.md";
/// Folder with the pinned server and the files that the commands read.
const TRANSCRIPT_FOLDER: &str = "docs/transcripts";
/// Folder where the server is installed.
const INSTALL_FOLDER: &str = "target/transcripts";
/// First line of a code block with commands.
const FENCE: &str = "```console";
/// Last line of a code block.
const FENCE_END: &str = "```";

/// Arguments of `cargo xtask transcripts`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write nothing; fail if the output of a command differs from the page.
    #[arg(long)]
    check: bool,
}

/// Runs the commands of the page.
///
/// # Errors
/// Returns an error if the server cannot be installed, a command cannot be run, or the page differs with `--check`.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    install(root)?;
    build(root)?;
    let folder = root.join(INSTALL_FOLDER).join("work");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(root.join(TRANSCRIPT_FOLDER))? {
        let entry = entry?;
        fs::copy(entry.path(), folder.join(entry.file_name()))?;
    }
    let path = root.join(PAGE_PATH);
    let before = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE_PATH}"))?;
    let after = replace_outputs(&before, |command| run_command(root, &folder, command))?;
    let count = before.lines().filter(|line| line.starts_with("$ ")).count();
    if before == after {
        println!("{PAGE_PATH}: {count} commands, all as before");
    } else if arguments.check {
        bail!("{PAGE_PATH} is not what the program prints; run `cargo xtask transcripts`");
    } else {
        fs::write(&path, after)?;
        println!("{PAGE_PATH}: {count} commands, written anew");
    }
    Ok(())
}

/// Installs the server, unless the installed lock file is unchanged.
fn install(root: &Path) -> anyhow::Result<()> {
    let target = root.join(INSTALL_FOLDER);
    let lock = fs::read(root.join(TRANSCRIPT_FOLDER).join("package-lock.json"))?;
    let stamp = target.join("installed.json");
    if fs::read(&stamp).is_ok_and(|stamp| stamp == lock) {
        return Ok(());
    }
    fs::create_dir_all(&target)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(root.join(TRANSCRIPT_FOLDER).join(file), target.join(file))?;
    }
    let status = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&target)
        .status()
        .context("cannot run npm; install node 20 or later")?;
    if !status.success() {
        bail!("npm ci failed in {}", target.display());
    }
    Ok(fs::write(stamp, lock)?)
}

/// Builds the executable `mcp-exact`.
fn build(root: &Path) -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        // As the tests are built, which build the program with them: nothing is compiled anew behind them.
        .args(["test", "--locked", "--no-run", "--workspace"])
        .args(["--test", "cli", "--features", "mcp-exact-cli/full"])
        .current_dir(root)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        bail!("the program does not build")
    }
}

/// Returns the output of a command, on both streams.
fn run_command(root: &Path, folder: &Path, command: &str) -> anyhow::Result<String> {
    let before = std::env::var("PATH").unwrap_or_default();
    let program = root.join("target/debug");
    let server = root.join(INSTALL_FOLDER).join("node_modules/.bin");
    let path = format!("{}:{}:{before}", program.display(), server.display());
    let output = Command::new("sh")
        .args(["-c", &format!("({command}) 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env("NO_COLOR", "1")
        // What the program keeps between runs is not that of the user.
        .env("XDG_DATA_HOME", folder.join("data"))
        .output()
        .with_context(|| format!("cannot run `{command}`"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let text = text.replace(&folder.display().to_string(), ".");
    let mut lines: String = text
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        lines.push_str(&format!("[exit code {code}]\n"));
    }
    Ok(lines)
}

/// Returns the page with the text below each command replaced by its current output.
fn replace_outputs(
    page: &str,
    mut output: impl FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut is_inside = false;
    for line in page.lines() {
        match line {
            FENCE => is_inside = true,
            FENCE_END if is_inside => is_inside = false,
            _ if is_inside => {
                if let Some(command) = line.strip_prefix("$ ") {
                    text.push_str(&format!("{line}\n{}", output(command)?));
                }
                continue;
            }
            _ => {}
        }
        text.push_str(line);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the lines below a command in a `console` code block are replaced.
    #[test]
    fn outputs_are_replaced() {
        let page = "a\n```console\n$ one\nold\n$ two\n```\n```text\n$ not\n```\n";
        let after = replace_outputs(page, |command| Ok(format!("<{command}>\n")));
        let expected = "a\n```console\n$ one\n<one>\n$ two\n<two>\n```\n```text\n$ not\n```\n";
        assert_eq!(after.expect("nothing fails"), expected);
    }
}
