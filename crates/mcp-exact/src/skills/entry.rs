//! Entries of skills, as `skills/list` and `skills/get` return them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::frontmatter::MAX_TEXT;
use super::{MAX_FILES, MAX_SKILL_BYTES, SKILL_FILE, is_skill_name};
use crate::protocol::JsonObject;
use crate::template::percent_encode;

/// Maximum length of a URI in bytes.
const MAX_URI: usize = 8 << 10;
/// Maximum number of characters of a value that a message quotes.
const MAX_QUOTED: usize = 200;

/// File of a skill, with the digest and size of its content ("Skill Entries").
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillResource {
    /// URI of the resource.
    pub uri: String,
    /// SHA-256 digest of the bytes of the file: `sha256:` and 64 lowercase hexadecimal characters.
    pub digest: String,
    /// Length of the file in bytes.
    pub size: u64,
}

/// Entry of a skill: its frontmatter and its files with their digests, as the server has given them ("Skill Entries").
///
/// A skill is identified by its URI together with the server that serves it. Its name is no identifier: two skills of a
/// server may have the same name, and two servers the same URI.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    uri: String,
    frontmatter: Map<String, Value>,
    /// Files; `None` if the content is generated dynamically.
    resources: Option<Vec<SkillResource>>,
    /// The complete entry.
    object: JsonObject,
}

impl Skill {
    /// Reads an entry.
    ///
    /// # Errors
    /// Description of the rule that the entry breaks. "An entry with no `resources` at all, or with any value other than an
    /// array or `"dynamic"`, is invalid, and hosts MUST NOT load it."
    pub(crate) fn new(object: JsonObject) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(object.text()).map_err(|error| error.to_string())?;
        let text = |value: &Value, member: &str| value[member].as_str().map(str::to_owned);
        let uri = text(&value, "uri").ok_or("`uri` is not text")?;
        let root = root_of(&uri).ok_or_else(|| format!("`uri` does not end in `/{SKILL_FILE}`"))?;
        if !is_directory(root) {
            return Err(format!(
                "`uri` is not that of a file in a directory, such as `skill://refunds/{SKILL_FILE}`"
            ));
        }
        let given = object.view().find("frontmatter");
        if given.is_some_and(|given| given.text().len() > MAX_TEXT) {
            return Err(format!("`frontmatter` has more than {MAX_TEXT} bytes"));
        }
        let frontmatter = value["frontmatter"].as_object();
        let frontmatter = frontmatter.ok_or("`frontmatter` is not an object")?.clone();
        let name = frontmatter.get("name").and_then(Value::as_str);
        let name = name.ok_or("`frontmatter.name` is not text")?;
        if !is_skill_name(name) {
            return Err(format!(
                "`frontmatter.name` is `{}`, and not 1 to 64 lowercase letters, digits and single hyphens",
                cut(name)
            ));
        }
        if !frontmatter.get("description").is_some_and(Value::is_string) {
            return Err("`frontmatter.description` is not text".to_owned());
        }
        let directory = root.rsplit('/').next().unwrap_or_default();
        if directory != name {
            let directory = cut(directory);
            return Err(format!(
                "the directory is `{directory}`, and the name `{name}`"
            ));
        }
        let resources = match &value["resources"] {
            Value::String(word) if word == "dynamic" => None,
            Value::Array(items) => Some(read_resources(&uri, root, items)?),
            _ => return Err("`resources` is neither a list nor \"dynamic\"".to_owned()),
        };
        Ok(Self {
            uri,
            frontmatter,
            resources,
            object,
        })
    }

    /// Returns the URI of the `SKILL.md`.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the name: a label that other skills may have, too.
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Returns the description.
    pub fn description(&self) -> &str {
        self.text("description")
    }

    /// Returns the YAML frontmatter as JSON: every member that the author wrote. It is what the server says, so that
    /// members which widen permissions, such as `allowed-tools`, need the approval of the user.
    pub fn frontmatter(&self) -> &Map<String, Value> {
        &self.frontmatter
    }

    /// Returns all files of the skill, `SKILL.md` included; `None` if its content is generated dynamically and cannot be
    /// verified.
    pub fn resources(&self) -> Option<&[SkillResource]> {
        self.resources.as_deref()
    }

    /// Returns the complete entry as JSON.
    pub fn object(&self) -> &JsonObject {
        &self.object
    }

    /// Returns the path of a file in the skill, such as `references/GUIDE.md`, as its URI has it; `None` if the URI is not in
    /// the directory of the skill.
    pub fn path_of<'u>(&self, uri: &'u str) -> Option<&'u str> {
        path_in(self.root(), uri)
    }

    /// Returns the URI of a file by its path in the skill, such as `references/GUIDE.md`. The path is taken as it is written
    /// in the skill; characters that URIs do not have are percent-encoded.
    ///
    /// Returns `None` for paths that lead out of the directory, and for those that the entry does not list.
    pub fn uri_of(&self, path: &str) -> Option<String> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let uri = |path: &str| format!("{}/{path}", self.root());
        let Some(resources) = &self.resources else {
            let given = path_in(self.root(), &uri(path)).map(encode_rest)?;
            return Some(uri(&given));
        };
        let candidates = [uri(path), uri(&encode_path(path))];
        let mut candidates = candidates.into_iter();
        candidates.find(|uri| resources.iter().any(|resource| resource.uri == *uri))
    }

    /// Returns the file with a URI.
    pub(crate) fn resource(&self, uri: &str) -> Option<&SkillResource> {
        let mut all = self.resources.iter().flatten();
        all.find(|resource| resource.uri == uri)
    }

    /// Returns the URI of the directory, without a slash at its end.
    fn root(&self) -> &str {
        root_of(&self.uri).unwrap_or(&self.uri)
    }

    /// Returns a member of the frontmatter that is text.
    fn text(&self, name: &str) -> &str {
        let value = self.frontmatter.get(name);
        value.and_then(Value::as_str).unwrap_or_default()
    }
}

