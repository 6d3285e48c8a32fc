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
use super::pairs::{Pairs, users};
use crate::ir::{Definition, Ir};
use crate::wording::outline;

/// Maximum depth of the search for the consequence of a replaced type.
const DEPTH: usize = 5;

/// Returns the differences from `a` to `b`. Changed descriptions are counted, not listed.
pub fn diff(a: &Ir, b: &Ir) -> Diff {
    let mut diff = diff_with_descriptions(a, b);
    diff.rewordings.clear();
    diff
}

/// Returns the pairs of official definitions of `a` and `b`, by their names, sorted by those of `a`.
pub fn pairs<'i>(a: &'i Ir, b: &'i Ir) -> Vec<(&'i str, &'i str)> {
    Pairs::new(a, b).iter().collect()
}

/// Returns the differences from `a` to `b`, including the changed descriptions.
pub fn diff_with_descriptions(a: &Ir, b: &Ir) -> Diff {
    let pairs = Pairs::new(a, b);
    let mut walk = Walk {
        context: Context { a, b, pairs },
        found: BTreeMap::new(),
        named: BTreeMap::new(),
        told: BTreeMap::new(),
        definitions: Vec::new(),
        rewordings: BTreeSet::new(),
    };
    walk.explore();
    walk.name();
    walk.tell();
    walk.added_and_removed();
    walk.finish()
}

struct Walk<'i> {
    context: Context<'i>,
    /// Differences of each pair.
    found: BTreeMap<Pair<'i>, PairDifferences<'i>>,
    /// Newer definitions that have become named or anonymous, by pair: the status, and the location.
    named: BTreeMap<Pair<'i>, (Status, String)>,
    /// Where each anonymous pair was reported: the index of the entry and the range of its changes.
    told: BTreeMap<Pair<'i>, Vec<(usize, usize)>>,
    definitions: Vec<DefinitionDiff>,
    rewordings: BTreeSet<Rewording>,
}

impl<'i> Walk<'i> {
    /// Compares all pairs: first the official ones, then the anonymous ones inside them.
    fn explore(&mut self) {
        let mut waiting: Vec<Pair<'i>> = self.context.pairs.iter().collect();
        while let Some(pair) = waiting.pop() {
            if !self.found.contains_key(&pair) {
                let found = self.context.compare(pair, DEPTH);
                waiting.extend(found.inner.iter().map(|(_, inner)| *inner));
                self.found.insert(pair, found);
            }
        }
    }

    fn official(&self, ir: &'i Ir, name: &str) -> bool {
        ir.get(name).is_some_and(|definition| definition.official)
    }

