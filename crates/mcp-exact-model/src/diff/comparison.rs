//! Creates the list of differences between two revisions.
//!
//! Compares every definition with its counterpart, follows anonymous types to their locations, and reports each
//! change once, under a name of the specification.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{
    Change, ChangeKind, Compatibility, DefinitionDiff, Diff, Note, Rewording, Status,
};
use super::context::{Context, Pair, PairDifferences};
use super::methods;
use super::pairs::{Pairs, referring_definitions};
use crate::ir::{Definition, Ir};
use crate::wording::outline;

/// Maximum depth of the search for the consequence of a replaced type.
const MAX_SEARCH_DEPTH: usize = 5;

/// Returns the differences from `a` to `b`. Changed descriptions are counted, not listed.
pub fn diff(a: &Ir, b: &Ir) -> Diff {
    let mut diff = diff_with_descriptions(a, b);
    diff.rewordings.clear();
    diff
}

/// Returns the pairs of official definitions of `a` and `b`, as their names in both revisions, sorted by the names in
/// `a`.
pub fn pairs<'i>(a: &'i Ir, b: &'i Ir) -> Vec<(&'i str, &'i str)> {
    Pairs::new(a, b).iter().collect()
}

/// Returns the differences from `a` to `b`, including the changed descriptions.
pub fn diff_with_descriptions(a: &Ir, b: &Ir) -> Diff {
    let pairs = Pairs::new(a, b);
    let mut comparison = Comparison {
        context: Context {
            older: a,
            newer: b,
            pairs,
        },
        differences: BTreeMap::new(),
        renamed_definitions: BTreeMap::new(),
        reported_locations: BTreeMap::new(),
        definitions: Vec::new(),
        rewordings: BTreeSet::new(),
    };
    comparison.compare_all_pairs();
    comparison.find_renamed_definitions();
    comparison.report_changes();
    comparison.report_added_and_removed();
    comparison.finish()
}

/// Comparison of two revisions in progress.
struct Comparison<'i> {
    /// Both revisions and their pairs of definitions.
    context: Context<'i>,
    /// Differences of each pair.
    differences: BTreeMap<Pair<'i>, PairDifferences<'i>>,
    /// Newer definitions that have gained or lost their names, by pair: the status, and the location of the anonymous
    /// type.
    renamed_definitions: BTreeMap<Pair<'i>, (Status, String)>,
    /// Entries in which each anonymous pair was reported: the index of the entry and the range of its changes.
    reported_locations: BTreeMap<Pair<'i>, Vec<(usize, usize)>>,
    /// Entries of the result.
    definitions: Vec<DefinitionDiff>,
    /// Descriptions that differ.
    rewordings: BTreeSet<Rewording>,
}

impl<'i> Comparison<'i> {
    /// Compares all pairs of definitions: first the official ones, then the anonymous ones inside them.
    fn compare_all_pairs(&mut self) {
        let mut waiting: Vec<Pair<'i>> = self.context.pairs.iter().collect();
        while let Some(pair) = waiting.pop() {
            if !self.differences.contains_key(&pair) {
                let differences = self.context.compare(pair, MAX_SEARCH_DEPTH);
                waiting.extend(differences.inner.iter().map(|(_, inner)| *inner));
                self.differences.insert(pair, differences);
            }
        }
    }

    /// Returns true if a definition has an official name.
    fn is_official(&self, ir: &'i Ir, name: &str) -> bool {
        ir.get(name).is_some_and(|definition| definition.official)
    }

