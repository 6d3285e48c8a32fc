//! Inspects JSON values of a definition: finds every deviation from the schema, and every member that the schema does
//! not define.
//!
//! A decoder stops at the first error; an inspection continues, for people who want to repair a document. Decoder and
//! inspection select the same variant of a union. The caller provides the function that validates string formats.

mod dispatch;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use mcp_exact_wire::{Kind, MAX_DEPTH, Number};
use serde::Deserialize;

use mcp_exact_model::{Bounds, Definition, Ir, Member, MemberValue, Shape, Type};

pub use dispatch::Dispatch;
use dispatch::SelectedVariant;

use crate::value::Value;

/// Representation of a revision, and the tables by which values of its unions are assigned to variants.
#[derive(Debug, Clone, Deserialize)]
pub struct Model {
    /// Representation of the revision.
    #[serde(flatten)]
    pub ir: Ir,
    /// Dispatch table of each union, by the name of the union's definition.
    dispatch: BTreeMap<String, Dispatch>,
    /// Extensions of the revision.
    #[serde(default)]
    pub extensions: Vec<Model>,
}

/// Function that returns true if a text has a string format, such as `uri`; returns true for unknown formats.
pub type FormatCheck = fn(format: &str, text: &str) -> bool;

/// Result of an inspection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Deviations from the schema, in the order of the document.
    pub deviations: Vec<Deviation>,
    /// Members that the schema does not define, in the order of the document. Such members are
    /// allowed.
    pub unknown: Vec<UnknownMember>,
}

/// Deviation of a value from the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// JSON pointer of the value, or of the object that lacks a required member.
    pub pointer: String,
    /// Violated JSON Schema keyword; for unions also `tag` (unknown discriminant) or `exclusive` (members that exclude
    /// each other).
    pub kind: &'static str,
    /// Description of the deviation.
    pub message: String,
}

/// Member that the schema does not define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMember {
    /// JSON pointer of the member.
    pub pointer: String,
    /// Name of the definition whose object has the member.
    pub definition: String,
    /// Defined members that the object lacks; the unknown name may be a misspelling of one of them.
    pub missing_members: Vec<String>,
}

impl Model {
    /// Inspects a value as a value of the definition; returns `None` if the revision does not have the definition.
    pub fn inspect(
        &self,
        definition: &str,
        value: Value<'_>,
        format: FormatCheck,
    ) -> Option<Inspection> {
        let definition = self.ir.get(definition)?;
        let mut inspector = Inspector {
            model: self,
            format,
            pointer: String::new(),
            depth: 0,
            inspection: Inspection::default(),
        };
        inspector.inspect_definition(definition, value);
        Some(inspector.inspection)
    }
}

/// State of an inspection in progress.
struct Inspector<'i> {
    /// Revision against which the value is inspected.
    model: &'i Model,
    /// Function that validates string formats.
    format: FormatCheck,
    /// JSON pointer of the value that is being inspected.
    pointer: String,
    /// Number of tokens of the JSON pointer.
    depth: u32,
    /// Deviations and unknown members found so far.
    inspection: Inspection,
}

impl<'i> Inspector<'i> {
    /// Adds a deviation of the value that is being inspected.
    fn report(&mut self, kind: &'static str, message: String) {
        self.inspection.deviations.push(Deviation {
            pointer: self.pointer.clone(),
            kind,
            message,
        });
    }

    /// Adds a deviation because the value has a wrong type; `what` describes the expected type.
    fn report_wrong_type(&mut self, what: &str) {
        self.report("type", format!("expected {what}"));
    }

    /// Calls `f` while the JSON pointer is extended by a token.
    fn at_token<R>(&mut self, token: &str, f: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer
            .push_str(&token.replace('~', "~0").replace('/', "~1"));
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        self.pointer.truncate(length);
        result
    }

    /// Adds a deviation if an object or array of a known type is nested deeper than the decoders read.
    fn is_too_deep(&mut self) -> bool {
        let is_too_deep = self.depth >= MAX_DEPTH;
        if is_too_deep {
            self.report("depth", format!("nested deeper than {MAX_DEPTH} levels"));
        }
        is_too_deep
    }

