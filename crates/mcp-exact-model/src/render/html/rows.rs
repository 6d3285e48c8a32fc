//! Rows of the matrix: one per method and type, with its changes in each revision.
//!
//! The counts in a row are numbers of displayed lines. The changes of a method include the changes of its types at any
//! depth.

use std::collections::BTreeSet;

use serde::Serialize;

use super::options::{CONSEQUENCES, Consequence, PageOptions};
use super::reach::{definitions_of_method, reachable};
use crate::diff::{Compatibility, DefinitionDiff, Diff, Directions, Status, merge_methods};
use crate::ir::{Ir, MemberValue, Shape};
use crate::render::words::{combine_lines, message_kind, method_words, status_word};
use crate::wording::{member_text, outline, type_text};

/// Row of the matrix.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Identifier of the row in HTML.
    id: String,
    /// Name of the method or type.
    name: String,
    /// Kind of the item, for the filter of the page.
    kind: &'static str,
    /// Short description beside the name.
    caption: String,
    /// One cell per revision.
    cells: Vec<Cell>,
    /// Changes between consecutive revisions.
    steps: Vec<Step>,
    /// Outline, description and members of the item in the last revision that contains it.
    now: Option<Now>,
    /// Links to the specification, by revision.
    links: Vec<Link>,
    /// Text for the search.
    text: String,
    /// CSS classes of the consequences in the row; `none` if the item never changed.
    consequences: Vec<&'static str>,
}

/// Cell of a row for one revision.
#[derive(Debug, Default, Serialize)]
struct Cell {
    /// CSS class of the consequence; empty if nothing changed.
    class: &'static str,
    /// Symbol for the state of the item in this revision.
    mark: &'static str,
    /// Number of displayed lines.
    count: usize,
    /// State of the item, for screen readers and tooltips.
    words: String,
    /// Direction of the method, as an arrow.
    arrow: &'static str,
    /// Direction of the method, as a phrase.
    direction: &'static str,
    /// True if the row has changes between the previous revision and this one.
    has_step: bool,
}

/// Outline, description and members of an item in one revision.
#[derive(Debug, Serialize)]
struct Now {
    /// Identifier of the revision.
    revision: String,
    /// Outline of the item.
    words: String,
    /// Description in the schema.
    description: String,
    /// Members of a type.
    members: Vec<Member>,
}

/// Member of a type, as displayed.
#[derive(Debug, Serialize)]
struct Member {
    name: String,
    /// Description of the member's value.
    value: String,
    description: String,
}

/// Links to an item in a revision.
#[derive(Debug, Serialize)]
struct Link {
    /// Identifier of the revision.
    revision: String,
    /// URL of the item in the specification.
    page: String,
    /// URL of the line in the schema file; empty if the line is unknown.
    line: String,
}

/// Changes of a row between two consecutive revisions.
#[derive(Debug, Serialize)]
struct Step {
    /// Index of the newer revision.
    revision: usize,
    /// Identifier of the older revision.
    from: String,
    /// Identifier of the newer revision.
    to: String,
    /// Displayed lines, by the type that they are about.
    groups: Vec<Group>,
    /// Contained types that changed.
    inside: Vec<String>,
}

/// Lines about a contained type, or about the row's item itself.
#[derive(Debug, Default, Serialize)]
struct Group {
    /// Name of the contained type; empty for the item itself.
    name: String,
    /// Displayed lines.
    lines: Vec<Line>,
}

/// One displayed change.
#[derive(Debug, Serialize)]
struct Line {
    /// `+`, `-`, `~` or `»`.
    sign: char,
    /// Description of the change.
    words: String,
    /// Consequence of the change.
    consequence: Consequence,
}

impl Step {
    /// Returns the number of displayed lines.
    fn count(&self) -> usize {
        self.groups.iter().map(|group| group.lines.len()).sum()
    }
}