    /// Determines which anonymous types have a name in the newer revision, and which names were removed.
    fn name(&mut self) {
        let mut named: BTreeMap<&str, Vec<(bool, String, Pair<'i>)>> = BTreeMap::new();
        let mut unnamed = named.clone();
        for (pair, found) in &self.found {
            for (path, inner) in &found.inner {
                let (before, after) = *inner;
                let place = place(pair.1, path);
                let candidate = (before != after, place, *inner);
                let (a, b) = (self.context.a, self.context.b);
                match (self.official(a, before), self.official(b, after)) {
                    (false, true) if !self.context.pairs.is_taken(after) => {
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
                if let Some((_, place, pair)) = candidates.into_iter().min() {
                    self.named.insert(pair, (status, place));
                }
            }
        }
    }

    /// Reports the changes of every named pair.
    fn tell(&mut self) {
        for (pair, (status, place)) in self.named.clone() {
            let name = match status {
                Status::Unnamed => pair.0,
                _ => pair.1,
            };
            self.entry(name, status, Some(place), pair);
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
            self.entry(after, status, old, (before, after));
        }
    }

    fn entry(&mut self, name: &str, status: Status, before: Option<String>, pair: Pair<'i>) {
        let index = self.definitions.len();
        self.definitions.push(DefinitionDiff {
            name: name.into(),
            status,
            before,
            outline: None,
            compatibility: Compatibility::Neutral,
            changes: Vec::new(),
        });
        self.inline(index, "", pair, &mut Vec::new());
    }

    /// Adds the changes of a pair to an entry, including those of its anonymous pairs.
    fn inline(&mut self, index: usize, prefix: &str, pair: Pair<'i>, above: &mut Vec<Pair<'i>>) {
        if above.contains(&pair) || (!above.is_empty() && self.named.contains_key(&pair)) {
            return;
        }
        if !above.is_empty() && self.told.contains_key(&pair) {
            return self.tell_again(index, prefix, pair);
        }
        let Some(found) = self.found.get(&pair) else {
            return;
        };
        let inner = found.inner.clone();
        let entry = &mut self.definitions[index];
        let start = entry.changes.len();
        for (path, before, after) in &found.rewordings {
            self.rewordings.insert(Rewording {
                definition: entry.name.clone(),
                path: join(prefix, path),
                before: before.clone(),
                after: after.clone(),
            });
        }
        entry
            .changes
            .extend(found.changes.iter().map(|change| Change {
                path: join(prefix, &change.path),
                ..change.clone()
            }));
        let told = (start..entry.changes.len()).map(|at| (index, at)).collect();
        if !above.is_empty() {
            self.told.insert(pair, told);
        }
        above.push(pair);
        for (path, inner) in inner {
            self.inline(index, &join(prefix, &path), inner, above);
        }
        above.pop();
    }

    /// Adds another location to changes that are reported already.
    fn tell_again(&mut self, index: usize, prefix: &str, pair: Pair<'i>) {
        let place = place(&self.definitions[index].name, prefix);
        for (entry, at) in &self.told[&pair] {
            if let Some(change) = self.definitions[*entry].changes.get_mut(*at) {
                change.also.push(place.clone());
            }
        }
        let inner = self.found[&pair].inner.clone();
        for (path, inner) in inner {
            if self.told.contains_key(&inner) && inner != pair {
                self.tell_again(index, &join(prefix, &path), inner);
            }
        }
    }

    fn added_and_removed(&mut self) {
        let (a, b) = (self.context.a, self.context.b);
        let named = |at: fn(&Pair<'i>) -> &'i str, status: Status| -> BTreeSet<&'i str> {
            let of_status = self.named.iter().filter(|(_, (found, _))| *found == status);
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
            if !self.context.pairs.is_taken(name) && !now_named.contains(name) {
                self.definitions
                    .push(entry(b, definition, Status::Added, Compatibility::Additive));
            }
        }
        for definition in a.definitions.iter().filter(|d| d.official) {
            let name = definition.name.as_str();
            if self.context.pairs.newer(name).is_none() && !now_unnamed.contains(name) {
                let message = a.methods.iter().any(|method| method.definition == name);
                let compatibility = if message || !users(a, name).is_empty() {
                    Compatibility::BreaksWriting
                } else {
                    Compatibility::Neutral
                };
                self.definitions
                    .push(entry(a, definition, Status::Removed, compatibility));
            }
        }
    }

    fn notes(&self) -> Vec<Note> {
        let mut envelopes: BTreeMap<(bool, Vec<String>), Vec<String>> = BTreeMap::new();
        for (pair, found) in &self.found {
            for gained in [true, false] {
                let mut members: Vec<String> = found
                    .envelope
                    .iter()
                    .filter(|(found, _)| *found == gained)
                    .map(|(_, name)| name.clone())
                    .collect();
                members.sort();
                if !members.is_empty() {
                    let definitions = envelopes.entry((gained, members)).or_default();
                    definitions.push(pair.1.to_owned());
                }
            }
        }
        let reused = self
            .context
            .pairs
            .iter()
            .filter(|(before, after)| before != after && self.official(self.context.b, before));
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

    fn finish(mut self) -> Diff {
        let notes = self.notes();
        let (a, b) = (self.context.a, self.context.b);
        let presence = [ChangeKind::MemberRequired, ChangeKind::MemberOptional];
        for definition in &mut self.definitions {
            if b.methods.iter().any(|m| m.definition == definition.name) {
                let told = |c: &Change| c.path == "params" && presence.contains(&c.kind);
                definition.changes.retain(|change| !told(change));
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
            methods: methods::differences(a, b, renamed, &self.definitions),
            definitions: self.definitions,
            notes,
            descriptions: self.rewordings.len(),
            rewordings: self.rewordings.into_iter().collect(),
        }
    }
}

fn join(prefix: &str, path: &str) -> String {
    let separator = if prefix.is_empty() || path.is_empty() || path.starts_with(['[', '{']) {
        ""
    } else {
        "."
    };
    format!("{prefix}{separator}{path}")
}

fn place(definition: &str, path: &str) -> String {
    join(definition, path)
}
