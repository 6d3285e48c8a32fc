//! `schema/conversions.toml`: the conversions that a person chose, because no difference of schemas shows them.
//!
//! Takes the text of the table; gives entries that steps look up. An entry that no step uses fails the run.

use std::cell::Cell;

use serde::Deserialize;

use crate::error::{Error, Result};

/// The table.
#[derive(Debug)]
pub struct Table {
    entries: Vec<Entry>,
}

/// One choice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// A name for people.
    pub id: String,
    /// The revision from which it converts.
    pub from: String,
    /// The revision to which it converts, a neighbour.
    pub to: String,
    /// The definition of the source revision; `*` stands for each one that has the member.
    #[serde(rename = "type")]
    pub definition: String,
    /// The member of a union.
    pub variant: Option<String>,
    /// The member of an object.
    pub member: Option<String>,
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
    /// Why, in words for the user of the conversion.
    pub reason: String,
    /// The page of the specification, or the practice, that it follows.
    pub cites: String,
    #[serde(skip)]
    used: Cell<bool>,
}

/// What is done.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// A function of the crate's overlay converts the variant.
    Call(String),
    /// A function of the crate's overlay rearranges the value before it is converted.
    Prepare(String),
    /// The message is refused.
    Refuse(bool),
    /// What the newer revision has to say where the older one says nothing; the other way round, such a value says
    /// nothing. Reported as `defaulted`.
    Default(String),
    /// As `default`, where the specification says that absence means this value. Reported as `rewritten`.
    Means(String),
    /// The session knows it; without a session it is this value.
    Session(String),
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    conversion: Vec<Entry>,
}

impl Table {
    /// Reads the table.
    ///
    /// # Errors
    /// When an entry has another form.
    pub fn read(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|error| {
            let remedy = "give each conversion an id, from, to, type, one action, reason and cites";
            Error::new("schema/conversions.toml", "", error.message(), remedy)
        })?;
        let empty = |entry: &&Entry| entry.reason.is_empty() || entry.cites.is_empty();
        if let Some(entry) = file.conversion.iter().find(empty) {
            let problem = format!("the conversion `{}` does not say why", entry.id);
            let remedy = "give it a reason, and the page that it cites";
            return Err(Error::new("schema/conversions.toml", "", problem, remedy));
        }
        Ok(Self {
            entries: file.conversion,
        })
    }

    /// The entry about a variant.
    pub fn variant(&self, step: (&str, &str), definition: &str, variant: &str) -> Option<&Entry> {
        self.find(step, definition, |e| e.variant.as_deref() == Some(variant))
    }

    /// The entry about a member.
    pub fn member(&self, step: (&str, &str), definition: &str, member: &str) -> Option<&Entry> {
        self.find(step, definition, |e| e.member.as_deref() == Some(member))
    }

    /// The entry about a whole definition.
    pub fn whole(&self, step: (&str, &str), definition: &str) -> Option<&Entry> {
        self.find(step, definition, |e| {
            e.member.is_none() && e.variant.is_none()
        })
    }

    fn find(
        &self,
        (from, to): (&str, &str),
        definition: &str,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<&Entry> {
        let mut candidates = self.entries.iter().filter(|entry| {
            let right = entry.definition == definition
                || (entry.definition == "*" && entry.member.is_some());
            entry.from == from && entry.to == to && right && fits(entry)
        });
        let found = candidates.next()?;
        found.used.set(true);
        Some(found)
    }

    /// Whether every entry was used.
    ///
    /// # Errors
    /// Names the first one that was not.
    pub fn all_used(&self, revisions: &[&str]) -> Result<()> {
        let known = |entry: &&Entry| {
            [&entry.from, &entry.to]
                .iter()
                .all(|id| revisions.contains(&id.as_str()))
        };
        match self.entries.iter().filter(known).find(|e| !e.used.get()) {
            None => Ok(()),
            Some(entry) => {
                let problem = format!("the conversion `{}` matches nothing", entry.id);
                let remedy = "correct its type, variant or member, or remove it";
                Err(Error::new("schema/conversions.toml", "", problem, remedy))
            }
        }
    }
}