impl Row {
    /// Sets the CSS classes of the consequences in the row.
    fn with_consequences(mut self) -> Self {
        let mut classes = BTreeSet::new();
        for line in self
            .steps
            .iter()
            .flat_map(|step| &step.groups)
            .flat_map(|group| &group.lines)
        {
            classes.insert(line.consequence.class);
        }
        self.consequences = if classes.is_empty() {
            vec!["none"]
        } else {
            classes.into_iter().collect()
        };
        self
    }
}

/// Creates a line for a change with this compatibility.
fn build_line(sign: char, words: String, compatibility: Compatibility) -> Line {
    Line {
        sign,
        words,
        consequence: Consequence::of(compatibility),
    }
}

/// Returns the lines of a definition: its status, then its changes.
fn change_lines(definition: &DefinitionDiff) -> Vec<Line> {
    let mut found: Vec<Line> = status_lines(definition);
    found.extend(
        combine_lines(&definition.changes)
            .into_iter()
            .map(|change| {
                let also = change
                    .other_locations()
                    .map(|also| format!(" ({also})"))
                    .unwrap_or_default();
                build_line(
                    change.sign.letter(),
                    format!("{}{also}", change.words()),
                    change.compatibility,
                )
            }),
    );
    found
}

/// Returns the line for the status of a definition, if it has one.
fn status_lines(definition: &DefinitionDiff) -> Vec<Line> {
    let before = definition.before.clone().unwrap_or_default();
    let (sign, words, compatibility) = match definition.status {
        Status::Added => ('+', "new".to_owned(), Compatibility::Additive),
        Status::Removed => ('-', "removed".to_owned(), removal_compatibility(definition)),
        Status::Renamed => ('»', format!("was called {before}"), Compatibility::Neutral),
        Status::Named => (
            '»',
            format!("was at {before}, without a name"),
            Compatibility::Neutral,
        ),
        Status::Unnamed => (
            '»',
            format!("is at {before}, without a name"),
            Compatibility::Neutral,
        ),
        Status::Changed => return Vec::new(),
    };
    vec![build_line(sign, words, compatibility)]
}

/// Returns the consequence of the removal of a definition.
fn removal_compatibility(definition: &DefinitionDiff) -> Compatibility {
    definition.compatibility
}

/// Returns the CSS class of the combined consequence of several lines.
fn compatibility_of(lines: &[Line]) -> &'static str {
    let order = CONSEQUENCES.map(|compatibility| Consequence::of(compatibility).class);
    let mut found: Vec<&str> = lines.iter().map(|line| line.consequence.class).collect();
    found.sort_by_key(|class| order.iter().position(|known| known == class));
    let (reads, writes) = (found.contains(&"reading"), found.contains(&"writing"));
    match found.first() {
        _ if reads && writes => "both",
        Some(first) => order
            .iter()
            .find(|known| *known == first)
            .copied()
            .unwrap_or(""),
        None => "",
    }
}

/// Returns the direction of a method as an arrow.
fn arrow(directions: Directions) -> &'static str {
    match directions {
        Directions::ClientToServer => "→",
        Directions::ServerToClient => "←",
        Directions::BothWays => "⇄",
        Directions::Embedded => "◇",
    }
}

/// Returns the rows of methods: requests first, then notifications.
pub fn method_rows(revisions: &[Ir], diffs: &[Diff], options: &PageOptions) -> Vec<Row> {
    let tables: Vec<_> = revisions.iter().map(merge_methods).collect();
    let mut names = BTreeSet::new();
    for methods in &tables {
        names.extend(
            methods
                .iter()
                .map(|(name, method)| (!method.request, *name)),
        );
    }
    let row = |(is_notification, name): (bool, &str)| {
        let kind = if is_notification {
            "notification"
        } else {
            "request"
        };
        let last = revisions
            .iter()
            .rev()
            .find_map(|ir| Some((ir, current_method(ir, name)?)));
        let mut row = Row {
            id: format!("method-{name}"),
            name: name.to_owned(),
            kind,
            caption: kind.to_owned(),
            cells: Vec::new(),
            steps: Vec::new(),
            now: None,
            links: Vec::new(),
            text: String::new(),
            consequences: Vec::new(),
        };
        if let Some((ir, now)) = last {
            row.text = search_text(ir, definitions_of_method(ir, name), name);
            row.now = Some(now);
        }
        for (index, methods) in tables.iter().enumerate() {
            let present = methods.get(name);
            let ir = &revisions[index];
            if present.is_some() {
                let definition = ir.methods.iter().find(|method| method.method == name);
                let definition = definition.map(|method| method.definition.as_str());
                row.links.extend(
                    definition.and_then(|definition| specification_link(ir, definition, options)),
                );
            }
            let step = index
                .checked_sub(1)
                .and_then(|before| method_step(revisions, diffs, before, name));
            let found = index
                .checked_sub(1)
                .and_then(|before| diffs[before].methods.iter().find(|m| m.method == name));
            let status = found.map(|found| found.status);
            let mut cell = build_cell(status, present.is_some(), index == 0, step.as_ref());
            if let Some(method) = present {
                cell.arrow = arrow(method.directions);
                cell.direction = method.directions.words();
            }
            row.cells.push(cell);
            row.steps.extend(step);
        }
        row.with_consequences()
    };
    names.into_iter().map(row).collect()
}

