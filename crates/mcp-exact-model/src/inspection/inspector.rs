//! The walk of an inspection through a document, from a definition to its values.

use std::cmp::Ordering;
use std::sync::Arc;

use mcp_exact_wire::{
    Decode, DecodeErrorKind, Format, Integer, Kind, MAX_DEPTH, MAX_LISTED, Number, Path,
    ReadResult, Reader, RequestId, ViolationKind, Violations, check_format, check_max_items,
    check_maximum, check_min_items, check_minimum, from_str,
};

use super::value::{self, Duplicates, Value};
use super::{Inspection, UnknownMember, document};
use crate::{Bounds, Definition, Member, MemberValue, Model, Shape, Type};

/// State of an inspection in progress.
pub(super) struct Inspector<'i> {
    /// Revision against which the document is inspected.
    pub model: &'i Model,
    /// Members of the document in which unknown members are not listed; `None` if none are wanted.
    unknown_outside: Option<&'i [&'i str]>,
    /// Number of objects and arrays of known types that enclose the value that is being inspected.
    depth: u32,
    /// True unless a deviation was found that a decoder does not tolerate.
    decodes: bool,
    /// Deviations that checks of the wire crate have found so far, which are among those of `inspection`.
    violations: Violations,
    /// Deviations and unknown members found so far.
    inspection: Inspection,
}

