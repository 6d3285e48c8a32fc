//! References of a schema, and the definitions in their place.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use mcp_exact_wire::{Kind, ObjectRef};
use percent_encoding::percent_decode_str;

use crate::keywords::{DEFINITIONS, is_constraint};
use crate::merge::merge;
use crate::tree::{Members, Node, Tree, Value, items, kind, string};

/// Cost of a copy besides its text, in bytes, so that empty definitions count, too.
const COPY_COST: usize = 16;

/// Maximum number of references to other places than definitions, which are looked for in the whole text.
const MAX_SEARCHES: usize = 64;

/// Maximum number of references that lead to each other without a schema between them.
const MAX_CHAIN: usize = 64;

/// Keywords that name places for references in another way than by their path.
const ANCHORS: [&str; 5] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
];

/// Schema whose references were replaced as far as possible.
pub(crate) struct Resolved<'a> {
    pub(crate) root: Node<'a>,
    /// True if references are left that name other places than the definitions of the whole schema, so that what stands there
    /// has to accept the same values wherever it is used.
    pub(crate) is_shared: bool,
}

/// Replaces references by what they name; `None` if the schema has to stay as it is, because a reference that is left names
/// a place that a change of the schema could move.
pub(crate) fn resolve<'a>(text: &'a str, root: &Node<'a>, room: usize) -> Option<Resolved<'a>> {
    let mut survey = Survey::default();
    survey.visit(root, true);
    if survey.has_inner_id {
        return None;
    }
    if survey.references.is_empty() && !survey.has_anchors {
        let mut root = root.clone();
        remove_definitions(&mut root);
        return Some(Resolved {
            root,
            is_shared: false,
        });
    }
    let copied = (!survey.has_anchors)
        .then(|| copy_definitions(text, root, room))
        .flatten();
    let was_copied = copied.is_some();
    // The schema may name itself by its id.
    let has_id = matches!(root, Node::Object(members) if members.has("$id") || members.has("id"));
    let (root, left) = match copied {
        Some(copied) => copied,
        None => (root.clone(), survey.references),
    };
    let left: Vec<Reference> = left
        .iter()
        .map(|reference| Reference::of(reference))
        .collect();
    if left.contains(&Reference::Place) || has_id && left.contains(&Reference::Other) {
        return None;
    }
    let is_shared = left
        .iter()
        .any(|reference| *reference != Reference::Definition);
    Some(Resolved {
        root,
        // What a reference that is left requires is not looked at.
        is_shared: is_shared || survey.has_anchors || !was_copied,
    })
}

/// What a reference names.
#[derive(Debug, PartialEq, Eq)]
enum Reference {
    /// A definition of the whole schema.
    Definition,
    /// The whole schema.
    Root,
    /// Another place of the schema.
    Place,
    /// Another document, or an anchor.
    Other,
}

impl Reference {
    fn of(reference: &str) -> Self {
        let Some(tokens) = local_tokens(reference) else {
            return Self::Other;
        };
        match &tokens[..] {
            [] => Self::Root,
            [first, _] if DEFINITIONS.contains(&&**first) => Self::Definition,
            _ => Self::Place,
        }
    }
}

/// What a schema has of references.
#[derive(Default)]
struct Survey {
    references: BTreeSet<String>,
    has_anchors: bool,
    has_inner_id: bool,
}

impl Survey {
    fn visit(&mut self, node: &Node<'_>, is_root: bool) {
        let Node::Object(members) = node else { return };
        self.references.extend(members.string("$ref"));
        self.has_anchors |= ANCHORS.iter().any(|keyword| members.has(keyword));
        // Up to draft 4, an anchor is an `id`.
        let is_anchor = members.string("id").is_some_and(|id| id.starts_with('#'));
        self.has_inner_id |= !is_root && (members.string("$id").is_some() || is_anchor);
        for (_, value) in &members.0 {
            for_each_node(value, &mut |node| self.visit(node, false));
        }
    }
}

fn for_each_node<'n, 'a>(value: &'n Value<'a>, visit: &mut impl FnMut(&'n Node<'a>)) {
    match value {
        Value::Data(_) => {}
        Value::Schema(node) => visit(node),
        Value::Schemas(nodes) => nodes.iter().for_each(visit),
        Value::Named(named) => named.iter().for_each(|(_, node)| visit(node)),
    }
}

