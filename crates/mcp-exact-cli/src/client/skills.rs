//! `mcp-exact skills`: lists the skills of a server, and prints their files once size and digest are verified.
//!
//! Entries and files are text of the server: fields are escaped, and a file goes to standard output as it is.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use mcp_exact::{Client, Skill, SkillError, SkillFile};
use serde_json::Value;

use super::{Settings, add_hint, run_with_server};
use crate::Outcome;
use crate::names::suggest;
use crate::output::{Painter, Style, format_table, is_standard_stream, write};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Untrusted, text};

/// Maximum number of entries whose faults are printed.
const MAX_FAILURES: usize = 20;

/// The arguments of `mcp-exact skills`.
#[derive(Args)]
#[command(after_help = "\
A skill is a folder of instructions for a model (extension io.modelcontextprotocol/skills). Its digests come from the same server \
as its files: they show that nothing has changed between entry and file, and not who has written it.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the skills of a server.
    List(List),
    /// Read a file of a skill, and verify its size and digest.
    Read(Read),
}

#[derive(Args)]
#[command(after_help = "\
Exit code: 0 the skills are listed, 1 an entry breaks the rules of the extension, 2 wrong usage, or the server has no skills or \
cannot be reached.")]
struct List {
    /// Print the entries as one JSON array.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments. Options go before it.
    #[arg(
        value_name = "COMMAND|URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    server: Vec<OsString>,
}

#[derive(Args)]
#[command(after_help = "\
Example: mcp-exact skills read refunds references/POLICY.md -- node server.js

Exit code: 0 the file is what the entry of the skill describes, 1 it is not, or the entry breaks the rules of the extension, and \
nothing is printed, 2 wrong usage, or the server \
refuses or cannot be reached.")]
struct Read {
    /// The name of the skill, or the URI of its SKILL.md.
    #[arg(value_name = "NAME|URI")]
    skill: String,
    /// The file, as the skill names it.
    #[arg(value_name = "FILE", default_value = "SKILL.md")]
    file: String,
    /// Write the file here; `-` is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Read skills that the server generates, too, whose files cannot be verified.
    #[arg(long)]
    unverified: bool,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(value_name = "COMMAND|URL", required = true, last = true)]
    server: Vec<OsString>,
}

/// Lists skills, or reads a file of one.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        Command::List(list) => list.run(),
        Command::Read(read) => read.run(),
    }
}

impl List {
    fn run(&self) -> anyhow::Result<Outcome> {
        run_with_server(&self.settings, async {
            let client = connect(&self.settings, &self.server).await?;
            let listing = client.skills().await.map_err(explained)?;
            client.close();
            print_failures(listing.invalid.iter());
            if self.json {
                let entries = listing.skills.iter();
                let entries = entries.map(|skill| skill.object().text().parse::<Value>());
                stdout().pretty_json(&entries.collect::<Result<Vec<_>, _>>()?)?;
            } else if listing.skills.is_empty() {
                stdout().line(&"the server lists no skills".into())?;
            } else {
                let heading = ["name", "uri", "files", "bytes", "description"];
                let rows: Vec<_> = listing.skills.iter().map(row).collect();
                stdout().text(&format_table(&heading, &rows, Painter::stdout()))?;
            }
            Ok(if listing.invalid.is_empty() {
                Outcome::Valid
            } else {
                Outcome::Invalid
            })
        })
    }
}

impl Read {
    fn run(&self) -> anyhow::Result<Outcome> {
        run_with_server(&self.settings, async {
            let client = connect(&self.settings, &self.server).await?;
            let Some(skill) = self.find(&client).await? else {
                client.close();
                return Ok(Outcome::Invalid);
            };
            let read = if self.unverified {
                client.read_dynamic_skill(&skill, &self.file).await
            } else {
                client.read_skill(&skill, &self.file).await
            };
            client.close();
            match read {
                Ok(file) => self.print(&file),
                Err(error) if is_verification_failure(&error) => {
                    print_failure(&error);
                    Ok(Outcome::Invalid)
                }
                Err(error) => Err(self.with_files(&skill, error)),
            }
        })
    }