impl<'i> Inspector<'i> {
    /// Creates the state before the inspection of a document.
    pub fn new(model: &'i Model, unknown_outside: Option<&'i [&'i str]>) -> Self {
        Self {
            model,
            unknown_outside,
            depth: 0,
            decodes: true,
            violations: Violations::default(),
            inspection: Inspection::default(),
        }
    }

    /// Returns what was found, and true if the type of the definition decodes the document.
    pub fn into_inspection(self) -> (Inspection, bool) {
        (self.inspection, self.decodes)
    }

    /// Adds a deviation with which the document does not decode.
    pub fn refuse(
        &mut self,
        at: usize,
        path: &Path<'_>,
        kind: DecodeErrorKind,
        message: impl FnOnce() -> String,
    ) {
        self.decodes = false;
        let describe = || (path.to_pointer(), message());
        self.inspection.add(at, kind.name(), describe);
    }

    /// Adds the deviation that a value does not have the JSON type `what`.
    fn refuse_type(&mut self, value: Value<'_>, path: &Path<'_>, what: &str) {
        let message = || format!("expected {what}");
        self.refuse(value.at, path, DecodeErrorKind::Type, message);
    }

    /// Adds a deviation that decoding tolerates.
    pub fn report(
        &mut self,
        at: usize,
        path: &Path<'_>,
        kind: ViolationKind,
        message: impl FnOnce() -> String,
    ) {
        let describe = || (path.to_pointer(), message());
        self.inspection.add(at, kind.name(), describe);
    }

    /// Adds the deviations of a value that `check` reports.
    fn check(&mut self, value: Value<'_>, check: impl FnOnce(&mut Violations)) {
        let (count, listed) = (self.violations.count(), self.violations.listed().len());
        check(&mut self.violations);
        let new = &self.violations.listed()[listed..];
        for violation in new {
            let describe = || (violation.pointer.clone(), violation.message.clone());
            self.inspection
                .add(value.at, violation.kind.name(), describe);
        }
        // A violation without room among the violations has none among the deviations, which are no fewer.
        self.inspection.count += self.violations.count() - count - new.len();
    }

    /// Decodes a value without parts; adds the error if it is no value of the type.
    pub fn decode<T: Decode>(&mut self, value: Value<'_>, path: &Path<'_>) -> Option<T> {
        match from_str(value.text) {
            Ok(decoded) => Some(decoded),
            Err(error) => {
                let message = || error.detail().to_owned();
                self.refuse(value.at, path, error.kind(), message);
                None
            }
        }
    }

    /// Reads a value; adds the error if it is no value of what is read.
    fn read<'v, T>(
        &mut self,
        value: Value<'v>,
        path: &Path<'_>,
        read: impl FnOnce(&mut Reader<'v>) -> ReadResult<T>,
    ) -> Option<T> {
        let mut r = Reader::of_checked(value.text);
        match read(&mut r) {
            Ok(found) => Some(found),
            Err(_) => {
                let error = r.into_error();
                let message = || error.detail().to_owned();
                self.refuse(value.at, path, error.kind(), message);
                None
            }
        }
    }

    /// Returns the parts of a value. An error would mean that the value is no JSON, which its document was scanned for; it
    /// becomes a deviation, so that no document is accepted that was not read.
    pub fn parts<T: Default>(
        &mut self,
        value: Value<'_>,
        path: &Path<'_>,
        parts: ReadResult<T>,
    ) -> T {
        parts.unwrap_or_else(|_| {
            let message = || "the text is not JSON".to_owned();
            self.refuse(value.at, path, DecodeErrorKind::Syntax, message);
            T::default()
        })
    }

    /// Enters an object or array of a known type; adds a deviation and returns false if it is nested deeper than the
    /// decoders read.
    fn enter(&mut self, value: Value<'_>, path: &Path<'_>) -> bool {
        if self.depth < MAX_DEPTH {
            self.depth += 1;
            return true;
        }
        let message = || format!("typed values are nested deeper than {MAX_DEPTH} levels");
        self.refuse(value.at, path, DecodeErrorKind::Depth, message);
        false
    }

    /// Inspects a value as a value of a definition.
    pub fn inspect_definition(
        &mut self,
        definition: &'i Definition,
        value: Value<'_>,
        path: &Path<'_>,
    ) {
        match &definition.shape {
            Shape::Struct(members) => self.inspect_struct(definition, members, value, path),
            Shape::Document(_) if value.kind != Kind::Object => {
                self.refuse_type(value, path, "an object");
            }
            Shape::Document(members) => {
                document::inspect(self, (members, definition.closed), value, path);
            }
            Shape::Enum(values) => {
                let text: Option<String> = self.decode(value, path);
                if let Some(text) = text.filter(|text| !values.contains(text)) {
                    let text = mcp_exact_wire::spans::quoted(&text);
                    let message = || format!("{text:?} is not a value of this revision");
                    self.report(value.at, path, ViolationKind::Enum, message);
                }
            }
            Shape::Constant(constant) => self.inspect_constant(constant, value, path),
            Shape::Union(variants) => self.inspect_union(definition, variants, value, path),
            Shape::Alias(alias) => self.inspect_value(alias, value, path),
            // Progress tokens are read like request ids.
            Shape::StringOrInteger => _ = self.decode::<RequestId>(value, path),
        }
    }

    /// Inspects a value as an object with known members; other members are listed as unknown if they are wanted.
    fn inspect_struct(
        &mut self,
        definition: &'i Definition,
        members: &'i [Member],
        value: Value<'_>,
        path: &Path<'_>,
    ) {
        if value.kind != Kind::Object {
            return self.refuse_type(value, path, "an object");
        }
        if !self.enter(value, path) {
            return;
        }
        let names = members.iter().map(|known| known.name.as_str());
        let found = self.parts(value, path, value.has_each(names));
        let missing = members.iter().zip(found).filter(|(_, is_there)| !is_there);
        let missing: Vec<&Member> = missing.map(|(known, _)| known).collect();
        for member in missing.iter().filter(|member| member.required) {
            let message = || format!("missing member `{}`", member.name);
            self.refuse(value.at, path, DecodeErrorKind::Required, message);
        }
        let mut missing_names: Option<Arc<[String]>> = None;
        let mut duplicates = Duplicates::of(value);
        let outside = self.unknown_outside;
        let is_left_out =
            |name: &str| path.is_root() && outside.is_some_and(|names| names.contains(&name));
        for member in value.members() {
            let Some(member) = self.parts(value, path, member.map(Some)) else {
                break;
            };
            let path = &path.member(&member.name);
            self.check_name(&member, &mut duplicates, path);
            match members.iter().find(|known| known.name == member.name) {
                Some(known) if is_left_out(&member.name) => {
                    let outside = self.unknown_outside.take();
                    self.inspect_member(&known.value, member.value, path);
                    self.unknown_outside = outside;
                }
                Some(known) => self.inspect_member(&known.value, member.value, path),
                None if definition.closed => {
                    let message = || "the object allows no other members than its own".to_owned();
                    let kind = ViolationKind::AdditionalProperties;
                    self.report(member.at, path, kind, message);
                }
                // `_meta` may have any members.
                None if value.is_meta || outside.is_none() || is_left_out(&member.name) => {}
                None => {
                    self.inspection.unknown_count += 1;
                    if self.inspection.unknown.len() == MAX_LISTED {
                        continue;
                    }
                    let names = || missing.iter().map(|member| member.name.clone()).collect();
                    self.inspection.unknown.push(UnknownMember {
                        pointer: path.to_pointer(),
                        offset: member.at,
                        name: member.name.clone().into_owned(),
                        definition: definition.name.clone(),
                        missing_members: missing_names.get_or_insert_with(names).clone(),
                    });
                }
            }
        }
        self.depth -= 1;
    }

    /// Adds a deviation if the name of a member cannot be decoded, or its object has another one of this name before it;
    /// `path` is that of the member.
    fn check_name<'m>(
        &mut self,
        member: &value::Member<'m>,
        duplicates: &mut Duplicates<'m>,
        path: &Path<'_>,
    ) {
        if let Some(error) = &member.error {
            let message = || error.detail().to_owned();
            self.refuse(member.at, path, error.kind(), message);
        } else if duplicates.is_repeated(member.name.clone()) {
            let message = || "the member is there twice".to_owned();
            self.refuse(member.at, path, DecodeErrorKind::Duplicate, message);
        }
    }

    /// Inspects the value of a known member.
    fn inspect_member(&mut self, wanted: &'i MemberValue, value: Value<'_>, path: &Path<'_>) {
        match wanted {
            MemberValue::ConstString(constant) => self.inspect_constant(constant, value, path),
            MemberValue::ConstInteger(constant) => {
                if value.kind != Kind::Number {
                    let message = || format!("expected a number, the constant {constant}");
                    return self.refuse(value.at, path, DecodeErrorKind::Type, message);
                }
                let number: Option<Number> = self.decode(value, path);
                if number.is_some_and(|number| number.compare(*constant) != Ordering::Equal) {
                    let message = || format!("expected the constant {constant}");
                    self.refuse(value.at, path, DecodeErrorKind::Const, message);
                }
            }
            MemberValue::Type(wanted) => self.inspect_value(wanted, value, path),
        }
    }

