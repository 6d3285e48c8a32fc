//! Skills of a server (extension `io.modelcontextprotocol/skills`, SEP-2640): entries, and files whose digests are verified.

use super::list::List;
use super::{Client, ClientError, Connect, ResourceOutput};
use crate::content::decode_base64;
use crate::params::{object_member, string_member};
use crate::protocol::{INVALID_PARAMS, Json, JsonObject};
use crate::skills::{
    EXTENSION, GET, LIST, READ_DIRECTORY, SKILL_FILE, Skill, cut, differing_field, digest_of,
    parse_frontmatter,
};

/// Error of a skill. `{:?}` gives the message.
///
/// What failed to verify is never returned: "In all cases, hosts MUST NOT use the unverified content." If the server has
/// changed the skill meanwhile, [`Client::skill`] gets its new entry, whose files may need a new approval of the user.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// The request failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server does not declare the extension, so that it may not be asked for skills.
    #[error("the server has no skills: it does not declare the extension `{EXTENSION}`")]
    NotDeclared,
    /// The server serves no skill at this URI.
    #[error("the server has no skill at {uri}: {reason}")]
    Unknown {
        /// URI that was asked for.
        uri: String,
        /// Message of the server.
        reason: String,
    },
    /// An entry breaks a rule of the specification.
    #[error(
        "the entry of the skill {skill} is not valid, which only its server can repair: {reason}"
    )]
    Entry {
        /// URI of the skill, or the place of the entry if it has none.
        skill: String,
        /// Rule that is broken.
        reason: String,
    },
    /// The entry does not list the file. "A host MUST treat a read of an unlisted file within the skill as a verification
    /// failure".
    #[error("the skill {skill} has no file {file:?}; its files are those of its entry")]
    Unlisted {
        /// URI of the skill.
        skill: String,
        /// Path or URI that was asked for.
        file: String,
    },
    /// The content has another length than the entry says.
    #[error(
        "the file {file} of the skill {skill} is not what the entry describes: {expected} bytes were expected, and {found} were \
         found; get the entry again"
    )]
    Size {
        /// URI of the skill.
        skill: String,
        /// URI of the file.
        file: String,
        /// Length in the entry, in bytes.
        expected: u64,
        /// Length of the content, in bytes.
        found: u64,
    },
    /// The content has another digest than the entry says.
    #[error(
        "the file {file} of the skill {skill} is not what the entry describes: {expected} was expected, and {found} was found; \
         get the entry again"
    )]
    Digest {
        /// URI of the skill.
        skill: String,
        /// URI of the file.
        file: String,
        /// Digest in the entry.
        expected: String,
        /// Digest of the content.
        found: String,
    },
    /// The frontmatter of `SKILL.md` is another one than that of the entry.
    #[error("the frontmatter of {skill} is not that of the entry: {reason}; get the entry again")]
    Frontmatter {
        /// URI of the skill.
        skill: String,
        /// Field that differs, or why it cannot be read.
        reason: String,
    },
    /// The content of the skill is generated, so that nothing can be verified.
    #[error(
        "the skill {skill} is generated when it is read, so that its files cannot be verified; \
         `Client::read_dynamic_skill` reads them nevertheless"
    )]
    Dynamic {
        /// URI of the skill.
        skill: String,
    },
    /// The server has answered the read with something that is not the content of one file.
    #[error(
        "the server's answer for the file {file} of the skill {skill} cannot be used: {reason}"
    )]
    Contents {
        /// URI of the skill.
        skill: String,
        /// URI of the file.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

impl std::fmt::Debug for SkillError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::error::write_report(f, self)
    }
}

/// Skills that a server lists. A list may be empty or incomplete: [`Client::skill`] finds the others by their URIs.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SkillListing {
    /// Entries, in the order of the server.
    pub skills: Vec<Skill>,
    /// Why the other entries cannot be used.
    pub invalid: Vec<SkillError>,
}

