//! Skills (extension `io.modelcontextprotocol/skills`, SEP-2640): what servers and clients share.
//!
//! A skill is a directory of files with a `SKILL.md`, whose YAML frontmatter names it. Its files are resources; an entry of
//! the skill lists them with their digests. The text of the specification is `specification/stable/skills.mdx` of
//! <https://github.com/modelcontextprotocol/ext-skills>.

mod entry;
mod frontmatter;

pub use entry::{Skill, SkillResource};
pub(crate) use entry::{cut, encode_path};
pub(crate) use frontmatter::{differing_field, parse_frontmatter};

use sha2::{Digest as _, Sha256};

pub(crate) use crate::protocol::extension::{
    READ_DIRECTORY, SKILLS_GET as GET, SKILLS_LIST as LIST,
};

/// Identifier of the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// Setting of the extension: the server implements [`READ_DIRECTORY`].
pub(crate) const DIRECTORY_READ: &str = "directoryRead";
/// Name of the file that every skill has at its root.
pub(crate) const SKILL_FILE: &str = "SKILL.md";
/// Maximum number of files of a skill, `SKILL.md` included ("Limits").
pub(crate) const MAX_FILES: usize = 512;
/// Maximum total size in bytes of the files of a skill ("Limits").
pub(crate) const MAX_SKILL_BYTES: u64 = 16 << 20;

/// Returns the digest of the bytes of a file: `sha256:` and 64 lowercase hexadecimal characters.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    let mut digest = String::from("sha256:");
    for byte in Sha256::digest(bytes) {
        for half in [byte >> 4, byte & 15] {
            digest.push(char::from_digit(half.into(), 16).unwrap_or_default());
        }
    }
    digest
}

/// Returns true if a name has the form that the Agent Skills specification prescribes: 1 to 64 lowercase letters, digits and
/// hyphens, without a hyphen at either end or beside another one.
pub(crate) fn is_skill_name(name: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    (1..=64).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "formatted as `sha256:{hex}` where {hex} is 64 lowercase hexadecimal characters"
    #[test]
    fn digests_are_lowercase_sha256() {
        assert_eq!(
            digest_of(b"abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn names_follow_the_skill_format() {
        for name in ["a", "git-workflow", "x1", &"a".repeat(64)] {
            assert!(is_skill_name(name), "{name}");
        }
        for name in [
            "",
            "A",
            "-a",
            "a-",
            "a--b",
            "a_b",
            "a b",
            "ä",
            &"a".repeat(65),
        ] {
            assert!(!is_skill_name(name), "{name}");
        }
    }
}
