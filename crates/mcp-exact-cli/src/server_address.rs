//! Address of a server on the command line: its URL, the command that starts it, or the name of a configured server.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{ArgMatches, Command};

use crate::text::{Text, Untrusted, text};

/// Server of the command line: a configured one whose name it is, or a URL or command without anything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Its URL, or the command that starts it.
    pub words: Vec<OsString>,
    /// Variables for the environment of its process, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// Headers of its requests, as `Name: value`.
    pub headers: Vec<String>,
    /// Folder of its process.
    pub folder: Option<PathBuf>,
    /// What switches it off, as the end of a sentence; `None` if it is on.
    #[cfg(feature = "client")]
    pub disabled_by: Option<String>,
    /// Its tools that are switched on.
    #[cfg(feature = "client")]
    pub tools: mcp_exact::ToolFilter,
    /// Settings of its connection.
    #[cfg(feature = "client")]
    pub connection: ConnectionSettings,
}

/// Settings of a connection in the entry of a configured server.
#[cfg(feature = "client")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The only revision that is offered.
    pub revision: Option<String>,
    /// Time limit for the connection and for each answer, in seconds.
    pub timeout: Option<u64>,
    /// File with certificates that are trusted.
    pub ca: Option<String>,
    /// File with the certificate of the client.
    pub client_cert: Option<String>,
    /// File with the private key of the client's certificate.
    pub client_key: Option<String>,
}

/// What the command line gives in the place of what the entry of a configured server says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// Variables, as `NAME=VALUE`.
    pub env: &'a [String],
    /// Headers, as `Name: value`.
    #[cfg_attr(
        not(feature = "client"),
        expect(dead_code, reason = "there are no configured servers")
    )]
    pub headers: &'a [String],
}

/// Returns the URL of the server, or `None` if the arguments are a command that starts the server.
///
/// # Errors
/// Returns an error if arguments follow the URL: an option after a command would be an argument of the server, so an
/// option after a URL is probably a mistake. Also if the only word is no program, but looks like a URL without its scheme, or
/// like a whole command.
pub fn parse_url(server: &[OsString]) -> anyhow::Result<Option<&str>> {
    let Some((first, further)) = server.split_first() else {
        bail!("there is no server; name its URL, or the command that starts it");
    };
    let text = first.to_str().unwrap_or_default();
    refuse_other_word(first)?;
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        if further.is_empty() && !Path::new(first).exists() {
            refuse_mistake(text)?;
        }
        return Ok(None);
    }
    if let Some(argument) = further.first() {
        let argument = argument.to_string_lossy();
        bail!("`{argument}` follows the URL of the server; put options before the URL");
    }
    Ok(Some(text))
}

/// Returns true if a word is an assignment `NAME=VALUE`, and no program.
pub fn is_assignment(word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && !name.starts_with('-')
        && name.chars().all(is_letter)
        && !Path::new(word).exists()
}

/// Returns a note about an option of the program that stands after the command, so that the server gets it; `None` if there is none,
/// or if `--` before the command says that what follows is the server's. `arguments` is the whole command line.
pub fn misplaced_option(
    command: &Command,
    matches: &ArgMatches,
    arguments: &[OsString],
) -> Option<Text> {
    if let Some((name, inner)) = matches.subcommand() {
        return misplaced_option(command.find_subcommand(name)?, inner, arguments);
    }
    let mut positionals = command.get_positionals();
    let server = positionals.find(|argument| argument.is_trailing_var_arg_set())?;
    let words = matches.try_get_many::<OsString>(server.get_id().as_str());
    let words: Vec<&OsString> = words.ok()??.collect();
    let before = arguments.len().checked_sub(words.len() + 1)?;
    if arguments[before] == "--" {
        return None;
    }
    let is_known = |name: &&str| {
        let mut options = command.get_arguments();
        options.any(|option| option.get_long() == Some(name))
    };
    let rest = words.iter().skip(1).take_while(|word| **word != "--");
    let mut names = rest.filter_map(|word| {
        let name = word.to_str()?.strip_prefix("--")?;
        Some(name.split_once('=').map_or(name, |(name, _)| name))
    });
    let name = names.find(is_known)?;
    Some(text!(
        "note: `--{}` stands after the command, so that it is an option of the server; those of `{}` stand before the command, and \
         `--` between them says that the rest is the server's",
        Untrusted(name),
        Untrusted(command.get_name())
    ))
}