    /// Adds a deviation for each member that an object has again, of those whose name `is_checked`.
    fn report_duplicates(&mut self, value: Value<'_>, is_checked: impl Fn(&str) -> bool) {
        let mut seen = HashSet::new();
        for (name, _) in value.members().filter(|(name, _)| is_checked(name)) {
            if !seen.insert(name.clone()) {
                self.at_token(&name, |this| {
                    this.report("duplicate", "the object has this member twice".to_owned());
                });
            }
        }
    }

    /// Inspects a value as a value of a definition.
    fn inspect_definition(&mut self, definition: &'i Definition, value: Value<'_>) {
        match &definition.shape {
            Shape::Document(members) if value.is_object() => {
                let is_member = |name: &str| members.iter().any(|member| member.name == name);
                self.report_duplicates(value, is_member);
                self.inspect_members(definition, members, value, true);
            }
            Shape::Struct(members) if value.is_object() => {
                if !self.is_too_deep() {
                    self.report_duplicates(value, |_| true);
                    self.inspect_members(definition, members, value, false);
                }
            }
            Shape::Struct(_) | Shape::Document(_) => self.report_wrong_type("an object"),
            Shape::Enum(values) => match value.as_str() {
                Some(text) if !values.iter().any(|value| *value == text) => {
                    self.report("enum", format!("{text:?} is not a value of this revision"));
                }
                Some(_) => {}
                None => self.report_wrong_type("a string"),
            },
            Shape::Constant(constant) => self.inspect_constant(constant, value),
            Shape::Union(variants) => self.inspect_union(definition, variants, value),
            Shape::Alias(alias) => self.inspect_value(alias, value),
            // Request ids and progress tokens are the only types of the runtime crate.
            Shape::StringOrInteger => {
                let is_whole = value.as_number().is_some_and(|number| number.is_integer());
                if value.as_str().is_none() && !is_whole {
                    self.report_wrong_type("a string or an integer");
                }
            }
        }
    }

    /// Inspects the members of an object; unknown members are listed unless `open` is true.
    fn inspect_members(
        &mut self,
        definition: &'i Definition,
        members: &'i [Member],
        object: Value<'_>,
        open: bool,
    ) {
        for member in members {
            if member.required && !object.get(&member.name).exists() {
                self.report("required", format!("missing member `{}`", member.name));
            }
        }
        for (name, value) in object.members() {
            match members.iter().find(|member| member.name == name) {
                Some(member) => self.at_token(&name, |this| match &member.value {
                    MemberValue::ConstString(constant) => this.inspect_constant(constant, value),
                    MemberValue::ConstInteger(constant) => {
                        let number = value.as_number();
                        if number.is_none_or(|number| number.compare(*constant) != Ordering::Equal)
                        {
                            this.report("const", format!("expected the constant {constant}"));
                        }
                    }
                    MemberValue::Type(wanted) => this.inspect_value(wanted, value),
                }),
                // JSON Schema keywords are not members of the protocol, and `_meta` may have any members.
                None if open || self.pointer.ends_with("/_meta") => {}
                None => {
                    let missing_members = members.iter().map(|member| &member.name);
                    let missing_members = missing_members
                        .filter(|name| !object.get(name).exists())
                        .cloned();
                    let missing_members = missing_members.collect();
                    self.at_token(&name, |this| {
                        this.inspection.unknown.push(UnknownMember {
                            pointer: this.pointer.clone(),
                            definition: definition.name.clone(),
                            missing_members,
                        });
                    });
                }
            }
        }
    }

    /// Adds a deviation unless the value equals the constant.
    fn inspect_constant(&mut self, constant: &str, value: Value<'_>) {
        if value.as_str().as_deref() != Some(constant) {
            self.report("const", format!("expected the constant {constant}"));
        }
    }