/// Returns the URI of the directory of a skill, from that of its `SKILL.md`.
fn root_of(uri: &str) -> Option<&str> {
    uri.strip_suffix(SKILL_FILE)?.strip_suffix('/')
}

/// Returns the path of a URI in a directory, if it is in it: without segments that lead elsewhere.
fn path_in<'u>(root: &str, uri: &'u str) -> Option<&'u str> {
    let path = uri.strip_prefix(root)?.strip_prefix('/')?;
    are_names(path).then_some(path)
}

/// Returns true if a path has names only: no segment that leads elsewhere or that servers may read in several ways.
fn are_names(path: &str) -> bool {
    let is_name = |segment: &str| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        let is_ambiguous = ["%2f", "%5c", "%00"]
            .iter()
            .any(|encoded| plain.contains(encoded));
        !matches!(plain.as_str(), "" | "." | "..") && !is_ambiguous
    };
    let is_other =
        |character: char| matches!(character, '?' | '#' | '\\') || character.is_control();
    path.len() <= MAX_URI && path.split('/').all(is_name) && !path.contains(is_other)
}

/// Returns true if a URI is that of a directory: a scheme, an authority or none, and names.
fn is_directory(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let names = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix('/').unwrap_or(rest),
        None => rest.strip_prefix('/').unwrap_or(rest),
    };
    is_scheme && uri.len() <= MAX_URI && are_names(names)
}