/// File of a skill, which is what the entry of the skill describes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// URI of the file.
    pub uri: String,
    /// Bytes of the file.
    pub bytes: Vec<u8>,
    /// Media type, as the server gives it.
    pub mime_type: Option<String>,
    /// True if size and digest are those of the entry; false for skills whose content is generated. A digest is no proof
    /// of where the content comes from, because the server gives both.
    pub is_verified: bool,
}

impl SkillFile {
    /// Returns the text; `None` if it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }
}

impl Connect {
    /// Declares the extension of skills, so that [`Client::skills`] and its siblings can be called.
    pub fn skills(self) -> Self {
        self.extension(EXTENSION, JsonObject::new())
            .extension_methods(EXTENSION, [LIST, GET, READ_DIRECTORY])
    }
}

impl Client {
    /// Lists the skills of a server (SEP-2640). The client is connected with [`Connect::skills`]. No file is read.
    ///
    /// # Errors
    /// [`SkillError::NotDeclared`], or [`SkillError::Client`] if a page cannot be fetched. An entry that breaks the
    /// specification is reported in [`SkillListing::invalid`].
    pub async fn skills(&self) -> Result<SkillListing, SkillError> {
        self.check_skills_declared()?;
        let mut listing = SkillListing::default();
        let entries = List::new(self, LIST, "skills").all().await?;
        for (place, entry) in entries.into_iter().enumerate() {
            let uri = entry.uri().map(|uri| cut(&uri));
            let skill = uri.unwrap_or_else(|| format!("number {}", place + 1));
            match Skill::new(entry.object().clone()) {
                Ok(skill) => listing.skills.push(skill),
                Err(reason) => listing.invalid.push(SkillError::Entry { skill, reason }),
            }
        }
        Ok(listing)
    }

    /// Gets the current entry of one skill by the URI of its `SKILL.md`, whether the server lists it or not.
    ///
    /// # Errors
    /// [`SkillError::Unknown`] if the server has no such skill, [`SkillError::Entry`] if the entry breaks the specification,
    /// [`SkillError::NotDeclared`], or [`SkillError::Client`].
    pub async fn skill(&self, uri: &str) -> Result<Skill, SkillError> {
        self.check_skills_declared()?;
        let params = JsonObject::from_iter([("uri", Json::string(uri))]);
        let result = match self.request(GET, Some(params)).await {
            Err(ClientError::Server(error)) if error.code() == Some(INVALID_PARAMS) => {
                return Err(SkillError::Unknown {
                    uri: uri.to_owned(),
                    reason: error.message().to_owned(),
                });
            }
            result => result?,
        };
        let wrong = |reason: String| SkillError::Entry {
            skill: uri.to_owned(),
            reason,
        };
        let Some(entry) = object_member(&result, "skill") else {
            return Err(wrong("`skill` is not an object".to_owned()));
        };
        let skill = Skill::new(entry).map_err(wrong)?;
        if skill.uri() == uri {
            Ok(skill)
        } else {
            Err(wrong(format!("it is that of {}", cut(skill.uri()))))
        }
    }

    /// Reads a file of a skill by its path, such as `SKILL.md` or `references/GUIDE.md`, and verifies its size and digest
    /// against the entry. The frontmatter of `SKILL.md` must be that of the entry.
    ///
    /// The content is text of somebody else for a model: tell the model where it comes from, and run nothing that it asks
    /// for without the approval of the user ("Security Considerations").
    ///
    /// # Errors
    /// The [`SkillError`] that names skill, file, and what was expected and found.
    pub async fn read_skill(&self, skill: &Skill, path: &str) -> Result<SkillFile, SkillError> {
        if skill.resources().is_none() {
            let skill = skill.uri().to_owned();
            return Err(SkillError::Dynamic { skill });
        }
        self.read_skill_file(skill, path).await
    }

