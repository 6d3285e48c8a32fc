//! The definitions, types and rules of all revisions as static tables, each written once.
//!
//! Takes representations and rules; gives text in which everything refers to everything by its place. Definitions of
//! several revisions that are identical all the way down are one entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::plan::{Plan, Resolved, resolve};
use super::rules::{
    Action, Arm, Body, Fill, Gone, GoneKind, MemberStep, Op, Rule, TypeText, Unrecognized,
};
use super::steps::Step;
use super::watch::Watch;
use crate::emit::role;
use crate::ir::{
    Bounds, Definition, Dispatch, Ir, Member, MemberValue, ObjectDispatch, RustIr, Shape, Tag, Type,
};

/// Rows of a table, each there once.
#[derive(Default)]
struct Rows {
    places: BTreeMap<String, usize>,
    rows: Vec<String>,
}

impl Rows {
    fn place(&mut self, row: String) -> usize {
        if let Some(place) = self.places.get(&row) {
            return *place;
        }
        self.rows.push(row.clone());
        self.places.insert(row, self.rows.len() - 1);
        self.rows.len() - 1
    }
}

/// All tables while they are written.
pub struct Program<'i> {
    irs: Vec<&'i RustIr>,
    /// The place of each definition of each revision.
    definitions: BTreeMap<(usize, &'i str), usize>,
    /// One definition for each place, with its revision.
    distinct: Vec<(usize, &'i Definition)>,
    types: Rows,
    ops: Rows,
    watches: Rows,
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
            ops: Rows::default(),
            watches: Rows::default(),
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
            Type::Integer(bounds) => format!("Type::Integer{}", bounds_text(*bounds)),
            Type::Number(bounds) => format!("Type::Number{}", bounds_text(*bounds)),
            Type::Array {
                items,
                min_items,
                max_items,
            } => {
                let items = self.type_place(revision, items);
                format!("Type::Array({items},{min_items:?},{max_items:?})")
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
            MemberValue::ConstString(value) => format!("Type::Constant({value:?})"),
            MemberValue::ConstInteger(value) => {
                format!("Type::ConstantInteger({value},{:?})", value.to_string())
            }
            MemberValue::Type(value) => return self.type_place(revision, value),
        };
        self.types.place(row)
    }

    fn definition(&mut self, revision: usize, definition: &Definition) -> String {
        let name = &definition.name;
        match &definition.shape {
            Shape::Struct(members) => {
                let required = members.iter().enumerate().filter(|(_, m)| m.required);
                let required = required.fold(0_u64, |bits, (at, _)| bits | 1 << at);
                let members: Vec<String> = members
                    .iter()
                    .map(|m| format!("{:?} {}", m.name, self.member_type(revision, m)))
                    .collect();
                let closed = if definition.closed { "closed " } else { "" };
                format!(
                    "object!({closed}{name:?}, {required}, {})",
                    members.join(" ")
                )
            }
            Shape::Document(members) => {
                let ir = self.irs[revision];
                let rules = members
                    .iter()
                    .map(|member| crate::emit::document_rule(ir, member).to_string());
                let rules: Vec<String> = rules.collect();
                format!("document!({name:?}, {})", rules.join(", "))
            }
            Shape::Enum(values) => format!("Definition::of({name:?}, Shape::Enum(&{values:?}))"),
            Shape::Constant(value) => {
                format!("Definition::of({name:?}, Shape::Constant({value:?}))")
            }
            Shape::Union(_) => self.union(revision, name),
            Shape::Alias(_) | Shape::StringOrInteger => String::new(),
        }
    }

    fn union(&mut self, revision: usize, name: &str) -> String {
        let union = self.irs[revision].union(name);
        let variants = union.variants.iter();
        let variants: Vec<String> = variants
            .map(|v| self.type_place(revision, &v.value).to_string())
            .collect();
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
        let (sets, valued): (Vec<String>, Vec<usize>) = values
            .iter()
            .map(|(set, variant)| (format!("&{set:?}"), *variant))
            .unzip();
        let table = |dispatch: &ObjectDispatch| choice(name, dispatch);
        let items = match items {
            Some(items) => format!("Some(&{})", table(items)),
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
            (Some(objects), None) => format!("Objects::Told(&{})", table(objects)),
        };
        let open = union.open_tag().unwrap_or_default();
        let role = role(self.irs[revision], name, open);
        format!(
            "Definition::of({name:?}, Shape::Union(&Union {{ variants: &[{}], scalars: [{}], values: &[{}], valued: &{valued:?}, \
             arrays: &{arrays:?}, items: {items}, objects: {objects}, open: {open:?}, role: UnionRole::{role:?} }}))",
            variants.join(","),
            scalars.join(","),
            sets.join(","),
        )
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
            Op::Bounded(low, high) => format!("Op::Bounded({low:?},{high:?})"),
            Op::Array(items, low, high) => {
                let items = self.op_place(step, up, items);
                format!("Op::Array({items},{low:?},{high:?})")
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
            Some(function) => format!("Some(manual::{function})"),
            None => "None".to_owned(),
        };
        let body = self.body(step, up, &body);
        let target_type = self.types.place(format!("Type::Definition({target})"));
        let strays = strays.iter();
        let strays: Vec<String> = strays
            .map(|(name, kind)| format!("({name:?}, {})", gone_kind(kind)))
            .collect();
        let strays = strays.join(", ");
        format!("rule({source}, {target}, {target_type}, {prepare}, &[{strays}], {body})")
    }

    fn body(&mut self, step: usize, up: bool, body: &Body) -> String {
        match body {
            Body::Keep => "Body::Keep".to_owned(),
            Body::Object(gone, steps) => {
                let gone: Vec<String> = gone.iter().map(gone_text).collect();
                let steps: Vec<String> = steps
                    .iter()
                    .map(|member| self.member_step(step, up, member))
                    .collect();
                format!(
                    "Body::Object(&[{}], &[{}])",
                    gone.join(", "),
                    steps.join(", ")
                )
            }
            Body::Enum(values) => format!("Body::Enum(&{values:?})"),
            Body::Constant(reason) => format!("Body::Constant({reason:?})"),
            Body::Document => "Body::Document".to_owned(),
            Body::Union(arms, unrecognized) => {
                let arms: Vec<String> = arms.iter().map(|arm| self.arm(step, up, arm)).collect();
                let unrecognized = match unrecognized {
                    Unrecognized::Never => "Unrecognized::Never".to_owned(),
                    Unrecognized::Read(open) => format!("Unrecognized::Read({open})"),
                    Unrecognized::Foreign(reason) => format!("Unrecognized::Foreign({reason:?})"),
                };
                format!("Body::Union(&[{}], {unrecognized})", arms.join(", "))
            }
            Body::Wrap(at, op) => {
                format!("Body::Wrap({at}, {})", self.op_place(step, up, op))
            }
            Body::Reinterpret => "Body::Reinterpret".to_owned(),
        }
    }

    fn arm(&mut self, step: usize, up: bool, arm: &Arm) -> String {
        match arm {
            Arm::Variant(at, op) => format!("Arm::Variant({at},{})", self.op_place(step, up, op)),
            Arm::Value(op) => format!("Arm::Value({})", self.op_place(step, up, op)),
            Arm::Call(function) => format!("Arm::Call(manual::{function})"),
            Arm::Refuse(reason) => format!("Arm::Refuse({reason:?})"),
            Arm::Foreign(reason) => format!("Arm::Foreign({reason:?})"),
        }
    }

    fn member_step(&mut self, step: usize, up: bool, member: &MemberStep) -> String {
        let mut op = |op: &Op| self.op_place(step, up, op);
        let action = match &member.action {
            Action::Convert(value) => format!("Action::Convert({})", op(value)),
            Action::Optional(value) => format!("Action::Optional({})", op(value)),
            Action::Loosened(value, filter) => {
                format!("Action::Loosened({}, {filter})", op(value))
            }
            Action::Required(value, fill) => {
                let value = op(value);
                format!("Action::Required({value}, {})", self.fill(step, up, fill))
            }
            Action::ConstantAsValue(text) => format!("Action::ConstantAsValue({text:?})"),
            Action::SameConstant(text, reason) => {
                format!("Action::SameConstant({text:?}, {reason:?})")
            }
            Action::OtherConstant(reason) => format!("Action::OtherConstant({reason:?})"),
            Action::NewConstant(text, envelope) => {
                format!("Action::NewConstant({text:?}, {envelope})")
            }
            Action::NewOptional(session) => format!("Action::NewOptional({session})"),
            Action::NewRequired(fill) => {
                format!("Action::NewRequired({})", self.fill(step, up, fill))
            }
        };
        format!("({}, {action})", member.target)
    }

    fn fill(&mut self, step: usize, up: bool, fill: &Fill) -> String {
        match fill {
            Fill::Value(text, means, reason) => {
                format!("Fill::Value({text:?}, {means}, {reason:?})")
            }
            Fill::Session(text, reason) => format!("Fill::Session({text:?}, {reason:?})"),
            Fill::EmptyObject(value) => {
                let source = if up { step } else { step + 1 };
                format!("Fill::EmptyObject({})", self.type_place(source, &value.0))
            }
            Fill::RequestId => "Fill::RequestId".to_owned(),
            Fill::Missing(reason) => format!("Fill::Missing({reason:?})"),
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

    /// The tables of definitions, types and operations.
    pub fn finish(&mut self) -> (Vec<String>, Vec<String>, Vec<String>) {
        let distinct = self.distinct.clone();
        let definitions = distinct
            .iter()
            .map(|(at, definition)| self.definition(*at, definition))
            .collect();
        (definitions, self.types.rows.clone(), self.ops.rows.clone())
    }

    /// When values of definitions stay as they are, by their places in the rows of paths.
    pub fn watches(&self) -> &[String] {
        &self.watches.rows
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
                watched[*place] = self.watches.place(watch.row(definition)) + 1;
            }
        }
        let end = watched.iter().rposition(|row| *row != 0);
        let watched = &watched[..end.map_or(0, |end| end + 1)];
        let watched: Vec<String> = watched.iter().map(usize::to_string).collect();
        format!(
            "PathRow {{ active: &[{}], watched: &[{}] }}",
            active.join(","),
            watched.join(",")
        )
    }

    /// Returns the set of types that contain something that a path of steps changes: one bit a type.
    fn active(&self, steps: &[[Step<'_, 'i>; 2]], from: usize, to: usize) -> Vec<u64> {
        let mut bits = vec![0_u64; self.types.rows.len().div_ceil(64)];
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
        for (at, row) in self.types.rows.iter().enumerate() {
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

fn bounds_text(bounds: Bounds) -> String {
    format!("({:?},{:?})", bounds.minimum, bounds.maximum)
}

fn place_or_none(at: Option<usize>) -> String {
    at.map_or_else(|| "NONE".to_owned(), |at| at.to_string())
}

fn choice(name: &str, dispatch: &ObjectDispatch) -> String {
    let tag = dispatch.tag.as_deref().unwrap_or_default();
    let bits = |all: &[usize]| all.iter().fold(0_u32, |bits, at| bits | 1 << at);
    let probes: Vec<String> = dispatch
        .probes
        .iter()
        .map(|(name, inner)| {
            format!(
                "probe({name:?}, {:?})",
                inner.as_deref().unwrap_or_default()
            )
        })
        .collect();
    let cases: Vec<String> = dispatch
        .cases
        .iter()
        .map(|case| {
            let tag = match &case.tag {
                Tag::Is(value) => format!("Tag::Is({value:?})"),
                Tag::Absent => "Tag::Absent".to_owned(),
                Tag::Any => "Tag::Any".to_owned(),
            };
            format!("case({tag}, {}, {})", bits(&case.has), case.variant)
        })
        .collect();
    let exclusive: Vec<String> = dispatch
        .exclusive
        .iter()
        .map(|(a, b)| format!("({}, {})", bits(&[*a]), bits(&[*b])))
        .collect();
    format!(
        "Choice {{ name: {name:?}, tag: {tag:?}, members: &[{}], cases: &[{}], exclusive: &[{}] }}",
        probes.join(", "),
        cases.join(", "),
        exclusive.join(", ")
    )
}

fn gone_text(gone: &Gone) -> String {
    format!("({}, {})", gone.source, gone_kind(&gone.kind))
}

fn gone_kind(kind: &GoneKind) -> String {
    let says = |absence: &Option<String>| absence.clone().unwrap_or_default();
    match kind {
        GoneKind::Refuse { reason, absence } => {
            format!("Gone::Refuse({reason:?}, {:?})", says(absence))
        }
        GoneKind::Drop { reason, absence } => {
            format!("Gone::Drop({reason:?}, {:?})", says(absence))
        }
        GoneKind::Id => "Gone::Id".to_owned(),
        GoneKind::Constant { with_id, envelope } => {
            format!("Gone::Constant({with_id}, {envelope})")
        }
        GoneKind::Newer { reason } => format!("Gone::Newer({reason:?})"),
        GoneKind::Default {
            since,
            later,
            text,
            reason,
            decides,
            required,
        } => {
            let other = if *decides { since } else { later };
            format!("Gone::Default({other:?}, {text:?}, {reason:?}, {decides}, {required})")
        }
    }
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
