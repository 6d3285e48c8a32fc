//! Rows of definitions and their types.
//!
//! The input is definitions of a revision; the output is Rust source in which types are indexes.

use std::collections::BTreeSet;

use super::{Program, index_or_none};
use crate::convert::plan::{ResolvedType, resolve_aliases};
use crate::emit::union_role;
use crate::ir::{
    Bounds, Definition, Dispatch, Member, MemberValue, ObjectDispatch, Shape, Tag, Type,
};

impl Program<'_> {
    /// Returns the index of a type of a revision.
    pub fn type_index(&mut self, revision: usize, value: &Type) -> usize {
        let ir = self.irs[revision];
        let row = match resolve_aliases(ir, value) {
            ResolvedType::Definition(definition) => {
                let place = self.definitions[&(revision, definition.name.as_str())];
                format!("Type::Definition({place})")
            }
            ResolvedType::Runtime(name) => format!("Type::{name}"),
            ResolvedType::Other(value) => self.type_row(revision, value),
        };
        self.types.index_of(row)
    }

    /// Returns the row of a type.
    pub(super) fn type_row(&mut self, revision: usize, value: &Type) -> String {
        match value {
            Type::Json => "Type::Json".to_owned(),
            Type::JsonObject => "Type::JsonObject".to_owned(),
            Type::Boolean => "Type::Boolean".to_owned(),
            Type::String(text) => match crate::emit::known_format(text.format.as_deref()) {
                Some(format) => format!("Type::Formatted(Format::{format})"),
                None => "Type::String".to_owned(),
            },
            Type::Integer(bounds) => format!("Type::Integer({})", self.bounds_expression(*bounds)),
            Type::Number(bounds) => format!("Type::Number({})", self.bounds_expression(*bounds)),
            Type::Array {
                items,
                min_items,
                max_items,
            } => {
                let items = self.type_index(revision, items);
                let bounds = self.size_bounds_expression(*min_items, *max_items);
                format!("Type::Array({items},{bounds})")
            }
            Type::Map(values) => format!("Type::Map({})", self.type_index(revision, values)),
            Type::Nullable(value) => {
                format!("Type::Nullable({})", self.type_index(revision, value))
            }
            // References without a target do not occur in a valid representation.
            Type::Ref { .. } => "Type::Json".to_owned(),
        }
    }

    /// Returns the index of the type of a member, which may be a constant.
    pub(super) fn member_type_index(&mut self, revision: usize, member: &Member) -> usize {
        let row = match &member.value {
            MemberValue::ConstString(value) => {
                format!("Type::Constant({})", self.pool.string_expression(value))
            }
            MemberValue::ConstInteger(value) => {
                let words = self.pool.string_expression(&value.to_string());
                format!("Type::ConstantInteger({value},{words})")
            }
            MemberValue::Type(value) => return self.type_index(revision, value),
        };
        self.types.index_of(row)
    }

    /// Returns the row of a definition.
    pub(super) fn definition_row(&mut self, revision: usize, definition: &Definition) -> String {
        let name = self.pool.string_expression(&definition.name);
        match &definition.shape {
            Shape::Struct(members) => {
                let required = members.iter().enumerate().filter(|(_, m)| m.required);
                let required = required.fold(0_u64, |bits, (at, _)| bits | 1 << at);
                let types: Vec<usize> = members
                    .iter()
                    .map(|member| self.member_type_index(revision, member))
                    .collect();
                let types = self.pool.number_list("PLACES", types);
                let names: Vec<String> = members
                    .iter()
                    .map(|member| {
                        format!("MemberName({})", self.pool.string_expression(&member.name))
                    })
                    .collect();
                let names = self.pool.list_expression("MEMBERS", &names);
                let open = if definition.closed { "closed_" } else { "" };
                format!("{open}object({name},{names},{types},{required})")
            }
            Shape::Document(members) => {
                let ir = self.irs[revision];
                let rules = members
                    .iter()
                    .map(|member| crate::emit::document_rule(ir, member).to_string());
                let rules: Vec<String> = rules.collect();
                let place = self.documents.index_of(format!("&[{}]", rules.join(", ")));
                format!("shaped({name},Shape::Document(Document({place})))")
            }
            Shape::Enum(values) => {
                let values = self.pool.string_list("TEXTS", values);
                format!("shaped({name},Shape::Enum({values}))")
            }
            Shape::Constant(value) => {
                let value = self.pool.string_expression(value);
                format!("shaped({name},Shape::Constant({value}))")
            }
            Shape::Union(_) => {
                let place = self.union_index(revision, &definition.name);
                format!("shaped({name},Shape::Union({place}))")
            }
            Shape::Alias(_) | Shape::StringOrInteger => String::new(),
        }
    }

    /// Returns the index of a union.
    pub(super) fn union_index(&mut self, revision: usize, name: &str) -> usize {
        let union = self.irs[revision].union(name);
        let variants = union.variants.iter();
        let variants: Vec<usize> = variants
            .map(|variant| self.type_index(revision, &variant.value))
            .collect();
        let variants = self.pool.number_list("PLACES", variants);
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
        let scalars: Vec<String> = scalars.map(|at| index_or_none(*at)).to_vec();
        let sets: Vec<String> = values
            .iter()
            .map(|(set, variant)| {
                let values = self.pool.string_list("TEXTS", set);
                format!("ValueSet{{values:{values},variant:{variant}}}")
            })
            .collect();
        let sets = self.pool.list_expression("VALUE_SETS", &sets);
        let arrays = self.pool.number_list("SMALL", arrays.iter().copied());
        let items = match items {
            Some(items) => format!("Some({})", self.dispatch_index(name, items)),
            None => "None".to_owned(),
        };
        let only = objects.as_ref().and_then(|objects| {
            let is_used: BTreeSet<usize> = objects.cases.iter().map(|case| case.variant).collect();
            let first = is_used.first().copied()?;
            (is_used.len() == 1 && union.open_tag().is_none()).then_some(first)
        });
        let objects = match (objects, only) {
            (None, _) => "Objects::None".to_owned(),
            (_, Some(only)) => format!("Objects::Only({only})"),
            (Some(objects), None) => {
                format!(
                    "Objects::Dispatched({})",
                    self.dispatch_index(name, objects)
                )
            }
        };
        let open = union.open_tag().unwrap_or_default();
        let role = union_role(self.irs[revision], name, open);
        let open = self.pool.string_expression(open);
        self.unions.index_of(format!(
            "Union{{variants:{variants},scalars:[{}],values:{sets},arrays:{arrays},items:{items},objects:{objects},\
             open:{open},role:UnionRole::{role:?}}}",
            scalars.join(","),
        ))
    }

    /// Returns the index of the dispatch table for the objects of a union.
    pub(super) fn dispatch_index(&mut self, name: &str, dispatch: &ObjectDispatch) -> usize {
        let bits = |all: &[usize]| all.iter().fold(0_u32, |bits, at| bits | 1 << at);
        let pool = &mut self.pool;
        let probes: Vec<String> = dispatch
            .probes
            .iter()
            .map(|(name, inner)| {
                let inner = pool.string_expression(inner.as_deref().unwrap_or_default());
                format!("probe({},{inner})", pool.string_expression(name))
            })
            .collect();
        let cases: Vec<String> = dispatch
            .cases
            .iter()
            .map(|case| {
                let tag = match &case.tag {
                    Tag::Is(value) => format!("PackedTag::Is({})", pool.string_expression(value)),
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
        let name = pool.string_expression(name);
        let tag = pool.string_expression(dispatch.tag.as_deref().unwrap_or_default());
        let probes = pool.list_expression("PROBES", &probes);
        let cases = pool.list_expression("CASES", &cases);
        let exclusive = pool.list_expression("EXCLUSIVE", &exclusive);
        self.dispatches.index_of(format!(
            "PackedDispatch{{name:{name},tag:{tag},members:{probes},cases:{cases},exclusive:{exclusive}}}"
        ))
    }

    /// Returns the Rust expression for the bounds of a number.
    pub(super) fn bounds_expression(&mut self, bounds: Bounds) -> String {
        self.pool.bounds_expression(bounds.minimum, bounds.maximum)
    }

    /// Returns the Rust expression for the bounds of the number of items.
    pub(super) fn size_bounds_expression(&mut self, low: Option<u64>, high: Option<u64>) -> String {
        // No message has more items than this limit.
        let size = |size: Option<u64>| size.map(|size| i64::try_from(size).unwrap_or(i64::MAX));
        self.pool.bounds_expression(size(low), size(high))
    }
}