/// Returns an error if what has to be a command is an option, which this command of the program does not have, or an assignment.
pub fn refuse_other_word(word: &OsStr) -> anyhow::Result<()> {
    let word = word.to_string_lossy();
    if word.len() > 1 && word.starts_with('-') {
        bail!(
            "`{word}` is not an option here; --help lists those there are, and the command or URL of the server comes after them"
        );
    }
    if is_assignment(&word) {
        bail!(
            "`{word}` is not a command; give the server a variable by --env {word}, and write its command after the options"
        );
    }
    Ok(())
}

/// Returns an error that says what to write instead of a word that cannot be a command.
pub fn refuse_mistake(word: &str) -> anyhow::Result<()> {
    let (authority, _) = word.split_once('/').unwrap_or((word, ""));
    if let Some((host, port)) = authority.rsplit_once(':') {
        let is_host = !host.is_empty() && host.chars().all(|letter| !letter.is_whitespace());
        if is_host && port.parse::<u16>().is_ok() {
            bail!("`{word}` is not a command; a URL begins with its scheme: http://{word}");
        }
    }
    for scheme in ["ws://", "wss://", "file://"] {
        if word.starts_with(scheme) {
            bail!(
                "`{word}` is not a URL of HTTP; write http:// or https://, or the command that starts the server"
            );
        }
    }
    if word.trim().contains(char::is_whitespace) {
        bail!(
            "there is no program `{word}`; write the command and its arguments as words of their own, without quotes around \
             them: {}",
            word.trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    /// Arguments after a URL are an error; a command may have any arguments.
    #[test]
    fn options_after_a_url_are_refused() {
        let command = server(&["node", "server.js", "--json"]);
        assert_eq!(parse_url(&command).expect("a command has arguments"), None);
        let address = server(&["http://127.0.0.1/mcp"]);
        assert_eq!(
            parse_url(&address).expect("a URL stands alone"),
            Some("http://127.0.0.1/mcp")
        );
        let error =
            parse_url(&server(&["http://127.0.0.1/mcp", "--json"])).expect_err("it is misplaced");
        assert_eq!(
            error.to_string(),
            "`--json` follows the URL of the server; put options before the URL"
        );
        assert!(parse_url(&[]).is_err());
    }

    /// Options of the program after the command are noted, unless `--` says that they are the server's.
    #[test]
    fn misplaced_options_are_noted() {
        let command = Command::new("mcp-exact").subcommand(
            Command::new("doctor")
                .arg(clap::Arg::new("junit").long("junit"))
                .arg(
                    clap::Arg::new("server")
                        .value_parser(clap::value_parser!(OsString))
                        .num_args(1..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true),
                ),
        );
        let note = |words: &[&str]| {
            let arguments = server(&[&["mcp-exact", "doctor"][..], words].concat());
            let matches = command.clone().try_get_matches_from(&arguments);
            misplaced_option(&command, &matches.expect("arguments"), &arguments)
        };
        for words in [
            &["node", "s.js", "--junit", "x"][..],
            &["node", "--junit=x"],
            &["--junit", "a", "node", "--junit"],
        ] {
            let note = note(words).map(|note| note.to_string());
            let note = note.unwrap_or_else(|| panic!("{words:?}"));
            assert!(note.starts_with("note: `--junit` stands after"), "{note}");
            assert!(note.contains("those of `doctor`"), "{note}");
        }
        for words in [
            &["--", "node", "--junit", "x"][..],
            &["--junit", "x", "node", "--other"],
            &["npx", "x", "--", "--junit"],
        ] {
            assert_eq!(note(words), None, "{words:?}");
        }
    }

    /// What is neither a URL nor a command is refused with what to write instead.
    #[test]
    fn mistakes_are_named() {
        for (word, expected) in [
            (
                "localhost:18101/mcp",
                "a URL begins with its scheme: http://localhost:18101/mcp",
            ),
            (
                "127.0.0.1:80",
                "a URL begins with its scheme: http://127.0.0.1:80",
            ),
            (
                "[::1]:80/mcp",
                "a URL begins with its scheme: http://[::1]:80/mcp",
            ),
            (
                "ws://a/mcp",
                "write http:// or https://, or the command that starts the server",
            ),
            (
                "--from",
                "and the command or URL of the server comes after them",
            ),
            (
                "KEY=a b",
                "give the server a variable by --env KEY=a b, and write its command after the options",
            ),
            (
                "node server.js",
                "without quotes around them: node server.js",
            ),
        ] {
            let error = parse_url(&server(&[word])).expect_err(word);
            assert!(error.to_string().ends_with(expected), "{error}");
        }
        for command in [
            &["node"][..],
            &["./a:b"],
            &["npx", "a:1"],
            &["C:\\a"],
            &["./a=b"],
        ] {
            assert_eq!(
                parse_url(&server(command)).expect("a command"),
                None,
                "{command:?}"
            );
        }
    }
}
