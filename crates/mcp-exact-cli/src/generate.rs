//! `mcp-exact completions` and `mcp-exact man`: shell completions and manual pages, generated from the definition of
//! the arguments.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::Outcome;
use crate::output;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

/// The arguments of `mcp-exact completions`.
#[derive(Args)]
#[command(after_help = "\
Bash: mcp-exact completions bash > ~/.local/share/bash-completion/completions/mcp-exact
Zsh: mcp-exact completions zsh > a file `_mcp-exact` in a folder of $fpath
Fish: mcp-exact completions fish > ~/.config/fish/completions/mcp-exact.fish")]
pub struct Completions {
    /// The shell.
    shell: Shell,
}

/// The arguments of `mcp-exact man`.
#[derive(Args)]
#[command(after_help = "\
Without a folder, the page of the program is printed: mcp-exact man | man -l -")]
pub struct Manual {
    /// Write a page for the program and one for each command into this folder.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub fn completions(arguments: &Completions, mut program: Command) -> anyhow::Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "mcp-exact", &mut text);
    print(text)?;
    Ok(Outcome::Valid)
}

/// Prints or writes the manual pages.
pub fn manual(arguments: &Manual, program: Command) -> anyhow::Result<Outcome> {
    let Some(folder) = &arguments.folder else {
        let mut text = Vec::new();
        Man::new(program).render(&mut text)?;
        print(text)?;
        return Ok(Outcome::Valid);
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let commands: Vec<Command> = program.get_subcommands().cloned().collect();
    let mut pages = vec![("mcp-exact".to_owned(), program)];
    for command in commands {
        let name = format!("mcp-exact-{}", command.get_name());
        pages.push((name.clone(), command.display_name(name)));
    }
    let count = pages.len();
    for (name, command) in pages {
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        output::write(&folder.join(format!("{name}.1")), &text)?;
    }
    let folder = folder.display().to_string();
    stdout().line(&text!("{}: {} pages", Untrusted(&folder), count))?;
    Ok(Outcome::Valid)
}

/// Prints what was generated of the program's arguments.
fn print(text: Vec<u8>) -> anyhow::Result<()> {
    let text = String::from_utf8(text).context("the text is not UTF-8")?;
    Ok(stdout().text(&Text::of_program(text))?)
}