    /// Reads a file of a skill whose content may be generated when it is read, which nothing verifies then; see
    /// [`SkillFile::is_verified`]. The frontmatter of `SKILL.md` must be that of the entry in any case.
    ///
    /// # Errors
    /// Those of [`read_skill`](Self::read_skill).
    pub async fn read_dynamic_skill(
        &self,
        skill: &Skill,
        path: &str,
    ) -> Result<SkillFile, SkillError> {
        self.read_skill_file(skill, path).await
    }

    async fn read_skill_file(&self, skill: &Skill, path: &str) -> Result<SkillFile, SkillError> {
        let unlisted = || SkillError::Unlisted {
            skill: skill.uri().to_owned(),
            file: path.to_owned(),
        };
        let uri = skill.uri_of(path).ok_or_else(unlisted)?;
        let contents = self.read(&uri).await?;
        let mut file = file_of(&contents, &uri).map_err(|reason| SkillError::Contents {
            skill: skill.uri().to_owned(),
            file: uri.clone(),
            reason,
        })?;
        file.is_verified = verify(skill, &file)?;
        if uri == skill.uri() {
            verify_frontmatter(skill, &file)?;
        }
        Ok(file)
    }

    /// Checks that the server has declared the extension: "Clients issue `skills/list` and `skills/get` only after observing
    /// the server's declaration."
    fn check_skills_declared(&self) -> Result<(), SkillError> {
        let declared = self.server_extension(EXTENSION);
        declared.map(drop).ok_or(SkillError::NotDeclared)
    }
}

/// Returns the file that the result of `resources/read` has; it is not verified.
fn file_of(contents: &ResourceOutput, uri: &str) -> Result<SkillFile, String> {
    let [item] = contents.items() else {
        return Err(format!(
            "it has {} items, and a file is one",
            contents.items().len()
        ));
    };
    let named = string_member(item, "uri").unwrap_or_default();
    if named != uri {
        return Err(format!("it is that of {}", cut(&named)));
    }
    let bytes = match (string_member(item, "text"), string_member(item, "blob")) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(blob)) => decode_base64(&blob).ok_or("`blob` is not base64")?,
        _ => return Err("it has neither `text` nor `blob`, or both".to_owned()),
    };
    Ok(SkillFile {
        uri: uri.to_owned(),
        bytes,
        mime_type: string_member(item, "mimeType"),
        is_verified: false,
    })
}

/// Verifies size and digest of a file against the entry ("Verification on Read"); returns false if the entry has none.
fn verify(skill: &Skill, file: &SkillFile) -> Result<bool, SkillError> {
    if skill.resources().is_none() {
        return Ok(false);
    }
    let (skill_uri, uri) = (skill.uri().to_owned(), file.uri.clone());
    let Some(listed) = skill.resource(&uri) else {
        return Err(SkillError::Unlisted {
            skill: skill_uri,
            file: uri,
        });
    };
    let found = file.bytes.len() as u64;
    if found != listed.size {
        return Err(SkillError::Size {
            skill: skill_uri,
            file: uri,
            expected: listed.size,
            found,
        });
    }
    let found = digest_of(&file.bytes);
    if found != listed.digest {
        return Err(SkillError::Digest {
            skill: skill_uri,
            file: uri,
            expected: listed.digest.clone(),
            found,
        });
    }
    Ok(true)
}

/// Verifies that the frontmatter of `SKILL.md` is that of the entry ("Frontmatter Verification").
fn verify_frontmatter(skill: &Skill, file: &SkillFile) -> Result<(), SkillError> {
    let wrong = |reason: String| SkillError::Frontmatter {
        skill: skill.uri().to_owned(),
        reason,
    };
    let text = file.text();
    let text = text.ok_or_else(|| wrong(format!("`{SKILL_FILE}` is not text in UTF-8")))?;
    let frontmatter = parse_frontmatter(text).map_err(wrong)?;
    match differing_field(&frontmatter, skill.frontmatter()) {
        Some(field) => Err(wrong(format!("the field `{}` differs", cut(&field)))),
        None => Ok(()),
    }
}
