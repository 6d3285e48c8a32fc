//! The definitions, types and rules of all revisions as static tables, each written once.
//!
//! Takes representations and rules; gives text in which everything refers to everything by its place. Definitions of
//! several revisions that are identical all the way down are one entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::plan::{Plan, Resolved, resolve};
use super::pool::{Pool, Rows};
use super::rules::{
    Action, Arm, Body, Fill, GoneKind, MemberStep, Op, Rule, TypeText, Unrecognized,
};
use super::steps::Step;
use super::watch::Watch;
use crate::emit::role;
use crate::ir::{
    Bounds, Definition, Dispatch, Ir, Member, MemberValue, ObjectDispatch, RustIr, Shape, Tag, Type,
};

/// All tables while they are written.
pub struct Program<'i> {
    irs: Vec<&'i RustIr>,
    /// The place of each definition of each revision.
    definitions: BTreeMap<(usize, &'i str), usize>,
    /// One definition for each place, with its revision.
    distinct: Vec<(usize, &'i Definition)>,
    types: Rows,
    unions: Rows,
    choices: Rows,
    documents: Rows,
    ops: Rows,
    calls: Rows,
    watches: Rows,
    /// Strings, and the lists that rows refer to.
    pub pool: Pool,
    /// The places of rules, by step, direction and names in the source and the target.
    rules: BTreeMap<(usize, bool, String, String), usize>,
    /// Offset of the rules of each step and direction.
    begins: Vec<String>,
}

impl<'i> Program<'i> {
    /// Gives every definition its place.
    pub fn new(irs: &[&'i RustIr]) -> Self {
        let mut program = Self {
            irs: irs.to_vec(),
            definitions: BTreeMap::new(),
            distinct: Vec::new(),
            types: Rows::default(),
            unions: Rows::default(),
            choices: Rows::default(),
            documents: Rows::default(),
            ops: Rows::default(),
            calls: Rows::default(),
            watches: Rows::default(),
            pool: Pool::new(),
            rules: BTreeMap::new(),
            begins: vec!["0".to_owned()],
        };
        program.merge();
        program.ops.place("Op::Keep".to_owned());
        program
    }

    /// Finds which definitions are the same: all are, until something tells them apart.
    fn merge(&mut self) {
        let mut places: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut count = 0;
        loop {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            let mut distinct = Vec::new();
            let mut next = BTreeMap::new();
            for (at, ir) in self.irs.iter().enumerate() {
                for definition in &ir.definitions {
                    if matches!(definition.shape, Shape::Alias(_) | Shape::StringOrInteger) {
                        continue;
                    }
                    let key = structure(ir, at, definition, &places);
                    let place = *seen.entry(key).or_insert_with(|| {
                        distinct.push((at, definition));
                        distinct.len() - 1
                    });
                    next.insert((at, definition.name.as_str()), place);
                }
            }
            places = next;
            if distinct.len() == count {
                self.definitions = places;
                self.distinct = distinct;
                return;
            }
            count = distinct.len();
        }
    }

    /// The place of a type of a revision.
    pub fn type_place(&mut self, revision: usize, value: &Type) -> usize {
        let ir = self.irs[revision];
        let row = match resolve(ir, value) {
            Resolved::Definition(definition) => {
                let place = self.definitions[&(revision, definition.name.as_str())];
                format!("Type::Definition({place})")
            }
            Resolved::Runtime(name) => format!("Type::{name}"),
            Resolved::Plain(value) => self.plain(revision, value),
        };
        self.types.place(row)
    }

    fn plain(&mut self, revision: usize, value: &Type) -> String {
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
            // A reference that leads nowhere, which no representation has.
            Type::Ref { .. } => "Type::Json".to_owned(),
        }
    }

    fn member_type(&mut self, revision: usize, member: &Member) -> usize {
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

    fn definition(&mut self, revision: usize, definition: &Definition) -> String {
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

    fn union(&mut self, revision: usize, name: &str) -> usize {
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
            Some(items) => format!("Some({})", self.choice(name, items)),
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
            (Some(objects), None) => format!("Objects::Told({})", self.choice(name, objects)),
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

    /// The place of how the objects of a union are told apart.
    fn choice(&mut self, name: &str, dispatch: &ObjectDispatch) -> usize {
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
        self.choices.place(format!(
            "PackedChoice{{name:{name},tag:{tag},members:{probes},cases:{cases},exclusive:{exclusive}}}"
        ))
    }

    fn bounds(&mut self, bounds: Bounds) -> String {
        self.pool.bounds(bounds.minimum, bounds.maximum)
    }

    fn sizes(&mut self, low: Option<u64>, high: Option<u64>) -> String {
        // More items than that are in no message.
        let size = |size: Option<u64>| size.map(|size| i64::try_from(size).unwrap_or(i64::MAX));
        self.pool.bounds(size(low), size(high))
    }

    /// A manual conversion as a row has it.
    fn call(&mut self, function: &str) -> String {
        let place = self.calls.place(format!("manual::{function}"));
        format!("Call({place})")
    }

    /// Gives the rules of one direction their places.
    pub fn place_rules(&mut self, step: usize, up: bool, of: &Step<'_, 'i>) {
        for pair in of.plan.pairs.iter().filter(|pair| of.is_effective(**pair)) {
            let (source, target) = of.facing(pair.0, pair.1);
            let key = (step, up, source.to_owned(), target.to_owned());
            let place = self.rules.len();
            self.rules.insert(key, place);
        }
        self.begins.push(self.rules.len().to_string());
    }

    /// Returns the offset of the rules of each step and direction, and the end of the last ones.
    pub fn begins(&self) -> &[String] {
        &self.begins
    }

    /// The place of what happens to a value.
    pub fn op_place(&mut self, step: usize, up: bool, op: &Op) -> usize {
        let row = match op {
            Op::Keep => "Op::Keep".to_owned(),
            Op::Pair(source, target) => {
                let key = (step, up, source.clone(), target.clone());
                format!("Op::Pair({})", self.rules[&key])
            }
            Op::Reinterpret(value) => {
                format!("Op::Reinterpret({})", self.target_type(step, up, value))
            }
            Op::Fit(value) => format!("Op::Fit({})", self.target_type(step, up, value)),
            Op::Bounded(low, high) => format!("Op::Bounded({})", self.pool.bounds(*low, *high)),
            Op::Array(items, low, high) => {
                let items = self.op_place(step, up, items);
                format!("Op::Array({items},{})", self.sizes(*low, *high))
            }
            Op::Map(values) => format!("Op::Map({})", self.op_place(step, up, values)),
            Op::Nullable(value) => format!("Op::Nullable({})", self.op_place(step, up, value)),
            Op::NotNull(value) => format!("Op::NotNull({})", self.op_place(step, up, value)),
        };
        self.ops.place(row)
    }

    fn target_type(&mut self, step: usize, up: bool, value: &TypeText) -> usize {
        self.type_place(if up { step + 1 } else { step }, &value.0)
    }

    fn rule(
        &mut self,
        step: usize,
        up: bool,
        of: &Step<'_, 'i>,
        pair: &(&'i str, &'i str),
    ) -> String {
        let Some(rule) = of.rule(pair) else {
            return String::new();
        };
        let (source_at, target_at) = if up {
            (step, step + 1)
        } else {
            (step + 1, step)
        };
        let (source, target) = of.facing(pair.0, pair.1);
        let (source, target) = (
            self.definitions[&(source_at, source)],
            self.definitions[&(target_at, target)],
        );
        let Rule {
            prepare,
            strays,
            body,
            ..
        } = rule;
        let prepare = match prepare {
            Some(function) => format!("Some({})", self.call(&function)),
            None => "None".to_owned(),
        };
        let body = self.body(step, up, &body);
        let target_type = self.types.place(format!("Type::Definition({target})"));
        let strays = strays.iter();
        let strays: Vec<String> = strays
            .map(|(name, kind)| format!("({},{})", self.pool.text(name), self.gone(kind)))
            .collect();
        let strays = self.pool.list("UNKNOWN_MEMBERS", &strays);
        if prepare == "None" && strays == "list(0,0)" {
            return format!("rule({source},{target},{target_type},{body})");
        }
        format!("prepared({source},{target},{target_type},{prepare},{strays},{body})")
    }

    fn body(&mut self, step: usize, up: bool, body: &Body) -> String {
        match body {
            Body::Keep => "Body::Keep".to_owned(),
            Body::Object(gone, steps) => {
                let gone: Vec<String> = gone
                    .iter()
                    .map(|gone| format!("({},{})", gone.source, self.gone(&gone.kind)))
                    .collect();
                let gone = self.pool.list("SOURCE_MEMBERS", &gone);
                let steps: Vec<String> = steps
                    .iter()
                    .map(|member| self.member_step(step, up, member))
                    .collect();
                let steps = self.pool.list("TARGET_MEMBERS", &steps);
                format!("Body::Object({gone},{steps})")
            }
            Body::Enum(values) => {
                let values: Vec<String> = values
                    .iter()
                    .map(|(value, reason)| {
                        format!("({},{})", self.pool.text(value), self.pool.text(reason))
                    })
                    .collect();
                format!("Body::Enum({})", self.pool.list("LOST_VALUES", &values))
            }
            Body::Constant(reason) => format!("Body::Constant({})", self.pool.text(reason)),
            Body::Document => "Body::Document".to_owned(),
            Body::Union(arms, unrecognized) => {
                let arms: Vec<String> = arms.iter().map(|arm| self.arm(step, up, arm)).collect();
                let unrecognized = match unrecognized {
                    Unrecognized::Never => "Unrecognized::Never".to_owned(),
                    Unrecognized::Read(open) => format!("Unrecognized::Read({open})"),
                    Unrecognized::Foreign(reason) => {
                        format!("Unrecognized::Foreign({})", self.pool.text(reason))
                    }
                };
                let arms = self.pool.list("ARMS", &arms);
                format!("Body::Union({arms},{unrecognized})")
            }
            Body::Wrap(at, op) => {
                format!("Body::Wrap({at},{})", self.op_place(step, up, op))
            }
            Body::Reinterpret => "Body::Reinterpret".to_owned(),
        }
    }

    fn arm(&mut self, step: usize, up: bool, arm: &Arm) -> String {
        match arm {
            Arm::Variant(at, op) => format!("Arm::Variant({at},{})", self.op_place(step, up, op)),
            Arm::Value(op) => format!("Arm::Value({})", self.op_place(step, up, op)),
            Arm::Call(function) => format!("Arm::Call({})", self.call(function)),
            Arm::Refuse(reason) => format!("Arm::Refuse({})", self.pool.text(reason)),
            Arm::Foreign(reason) => format!("Arm::Foreign({})", self.pool.text(reason)),
        }
    }

    fn member_step(&mut self, step: usize, up: bool, member: &MemberStep) -> String {
        let mut op = |op: &Op| self.op_place(step, up, op);
        let action = match &member.action {
            Action::Convert(value) => format!("Action::Convert({})", op(value)),
            Action::Optional(value) => format!("Action::Optional({})", op(value)),
            Action::Loosened(value, filter) => {
                format!("Action::Loosened({},{filter})", op(value))
            }
            Action::Required(value, fill) => {
                let value = op(value);
                format!("Action::Required({value},{})", self.fill(step, up, fill))
            }
            Action::ConstantAsValue(value) => {
                format!("Action::ConstantAsValue({})", self.pool.text(value))
            }
            Action::SameConstant(value, reason) => {
                let (value, reason) = (self.pool.text(value), self.pool.text(reason));
                format!("Action::SameConstant({value},{reason})")
            }
            Action::OtherConstant(reason) => {
                format!("Action::OtherConstant({})", self.pool.text(reason))
            }
            Action::NewConstant(value, envelope) => {
                format!("Action::NewConstant({},{envelope})", self.pool.text(value))
            }
            Action::NewOptional(session) => format!("Action::NewOptional({session})"),
            Action::NewRequired(fill) => {
                format!("Action::NewRequired({})", self.fill(step, up, fill))
            }
        };
        format!("({},{action})", member.target)
    }

    fn fill(&mut self, step: usize, up: bool, fill: &Fill) -> String {
        match fill {
            Fill::Value(value, means, reason) => {
                let (value, reason) = (self.pool.text(value), self.pool.text(reason));
                format!("Fill::Value({value},{means},{reason})")
            }
            Fill::Session(value, reason) => {
                let (value, reason) = (self.pool.text(value), self.pool.text(reason));
                format!("Fill::Session({value},{reason})")
            }
            Fill::EmptyObject(value) => {
                let source = if up { step } else { step + 1 };
                format!("Fill::EmptyObject({})", self.type_place(source, &value.0))
            }
            Fill::RequestId => "Fill::RequestId".to_owned(),
            Fill::Missing(reason) => format!("Fill::Missing({})", self.pool.text(reason)),
        }
    }

    /// What happens to a member that only the source has.
    fn gone(&mut self, kind: &GoneKind) -> String {
        let pool = &mut self.pool;
        match kind {
            GoneKind::Refuse { reason, absence } | GoneKind::Drop { reason, absence } => {
                let (reason, absence) = (pool.text(reason), absence.as_deref().unwrap_or_default());
                let absence = pool.text(absence);
                match kind {
                    GoneKind::Refuse { .. } => format!("Gone::Refuse({reason},{absence})"),
                    _ => format!("Gone::Drop({reason},{absence})"),
                }
            }
            GoneKind::Id => "Gone::Id".to_owned(),
            GoneKind::Constant { with_id, envelope } => {
                format!("Gone::Constant({with_id},{envelope})")
            }
            GoneKind::Newer { reason } => format!("Gone::Newer({})", pool.text(reason)),
            GoneKind::Default {
                since,
                later,
                text,
                reason,
                decides,
                required,
            } => {
                let other = pool.text(if *decides { since } else { later });
                let (value, reason) = (pool.text(text), pool.text(reason));
                format!("Gone::Default({other},{value},{reason},{decides},{required})")
            }
        }
    }

    /// All rules, in the order of their places.
    pub fn rule_rows(&mut self, steps: &[[Step<'_, 'i>; 2]]) -> Vec<String> {
        let mut rows = vec![String::new(); self.rules.len()];
        for (at, directions) in steps.iter().enumerate() {
            for of in directions {
                for pair in of.plan.pairs.iter().filter(|pair| of.is_effective(**pair)) {
                    let (source, target) = of.facing(pair.0, pair.1);
                    let key = (at, of.up, source.to_owned(), target.to_owned());
                    let place = self.rules[&key];
                    rows[place] = self.rule(at, of.up, of, pair);
                }
            }
        }
        rows
    }

    /// Every definition, once.
    pub fn definition_rows(&mut self) -> Vec<String> {
        let distinct = self.distinct.clone();
        distinct
            .iter()
            .map(|(at, definition)| self.definition(*at, definition))
            .collect()
    }

    /// The rows of a table that stand in no list.
    pub fn rows(&self, table: &str) -> &[String] {
        match table {
            "TYPES" => self.types.all(),
            "UNIONS" => self.unions.all(),
            "CHOICES" => self.choices.all(),
            "DOCUMENTS" => self.documents.all(),
            "OPS" => self.ops.all(),
            "CALLS" => self.calls.all(),
            "WATCHES" => self.watches.all(),
            "STRINGS" => self.pool.strings(),
            "BOUNDS" => self.pool.all_bounds(),
            table => self.pool.table(table),
        }
    }

    /// Returns the changes of a path of steps, as a row.
    pub fn path(&mut self, steps: &[[Step<'_, 'i>; 2]], from: usize, to: usize) -> String {
        let active = self.active(steps, from, to);
        let active: Vec<String> = active.iter().map(|bits| format!("{bits:#x}")).collect();
        let mut watched = vec![0; self.distinct.len()];
        for definition in &self.irs[from].definitions {
            let place = self.definitions.get(&(from, definition.name.as_str()));
            let Some(place) = place.filter(|_| is_active(steps, &definition.name, from, to)) else {
                continue;
            };
            if let Some(watch) = Watch::of(steps, definition, from, to) {
                let row = watch.row(definition, &mut self.pool);
                watched[*place] = self.watches.place(row) + 1;
            }
        }
        let first = watched.iter().position(|row| *row != 0).unwrap_or(0);
        let end = watched.iter().rposition(|row| *row != 0);
        let watched = &watched[first..end.map_or(first, |end| end + 1)];
        format!(
            "PathRow{{active:[{}],first:{first},watched:{}}}",
            active.join(","),
            self.pool.numbers("PLACES", watched.iter().copied())
        )
    }

    /// Returns the set of types that contain something that a path of steps changes: one bit a type.
    fn active(&self, steps: &[[Step<'_, 'i>; 2]], from: usize, to: usize) -> Vec<u64> {
        let mut bits = vec![0_u64; self.types.all().len().div_ceil(64)];
        if from == to {
            return bits;
        }
        let mut active = BTreeSet::new();
        for definition in &self.irs[from].definitions {
            let place = self.definitions.get(&(from, definition.name.as_str()));
            if let Some(place) = place
                && is_active(steps, &definition.name, from, to)
            {
                active.insert(*place);
            }
        }
        for (at, row) in self.types.all().iter().enumerate() {
            let inner = row
                .split(['(', ',', ')'])
                .nth(1)
                .and_then(|n| n.parse::<usize>().ok());
            let is_active = match (row.split('(').next(), inner) {
                (Some("Type::Definition"), Some(place)) => active.contains(&place),
                // What a row holds stands before it.
                (Some("Type::Array" | "Type::Map" | "Type::Nullable"), Some(inner)) => {
                    bits[inner / 64] >> (inner % 64) & 1 == 1
                }
                _ => false,
            };
            if is_active {
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        bits
    }
}

/// Returns true if a step between the two revisions changes values of a definition.
fn is_active(steps: &[[Step<'_, '_>; 2]], name: &str, from: usize, to: usize) -> bool {
    if from == to {
        return false;
    }
    let up = from < to;
    let (at, next) = if up {
        (from, from + 1)
    } else {
        (from - 1, from - 1)
    };
    let of = &steps[at][usize::from(!up)];
    let mut pairs = of
        .plan
        .pairs
        .iter()
        .map(|pair| (pair, of.facing(pair.0, pair.1)));
    let is_paired = pairs.clone().any(|(_, (source, _))| source == name);
    if !is_paired {
        // Only manual conversions reach it, and need to know the variants of a union.
        let definition = of.source().get(name);
        return definition.is_some_and(|d| matches!(d.shape, Shape::Union(_)));
    }
    pairs.any(|(pair, (source, target))| {
        source == name && (of.is_effective(*pair) || is_active(steps, target, next, to))
    })
}

/// Returns the structure of a definition with references as places, which distinguishes it from others.
fn structure(
    ir: &RustIr,
    at: usize,
    definition: &Definition,
    places: &BTreeMap<(usize, &str), usize>,
) -> String {
    let mut out = definition.name.clone();
    if definition.closed {
        out.push_str(" closed");
    }
    let value = |value: &Type| type_structure(ir, at, value, places);
    let write = |out: &mut String, member: &Member| {
        let held = match &member.value {
            MemberValue::Type(held) => value(held),
            constant => format!("{constant:?}"),
        };
        let _ = write!(out, "|{} {} {held}", member.name, member.required);
    };
    match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => {
            out.push_str(match definition.shape {
                Shape::Struct(_) => " object",
                _ => " document",
            });
            for member in members {
                write(&mut out, member);
            }
        }
        Shape::Union(_) => {
            let union = ir.union(&definition.name);
            let _ = write!(out, " {:?}", union.dispatch);
            for variant in &union.variants {
                let _ = write!(out, "|{} {}", variant.name, value(&variant.value));
            }
        }
        other => {
            let _ = write!(out, " {other:?}");
        }
    }
    out
}

fn type_structure(
    ir: &Ir,
    at: usize,
    value: &Type,
    places: &BTreeMap<(usize, &str), usize>,
) -> String {
    match resolve(ir, value) {
        Resolved::Definition(definition) => {
            format!("{:?}", places.get(&(at, definition.name.as_str())))
        }
        Resolved::Runtime(name) => name.to_owned(),
        Resolved::Plain(Type::Array {
            items,
            min_items,
            max_items,
        }) => {
            let items = type_structure(ir, at, items, places);
            format!("[{items} {min_items:?} {max_items:?}]")
        }
        Resolved::Plain(Type::Map(values)) => {
            format!("map {}", type_structure(ir, at, values, places))
        }
        Resolved::Plain(Type::Nullable(value)) => {
            format!("nullable {}", type_structure(ir, at, value, places))
        }
        Resolved::Plain(plain) => format!("{plain:?}"),
    }
}

fn place_or_none(at: Option<usize>) -> String {
    at.map_or_else(|| "NONE".to_owned(), |at| at.to_string())
}

/// The two directions of all steps.
pub fn steps<'p, 'i>(
    plans: &'p [Plan<'i>],
    table: &'p super::table::Table,
) -> Vec<[Step<'p, 'i>; 2]> {
    plans
        .iter()
        .map(|plan| [Step::new(plan, true, table), Step::new(plan, false, table)])
        .collect()
}