/// Removes definitions that nothing refers to.
fn remove_definitions(node: &mut Node<'_>) {
    let Node::Object(members) = node else { return };
    members
        .0
        .retain(|(keyword, _)| !DEFINITIONS.contains(&&**keyword));
    for (_, value) in &mut members.0 {
        match value {
            Value::Data(_) => {}
            Value::Schema(node) => remove_definitions(node),
            Value::Schemas(nodes) => nodes.iter_mut().for_each(remove_definitions),
            Value::Named(named) => named
                .iter_mut()
                .for_each(|(_, node)| remove_definitions(node)),
        }
    }
}

/// Copies definitions in the place of their references; returns the schema, and the references that are left. Returns
/// `None` if the copies have no room.
fn copy_definitions<'a>(
    text: &'a str,
    root: &Node<'a>,
    room: usize,
) -> Option<(Node<'a>, BTreeSet<String>)> {
    let Node::Object(members) = root else {
        return None;
    };
    let dialect = members.string("$schema").unwrap_or_default();
    let is_old = |number: &&str| dialect.contains(&format!("draft-0{number}"));
    let mut copier = Copier {
        text,
        definitions: definitions_in(text),
        searches: MAX_SEARCHES,
        ignores_siblings: ["3", "4", "6", "7"].iter().any(is_old),
        room,
        // The whole schema contains itself.
        open: vec![String::from("#")],
        left: BTreeSet::new(),
        new: Vec::new(),
    };
    let mut new_root = root.clone();
    remove_definitions(&mut new_root);
    new_root = copier.node(new_root, 0)?;
    let mut kept: BTreeMap<(String, String), Node<'a>> = BTreeMap::new();
    while let Some(reference) = copier.new.pop() {
        let Some(place) = definition_of(&reference) else {
            continue;
        };
        // A reference to nothing stays as it is.
        let Some(definition) = copier.definitions.get(&place).copied() else {
            continue;
        };
        if kept.contains_key(&place) {
            continue;
        }
        copier.open = vec![String::from("#"), reference];
        copier.room = copier.room.checked_sub(definition.len() + COPY_COST)?;
        let mut parsed = Tree::at_depth(definition, 2).root;
        remove_definitions(&mut parsed);
        let definition = copier.node(parsed, 2)?;
        kept.insert(place, definition);
    }
    for keyword in DEFINITIONS {
        let of_keyword = kept.iter().filter(|((of, _), _)| of == keyword);
        let named: Vec<_> = of_keyword
            .map(|((_, name), node)| (Cow::Owned(name.clone()), node.clone()))
            .collect();
        if let (false, Node::Object(members)) = (named.is_empty(), &mut new_root) {
            members.set(keyword, Value::Named(named));
        }
    }
    Some((new_root, copier.left))
}

/// Returns the definitions of a whole schema by keyword and name.
fn definitions_in(text: &str) -> BTreeMap<(String, String), &str> {
    let mut all = BTreeMap::new();
    let named = ObjectRef::from_checked(text).find_each(DEFINITIONS);
    for (keyword, named) in DEFINITIONS.into_iter().zip(named) {
        let named = named.and_then(|named| named.object());
        for (name, definition) in named.into_iter().flat_map(ObjectRef::iter) {
            all.insert((keyword.to_owned(), name.into_owned()), definition.text());
        }
    }
    all
}

/// Returns keyword and name of the definition that a reference names.
fn definition_of(reference: &str) -> Option<(String, String)> {
    let [keyword, name] = <[String; 2]>::try_from(local_tokens(reference)?).ok()?;
    DEFINITIONS.contains(&&*keyword).then_some((keyword, name))
}

struct Copier<'a> {
    /// The whole schema.
    text: &'a str,
    /// Its definitions by keyword and name.
    definitions: BTreeMap<(String, String), &'a str>,
    /// Number of further references to other places that are followed.
    searches: usize,
    /// True if the dialect ignores what stands beside a reference.
    ignores_siblings: bool,
    /// Number of bytes that further copies may have.
    room: usize,
    /// References that are being replaced.
    open: Vec<String>,
    /// References that are left.
    left: BTreeSet<String>,
    /// Those of them whose definitions were not looked at.
    new: Vec<String>,
}