/// Returns the changes of a method and of all types that it contains directly or indirectly.
fn method_step(revisions: &[Ir], diffs: &[Diff], before: usize, name: &str) -> Option<Step> {
    let diff = &diffs[before];
    let (older, newer) = (&revisions[before], &revisions[before + 1]);
    let mut groups = Vec::new();
    let found = diff.methods.iter().find(|method| method.method == name);
    let mut own = Group::default();
    if let Some(found) = found {
        let kind = message_kind(found);
        let way = found.directions.words();
        match found.status {
            Status::Added => own.lines.push(build_line(
                '+',
                format!("new: {kind}, {way}"),
                found.compatibility,
            )),
            Status::Removed => own.lines.push(build_line(
                '-',
                format!("removed: {kind}, {way}"),
                found.compatibility,
            )),
            _ => own.lines.extend(
                found
                    .changes
                    .iter()
                    .map(|change| build_line('~', method_words(change), change.compatibility)),
            ),
        }
    }
    let came_or_went = found.is_some_and(|found| found.status != Status::Changed);
    if !own.lines.is_empty() {
        groups.push(own);
    }
    // For a new method, changes of its types are not listed.
    if !came_or_went {
        let (old, new) = (
            definitions_of_method(older, name),
            definitions_of_method(newer, name),
        );
        for definition in &diff.definitions {
            let was = definition.before.as_deref().unwrap_or(&definition.name);
            let is_carried = new.contains(definition.name.as_str()) || old.contains(was);
            let lines = change_lines(definition);
            if is_carried && !lines.is_empty() {
                groups.push(Group {
                    name: definition.name.clone(),
                    lines,
                });
            }
        }
    }
    (!groups.is_empty()).then(|| Step {
        revision: before + 1,
        from: diff.from.clone(),
        to: diff.to.clone(),
        groups,
        inside: Vec::new(),
    })
}