    /// Inspects a value as a value of the type `wanted`.
    fn inspect_value(&mut self, wanted: &'i Type, value: Value<'_>) {
        match wanted {
            Type::Json => {}
            Type::JsonObject => {
                if !value.is_object() {
                    self.report_wrong_type("an object");
                }
            }
            Type::String(wanted) => match (value.as_str(), &wanted.format) {
                (Some(text), Some(format)) if !(self.format)(format, &text) => {
                    let message = format!("the string is not of the format `{format}`");
                    self.report("format", message);
                }
                (Some(_), _) => {}
                (None, _) => self.report_wrong_type("a string"),
            },
            Type::Boolean => {
                if value.kind() != Kind::Boolean {
                    self.report_wrong_type("true or false");
                }
            }
            Type::Integer(bounds) => match value.as_number() {
                Some(number) if number.is_integer() => self.inspect_bounds(*bounds, &number, value),
                _ => self.report_wrong_type("an integer"),
            },
            Type::Number(bounds) => match value.as_number() {
                Some(number) => self.inspect_bounds(*bounds, &number, value),
                None => self.report_wrong_type("a number"),
            },
            Type::Ref { name, .. } => {
                if let Some(definition) = self.model.ir.get(name) {
                    self.inspect_definition(definition, value);
                }
            }
            Type::Array {
                items,
                min_items,
                max_items,
            } => {
                if value.kind() != Kind::Array {
                    self.report_wrong_type("an array");
                } else if !self.is_too_deep() {
                    let list = value.items();
                    self.inspect_length(list.len(), *min_items, *max_items);
                    for (index, item) in list.iter().enumerate() {
                        self.at_token(&index.to_string(), |this| {
                            this.inspect_value(items, Value::of(item));
                        });
                    }
                }
            }
            Type::Map(values) => {
                if !value.is_object() {
                    self.report_wrong_type("an object");
                } else if !self.is_too_deep() {
                    self.report_duplicates(value, |_| true);
                    for (name, value) in value.members() {
                        self.at_token(&name, |this| this.inspect_value(values, value));
                    }
                }
            }
            Type::Nullable(inner) => {
                if !value.is_null() {
                    self.inspect_value(inner, value);
                }
            }
        }
    }

    /// Adds a deviation if an array has too few or too many items.
    fn inspect_length(&mut self, length: usize, minimum: Option<u64>, maximum: Option<u64>) {
        let length = length as u64;
        if let Some(minimum) = minimum.filter(|minimum| length < *minimum) {
            self.report(
                "minItems",
                format!("{length} items are fewer than {minimum}"),
            );
        }
        if let Some(maximum) = maximum.filter(|maximum| length > *maximum) {
            self.report(
                "maxItems",
                format!("{length} items are more than {maximum}"),
            );
        }
    }

    /// Adds a deviation if a number is outside its bounds.
    fn inspect_bounds(&mut self, bounds: Bounds, number: &Number, value: Value<'_>) {
        let value = value.text();
        let is = |order: Ordering| move |bound: &i64| number.compare(*bound) == order;
        if let Some(minimum) = bounds.minimum.filter(is(Ordering::Less)) {
            self.report("minimum", format!("{value} is less than {minimum}"));
        }
        if let Some(maximum) = bounds.maximum.filter(is(Ordering::Greater)) {
            self.report("maximum", format!("{value} is greater than {maximum}"));
        }
    }

    /// Inspects a value as the union variant that the dispatch table selects.
    fn inspect_union(
        &mut self,
        definition: &'i Definition,
        variants: &'i [Type],
        value: Value<'_>,
    ) {
        let dispatch = self.model.dispatch.get(&definition.name);
        match dispatch.map_or(SelectedVariant::None, |dispatch| dispatch.select(value)) {
            SelectedVariant::Variant(index) => self.inspect_value(&variants[index], value),
            SelectedVariant::FirstItem(inner) => {
                self.at_token("0", |this| this.report_no_variant(definition, *inner));
            }
            other => self.report_no_variant(definition, other),
        }
    }

    /// Adds a deviation that states why no variant was selected.
    fn report_no_variant(&mut self, definition: &Definition, selected: SelectedVariant<'_>) {
        match selected {
            SelectedVariant::Unrecognized(tag) => {
                self.report("tag", format!("{tag:?} is not known to this revision"));
            }
            SelectedVariant::Mismatch(kind, message) => self.report(kind, message),
            SelectedVariant::NonStringTag(name) => {
                self.at_token(name, |this| this.report_wrong_type("a string"))
            }
            _ => {
                let message = format!("no variant of `{}` fits", definition.name);
                self.report("anyOf", message);
            }
        }
    }
}

// The tests need packages of the workspace, which the packaged crate lacks; `cargo xtask test` enables the feature.
#[cfg(all(test, feature = "full"))]
mod tests;
