//! Edits schema/revisions.toml as text: puts an entry in, takes one out, and leaves every other byte alone.

use std::fmt::Write as _;

use codegen::{Lifecycle, PropertyValue};

use super::source::{Registry, Source};

/// Fields of a new entry.
#[derive(Debug, Clone)]
pub struct Entry<'e> {
    /// The revision.
    pub id: &'e str,
    /// True if it may still change.
    pub draft: bool,
    /// `draft-07` or `2020-12`.
    pub dialect: &'e str,
    /// Handshake by which client and server establish the revision.
    pub lifecycle: Lifecycle,
    /// The hash of the file.
    pub sha256: &'e str,
    /// The path of the file upstream.
    pub upstream_path: &'e str,
    /// The commit upstream, when it is known.
    pub upstream_commit: Option<&'e str>,
    /// The package that has a copy, when there is one.
    pub source: Option<&'e Source>,
    /// The day, such as `2026-11-21`.
    pub retrieved: &'e str,
    /// The properties that no schema states, by the names of their accessors.
    pub properties: &'e [(&'static str, PropertyValue)],
}

impl Entry<'_> {
    fn text(&self) -> String {
        let status = if self.draft { "draft" } else { "release" };
        let mut text = format!(
            "[[revision]]\nid = \"{}\"\nstatus = \"{status}\"\ndialect = \"{}\"\nlifecycle = \"{}\"\nsha256 = \"{}\"\n\
             upstream_path = \"{}\"\n",
            self.id, self.dialect, self.lifecycle, self.sha256, self.upstream_path
        );
        // Writing to a `String` does not fail.
        if let Some(commit) = self.upstream_commit {
            let _ = write!(
                text,
                "upstream_commit = \"{commit}\"\nupstream_reviewed = \"{commit}\"\n"
            );
        }
        if let Some(source) = self.source {
            let _ = writeln!(text, "{}", source_line(source));
        }
        let _ = write!(
            text,
            "retrieved = \"{}\"\nlicence = \"MIT AND Apache-2.0\"\n",
            self.retrieved
        );
        text.push_str("\n[revision.properties]\n");
        for (name, value) in self.properties {
            let _ = writeln!(text, "{name} = {value}");
        }
        text
    }
}

/// Fields of a new entry of `schema/extensions.toml`.
#[derive(Debug, Clone)]
pub struct ExtensionEntry<'e> {
    /// The extension.
    pub id: &'e str,
    /// The revision that it extends.
    pub extends: &'e str,
    /// True if it may still change.
    pub draft: bool,
    /// `draft-07` or `2020-12`.
    pub dialect: &'e str,
    /// The hash of the file.
    pub sha256: &'e str,
    /// Repository of the extension.
    pub repository: &'e str,
    /// The path of the file there.
    pub upstream_path: &'e str,
    /// The commit there, when it is known.
    pub upstream_commit: Option<&'e str>,
    /// The package that has a copy, when there is one.
    pub source: Option<&'e Source>,
    /// The day, such as `2026-11-21`.
    pub retrieved: &'e str,
    /// The licence of the file.
    pub licence: &'e str,
}

/// The list of extensions with an entry more, at its end.
pub fn with_extension(list: &str, entry: &ExtensionEntry<'_>) -> String {
    let status = if entry.draft { "draft" } else { "release" };
    let mut lines = vec![
        "[[extension]]".to_owned(),
        format!("id = \"{}\"", entry.id),
        format!("extends = \"{}\"", entry.extends),
        format!("status = \"{status}\""),
        format!("dialect = \"{}\"", entry.dialect),
        format!("sha256 = \"{}\"", entry.sha256),
        format!("upstream_repository = \"{}\"", entry.repository),
        format!("upstream_path = \"{}\"", entry.upstream_path),
    ];
    if let Some(commit) = entry.upstream_commit {
        lines.push(format!("upstream_commit = \"{commit}\""));
        lines.push(format!("upstream_reviewed = \"{commit}\""));
    }
    lines.extend(entry.source.map(source_line));
    lines.push(format!("retrieved = \"{}\"", entry.retrieved));
    lines.push(format!("licence = \"{}\"", entry.licence));
    let before = list.trim_end_matches('\n');
    let gap = if before.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{}\n", lines.join("\n"))
}

fn source_line(source: &Source) -> String {
    let registry = match source.registry {
        Registry::Crates => "crates",
        Registry::Pypi => "pypi",
    };
    format!(
        "source = {{ registry = \"{registry}\", package = \"{}\", version = \"{}\", path = \"{}\" }}",
        source.package, source.version, source.path
    )
}

/// The list with a new entry: releases first, oldest first, then drafts.
pub fn with(list: &str, entry: &Entry<'_>) -> String {
    let text = entry.text();
    match entries(list).get(place(list, entry.id, entry.draft)) {
        Some((start, _)) => format!("{}{text}\n{}", &list[..*start], &list[*start..]),
        None => format!("{}\n\n{text}", list.trim_end_matches('\n')),
    }
}