    /// Finds the skill by its URI, or by its name in the list. Returns `None` if its entry cannot be used; the reason is printed.
    async fn find(&self, client: &Client) -> anyhow::Result<Option<Skill>> {
        if self.skill.contains("://") {
            return match client.skill(&self.skill).await {
                Err(error @ SkillError::Entry { .. }) => {
                    print_failure(&error);
                    Ok(None)
                }
                found => Ok(Some(found.map_err(explained)?)),
            };
        }
        let listing = client.skills().await.map_err(explained)?;
        let skills = listing.skills;
        let found: Vec<&Skill> = skills
            .iter()
            .filter(|skill| skill.name() == self.skill)
            .collect();
        match found.as_slice() {
            [skill] => Ok(Some((*skill).clone())),
            [] => {
                let invalid = listing.invalid.iter();
                if invalid.clone().any(|error| self.is_of(error)) {
                    print_failures(invalid.filter(|error| self.is_of(error)));
                    return Ok(None);
                }
                let mut problem = format!(
                    "the server lists no skill `{}`; if it is not in the list, give the URI of its SKILL.md",
                    self.skill
                );
                suggest(&mut problem, &self.skill, skills.iter().map(Skill::name));
                Err(anyhow!(problem))
            }
            // "hosts MUST disambiguate them rather than silently discarding or preferring one"
            several => {
                let uris: Vec<&str> = several.iter().map(|skill| skill.uri()).collect();
                bail!(
                    "several skills have the name `{}`; give the URI of one: {}",
                    self.skill,
                    uris.join(", ")
                )
            }
        }
    }

    /// Returns true if an entry that cannot be used is one of the skill that is looked for, by its directory.
    fn is_of(&self, error: &SkillError) -> bool {
        let SkillError::Entry { skill, .. } = error else {
            return false;
        };
        let directory = skill.strip_suffix("/SKILL.md").unwrap_or(skill);
        directory.rsplit('/').next() == Some(&self.skill)
    }

    /// Prints a file, or writes it.
    fn print(&self, file: &SkillFile) -> anyhow::Result<Outcome> {
        if !file.is_verified {
            let word = Painter::stderr().paint(Style::Yellow, "not verified");
            let uri = Untrusted(&file.uri);
            print_to_stderr(&text!("{}: the server generates {}", word, uri));
        }
        let is_terminal = is_standard_stream(&self.output) && stdout().is_terminal();
        match file.text() {
            None if is_terminal => {
                bail!("the file is binary; write it to a file with --output")
            }
            Some(text) if is_terminal && !text.ends_with('\n') => {
                write(&self.output, format!("{text}\n").as_bytes())?;
            }
            _ => write(&self.output, &file.bytes)?,
        }
        Ok(Outcome::Valid)
    }

    /// Adds similar names to the error for a file that the skill does not have.
    fn with_files(&self, skill: &Skill, error: SkillError) -> anyhow::Error {
        let SkillError::Unlisted { .. } = error else {
            return explained(error);
        };
        let mut problem = format!("the skill `{}` has no file `{}`", skill.name(), self.file);
        let files = skill.resources().unwrap_or_default().iter();
        let paths = files.filter_map(|file| skill.path_of(&file.uri));
        suggest(&mut problem, &self.file, paths);
        anyhow!(problem)
    }
}

/// Connects to the server, with the extension of skills.
async fn connect(settings: &Settings, server: &[OsString]) -> anyhow::Result<Client> {
    let connect = settings.connect(server)?.skills();
    connect.await.map_err(add_hint)
}

/// Returns the row of a skill in the list.
fn row(skill: &Skill) -> Vec<String> {
    let files = skill.resources();
    let number = files.map_or("generated".to_owned(), |files| files.len().to_string());
    let bytes = files.map(|files| files.iter().map(|file| file.size).sum::<u64>());
    let bytes = bytes.map_or_else(String::new, |bytes| bytes.to_string());
    let texts = [
        skill.name(),
        skill.uri(),
        &number,
        &bytes,
        skill.description(),
    ];
    texts.map(str::to_owned).to_vec()
}

/// Returns true if the file is not what the entry describes.
fn is_verification_failure(error: &SkillError) -> bool {
    matches!(
        error,
        SkillError::Size { .. } | SkillError::Digest { .. } | SkillError::Frontmatter { .. }
    )
}

/// Prints the first errors of invalid skills, and the number of the others.
fn print_failures<'e>(errors: impl Iterator<Item = &'e SkillError> + Clone) {
    errors.clone().take(MAX_FAILURES).for_each(print_failure);
    let more = errors.skip(MAX_FAILURES).count();
    if more > 0 {
        print_to_stderr(&text!("and {} more", more));
    }
}

/// Prints what is wrong with a skill.
fn print_failure(error: &SkillError) {
    let word = Painter::stderr().paint(Style::Red, "error");
    print_to_stderr(&text!(
        "{}: {}",
        word,
        Untrusted(&error.to_string()).indented()
    ));
}

/// Returns the error in words of this program.
fn explained(error: SkillError) -> anyhow::Error {
    match error {
        SkillError::Client(error) => add_hint(error),
        SkillError::Dynamic { skill } => anyhow!(
            "the server generates the skill {skill}, so that its files cannot be verified; --unverified reads them nevertheless"
        ),
        error => anyhow!(error.to_string()),
    }
}
