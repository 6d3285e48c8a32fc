//! Rows of definitions and their types.
//!
//! The input are definitions of a revision, the output Rust source in which types are indexes.

use std::collections::BTreeSet;

use super::{Program, place_or_none};
use crate::convert::plan::{Resolved, resolve};
use crate::emit::role;
use crate::ir::{
    Bounds, Definition, Dispatch, Member, MemberValue, ObjectDispatch, Shape, Tag, Type,
};

impl Program<'_> {
    /// Returns the index of a type of a revision.
    pub fn type_place(&mut self, revision: usize, value: &Type) -> usize {
        let ir = self.irs[revision];
        let row = match resolve(ir, value) {
            Resolved::Definition(definition) => {
                let place = self.definitions[&(revision, definition.name.as_str())];
                format!("Type::Definition({place})")
            }
            Resolved::Runtime(name) => format!("Type::{name}"),
            Resolved::Plain(value) => self.type_row(revision, value),
        };
        self.types.place(row)
    }

    pub(super) fn type_row(&mut self, revision: usize, value: &Type) -> String {
        match value {
            Type::Json => "Type::Json".to_owned(),
            Type::JsonObject => "Type::JsonObject".to_owned(),
            Type::Boolean => "Type::Boolean".to_owned(),
            Type::String(text) => match crate::emit::known_format(text.format.as_deref()) {
                Some(format) => format!("Type::Formatted(Format::{format})"),
                None => "Type::String".to_owned(),
            },
            Type::Integer(bounds) => format!("Type::Integer({})", self.bounds(*bounds)),
            Type::Number(bounds) => format!("Type::Number({})", self.bounds(*bounds)),
            Type::Array {
                items,
                min_items,
                max_items,
            } => {
                let items = self.type_place(revision, items);
                let bounds = self.sizes(*min_items, *max_items);
                format!("Type::Array({items},{bounds})")
            }
            Type::Map(values) => format!("Type::Map({})", self.type_place(revision, values)),
            Type::Nullable(value) => {
                format!("Type::Nullable({})", self.type_place(revision, value))
            }
            // References without a target do not occur in a valid representation.
            Type::Ref { .. } => "Type::Json".to_owned(),
        }
    }

    pub(super) fn member_type(&mut self, revision: usize, member: &Member) -> usize {
        let row = match &member.value {
            MemberValue::ConstString(value) => format!("Type::Constant({})", self.pool.text(value)),
            MemberValue::ConstInteger(value) => {
                let words = self.pool.text(&value.to_string());
                format!("Type::ConstantInteger({value},{words})")
            }
            MemberValue::Type(value) => return self.type_place(revision, value),
        };
        self.types.place(row)
    }

    pub(super) fn definition(&mut self, revision: usize, definition: &Definition) -> String {
        let name = self.pool.text(&definition.name);
        match &definition.shape {
            Shape::Struct(members) => {
                let required = members.iter().enumerate().filter(|(_, m)| m.required);
                let required = required.fold(0_u64, |bits, (at, _)| bits | 1 << at);
                let types: Vec<usize> = members
                    .iter()
                    .map(|member| self.member_type(revision, member))
                    .collect();
                let types = self.pool.numbers("PLACES", types);
                let names: Vec<String> = members
                    .iter()
                    .map(|member| format!("MemberName({})", self.pool.text(&member.name)))
                    .collect();
                let names = self.pool.list("MEMBERS", &names);
                let open = if definition.closed { "closed_" } else { "" };
                format!("{open}object({name},{names},{types},{required})")
            }
            Shape::Document(members) => {
                let ir = self.irs[revision];
                let rules = members
                    .iter()
                    .map(|member| crate::emit::document_rule(ir, member).to_string());
                let rules: Vec<String> = rules.collect();
                let place = self.documents.place(format!("&[{}]", rules.join(", ")));
                format!("shaped({name},Shape::Document(Document({place})))")
            }
            Shape::Enum(values) => {
                let values = self.pool.texts("TEXTS", values);
                format!("shaped({name},Shape::Enum({values}))")
            }
            Shape::Constant(value) => {
                let value = self.pool.text(value);
                format!("shaped({name},Shape::Constant({value}))")
            }
            Shape::Union(_) => {
                let place = self.union(revision, &definition.name);
                format!("shaped({name},Shape::Union({place}))")
            }
            Shape::Alias(_) | Shape::StringOrInteger => String::new(),
        }
    }

    pub(super) fn union(&mut self, revision: usize, name: &str) -> usize {
        let union = self.irs[revision].union(name);
        let variants = union.variants.iter();
        let variants: Vec<usize> = variants
            .map(|variant| self.type_place(revision, &variant.value))
            .collect();
        let variants = self.pool.numbers("PLACES", variants);
        let Dispatch {
            values,
            string,
            number,
            boolean,
            null,
            arrays,
            items,
            objects,
            ..
        } = &union.dispatch;
        let scalars = [string, number, boolean, null];
        let scalars: Vec<String> = scalars.map(|at| place_or_none(*at)).to_vec();
        let sets: Vec<String> = values
            .iter()
            .map(|(set, variant)| {
                let values = self.pool.texts("TEXTS", set);
                format!("ValueSet{{values:{values},variant:{variant}}}")
            })
            .collect();
        let sets = self.pool.list("VALUE_SETS", &sets);
        let arrays = self.pool.numbers("SMALL", arrays.iter().copied());
        let items = match items {
            Some(items) => format!("Some({})", self.dispatch(name, items)),
            None => "None".to_owned(),
        };
        let only = objects.as_ref().and_then(|objects| {
            let used: BTreeSet<usize> = objects.cases.iter().map(|case| case.variant).collect();
            let first = used.first().copied()?;
            (used.len() == 1 && union.open_tag().is_none()).then_some(first)
        });
        let objects = match (objects, only) {
            (None, _) => "Objects::None".to_owned(),
            (_, Some(only)) => format!("Objects::Only({only})"),
            (Some(objects), None) => {
                format!("Objects::Dispatched({})", self.dispatch(name, objects))
            }
        };
        let open = union.open_tag().unwrap_or_default();
        let role = role(self.irs[revision], name, open);
        let open = self.pool.text(open);
        self.unions.place(format!(
            "Union{{variants:{variants},scalars:[{}],values:{sets},arrays:{arrays},items:{items},objects:{objects},\
             open:{open},role:UnionRole::{role:?}}}",
            scalars.join(","),
        ))
    }

    /// Returns the index of the dispatch table for the objects of a union.
    pub(super) fn dispatch(&mut self, name: &str, dispatch: &ObjectDispatch) -> usize {
        let bits = |all: &[usize]| all.iter().fold(0_u32, |bits, at| bits | 1 << at);
        let pool = &mut self.pool;
        let probes: Vec<String> = dispatch
            .probes
            .iter()
            .map(|(name, inner)| {
                let inner = pool.text(inner.as_deref().unwrap_or_default());
                format!("probe({},{inner})", pool.text(name))
            })
            .collect();
        let cases: Vec<String> = dispatch
            .cases
            .iter()
            .map(|case| {
                let tag = match &case.tag {
                    Tag::Is(value) => format!("PackedTag::Is({})", pool.text(value)),
                    Tag::Absent => "PackedTag::Absent".to_owned(),
                    Tag::Any => "PackedTag::Any".to_owned(),
                };
                format!("case({tag},{},{})", bits(&case.has), case.variant)
            })
            .collect();
        let exclusive: Vec<String> = dispatch
            .exclusive
            .iter()
            .map(|(a, b)| format!("({},{})", bits(&[*a]), bits(&[*b])))
            .collect();
        let name = pool.text(name);
        let tag = pool.text(dispatch.tag.as_deref().unwrap_or_default());
        let probes = pool.list("PROBES", &probes);
        let cases = pool.list("CASES", &cases);
        let exclusive = pool.list("EXCLUSIVE", &exclusive);
        self.dispatches.place(format!(
            "PackedDispatch{{name:{name},tag:{tag},members:{probes},cases:{cases},exclusive:{exclusive}}}"
        ))
    }

    pub(super) fn bounds(&mut self, bounds: Bounds) -> String {
        self.pool.bounds(bounds.minimum, bounds.maximum)
    }

    pub(super) fn sizes(&mut self, low: Option<u64>, high: Option<u64>) -> String {
        // No message has more items than this limit.
        let size = |size: Option<u64>| size.map(|size| i64::try_from(size).unwrap_or(i64::MAX));
        self.pool.bounds(size(low), size(high))
    }
}
