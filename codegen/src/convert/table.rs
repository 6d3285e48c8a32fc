//! Parses `schema/conversions.toml`: conversions that the differences between schemas do not determine, so that a
//! person chose them.
//!
//! An entry that no step uses is an error.

use std::cell::Cell;

use serde::Deserialize;

use crate::error::{Error, Result};

/// Name of every revision in an entry.
const EVERY: &str = "*";

/// The parsed `schema/conversions.toml`.
#[derive(Debug)]
pub struct Table {
    /// Entries in the order of the file.
    entries: Vec<Entry>,
    /// Effects of dropped members on peers of an older revision.
    consequences: Vec<Consequence>,
}

/// Effect of a dropped member on a peer of an older revision.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Consequence {
    /// Name of the dropped member.
    member: String,
    /// Effect on the peer, as a clause such as `it is not seen`.
    peer: String,
}

/// A conversion that `schema/conversions.toml` lists.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name of the entry in error messages and on the page `docs/conversions.md`.
    pub id: String,
    /// Source revision; `*` matches every revision.
    pub from: String,
    /// Target revision, which is a neighbour of the source revision; `*` matches every neighbour.
    pub to: String,
    /// Definition of the source revision; `*` matches every definition with the member.
    pub definition: String,
    /// Variant of a union, if the entry converts only one.
    pub variant: Option<String>,
    /// Member of an object, if the entry converts only one.
    pub member: Option<String>,
    /// Member that a value must have for a `prepare` conversion to run.
    pub required_member: Option<String>,
    /// True if the source revision does not define the member.
    pub is_undefined: bool,
    /// Value that has the same meaning as absence, if the member is refused or dropped.
    pub absence: Option<String>,
    /// Action of the conversion.
    pub action: Action,
    /// Reason for the conversion, as a sentence for users.
    pub reason: String,
    /// Test of the conversion: its file and its function.
    pub test: String,
    /// True once a step has used the entry.
    is_used: Cell<bool>,
}

/// Action of an entry; an entry has exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The named function of `mcp-exact-convert` converts the variant.
    Call(String),
    /// The named function of `mcp-exact-convert` modifies the value before the rule converts it.
    Prepare(String),
    /// The message is refused.
    Refuse,
    /// The member is dropped and reported, even if the caller keeps newer members.
    Drop,
    /// The member stays, as an unknown member of the older revision.
    Keep,
    /// The newer revision requires this value, which the older revision expresses by absence. A conversion to the newer
    /// revision adds the value and reports it as `defaulted`; a conversion to the older revision drops it.
    Default(String),
    /// The specification assigns this value to absence. The conversions are those of [`Default`](Self::Default), but
    /// are reported as `rewritten`.
    Means(String),
    /// The session provides the value; a conversion without a session uses this default.
    Session(String),
}

/// An entry as written in `schema/conversions.toml`, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParsedEntry {
    /// Name of the entry in error messages.
    id: String,
    /// Identifier of the source revision.
    from: String,
    /// Identifier of the target revision.
    to: String,
    /// Definition of the source revision, or `*`.
    #[serde(rename = "type")]
    definition: String,
    /// Variant of the union that the entry converts.
    variant: Option<String>,
    /// Member of the object that the entry converts.
    member: Option<String>,
    /// Member that a value must have for a `prepare` conversion to run.
    when: Option<String>,
    /// True if the source revision does not define the member.
    #[serde(default)]
    stray: bool,
    /// Value that has the same meaning as the absence of the member.
    absence: Option<String>,
    /// Function that converts the variant.
    call: Option<String>,
    /// Function that modifies the value before the rule converts it.
    prepare: Option<String>,
    /// True if the message is refused.
    #[serde(default)]
    refuse: bool,
    /// True if the member is dropped.
    #[serde(default)]
    drop: bool,
    /// True if the member stays.
    #[serde(default)]
    keep: bool,
    /// Value that the newer revision requires.
    default: Option<String>,
    /// Value that the specification assigns to the absence of the member.
    means: Option<String>,
    /// Value of the member if no session provides one.
    session: Option<String>,
    /// Reason for the conversion.
    reason: String,
    /// Page of the specification that supports the reason.
    cites: String,
    /// File and function of the test.
    test: String,
}

/// The file `schema/conversions.toml` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Chosen conversions.
    #[serde(default)]
    conversion: Vec<ParsedEntry>,
    /// Effects of dropped members on peers of an older revision.
    #[serde(default)]
    consequence: Vec<Consequence>,
}