/// Creates the cell of a row for one revision; `step` contains the changes since the previous revision.
fn build_cell(status: Option<Status>, present: bool, is_first: bool, step: Option<&Step>) -> Cell {
    let count = step.map_or(0, Step::count);
    let inside = step.map_or(0, |step| step.inside.len());
    let class = step.map_or("", |step| {
        let all: Vec<&Group> = step.groups.iter().collect();
        let classes: Vec<&'static str> = all
            .iter()
            .map(|group| compatibility_of(&group.lines))
            .collect();
        merged_class(&classes)
    });
    let changes = match count {
        0 => String::new(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    let (mark, words) = match status {
        Some(Status::Added) => ("+", "new".to_owned()),
        Some(Status::Removed) => ("−", "removed".to_owned()),
        Some(Status::Renamed | Status::Named | Status::Unnamed) => {
            let words = status_word(status.unwrap_or(Status::Renamed));
            let more = if count > 1 {
                format!(", {changes}")
            } else {
                String::new()
            };
            ("»", format!("{words}{more}"))
        }
        _ if count > 0 => ("~", changes),
        _ if inside > 0 => ("·", "changed inside".to_owned()),
        _ if !present => ("", "not there".to_owned()),
        _ if is_first => ("●", "there".to_owned()),
        _ => ("●", "unchanged".to_owned()),
    };
    Cell {
        class,
        mark,
        count: if matches!(mark, "~" | "»") { count } else { 0 },
        words,
        has_step: step.is_some(),
        ..Cell::default()
    }
}

/// Returns the CSS class of the combined consequence of several classes.
fn merged_class(classes: &[&'static str]) -> &'static str {
    let has = |class: &str| classes.contains(&class);
    match () {
        () if has("both") || (has("reading") && has("writing")) => "both",
        () if has("writing") => "writing",
        () if has("reading") => "reading",
        () if has("additive") => "additive",
        () if has("neutral") => "neutral",
        () => "",
    }
}

/// Returns the rows of types, sorted by name.
pub fn type_rows(revisions: &[Ir], diffs: &[Diff], options: &PageOptions) -> Vec<Row> {
    let mut names = BTreeSet::new();
    for ir in revisions {
        let official = ir.definitions.iter().filter(|d| d.official);
        names.extend(official.map(|d| d.name.as_str()));
    }
    names
        .into_iter()
        .map(|name| type_row(name, revisions, diffs, options))
        .collect()
}

/// Returns the row of a type.
fn type_row(name: &str, revisions: &[Ir], diffs: &[Diff], options: &PageOptions) -> Row {
    let official = |ir: &&Ir| ir.get(name).is_some_and(|d| d.official);
    let last = revisions.iter().rev().find(official);
    let kind = last
        .and_then(|ir| ir.get(name))
        .map_or("other", |definition| match definition.shape {
            Shape::Struct(_) | Shape::Document(_) => "object",
            Shape::Union(_) => "union",
            Shape::Enum(_) => "enum",
            Shape::Constant(_) | Shape::Alias(_) | Shape::StringOrInteger => "other",
        });
    let mut row = Row {
        id: format!("type-{name}"),
        name: name.to_owned(),
        kind,
        caption: kind.replace("other", ""),
        cells: Vec::new(),
        steps: Vec::new(),
        now: last.and_then(|ir| current_type(ir, name)),
        links: Vec::new(),
        text: last
            .map(|ir| search_text(ir, BTreeSet::from([name]), name))
            .unwrap_or_default(),
        consequences: Vec::new(),
    };
    for (index, ir) in revisions.iter().enumerate() {
        if official(&ir) {
            row.links.extend(specification_link(ir, name, options));
        }
        let step = index
            .checked_sub(1)
            .and_then(|before| type_step(revisions, diffs, before, name));
        let found = index.checked_sub(1).and_then(|before| {
            let definitions = diffs[before].definitions.iter();
            let mut own = definitions.clone().filter(|d| d.name == name);
            own.next().or_else(|| {
                definitions
                    .clone()
                    .find(|d| d.before.as_deref() == Some(name))
            })
        });
        let status = found.map(|found| found.status);
        row.cells.push(build_cell(
            status,
            ir.get(name).is_some(),
            index == 0,
            step.as_ref(),
        ));
        row.steps.extend(step);
    }
    row.with_consequences()
}

/// Returns the changes of a type between the revision at the index `before` and the next one.
fn type_step(revisions: &[Ir], diffs: &[Diff], before: usize, name: &str) -> Option<Step> {
    let diff = &diffs[before];
    let newer = &revisions[before + 1];
    let mut groups = Vec::new();
    for definition in &diff.definitions {
        let is_moved =
            definition.status == Status::Renamed && definition.before.as_deref() == Some(name);
        if is_moved {
            groups.push(Group {
                name: definition.name.clone(),
                lines: vec![build_line(
                    '»',
                    format!("what it meant is called {} now", definition.name),
                    Compatibility::Neutral,
                )],
            });
        } else if definition.name == name {
            let lines = change_lines(definition);
            if !lines.is_empty() {
                groups.push(Group {
                    name: String::new(),
                    lines,
                });
            }
        }
    }
    let is_everything = crate::diff::is_by_sender(name) || name.starts_with("JSONRPC");
    let inside: Vec<String> = if is_everything {
        Vec::new()
    } else {
        let reached = reachable(newer, [name]);
        let changed = diff
            .definitions
            .iter()
            .filter(|d| d.name != name && !d.changes.is_empty());
        changed
            .filter(|d| reached.contains(d.name.as_str()))
            .map(|d| d.name.clone())
            .collect()
    };
    (!groups.is_empty() || !inside.is_empty()).then(|| Step {
        revision: before + 1,
        from: diff.from.clone(),
        to: diff.to.clone(),
        groups,
        inside,
    })
}

/// Returns the links to an official definition in a revision.
fn specification_link(ir: &Ir, definition: &str, options: &PageOptions) -> Option<Link> {
    let found = ir.get(definition).filter(|found| found.official)?;
    let id = &ir.revision;
    let source = options.sources.get(id);
    let line = source.and_then(|source| {
        let line = source.lines.get(&found.name)?;
        Some(format!("{}#L{line}", source.url))
    });
    Some(Link {
        revision: id.clone(),
        page: format!(
            "https://modelcontextprotocol.io/specification/{id}/schema#{}",
            found.name.to_lowercase()
        ),
        line: line.unwrap_or_default(),
    })
}

/// Returns the state of a method in a revision.
fn current_method(ir: &Ir, name: &str) -> Option<Now> {
    let method = ir.methods.iter().find(|method| method.method == name)?;
    let params = method.params.as_ref().map(|params| type_text(ir, params));
    let optional = if method.params_required { "" } else { "?" };
    let mut words = match params {
        Some(params) => format!("params{optional}: {params}"),
        None => "no params".into(),
    };
    if let Some(result) = &method.result {
        words.push_str(&format!(" → {result}"));
    }
    let definition = ir.get(&method.definition);
    let description = definition.and_then(|definition| definition.description.clone());
    Some(Now {
        revision: ir.revision.clone(),
        words,
        description: description.unwrap_or_default(),
        members: Vec::new(),
    })
}

/// Returns the state of a type in a revision.
fn current_type(ir: &Ir, name: &str) -> Option<Now> {
    let definition = ir.get(name)?;
    let members = match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => members.as_slice(),
        _ => &[],
    };
    let members: Vec<Member> = members
        .iter()
        .map(|member| Member {
            name: format!("{}{}", member.name, if member.required { "" } else { "?" }),
            value: member_text(ir, &member.value),
            description: member.description.clone().unwrap_or_default(),
        })
        .collect();
    Some(Now {
        revision: ir.revision.clone(),
        words: if members.is_empty() {
            outline(ir, definition)
        } else {
            String::new()
        },
        description: definition.description.clone().unwrap_or_default(),
        members,
    })
}

/// Returns names, members, values and descriptions of definitions, for the search.
fn search_text(ir: &Ir, names: BTreeSet<&str>, row: &str) -> String {
    let mut words = vec![row.to_lowercase()];
    let is_method = row.contains('/') || names.len() > 1;
    for name in names {
        let Some(definition) = ir.get(name) else {
            continue;
        };
        words.push(name.to_lowercase());
        // The search finds a method by the text of its own messages, and a type by all of its text.
        let wants_documentation = !is_method;
        if wants_documentation {
            words.extend(
                definition
                    .description
                    .as_ref()
                    .map(|text| text.to_lowercase()),
            );
        }
        match &definition.shape {
            Shape::Struct(members) | Shape::Document(members) => {
                for member in members {
                    words.push(member.name.to_lowercase());
                    if let MemberValue::ConstString(value) = &member.value {
                        words.push(value.to_lowercase());
                    }
                    if wants_documentation {
                        words.extend(member.description.as_ref().map(|text| text.to_lowercase()));
                    }
                }
            }
            Shape::Enum(sent) => words.extend(sent.iter().map(|value| value.to_lowercase())),
            Shape::Constant(value) => words.push(value.to_lowercase()),
            _ => {}
        }
    }
    words.sort();
    words.dedup();
    words
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