impl<'a> Copier<'a> {
    /// Replaces the references in a schema; `None` if there is no room.
    fn node(&mut self, node: Node<'a>, depth: usize) -> Option<Node<'a>> {
        let Node::Object(mut members) = node else {
            return Some(node);
        };
        let reference = members.string("$ref");
        let target = reference.as_deref().and_then(|it| self.target(it, depth));
        let (Some(reference), Some(target)) = (reference.clone(), target) else {
            if let Some(reference) = reference
                && self.left.insert(reference.clone())
            {
                self.new.push(reference);
            }
            return self.children(members, depth).map(Node::Object);
        };
        members.remove("$ref");
        self.room = self.room.checked_sub(target.1 + COPY_COST)?;
        self.open.push(reference);
        let copied = self.node(target.0, depth)?;
        self.open.pop();
        if self.ignores_siblings {
            members.0.retain(|(keyword, _)| !is_constraint(keyword));
        }
        let siblings = self.children(members, depth)?;
        Some(joined(siblings, copied))
    }

    fn children(&mut self, members: Members<'a>, depth: usize) -> Option<Members<'a>> {
        let mut all = Members::default();
        for (keyword, value) in members.0 {
            let value = match value {
                Value::Data(text) => Value::Data(text),
                Value::Schema(node) => Value::Schema(self.node(node, depth + 1)?),
                Value::Schemas(nodes) => {
                    let nodes = nodes.into_iter().map(|node| self.node(node, depth + 1));
                    Value::Schemas(nodes.collect::<Option<_>>()?)
                }
                Value::Named(named) => {
                    let named = named
                        .into_iter()
                        .map(|(name, node)| Some((name, self.node(node, depth + 1)?)));
                    Value::Named(named.collect::<Option<_>>()?)
                }
            };
            all.0.push((keyword, value));
        }
        Some(all)
    }

    /// Returns the schema that a reference names, without its definitions, and the size of its text; `None` if the reference
    /// has to stay.
    fn target(&mut self, reference: &str, depth: usize) -> Option<(Node<'a>, usize)> {
        if self.open.len() > MAX_CHAIN || self.open.iter().any(|open| open == reference) {
            return None;
        }
        let text = match definition_of(reference) {
            Some(place) => *self.definitions.get(&place)?,
            None => {
                self.searches = self.searches.checked_sub(1)?;
                value_at(self.text, &local_tokens(reference)?)?
            }
        };
        if !matches!(kind(text), Kind::Object | Kind::Boolean) {
            return None;
        }
        // A long copy is not parsed in vain.
        if text.len() > self.room {
            return Some((Node::Boolean(true), text.len()));
        }
        let Tree {
            mut root,
            is_partial,
        } = Tree::at_depth(text, depth);
        remove_definitions(&mut root);
        (!is_partial).then_some((root, text.len()))
    }
}

/// Returns a schema that accepts what both accept: the members beside a reference, and what it names.
fn joined<'a>(siblings: Members<'a>, copied: Node<'a>) -> Node<'a> {
    if siblings.0.is_empty() {
        return copied;
    }
    let copied = match copied {
        Node::Boolean(true) => return Node::Object(siblings),
        copied => copied,
    };
    if let Node::Object(members) = &copied
        && let Some(merged) = merge(&siblings, members)
    {
        return Node::Object(merged);
    }
    let mut siblings = siblings;
    match siblings.0.iter_mut().find(|(name, _)| name == "allOf") {
        Some((_, Value::Schemas(nodes))) => nodes.push(copied),
        // What is no list of schemas is not valid, whatever stands beside it.
        Some(_) => {}
        None => siblings
            .0
            .push(("allOf".into(), Value::Schemas(vec![copied]))),
    }
    Node::Object(siblings)
}

/// Returns the tokens of a reference to a place in the same document; `None` for other references.
fn local_tokens(reference: &str) -> Option<Vec<String>> {
    let fragment = percent_decode_str(reference.strip_prefix('#')?);
    // Validators, too, read a `%` without two digits as itself.
    let fragment = fragment.decode_utf8().ok()?;
    if fragment.is_empty() {
        return Some(Vec::new());
    }
    let tokens = fragment.strip_prefix('/')?.split('/');
    Some(
        tokens
            .map(|token| token.replace("~1", "/").replace("~0", "~"))
            .collect(),
    )
}

/// Returns the value at a JSON pointer.
fn value_at<'a>(text: &'a str, tokens: &[String]) -> Option<&'a str> {
    let mut at = text;
    for token in tokens {
        at = match kind(at) {
            Kind::Object => ObjectRef::from_checked(at).find(token)?.text(),
            Kind::Array => *items(at).get(token.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// Returns the items of a list of names; none of another value.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    items(text).into_iter().filter_map(string).collect()
}