    /// Pairs anonymous types of the older revision with the definitions that name them in the newer revision, and named
    /// definitions with the anonymous types that replace them.
    fn find_renamed_definitions(&mut self) {
        let mut named: BTreeMap<&str, Vec<(bool, String, Pair<'i>)>> = BTreeMap::new();
        let mut unnamed = named.clone();
        for (pair, differences) in &self.differences {
            for (path, inner) in &differences.inner {
                let (before, after) = *inner;
                let place = format_location(pair.1, path);
                let candidate = (before != after, place, *inner);
                let (a, b) = (self.context.older, self.context.newer);
                match (self.is_official(a, before), self.is_official(b, after)) {
                    (false, true) if !self.context.pairs.is_paired(after) => {
                        named.entry(after).or_default().push(candidate);
                    }
                    (true, false) if self.context.pairs.newer(before).is_none() => {
                        unnamed.entry(before).or_default().push(candidate);
                    }
                    _ => {}
                }
            }
        }
        for (status, candidates) in [(Status::Named, named), (Status::Unnamed, unnamed)] {
            for candidates in candidates.into_values() {
                let Some((_, _, pair)) = candidates.iter().min() else {
                    continue;
                };
                let of_pair = candidates.iter().filter(|(_, _, of)| of == pair);
                let places: BTreeSet<&str> = of_pair.map(|(_, place, _)| &**place).collect();
                let places: Vec<&str> = places.into_iter().collect();
                self.renamed_definitions
                    .insert(*pair, (status, places.join(", ")));
            }
        }
    }

    /// Reports the changes of every named pair.
    fn report_changes(&mut self) {
        for (pair, (status, place)) in self.renamed_definitions.clone() {
            let name = match status {
                Status::Unnamed => pair.0,
                _ => pair.1,
            };
            self.add_entry(name, status, Some(place), pair);
        }
        let pairs: Vec<_> = self.context.pairs.iter().collect();
        for (before, after) in pairs {
            let renamed = before != after;
            let status = if renamed {
                Status::Renamed
            } else {
                Status::Changed
            };
            let old = renamed.then(|| before.to_owned());
            self.add_entry(after, status, old, (before, after));
        }
    }

    /// Adds an entry for a definition, with all changes of the pair.
    fn add_entry(&mut self, name: &str, status: Status, before: Option<String>, pair: Pair<'i>) {
        let index = self.definitions.len();
        self.definitions.push(DefinitionDiff {
            name: name.into(),
            status,
            before,
            outline: None,
            compatibility: Compatibility::Neutral,
            changes: Vec::new(),
        });
        self.inline_changes(index, "", pair, &mut Vec::new());
    }

    /// Adds the changes of a pair to an entry, with `prefix` before their paths, and the changes of the anonymous pairs
    /// inside the pair. `above` contains the enclosing pairs.
    fn inline_changes(
        &mut self,
        index: usize,
        prefix: &str,
        pair: Pair<'i>,
        above: &mut Vec<Pair<'i>>,
    ) {
        if above.contains(&pair)
            || (!above.is_empty() && self.renamed_definitions.contains_key(&pair))
        {
            return;
        }
        if !above.is_empty() && self.reported_locations.contains_key(&pair) {
            return self.add_location(index, prefix, pair);
        }
        let Some(differences) = self.differences.get(&pair) else {
            return;
        };
        let inner = differences.inner.clone();
        let entry = &mut self.definitions[index];
        let start = entry.changes.len();
        for (path, before, after) in &differences.rewordings {
            self.rewordings.insert(Rewording {
                definition: entry.name.clone(),
                path: join_paths(prefix, path),
                before: before.clone(),
                after: after.clone(),
            });
        }
        entry
            .changes
            .extend(differences.changes.iter().map(|change| Change {
                path: join_paths(prefix, &change.path),
                ..change.clone()
            }));
        let reported_locations = (start..entry.changes.len()).map(|at| (index, at)).collect();
        if !above.is_empty() {
            self.reported_locations.insert(pair, reported_locations);
        }
        above.push(pair);
        for (path, inner) in inner {
            self.inline_changes(index, &join_paths(prefix, &path), inner, above);
        }
        above.pop();
    }

    /// Adds another location to changes that an entry contains already.
    fn add_location(&mut self, index: usize, prefix: &str, pair: Pair<'i>) {
        let place = format_location(&self.definitions[index].name, prefix);
        for (entry, at) in &self.reported_locations[&pair] {
            if let Some(change) = self.definitions[*entry].changes.get_mut(*at) {
                change.also.push(place.clone());
            }
        }
        let inner = self.differences[&pair].inner.clone();
        for (path, inner) in inner {
            if self.reported_locations.contains_key(&inner) && inner != pair {
                self.add_location(index, &join_paths(prefix, &path), inner);
            }
        }
    }

    /// Adds entries for definitions that only one of the revisions has.
    fn report_added_and_removed(&mut self) {
        let (a, b) = (self.context.older, self.context.newer);
        let named = |at: fn(&Pair<'i>) -> &'i str, status: Status| -> BTreeSet<&'i str> {
            let of_status = self
                .renamed_definitions
                .iter()
                .filter(|(_, (differences, _))| *differences == status);
            of_status.map(|(pair, _)| at(pair)).collect()
        };
        let now_named = named(|pair| pair.1, Status::Named);
        let now_unnamed = named(|pair| pair.0, Status::Unnamed);
        let entry = |ir: &Ir, definition: &Definition, status, compatibility| DefinitionDiff {
            name: definition.name.clone(),
            status,
            before: None,
            outline: Some(outline(ir, definition)),
            compatibility,
            changes: Vec::new(),
        };
        for definition in b.definitions.iter().filter(|d| d.official) {
            let name = definition.name.as_str();
            if !self.context.pairs.is_paired(name) && !now_named.contains(name) {
                self.definitions
                    .push(entry(b, definition, Status::Added, Compatibility::Additive));
            }
        }
        for definition in a.definitions.iter().filter(|d| d.official) {
            let name = definition.name.as_str();
            if self.context.pairs.newer(name).is_none() && !now_unnamed.contains(name) {
                let message = a.methods.iter().any(|method| method.definition == name);
                let compatibility = if message || !referring_definitions(a, name).is_empty() {
                    Compatibility::BreaksWriting
                } else {
                    Compatibility::Neutral
                };
                self.definitions
                    .push(entry(a, definition, Status::Removed, compatibility));
            }
        }
    }

    /// Returns the changes that concern many definitions.
    fn collect_notes(&self) -> Vec<Note> {
        let mut envelopes: BTreeMap<(bool, Vec<String>), Vec<String>> = BTreeMap::new();
        for (pair, differences) in &self.differences {
            for gained in [true, false] {
                let mut members: Vec<String> = differences
                    .envelope_changes
                    .iter()
                    .filter(|(differences, _)| *differences == gained)
                    .map(|(_, name)| name.clone())
                    .collect();
                members.sort();
                if !members.is_empty() {
                    let definitions = envelopes.entry((gained, members)).or_default();
                    definitions.push(pair.1.to_owned());
                }
            }
        }
        let reused = self.context.pairs.iter().filter(|(before, after)| {
            before != after && self.is_official(self.context.newer, before)
        });
        let mut notes: Vec<Note> = reused
            .map(|(before, after)| Note::NameReused {
                name: before.into(),
                before: after.into(),
            })
            .collect();
        notes.extend(
            envelopes
                .into_iter()
                .map(|((gained, members), definitions)| Note::Envelope {
                    gained,
                    members,
                    definitions,
                }),
        );
        notes.sort();
        notes
    }

    /// Returns the result, sorted and with the combined consequences.
    fn finish(mut self) -> Diff {
        let notes = self.collect_notes();
        let (a, b) = (self.context.older, self.context.newer);
        let presence = [ChangeKind::MemberRequired, ChangeKind::MemberOptional];
        for definition in &mut self.definitions {
            if b.methods.iter().any(|m| m.definition == definition.name) {
                let reported_locations =
                    |c: &Change| c.path == "params" && presence.contains(&c.kind);
                definition
                    .changes
                    .retain(|change| !reported_locations(change));
            }
            let changes = definition.changes.iter().map(|change| change.compatibility);
            definition.compatibility = changes.fold(definition.compatibility, Compatibility::and);
            definition
                .changes
                .sort_by(|x, y| (&x.path, &x.kind).cmp(&(&y.path, &y.kind)));
        }
        self.definitions
            .retain(|d| d.status != Status::Changed || !d.changes.is_empty());
        self.definitions
            .sort_by(|x, y| (&x.name, x.status).cmp(&(&y.name, y.status)));
        let renamed = |name: &str| self.context.pairs.newer(name).map(str::to_owned);
        Diff {
            from: a.revision.clone(),
            to: b.revision.clone(),
            methods: methods::method_differences(a, b, renamed, &self.definitions),
            definitions: self.definitions,
            notes,
            descriptions: self.rewordings.len(),
            rewordings: self.rewordings.into_iter().collect(),
        }
    }
}

/// Joins the path of a type and a path inside it.
fn join_paths(prefix: &str, path: &str) -> String {
    let separator = if prefix.is_empty() || path.is_empty() || path.starts_with(['[', '{']) {
        ""
    } else {
        "."
    };
    format!("{prefix}{separator}{path}")
}

/// Formats a location as the name of a definition and a path.
fn format_location(definition: &str, path: &str) -> String {
    join_paths(definition, path)
}