impl ParsedEntry {
    /// Checks the entry, and returns it with exactly one action.
    fn entry(self) -> Result<Entry> {
        let id = self.id;
        let fail = |problem: &str, remedy: &str| {
            let problem = format!("the conversion `{id}` {problem}");
            Err(Error::new("schema/conversions.toml", "", problem, remedy))
        };
        if [&self.reason, &self.cites, &self.test].contains(&&String::new()) {
            return fail(
                "does not say why, or how that is known",
                "give it a reason, the page that it cites, and its test",
            );
        }
        let actions = [
            self.call.map(Action::Call),
            self.prepare.map(Action::Prepare),
            self.refuse.then_some(Action::Refuse),
            self.drop.then_some(Action::Drop),
            self.keep.then_some(Action::Keep),
            self.default.map(Action::Default),
            self.means.map(Action::Means),
            self.session.map(Action::Session),
        ];
        let mut actions = actions.into_iter().flatten();
        let (Some(action), None) = (actions.next(), actions.next()) else {
            return fail(
                "does not have exactly one action",
                "the head of the file lists them",
            );
        };
        let is_match = match (&action, &self.variant, &self.member) {
            (Action::Call(_) | Action::Refuse, Some(_), None) => true,
            (Action::Prepare(_), None, None) => true,
            (Action::Call(_) | Action::Prepare(_), ..) => false,
            (Action::Drop, Some(_), _) => false,
            (_, None, Some(_)) => true,
            _ => false,
        };
        if self.when.is_some() && !matches!(action, Action::Prepare(_)) {
            return fail(
                "has a `when` without `prepare`",
                "remove it: other actions name what they are about",
            );
        }
        let is_taken = matches!(action, Action::Refuse | Action::Drop) && self.member.is_some();
        if (self.stray || self.absence.is_some()) && !is_taken {
            return fail(
                "has `stray` or `absence` without a member that is refused or dropped",
                "remove it",
            );
        }
        if [&self.from, &self.to].contains(&&EVERY.to_owned())
            && (self.from != self.to || self.when.is_none())
        {
            return fail(
                "is for every step and has no `when`, or names one revision alone",
                "name both revisions",
            );
        }
        if !is_match {
            let remedy =
                "variants are called or refused, types prepared, members refused or filled in";
            return fail("has an action for something else", remedy);
        }
        Ok(Entry {
            id,
            from: self.from,
            to: self.to,
            definition: self.definition,
            variant: self.variant,
            member: self.member,
            required_member: self.when,
            is_undefined: self.stray,
            absence: self.absence,
            action,
            reason: self.reason,
            test: self.test,
            is_used: Cell::new(false),
        })
    }
}