/// The number of entries before a new one.
pub fn place(list: &str, id: &str, draft: bool) -> usize {
    let entries = entries(list);
    let later = |(start, end): &(usize, usize)| {
        let other = &list[*start..*end];
        let is_draft = other.contains("\nstatus = \"draft\"\n");
        !draft && (is_draft || value(other, "id").unwrap_or_default() > id)
    };
    entries.iter().position(later).unwrap_or(entries.len())
}

/// The list without the entry of a revision; nothing when it has none.
pub fn without(list: &str, id: &str) -> Option<String> {
    let entries = entries(list);
    let has_id = |(start, end): &&(usize, usize)| value(&list[*start..*end], "id") == Some(id);
    let (start, end) = *entries.iter().find(has_id)?;
    let rest = &list[end..];
    let before = list[..start].trim_end_matches('\n');
    Some(match rest {
        "" => format!("{before}\n"),
        rest => format!("{before}\n\n{rest}"),
    })
}

/// Returns the range of each entry.
fn entries(list: &str) -> Vec<(usize, usize)> {
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in list.split_inclusive('\n') {
        if ["[[revision]]", "[[extension]]"].contains(&line.trim()) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([list.len()]);
    starts.iter().copied().zip(ends).collect()
}

fn value<'e>(entry: &'e str, key: &str) -> Option<&'e str> {
    let mut lines = entry.lines();
    lines.find_map(|line| {
        line.strip_prefix(key)?
            .strip_prefix(" = \"")?
            .strip_suffix('"')
    })
}

/// The day of a number of seconds since 1970, by the rules of the Gregorian calendar.
pub fn day(seconds: u64) -> String {
    let (mut days, mut year) = (seconds / 86_400, 1970);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# words\n\n[[revision]]\nid = \"2024\"\nstatus = \"release\"\n\n[[revision]]\nid = \"x\"\nstatus = \"draft\"\n";

    fn entry(id: &str, draft: bool) -> Entry<'_> {
        Entry {
            id,
            draft,
            dialect: "2020-12",
            lifecycle: Lifecycle::Discover,
            sha256: "00",
            upstream_path: "p",
            upstream_commit: Some("c"),
            source: None,
            retrieved: "2026-11-21",
            properties: &[("has_wings", PropertyValue::Flag(true))],
        }
    }

    fn order(list: &str) -> Vec<&str> {
        let entries = entries(list).into_iter();
        entries
            .filter_map(|(start, end)| value(&list[start..end], "id"))
            .collect()
    }

    #[test]
    fn releases_stand_by_age_and_drafts_last() {
        let order_with = |id, draft| order(&with(LIST, &entry(id, draft))).join(" ");
        assert_eq!(order_with("2023", false), "2023 2024 x");
        assert_eq!(order_with("2025", false), "2024 2025 x");
        assert_eq!(order_with("2025", true), "2024 x 2025");
    }

    #[test]
    fn what_was_put_in_can_be_taken_out_again() {
        for (id, draft) in [("2023", false), ("2025", false), ("2025", true)] {
            let list = with(LIST, &entry(id, draft));
            assert_eq!(without(&list, id).as_deref(), Some(LIST));
        }
        assert_eq!(without(LIST, "2025"), None);
    }

    /// A revision that is taken out and put in again has the properties that it had, copied or assumed.
    #[test]
    fn properties_of_revisions_come_back() {
        let file = crate::workspace_root().join("schema/revisions.toml");
        let list = std::fs::read_to_string(file).expect("the list");
        let before = codegen::revision_facts(&list).expect("facts");
        for (id, lifecycle) in [
            ("2026-07-28", Lifecycle::Discover),
            ("2024-11-05", Lifecycle::Initialize),
        ] {
            let mut rest = without(&list, id).expect("it is listed");
            if lifecycle == Lifecycle::Initialize {
                // Without another revision of its lifecycle, it has the values of the first one.
                for newer in ["2025-03-26", "2025-06-18", "2025-11-25"] {
                    rest = without(&rest, newer).expect("it is listed");
                }
            }
            let others = codegen::revision_facts(&rest).expect("facts");
            let place = place(&rest, id, false);
            let assumed = codegen::assumed_properties(&others, place, lifecycle);
            let properties = assumed.values.as_slice();
            let entry = Entry {
                lifecycle,
                properties,
                ..entry(id, false)
            };
            let after = codegen::revision_facts(&with(&rest, &entry)).expect("facts");
            let own = |list: &[codegen::RevisionFacts]| list.iter().find(|f| f.id == id).cloned();
            assert_eq!(own(&after), own(&before), "{id}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_782_400), "2000-02-29");
        assert_eq!(day(1_795_219_200), "2026-11-21");
    }
}