/// Returns a value for a message, without its end if it is long.
pub(crate) fn cut(value: &str) -> String {
    match value.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Reads the files of an entry, and checks them as a whole.
fn read_resources(uri: &str, root: &str, items: &[Value]) -> Result<Vec<SkillResource>, String> {
    if items.len() > MAX_FILES {
        let count = items.len();
        return Err(format!(
            "it has {count} files, and a skill has {MAX_FILES} at most"
        ));
    }
    let mut resources = Vec::new();
    let (mut known, mut bytes) = (HashSet::new(), 0_u64);
    for item in items {
        let file = item["uri"].as_str().ok_or("a file has no `uri`")?;
        let digest = item["digest"].as_str().unwrap_or_default();
        let shown = cut(file);
        let size = item["size"].as_u64();
        let size = size.ok_or_else(|| format!("`size` of {shown} is not a number of bytes"))?;
        if !is_digest(digest) {
            return Err(format!(
                "`digest` of {shown} is not `sha256:` with 64 lowercase hexadecimal characters"
            ));
        }
        if path_in(root, file).is_none() {
            let root = cut(root);
            return Err(format!("{shown} is not in the directory {root}"));
        }
        if !known.insert(file) {
            return Err(format!("{shown} is listed twice"));
        }
        bytes = bytes.saturating_add(size);
        resources.push(SkillResource {
            uri: file.to_owned(),
            digest: digest.to_owned(),
            size,
        });
    }
    if bytes > MAX_SKILL_BYTES {
        return Err(format!(
            "it has {bytes} bytes, and a skill has {MAX_SKILL_BYTES} at most"
        ));
    }
    if !known.contains(uri) {
        return Err(format!("`resources` does not list {}", cut(uri)));
    }
    Ok(resources)
}

/// Returns true if a digest has the form of the specification.
fn is_digest(digest: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(is_hex)
}

/// Percent-encodes a path of a file for a URI: every character of its names but the unreserved ones of RFC 3986.
pub(crate) fn encode_path(path: &str) -> String {
    let mut encoded = String::new();
    percent_encode(path, "/", &mut encoded);
    encoded
}

/// Percent-encodes what no URI may have in the path of a file; characters that are encoded already stay so.
fn encode_rest(path: &str) -> String {
    let mut encoded = String::new();
    percent_encode(path, "%!#$&'()*+,/:;=?@\\", &mut encoded);
    encoded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Digest of no particular bytes.
    fn digest() -> String {
        format!("sha256:{}", "0a".repeat(32))
    }

    /// Entry with these files, each of one byte.
    fn entry(files: &[&str]) -> Value {
        let resources = files
            .iter()
            .map(|uri| json!({"uri":uri,"digest":digest(),"size":1}));
        json!({
            "uri": "skill://shop/refunds/SKILL.md",
            "frontmatter": {"name":"refunds","description":"Refund","x":[1]},
            "resources": resources.collect::<Vec<_>>(),
        })
    }

    fn read(value: &Value) -> Result<Skill, String> {
        Skill::new(value.to_string().parse().expect("an object"))
    }

    const OWN: &str = "skill://shop/refunds/SKILL.md";

    #[test]
    fn files_are_found_by_path() {
        let skill = read(&entry(&[OWN, "skill://shop/refunds/a%20b/c.md"])).expect("an entry");
        assert_eq!((skill.name(), skill.description()), ("refunds", "Refund"));
        assert_eq!(skill.frontmatter()["x"], json!([1]));
        let other = Some("skill://shop/refunds/a%20b/c.md".to_owned());
        assert_eq!(skill.uri_of("a b/c.md"), other);
        assert_eq!(skill.uri_of("./a%20b/c.md"), other);
        assert_eq!(skill.uri_of("SKILL.md").as_deref(), Some(OWN));
        for path in ["", "x.md", "../refunds/SKILL.md", "/SKILL.md"] {
            assert_eq!(skill.uri_of(path), None, "{path}");
        }
        let mut dynamic = entry(&[]);
        dynamic["resources"] = json!("dynamic");
        let dynamic = read(&dynamic).expect("an entry");
        assert_eq!(dynamic.resources(), None);
        assert_eq!(
            dynamic.uri_of("x.md").as_deref(),
            Some("skill://shop/refunds/x.md")
        );
        for (path, encoded) in [
            ("a b/ü%.md", "a%20b/%C3%BC%25.md"),
            ("a%20b.md", "a%20b.md"),
            ("(new)[1].md", "(new)%5B1%5D.md"),
        ] {
            let uri = format!("skill://shop/refunds/{encoded}");
            assert_eq!(dynamic.uri_of(path), Some(uri), "{path}");
        }
        for path in [
            "../x",
            "a%5Cb",
            "a%00",
            "a\u{1b}b",
            "a/../../x",
            "%2e%2e/x",
            "a%2Fb",
            "a\\b",
            "x?y",
            "x#y",
        ] {
            let uri = format!("skill://shop/refunds/{path}");
            assert_eq!(dynamic.path_of(&uri), None, "{path}");
        }
    }

    /// What "Skill Entries" and "Limits" prescribe is checked before a skill is used.
    #[test]
    fn invalid_entries_are_refused() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 14] = [
            (|entry| entry["uri"] = json!(1), "`uri` is not text"),
            (
                |entry| entry["uri"] = json!("skill://shop/refunds"),
                "SKILL.md",
            ),
            (|entry| entry["frontmatter"] = json!([]), "not an object"),
            (
                |entry| entry["frontmatter"]["name"] = json!("other"),
                "the name `other`",
            ),
            (
                |entry| entry["frontmatter"]["description"] = json!(null),
                "description",
            ),
            (|entry| entry["resources"] = json!("static"), "neither"),
            (|entry| entry["resources"] = json!(null), "neither"),
            (|entry| entry["resources"] = json!([]), "does not list"),
            (|entry| entry["resources"][0]["size"] = json!(-1), "size"),
            (
                |entry| entry["resources"][0]["digest"] = json!(digest().to_uppercase()),
                "digest",
            ),
            (|entry| entry["resources"][1]["uri"] = json!(OWN), "twice"),
            (
                |entry| entry["resources"][1]["uri"] = json!("skill://shop/other/x"),
                "not in the directory",
            ),
            (
                |entry| entry["resources"][1]["uri"] = json!("skill://shop/refunds/../x"),
                "not in the directory",
            ),
            (
                |entry| entry["resources"][1]["size"] = json!(MAX_SKILL_BYTES),
                "at most",
            ),
        ];
        for (change, reason) in cases {
            let mut value = entry(&[OWN, "skill://shop/refunds/x"]);
            change(&mut value);
            let error = read(&value).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
        for (name, uri) in [
            ("", "skill://shop//SKILL.md"),
            ("..", "skill://shop/../SKILL.md"),
            ("a", "skill://shop/../a/SKILL.md"),
            ("a", "skill://shop/%2E%2e/a/SKILL.md"),
            ("a", "skill://shop%2f../a/SKILL.md"),
            ("a", "shop/a/SKILL.md"),
            ("a", "/a/SKILL.md"),
            ("a", "://a/SKILL.md"),
            ("a", "skill://x\u{1b}[31m/a/SKILL.md"),
            ("a", "skill://x?y/a/SKILL.md"),
            ("A", "skill://shop/A/SKILL.md"),
        ] {
            let mut value = entry(&[uri]);
            value["uri"] = json!(uri);
            value["frontmatter"]["name"] = json!(name);
            let error = read(&value).expect_err(uri);
            assert!(!error.is_empty(), "{uri}");
            value["resources"] = json!("dynamic");
            assert!(read(&value).is_err(), "{uri}");
        }
        for uri in [
            "skill://a/SKILL.md",
            "file:///x/a/SKILL.md",
            "x:b/a/SKILL.md",
        ] {
            let mut value = entry(&[uri]);
            value["uri"] = json!(uri);
            value["frontmatter"]["name"] = json!("a");
            assert!(read(&value).is_ok(), "{uri}");
        }
        let long = "x".repeat(1 << 20);
        let far = format!("skill://other/{long}");
        let error = read(&entry(&[OWN, &far])).expect_err("another directory");
        assert!(error.len() < 1000, "the message is short: {}", error.len());
        let mut value = entry(&[OWN]);
        value["frontmatter"]["name"] = json!(long);
        assert!(read(&value).expect_err("no name").len() < 1000);
        let mut value = entry(&[OWN]);
        value["frontmatter"]["x"] = json!(long);
        assert!(read(&value).expect_err("too long").contains("bytes"));
        let many: Vec<String> = (0..513)
            .map(|at| format!("skill://shop/refunds/{at}"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(read(&entry(&many)).expect_err("too many").contains("512"));
    }
}