impl Table {
    /// Parses the table.
    ///
    /// # Errors
    /// Returns an error if an entry is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).map_err(|error| {
            let remedy =
                "give each conversion an id, from, to, type, one action, reason, cites and test";
            Error::new("schema/conversions.toml", "", error.message(), remedy)
        })?;
        let entries = file.conversion.into_iter().map(ParsedEntry::entry);
        Ok(Self {
            entries: entries.collect::<Result<_>>()?,
            consequences: file.consequence,
        })
    }

    /// Returns all entries, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the reason for omitting a member of `since` and later, and the effect on a peer of `target`.
    pub fn omission_reason(&self, member: &str, since: &str, target: &str) -> String {
        let found = self
            .consequences
            .iter()
            .find(|known| known.member == member);
        let peer = found.map_or("it is not seen", |known| &known.peer);
        format!("a member of {since} and later; for a peer of {target}: {peer}")
    }

    /// Returns the entry for a variant of a union in a step, which is the pair of source and target revision.
    pub fn variant(&self, step: (&str, &str), definition: &str, variant: &str) -> Option<&Entry> {
        self.find_entry(step, definition, |e| e.variant.as_deref() == Some(variant))
    }

    /// Returns the entry for a defined member of an object in a step, which is the pair of source and target revision.
    pub fn member(&self, step: (&str, &str), definition: &str, member: &str) -> Option<&Entry> {
        self.find_entry(step, definition, |e| {
            e.member.as_deref() == Some(member) && !e.is_undefined
        })
    }

    /// Returns the entries for members that the source revision does not define. An entry for `*` applies only to members
    /// for which `gains` returns true: those that the target defines and the source does not.
    pub fn undefined_members<'t>(
        &'t self,
        (from, to): (&'t str, &'t str),
        definition: &'t str,
        gains: impl Fn(&str) -> bool + 't,
    ) -> impl Iterator<Item = &'t Entry> {
        let entries = self.entries.iter().filter(move |entry| {
            let is_gained = entry.member.as_deref().is_some_and(&gains);
            entry.is_undefined
                && (entry.definition == definition || (entry.definition == "*" && is_gained))
                && entry.from == from
                && entry.to == to
        });
        entries.inspect(|entry| entry.is_used.set(true))
    }

    /// Returns the entry for a complete definition, without a variant or member, in a step. An entry for every step applies
    /// if `has_member` returns true for its `when`: both revisions define the member.
    pub fn entry_of_definition(
        &self,
        step: (&str, &str),
        definition: &str,
        has_member: impl Fn(&str) -> bool,
    ) -> Option<&Entry> {
        let is_whole = |entry: &Entry| entry.member.is_none() && entry.variant.is_none();
        self.find_entry(step, definition, is_whole).or_else(|| {
            self.find_entry((EVERY, EVERY), definition, |entry| {
                let member = entry.required_member.as_deref();
                is_whole(entry) && member.is_some_and(&has_member)
            })
        })
    }

    /// Returns the first entry of a step and a definition for which `is_match` returns true, and marks the entry as
    /// used.
    fn find_entry(
        &self,
        (from, to): (&str, &str),
        definition: &str,
        is_match: impl Fn(&Entry) -> bool,
    ) -> Option<&Entry> {
        let mut candidates = self.entries.iter().filter(|entry| {
            let of_each = entry.member.is_some() || entry.variant.is_some();
            let right = entry.definition == definition || (entry.definition == "*" && of_each);
            entry.from == from && entry.to == to && right && is_match(entry)
        });
        let found = candidates.next()?;
        found.is_used.set(true);
        Some(found)
    }

    /// Checks that every entry was used.
    ///
    /// # Errors
    /// Returns an error with the name of the first entry that no step has used.
    pub fn check_all_used(&self, revisions: &[&str]) -> Result<()> {
        let known = |entry: &&Entry| {
            [&entry.from, &entry.to]
                .iter()
                .all(|id| revisions.contains(&id.as_str()))
        };
        match self.entries.iter().filter(known).find(|e| !e.is_used.get()) {
            None => Ok(()),
            Some(entry) => {
                let problem = format!("the conversion `{}` matches nothing", entry.id);
                let remedy = "correct its type, variant or member, or remove it";
                Err(Error::new("schema/conversions.toml", "", problem, remedy))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with all required fields.
    const ENTRY: &str = r#"
        [[conversion]]
        id = "x"
        from = "2"
        to = "1"
        type = "Thing"
        member = "m"
        refuse = true
        reason = "because"
        cites = "a page"
        test = "a test"
    "#;

    /// Checks the error for the text of a table, or that every entry is used; `expected` is a part of the error.
    fn check(text: &str, expected: &str) {
        let read = Table::parse(text).and_then(|table| table.check_all_used(&["1", "2"]));
        let found = read.map_or_else(|error| error.to_string(), |()| "used".to_owned());
        assert!(found.contains(expected), "{found}");
    }

    /// An entry that no step has used is an error.
    #[test]
    fn unused_entries_are_refused() {
        check(
            ENTRY,
            "the conversion `x` matches nothing; correct its type",
        );
    }

    /// An unused entry is no error if one of its revisions is not in the list.
    #[test]
    fn entries_of_missing_revisions_are_allowed() {
        check(&ENTRY.replace("\"2\"", "\"3\""), "used");
    }

    /// An entry is found only for its own step, definition and member.
    #[test]
    fn entries_match_step_type_and_member() {
        let table = Table::parse(ENTRY).expect("a table");
        assert!(table.member(("1", "2"), "Thing", "m").is_none());
        assert!(table.member(("2", "1"), "Other", "m").is_none());
        assert!(
            table
                .entry_of_definition(("2", "1"), "Thing", |_| true)
                .is_none()
        );
        assert!(table.variant(("2", "1"), "Thing", "m").is_none());
        let entry = table.member(("2", "1"), "Thing", "m").expect("an entry");
        assert_eq!(entry.action, Action::Refuse);
        assert_eq!(table.check_all_used(&["1", "2"]), Ok(()));
    }

    /// An entry for the definition `*` applies to members of every definition, but not to complete definitions.
    #[test]
    fn a_star_matches_every_definition() {
        let table = Table::parse(&ENTRY.replace("Thing", "*")).expect("a table");
        assert!(table.member(("2", "1"), "Other", "m").is_some());
        assert!(
            table
                .entry_of_definition(("2", "1"), "Other", |_| true)
                .is_none()
        );
    }

    /// An entry for every step applies where both revisions define the member, behind an entry for the step alone.
    #[test]
    fn entries_for_every_step_need_their_member() {
        let every = ENTRY
            .replace("\"2\"", "\"*\"")
            .replace("\"1\"", "\"*\"")
            .replace("member = \"m\"", "when = \"m\"")
            .replace("refuse = true", "prepare = \"f\"");
        let own = ENTRY
            .replace("\"x\"", "\"own\"")
            .replace("member = \"m\"", "")
            .replace("refuse = true", "prepare = \"g\"");
        let table = Table::parse(&format!("{every}{own}")).expect("a table");
        let found = |step, member: &str| {
            let entry = table.entry_of_definition(step, "Thing", |known| known == member);
            entry.map(|entry| entry.id.as_str())
        };
        assert_eq!(found(("7", "8"), "m"), Some("x"));
        assert_eq!(found(("7", "8"), "other"), None);
        assert_eq!(found(("2", "1"), "m"), Some("own"));
        assert_eq!(table.check_all_used(&["1", "2"]), Ok(()));
        check(
            &every.replace("to = \"*\"", "to = \"1\""),
            "name both revisions",
        );
        check(&every.replace("when = \"m\"", ""), "name both revisions");
    }

    /// An entry is refused if its reason is empty, a field is unknown, it has no action, or the action does not apply.
    #[test]
    fn malformed_entries_are_refused() {
        check(
            &ENTRY.replace("a page", ""),
            "the conversion `x` does not say why",
        );
        check(&ENTRY.replace("cites", "sites"), "unknown field");
        check(&ENTRY.replace("refuse = true", ""), "exactly one action");
        check(
            &ENTRY.replace("refuse = true", "prepare = \"f\""),
            "for something else",
        );
    }
}
