//! `mcp-exact new` and `mcp-exact bundle`: a server from nothing, and what desktop clients install of it.
//!
//! The files of a new server are in `template/`, with `{{name}}` and other places that are filled in.

pub mod bundle;
mod file;
mod manifest;
mod name;
mod package;
mod server_json;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use crate::Outcome;
use crate::output::{Painter, Style};
use crate::terminal::stdout;
use crate::text::{Untrusted, text};

/// Stands for the account on GitHub where none is given.
const NO_OWNER: &str = "OWNER";

/// Files of a new server, with their texts.
const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("template/Cargo.toml.txt")),
    ("src/main.rs", include_str!("template/main.rs.txt")),
    ("tests/server.rs", include_str!("template/server.rs.txt")),
    (".github/workflows/ci.yml", include_str!("template/ci.yml")),
    ("manifest.json", include_str!("template/manifest.json")),
    ("server.json", include_str!("template/server.json")),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", include_str!("template/gitignore")),
];

/// The arguments of `mcp-exact new`.
#[derive(Args)]
#[command(after_help = "\
Example: mcp-exact new weather --owner ada

The package has a server with two tools and a resource on standard streams and over HTTP, tests with clients of every \
revision, a workflow of GitHub Actions that runs them and `mcp-exact doctor`, server.json for the registry of servers, and \
manifest.json, of which `mcp-exact bundle` makes a bundle for desktop clients. No file is written over.

Exit code: 0 the files are written, 2 wrong usage, or a file is there already or cannot be written.")]
pub struct Arguments {
    /// Name of the package, the program and the server.
    #[arg(value_name = "NAME")]
    name: String,
    /// Folder of the package; NAME in this folder without it.
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Account or organisation on GitHub that publishes the server.
    #[arg(long, value_name = "ACCOUNT", default_value = NO_OWNER, hide_default_value = true)]
    owner: String,
}

/// Writes the files of a new server.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let name = &arguments.name;
    name::check_package(name)?;
    name::check_owner(&arguments.owner)?;
    let folder = arguments
        .path
        .clone()
        .unwrap_or_else(|| PathBuf::from(name));
    write_files(&folder, &|text| fill(text, name, &arguments.owner))?;
    let shown = folder.display().to_string();
    let title = Painter::stdout().paint(Style::Bold, Untrusted(name));
    stdout().line(&text!(
        "{}: a server with two tools and a resource, in {}",
        title,
        Untrusted(&shown)
    ))?;
    for (path, _) in FILES {
        stdout().line(&text!("  {}", path))?;
    }
    let is_plain = !shown.contains(char::is_whitespace);
    let quoted = if is_plain {
        shown
    } else {
        format!("'{shown}'")
    };
    let (folder, name) = (Untrusted(&quoted), Untrusted(name));
    stdout().line(&text!("\nnext:\n  cd {}\n  cargo test", folder))?;
    stdout().line(&text!("  mcp-exact inspect target/debug/{}", name))?;
    stdout().line(&text!("  mcp-exact bundle"))?;
    if arguments.owner == NO_OWNER {
        stdout().line(&text!(
            "before you publish it: put your account on GitHub in the place of {} in server.json and manifest.json; README.md says more",
            NO_OWNER
        ))?;
    }
    Ok(Outcome::Valid)
}

/// Returns the text of a file for a server.
fn fill(text: &str, name: &str, owner: &str) -> String {
    text.replace("{{name}}", name)
        .replace("{{owner}}", owner)
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
}

/// Writes all files, or none.
fn write_files(folder: &Path, fill: &dyn Fn(&str) -> String) -> anyhow::Result<()> {
    let exists = |path: &&str| folder.join(path).symlink_metadata().is_ok();
    let known: Vec<&str> = FILES.iter().map(|(path, _)| *path).filter(exists).collect();
    if !known.is_empty() {
        bail!(
            "{} has {} already, and no file is written over; name another folder by --path",
            folder.display(),
            known.join(", ")
        );
    }
    let mut written = Vec::new();
    for (path, text) in FILES {
        let path = folder.join(path);
        if let Err(error) = write_new(&path, &fill(text)) {
            for path in written {
                // What is left is a new file; the error below is the cause.
                let _ = fs::remove_file(path);
            }
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
        written.push(path);
    }
    Ok(())
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Nothing of the templates is left to fill in, and server.json and manifest.json have the members that the registry
    /// (<https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json>) and MCPB 0.3 require.
    #[test]
    fn files_are_filled_in() {
        let file = |path: &str| {
            let found = FILES.iter().find(|(name, _)| *name == path);
            fill(found.expect("a file").1, "weather", "ada")
        };
        for (path, _) in FILES {
            assert!(!file(path).contains("{{name"), "{path}");
            assert!(!file(path).contains("{{owner"), "{path}");
            assert!(!file(path).contains("{{version"), "{path}");
        }
        let json = |path| serde_json::from_str::<Value>(&file(path)).expect("JSON");
        let server = json("server.json");
        assert_eq!(server["name"], "io.github.ada/weather");
        assert_eq!(server["version"], "0.1.0");
        let description = server["description"].as_str().expect("text");
        assert!((1..=100).contains(&description.len()));
        let package = &server["packages"][0];
        assert_eq!(package["registryType"], "mcpb");
        assert_eq!(package["transport"]["type"], "stdio");
        let url = package["identifier"].as_str().expect("a URL");
        assert_eq!(
            url,
            "https://github.com/ada/weather/releases/download/v0.1.0/weather.mcpb"
        );
        let manifest = json("manifest.json");
        for member in ["manifest_version", "name", "version", "description"] {
            assert!(manifest[member].is_string(), "{member}");
        }
        assert_eq!(manifest["author"]["name"], "ada");
        assert_eq!(manifest["server"]["type"], "binary");
        assert!(manifest["server"]["mcp_config"]["command"].is_string());
        let package: toml::Table = file("Cargo.toml").parse().expect("TOML");
        assert_eq!(
            package["dependencies"]["mcp-exact"].as_str(),
            Some(env!("CARGO_PKG_VERSION"))
        );
        assert!(package.contains_key("workspace"));
    }

    /// If one file cannot be written, none is left.
    #[test]
    fn all_files_are_written_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        // The folder of a later file is a file.
        fs::write(folder.path().join(".github"), "").expect("a file");
        let error = write_files(folder.path(), &str::to_owned).expect_err("it cannot be written");
        assert!(format!("{error:#}").contains("ci.yml"), "{error:#}");
        assert!(!folder.path().join("Cargo.toml").exists());
        fs::remove_file(folder.path().join(".github")).expect("removed");
        write_files(folder.path(), &str::to_owned).expect("it is written");
        let error = write_files(folder.path(), &str::to_owned).expect_err("it is there");
        assert!(
            error.to_string().contains("Cargo.toml, src/main.rs"),
            "{error}"
        );
    }
}