    /// Adds a deviation unless the value equals the constant.
    pub fn inspect_constant(&mut self, constant: &str, value: Value<'_>, path: &Path<'_>) {
        if value.kind != Kind::String {
            let message = || format!("expected a string, the constant {constant}");
            return self.refuse(value.at, path, DecodeErrorKind::Type, message);
        }
        let text: Option<String> = self.decode(value, path);
        if text.is_some_and(|text| text != constant) {
            let message = || format!("expected the constant {constant}");
            self.refuse(value.at, path, DecodeErrorKind::Const, message);
        }
    }

    /// Inspects a value as a value of the type `wanted`.
    pub fn inspect_value(&mut self, wanted: &'i Type, value: Value<'_>, path: &Path<'_>) {
        match wanted {
            Type::Json => {}
            Type::JsonObject => {
                if value.kind != Kind::Object {
                    self.refuse_type(value, path, "an object");
                }
            }
            Type::String(wanted) => match wanted.format.as_deref().and_then(Format::from_name) {
                Some(format) => {
                    if let Some(text) = self.read(value, path, Reader::str) {
                        self.check(value, |to| check_format(&text, format, path, to));
                    }
                }
                None => _ = self.read(value, path, Reader::skip_string),
            },
            Type::Boolean => _ = self.decode::<bool>(value, path),
            Type::Integer(bounds) => {
                if let Some(integer) = self.decode::<Integer>(value, path) {
                    self.inspect_bounds(*bounds, integer.as_number(), value, path);
                }
            }
            Type::Number(bounds) => {
                if let Some(number) = self.decode(value, path) {
                    self.inspect_bounds(*bounds, &number, value, path);
                }
            }
            Type::Ref { name } => {
                let model = self.model;
                match model.ir.get(name) {
                    Some(definition) => self.inspect_definition(definition, value, path),
                    // What nothing can check is not accepted.
                    None => {
                        let message = || format!("the model lacks the definition `{name}`");
                        self.refuse(value.at, path, DecodeErrorKind::Union, message);
                    }
                }
            }
            Type::Array {
                items,
                min_items,
                max_items,
            } => self.inspect_array(items, (*min_items, *max_items), value, path),
            Type::Map(values) => self.inspect_map(values, value, path),
            Type::Nullable(inner) => {
                if value.kind != Kind::Null {
                    self.inspect_value(inner, value, path);
                }
            }
        }
    }

    /// Inspects a value as an array whose items have one type, and whose length has a minimum and a maximum.
    fn inspect_array(
        &mut self,
        wanted: &'i Type,
        (minimum, maximum): (Option<u64>, Option<u64>),
        value: Value<'_>,
        path: &Path<'_>,
    ) {
        if value.kind != Kind::Array {
            return self.refuse_type(value, path, "an array");
        }
        if !self.enter(value, path) {
            return;
        }
        // A bound above every length is met, or missed, by every length.
        let bound = |bound: u64| usize::try_from(bound).unwrap_or(usize::MAX);
        if minimum.is_some() || maximum.is_some() {
            // The checks look at the number of the items alone.
            let items = vec![(); value.items().count()];
            self.check(value, |to| {
                if let Some(minimum) = minimum {
                    check_min_items(&items, bound(minimum), path, to);
                }
                if let Some(maximum) = maximum {
                    check_max_items(&items, bound(maximum), path, to);
                }
            });
        }
        for (index, item) in value.items().enumerate() {
            if let Some(item) = self.parts(value, path, item.map(Some)) {
                self.inspect_value(wanted, item, &path.index(index));
            }
        }
        self.depth -= 1;
    }

    /// Inspects a value as an object whose members all have one type.
    fn inspect_map(&mut self, wanted: &'i Type, value: Value<'_>, path: &Path<'_>) {
        if value.kind != Kind::Object {
            return self.refuse_type(value, path, "an object");
        }
        if !self.enter(value, path) {
            return;
        }
        let mut duplicates = Duplicates::of(value);
        for member in value.members() {
            let Some(member) = self.parts(value, path, member.map(Some)) else {
                break;
            };
            let path = &path.member(&member.name);
            self.check_name(&member, &mut duplicates, path);
            self.inspect_value(wanted, member.value, path);
        }
        self.depth -= 1;
    }

    /// Adds a deviation if a number is outside its bounds.
    fn inspect_bounds(
        &mut self,
        bounds: Bounds,
        number: &Number,
        value: Value<'_>,
        path: &Path<'_>,
    ) {
        self.check(value, |to| {
            if let Some(minimum) = bounds.minimum {
                check_minimum(number, minimum, path, to);
            }
            if let Some(maximum) = bounds.maximum {
                check_maximum(number, maximum, path, to);
            }
        });
    }
}
