//! `server.json`, which the registry of servers reads: version and checksum of a bundle, with all other text as it is.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, anyhow};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

use super::file::write_anew;

/// File in the folder of the package.
const FILE: &str = "server.json";

/// What became of the file.
#[derive(Debug, PartialEq, Eq)]
pub enum Update {
    /// There is none.
    Missing,
    /// It has no package that is the bundle.
    NoPackage,
    /// It is written.
    Written { name: String },
}

/// Writes the version of the package and the checksum of its bundle into the file.
///
/// # Errors
/// Returns an error if the file cannot be read, is no JSON object, or cannot be written.
pub fn update(folder: &Path, version: &str, bundle: &str, sha256: &str) -> anyhow::Result<Update> {
    let path = folder.join(FILE);
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Update::Missing),
        Err(error) => return Err(error).with_context(|| format!("cannot read {FILE}")),
    };
    let Some((after, name)) = edit(&before, version, bundle, sha256).context(FILE)? else {
        return Ok(Update::NoPackage);
    };
    if before != after {
        write_anew(&path, after.as_bytes()).with_context(|| format!("cannot write {FILE}"))?;
    }
    Ok(Update::Written { name })
}

/// Returns the text with version and checksum, and the name of the server; `None` if no package is the bundle.
fn edit(
    text: &str,
    version: &str,
    bundle: &str,
    sha256: &str,
) -> anyhow::Result<Option<(String, String)>> {
    let root =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| anyhow!("{error}"))?;
    let server = root.object_value().context("it must be an object")?;
    let packages = server.array_value("packages");
    let packages = packages
        .map(|packages| packages.elements())
        .unwrap_or_default();
    let bundles: Vec<CstObject> = packages
        .iter()
        .filter_map(CstNode::as_object)
        .filter(|package| string(package, "registryType").as_deref() == Some("mcpb"))
        .collect();
    let is_named = |package: &&CstObject| {
        string(package, "identifier").is_some_and(|url| url.ends_with(&format!("/{bundle}")))
    };
    let found = match bundles.as_slice() {
        [only] => Some(only),
        several => several.iter().find(is_named),
    };
    let Some(package) = found else {
        return Ok(None);
    };
    if let (Some(old), Some(url)) = (string(&server, "version"), string(package, "identifier")) {
        // The address of a release has its tag.
        let url = url.replace(&format!("/v{old}/"), &format!("/v{version}/"));
        set(package, "identifier", &url);
    }
    if package.get("version").is_some() {
        set(package, "version", version);
    }
    set(&server, "version", version);
    set(package, "fileSha256", sha256);
    let name = string(&server, "name").unwrap_or_default();
    Ok(Some((root.to_string(), name)))
}

/// Returns the text of a member.
fn string(object: &CstObject, name: &str) -> Option<String> {
    let value = object.get(name)?.value()?;
    value.as_string_lit()?.decoded_value().ok()
}

/// Sets a member.
fn set(object: &CstObject, name: &str, value: &str) {
    if string(object, name).as_deref() == Some(value) {
        return;
    }
    let value = CstInputValue::String(value.to_owned());
    match object.get(name) {
        Some(known) => known.set_value(value),
        None => drop(object.append(name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://github.com/a/b/releases/download";

    /// Version and checksum are written, with the tag in the URL, and nothing else changes; a second time nothing does.
    #[test]
    fn version_and_checksum_are_written() {
        let text = format!(
            "{{\n  \"name\": \"io.github.a/b\", \"version\": \"0.1.0\",\n  \"packages\": [\n    {{\n      \"registryType\": \"mcpb\",\n      \"identifier\": \"{URL}/v0.1.0/b.mcpb\"\n    }}\n  ]\n}}\n"
        );
        let (after, name) = edit(&text, "0.2.0", "b.mcpb", "ab")
            .expect("JSON")
            .expect("a package");
        assert_eq!(name, "io.github.a/b");
        let expected = text
            .replace("0.1.0", "0.2.0")
            .replace("b.mcpb\"\n", "b.mcpb\",\n      \"fileSha256\": \"ab\"\n");
        assert_eq!(after, expected);
        let again = edit(&after, "0.2.0", "b.mcpb", "ab")
            .expect("JSON")
            .expect("a package");
        assert_eq!(again.0, after);
    }

    /// Of several bundles that of this name is meant; without one, nothing is.
    #[test]
    fn bundle_is_found_by_its_name() {
        let package = |name: &str| {
            format!(
                "{{\"registryType\": \"mcpb\", \"identifier\": \"{URL}/v1/{name}\", \"version\": \"1\"}}"
            )
        };
        let text = |packages: &[String]| {
            format!(
                "{{\"version\": \"1\", \"packages\": [{}]}}",
                packages.join(", ")
            )
        };
        let npm = "{\"registryType\": \"npm\", \"identifier\": \"b\"}".to_owned();
        let edited = |text: &str| edit(text, "2", "b.mcpb", "ab").expect("JSON");
        let found = edited(&text(&[npm.clone(), package("a.mcpb"), package("b.mcpb")]));
        let value: serde_json::Value =
            serde_json::from_str(&found.expect("a package").0).expect("JSON");
        assert_eq!(value["packages"][1]["version"], "1");
        assert_eq!(value["packages"][2]["version"], "2");
        assert_eq!(value["packages"][2]["fileSha256"], "ab");
        assert_eq!(edited(&text(&[npm])), None);
        assert_eq!(edited(&text(&[package("a.mcpb"), package("c.mcpb")])), None);
        assert!(edit("[]", "1", "b.mcpb", "ab").is_err());
    }
}
