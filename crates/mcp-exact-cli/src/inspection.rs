//! Inspects JSON values of a definition: finds every deviation from the schema, and every member that the schema does
//! not define.
//!
//! A decoder stops at the first error; an inspection continues, for people who want to repair a document. Decoder and
//! inspection select the same variant of a union. The caller provides the function that validates string formats.

mod dispatch;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use mcp_exact_model::{Bounds, Definition, Ir, Member, MemberValue, Shape, Type};

pub use dispatch::Dispatch;
use dispatch::SelectedVariant;

/// Representation of a revision, and the tables by which values of its unions are assigned to variants.
#[derive(Debug, Clone, Deserialize)]
pub struct Model {
    /// Representation of the revision.
    #[serde(flatten)]
    pub ir: Ir,
    /// Dispatch table of each union, by the name of the union's definition.
    dispatch: BTreeMap<String, Dispatch>,
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
        value: &Value,
        format: FormatCheck,
    ) -> Option<Inspection> {
        let definition = self.ir.get(definition)?;
        let mut inspector = Inspector {
            model: self,
            format,
            pointer: String::new(),
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
        let result = f(self);
        self.pointer.truncate(length);
        result
    }

    /// Inspects a value as a value of a definition.
    fn inspect_definition(&mut self, definition: &'i Definition, value: &Value) {
        match &definition.shape {
            Shape::Struct(members) | Shape::Document(members) => match value {
                Value::Object(object) => {
                    let open = matches!(definition.shape, Shape::Document(_));
                    self.inspect_members(definition, members, object, open);
                }
                _ => self.report_wrong_type("an object"),
            },
            Shape::Enum(values) => match value {
                Value::String(text) if !values.contains(text) => {
                    self.report("enum", format!("{text:?} is not a value of this revision"));
                }
                Value::String(_) => {}
                _ => self.report_wrong_type("a string"),
            },
            Shape::Constant(constant) => {
                self.inspect_constant(&Value::from(constant.as_str()), value)
            }
            Shape::Union(variants) => self.inspect_union(definition, variants, value),
            Shape::Alias(alias) => self.inspect_value(alias, value),
            // Request ids and progress tokens are the only types of the runtime crate.
            Shape::StringOrInteger => {
                let is_whole = value.as_number().is_some_and(is_whole);
                if !value.is_string() && !is_whole {
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
        object: &Map<String, Value>,
        open: bool,
    ) {
        for member in members {
            if member.required && !object.contains_key(&member.name) {
                self.report("required", format!("missing member `{}`", member.name));
            }
        }
        for (name, value) in object {
            match members.iter().find(|member| member.name == *name) {
                Some(member) => self.at_token(name, |this| match &member.value {
                    MemberValue::ConstString(constant) => {
                        this.inspect_constant(&Value::from(constant.as_str()), value);
                    }
                    MemberValue::ConstInteger(constant) => {
                        this.inspect_constant(&Value::from(*constant), value);
                    }
                    MemberValue::Type(wanted) => this.inspect_value(wanted, value),
                }),
                // JSON Schema keywords are not members of the protocol, and `_meta` may have any members.
                None if open || self.pointer.ends_with("/_meta") => {}
                None => {
                    let missing_members = members.iter().map(|member| &member.name);
                    let missing_members = missing_members
                        .filter(|name| !object.contains_key(*name))
                        .cloned();
                    let missing_members = missing_members.collect();
                    self.at_token(name, |this| {
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
    fn inspect_constant(&mut self, constant: &Value, value: &Value) {
        let is_equal = match (constant.as_f64(), value.as_f64()) {
            (Some(a), Some(b)) => a == b,
            _ => constant == value,
        };
        if !is_equal {
            let words = constant
                .as_str()
                .map_or_else(|| constant.to_string(), str::to_owned);
            self.report("const", format!("expected the constant {words}"));
        }
    }

    /// Inspects a value as a value of the type `wanted`.
    fn inspect_value(&mut self, wanted: &'i Type, value: &Value) {
        match wanted {
            Type::Json => {}
            Type::JsonObject => {
                if !value.is_object() {
                    self.report_wrong_type("an object");
                }
            }
            Type::String(wanted) => match (value, &wanted.format) {
                (Value::String(text), Some(format)) if !(self.format)(format, text) => {
                    let message = format!("the string is not of the format `{format}`");
                    self.report("format", message);
                }
                (Value::String(_), _) => {}
                _ => self.report_wrong_type("a string"),
            },
            Type::Boolean => {
                if !value.is_boolean() {
                    self.report_wrong_type("true or false");
                }
            }
            Type::Integer(bounds) => match value.as_number() {
                Some(number) if is_whole(number) => self.inspect_bounds(*bounds, value),
                _ => self.report_wrong_type("an integer"),
            },
            Type::Number(bounds) => match value {
                Value::Number(_) => self.inspect_bounds(*bounds, value),
                _ => self.report_wrong_type("a number"),
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
            } => match value {
                Value::Array(list) => {
                    self.inspect_length(list.len(), *min_items, *max_items);
                    for (index, item) in list.iter().enumerate() {
                        self.at_token(&index.to_string(), |this| this.inspect_value(items, item));
                    }
                }
                _ => self.report_wrong_type("an array"),
            },
            Type::Map(values) => match value {
                Value::Object(object) => {
                    for (name, value) in object {
                        self.at_token(name, |this| this.inspect_value(values, value));
                    }
                }
                _ => self.report_wrong_type("an object"),
            },
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
    #[expect(
        clippy::cast_precision_loss,
        reason = "bounds of the protocol are small"
    )]
    fn inspect_bounds(&mut self, bounds: Bounds, value: &Value) {
        let Some(number) = value.as_f64() else {
            return;
        };
        if let Some(minimum) = bounds.minimum.filter(|minimum| number < *minimum as f64) {
            self.report("minimum", format!("{value} is less than {minimum}"));
        }
        if let Some(maximum) = bounds.maximum.filter(|maximum| number > *maximum as f64) {
            self.report("maximum", format!("{value} is greater than {maximum}"));
        }
    }

    /// Inspects a value as the union variant that the dispatch table selects.
    fn inspect_union(&mut self, definition: &'i Definition, variants: &'i [Type], value: &Value) {
        let dispatch = self.model.dispatch.get(&definition.name);
        match dispatch.map_or(SelectedVariant::None, |dispatch| dispatch.select(value)) {
            SelectedVariant::Variant(index) => self.inspect_value(&variants[index], value),
            SelectedVariant::FirstItem(inner) => {
                self.at_token("0", |this| this.report_no_variant(definition, *inner))
            }
            other => self.report_no_variant(definition, other),
        }
    }

    /// Adds a deviation that states why no variant was selected.
    fn report_no_variant(&mut self, definition: &Definition, selected: SelectedVariant<'_, '_>) {
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

/// Returns true if a number has no fractional part; `1.0` has none.
fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

// The tests need packages of the workspace, which the packaged crate lacks; `cargo xtask test` enables the feature.
#[cfg(all(test, feature = "full"))]
mod tests;
