//! State of a comparison: both revisions, the differences so far, and queries about types.

use super::change::{Change, ChangeKind, Compatibility};
use super::pairs::Pairs;
use crate::ir::{Definition, Ir, Member, Shape, Type};

/// A definition of the older revision and one of the newer, by name.
pub type Pair<'i> = (&'i str, &'i str);

/// Both revisions, with indexes of their definitions.
pub struct Context<'i> {
    /// The older revision.
    pub older: &'i Ir,
    /// The newer revision.
    pub newer: &'i Ir,
    /// Pairs of official definitions.
    pub pairs: Pairs<'i>,
}

/// Differences of a pair of definitions.
#[derive(Default)]
pub struct PairDifferences<'i> {
    /// Changes, with paths relative to the definition.
    pub changes: Vec<Change>,
    /// Pairs of anonymous types at the same location, with their paths.
    pub inner: Vec<(String, Pair<'i>)>,
    /// Descriptions that differ: path, older text, newer text.
    pub rewordings: Vec<(String, Option<String>, Option<String>)>,
    /// Members of the envelope that were added (`true`) or removed.
    pub envelope_changes: Vec<(bool, String)>,
    /// True if the definition is a message with an unspecified method.
    pub is_unspecified_method: bool,
}

impl<'i> PairDifferences<'i> {
    /// Adds a change.
    pub fn add_change(&mut self, path: &str, kind: ChangeKind, compatibility: Compatibility) {
        self.changes.push(Change {
            path: path.into(),
            kind,
            compatibility,
            also: Vec::new(),
        });
    }

    /// Adds the descriptions of the item at `path` if they differ.
    pub fn add_rewording(&mut self, path: &str, before: Option<&String>, after: Option<&String>) {
        if before != after {
            let texts = (before.cloned(), after.cloned());
            self.rewordings.push((path.into(), texts.0, texts.1));
        }
    }
}

/// Returns the consequence of an added member.
pub fn added_compatibility(member: &Member) -> Compatibility {
    if member.required {
        Compatibility::BreaksWriting
    } else {
        Compatibility::Additive
    }
}

/// Returns the consequence of a removed member.
pub fn removed_compatibility(member: &Member) -> Compatibility {
    if member.required {
        Compatibility::BreaksBoth
    } else {
        Compatibility::BreaksWriting
    }
}

/// Returns true for the unions of all messages and results of one sender.
pub fn is_by_sender(name: &str) -> bool {
    let what = name.strip_prefix("Client").or(name.strip_prefix("Server"));
    matches!(what, Some("Request" | "Notification" | "Result"))
}

/// Returns the members of an object.
pub fn members(definition: &Definition) -> Option<&[Member]> {
    match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => Some(members),
        _ => None,
    }
}

/// Returns the definition that a type refers to.
pub fn definition<'i>(ir: &'i Ir, value: &Type) -> Option<&'i Definition> {
    match resolve_aliases(ir, value) {
        Type::Ref { name, .. } => ir.get(name),
        _ => None,
    }
}

/// Resolves the aliases of a type; a definition of any JSON value resolves to [`Type::Json`].
pub fn resolve_aliases<'i>(ir: &'i Ir, value: &'i Type) -> &'i Type {
    let mut value = value;
    for _ in 0..32 {
        let Type::Ref { name, .. } = value else { break };
        match ir.get(name).map(|definition| &definition.shape) {
            Some(Shape::Alias(inner)) => value = inner,
            Some(Shape::Union(_)) if is_any_json(ir, name) => return &Type::Json,
            _ => break,
        }
    }
    match value {
        Type::Map(inner) if *resolve_aliases(ir, inner) == Type::Json => &Type::JsonObject,
        _ => value,
    }
}

/// Returns true if a definition describes any JSON value: strings, numbers, booleans, and objects and arrays of itself.
fn is_any_json(ir: &Ir, name: &str) -> bool {
    let Some(Shape::Union(union)) = ir.get(name).map(|definition| &definition.shape) else {
        return false;
    };
    let itself = |value: &Type| matches!(value, Type::Ref { name: found, .. } if found == name);
    let variants: Vec<&Type> = union
        .iter()
        .map(
            |variant| match referenced_name(variant).and_then(|name| ir.get(name)) {
                Some(Definition {
                    shape: Shape::Alias(inner),
                    ..
                }) => inner,
                _ => variant,
            },
        )
        .collect();
    let has = |is: &dyn Fn(&Type) -> bool| variants.iter().any(|value| is(value));
    has(&|value| *value == Type::TEXT)
        && has(&|value| *value == Type::Boolean)
        && has(&|value| matches!(value, Type::Map(inner) if itself(inner)))
        && has(&|value| matches!(value, Type::Array { items, .. } if itself(items)))
}

/// Returns the name of the definition that a type refers to.
pub fn referenced_name(value: &Type) -> Option<&str> {
    match value {
        Type::Ref { name, .. } => Some(name),
        _ => None,
    }
}
