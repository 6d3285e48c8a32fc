//! Generates the definitions, types and rules of all revisions as static tables without duplicate rows.
//!
//! The input is intermediate representations and rules; the output is Rust source in which rows refer to each other by
//! index. Definitions of several revisions that are identical, including all parts, share one row.

mod definitions;
mod structure;

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use super::pool::{Pool, Rows};
use super::rules::{
    Action, Arm, Body, DefaultValue, MemberStep, Op, RemovalKind, Rule, TypeText, Unrecognized,
};
use super::steps::Step;
use super::watch::PathChanges;
use crate::ir::{Definition, RustIr, Shape};

use self::structure::structural_key;

/// Contents of all tables while the generator writes them.
pub struct Program<'i> {
    /// Intermediate representations of the revisions, oldest first.
    irs: Vec<&'i RustIr>,
    /// Index of each definition, by the index of the revision and the name.
    definitions: BTreeMap<(usize, &'i str), usize>,
    /// One definition for each index, with the index of a revision that has the definition.
    distinct_definitions: Vec<(usize, &'i Definition)>,
    /// Rows of types.
    types: Rows,
    /// Rows of unions.
    unions: Rows,
    /// Rows of dispatch tables.
    dispatches: Rows,
    /// Rows of rules for JSON Schema documents.
    documents: Rows,
    /// Rows of operations.
    operations: Rows,
    /// Rust paths of the functions of manual conversions.
    calls: Rows,
    /// Rows of conditions under which a path of steps leaves values of a definition unchanged.
    conditions: Rows,
    /// Distinct strings, and the tables whose rows other rows refer to as lists.
    pub pool: Pool,
    /// Indexes of rules, by step, direction and names in the source and the target.
    rules: BTreeMap<(usize, bool, String, String), usize>,
    /// Index of the first rule of each step and direction.
    rule_starts: Vec<String>,
}

impl<'i> Program<'i> {
    /// Assigns an index to each definition.
    pub fn new(irs: &[&'i RustIr]) -> Self {
        let mut program = Self {
            irs: irs.to_vec(),
            definitions: BTreeMap::new(),
            distinct_definitions: Vec::new(),
            types: Rows::default(),
            unions: Rows::default(),
            dispatches: Rows::default(),
            documents: Rows::default(),
            operations: Rows::default(),
            calls: Rows::default(),
            conditions: Rows::default(),
            pool: Pool::new(),
            rules: BTreeMap::new(),
            rule_starts: vec!["0".to_owned()],
        };
        program.merge_equal_definitions();
        program.operations.index_of("Op::Keep".to_owned());
        program
    }

    /// Merges equal definitions: all definitions are presumed equal until a difference is found.
    fn merge_equal_definitions(&mut self) {
        let mut places: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        let mut count = 0;
        loop {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            let mut distinct_definitions = Vec::new();
            let mut next = BTreeMap::new();
            for (at, ir) in self.irs.iter().enumerate() {
                for definition in &ir.definitions {
                    if matches!(definition.shape, Shape::Alias(_) | Shape::StringOrInteger) {
                        continue;
                    }
                    let key = structural_key(ir, at, definition, &places);
                    let place = *seen.entry(key).or_insert_with(|| {
                        distinct_definitions.push((at, definition));
                        distinct_definitions.len() - 1
                    });
                    next.insert((at, definition.name.as_str()), place);
                }
            }
            places = next;
            if distinct_definitions.len() == count {
                self.definitions = places;
                self.distinct_definitions = distinct_definitions;
                return;
            }
            count = distinct_definitions.len();
        }
    }

    /// Returns the Rust expression that refers to the function of a manual conversion.
    fn call_expression(&mut self, function: &str) -> String {
        let place = self.calls.index_of(format!("manual::{function}"));
        format!("Call({place})")
    }

    /// Assigns an index to each rule of one direction of a step; `up` is true in the direction of the newer revision.
    pub fn assign_rule_indexes(&mut self, step: usize, up: bool, of: &Step<'_, 'i>) {
        for pair in of.plan.pairs.iter().filter(|pair| of.is_effective(**pair)) {
            let (source, target) = of.order_by_direction(pair.0, pair.1);
            let key = (step, up, source.to_owned(), target.to_owned());
            let place = self.rules.len();
            self.rules.insert(key, place);
        }
        self.rule_starts.push(self.rules.len().to_string());
    }

    /// Returns the index of the first rule of each step and direction, followed by the number of rules.
    pub fn rule_starts(&self) -> &[String] {
        &self.rule_starts
    }

    /// Returns the index of an operation on a value; adds the operation to its table if it is missing.
    pub fn operation_index(&mut self, step: usize, up: bool, op: &Op) -> usize {
        let row = match op {
            Op::Keep => "Op::Keep".to_owned(),
            Op::Pair(source, target) => {
                let key = (step, up, source.clone(), target.clone());
                format!("Pair({})", self.rules[&key])
            }
            Op::Reinterpret(value) => {
                format!(
                    "Op::Reinterpret({})",
                    self.target_type_index(step, up, value)
                )
            }
            Op::FromUntyped(value) => {
                format!("Op::Fit({})", self.target_type_index(step, up, value))
            }
            Op::CheckBounds(low, high) => {
                format!("Op::Bounded({})", self.pool.bounds_expression(*low, *high))
            }
            Op::Array(items, low, high) => {
                let items = self.operation_index(step, up, items);
                format!(
                    "Op::Array({items},{})",
                    self.size_bounds_expression(*low, *high)
                )
            }
            Op::Map(values) => format!("Op::Map({})", self.operation_index(step, up, values)),
            Op::Nullable(value) => {
                format!("Op::Nullable({})", self.operation_index(step, up, value))
            }
            Op::NotNull(value) => format!("Op::NotNull({})", self.operation_index(step, up, value)),
        };
        self.operations.index_of(row)
    }

    /// Returns the index of a type of a step's target revision.
    fn target_type_index(&mut self, step: usize, up: bool, value: &TypeText) -> usize {
        self.type_index(if up { step + 1 } else { step }, &value.0)
    }

    /// Returns the row of the rule of a pair of definitions; an empty string if the rule changes no value.
    fn rule_row(
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
        let (source, target) = of.order_by_direction(pair.0, pair.1);
        let (source, target) = (
            self.definitions[&(source_at, source)],
            self.definitions[&(target_at, target)],
        );
        let Rule {
            preparation,
            undefined_members,
            body,
            ..
        } = rule;
        let preparation = match preparation {
            Some(function) => format!("Some({})", self.call_expression(&function)),
            None => "None".to_owned(),
        };
        let body = self.body_row(step, up, &body);
        let target_type = self.types.index_of(format!("Type::Definition({target})"));
        let undefined_members: Vec<String> = undefined_members
            .iter()
            .map(|(name, kind)| {
                format!(
                    "({},{})",
                    self.pool.string_expression(name),
                    self.removal_row(kind)
                )
            })
            .collect();
        let undefined_members = self
            .pool
            .list_expression("UNKNOWN_MEMBERS", &undefined_members);
        if preparation == "None" && undefined_members == "list(0,0)" {
            return format!("rule({source},{target},{target_type},{body})");
        }
        format!(
            "prepared({source},{target},{target_type},{preparation},{undefined_members},{body})"
        )
    }

    /// Returns the Rust expression for the body of a rule.
    fn body_row(&mut self, step: usize, up: bool, body: &Body) -> String {
        match body {
            Body::Keep => "Body::Keep".to_owned(),
            Body::Object(gone, steps) => {
                let gone: Vec<String> = gone
                    .iter()
                    .map(|gone| format!("({},{})", gone.source, self.removal_row(&gone.kind)))
                    .collect();
                let gone = self.pool.list_expression("SOURCE_MEMBERS", &gone);
                let steps: Vec<String> = steps
                    .iter()
                    .map(|member| self.member_step_row(step, up, member))
                    .collect();
                let steps = self.pool.list_expression("TARGET_MEMBERS", &steps);
                format!("Body::Object({gone},{steps})")
            }
            Body::Enum(values) => {
                let values: Vec<String> = values
                    .iter()
                    .map(|(value, reason)| {
                        format!(
                            "({},{})",
                            self.pool.string_expression(value),
                            self.pool.string_expression(reason)
                        )
                    })
                    .collect();
                format!(
                    "Body::Enum({})",
                    self.pool.list_expression("LOST_VALUES", &values)
                )
            }
            Body::Constant(reason) => {
                format!("Body::Constant({})", self.pool.string_expression(reason))
            }
            Body::Document => "Body::Document".to_owned(),
            Body::Union(arms, unrecognized) => {
                let arms: Vec<String> =
                    arms.iter().map(|arm| self.arm_row(step, up, arm)).collect();
                let unrecognized = match unrecognized {
                    Unrecognized::Never => "Unrecognized::Never".to_owned(),
                    Unrecognized::Read(open) => format!("Unrecognized::Read({open})"),
                    Unrecognized::DecodeOrRefuse(reason) => {
                        format!(
                            "Unrecognized::Foreign({})",
                            self.pool.string_expression(reason)
                        )
                    }
                };
                let arms = self.pool.list_expression("ARMS", &arms);
                format!("Body::Union({arms},{unrecognized})")
            }
            Body::Wrap(at, op) => {
                format!("Body::Wrap({at},{})", self.operation_index(step, up, op))
            }
            Body::Reinterpret => "Body::Reinterpret".to_owned(),
        }
    }

    /// Returns the Rust expression for the conversion of a union variant.
    fn arm_row(&mut self, step: usize, up: bool, arm: &Arm) -> String {
        match arm {
            Arm::Variant(at, op) => format!("Variant({at},{})", self.operation_index(step, up, op)),
            Arm::Value(op) => format!("Arm::Value({})", self.operation_index(step, up, op)),
            Arm::Call(function) => format!("Arm::Call({})", self.call_expression(function)),
            Arm::Refuse(reason) => format!("Arm::Refuse({})", self.pool.string_expression(reason)),
            Arm::DecodeOrRefuse(reason) => {
                format!("Arm::Foreign({})", self.pool.string_expression(reason))
            }
        }
    }

    /// Returns the Rust expression for the conversion of a member of the target.
    fn member_step_row(&mut self, step: usize, up: bool, member: &MemberStep) -> String {
        let mut op = |op: &Op| self.operation_index(step, up, op);
        let action = match &member.action {
            Action::Convert(value) => format!("Action::Convert({})", op(value)),
            Action::Optional(value) => format!("Action::Optional({})", op(value)),
            Action::MadeOptional(value, filter) => {
                format!("Action::Loosened({},{filter})", op(value))
            }
            Action::Required(value, fill) => {
                let value = op(value);
                format!(
                    "Action::Required({value},{})",
                    self.default_value_row(step, up, fill)
                )
            }
            Action::ConstantAsValue(value) => {
                format!(
                    "Action::ConstantAsValue({})",
                    self.pool.string_expression(value)
                )
            }
            Action::RequireConstant(value, reason) => {
                let (value, reason) = (
                    self.pool.string_expression(value),
                    self.pool.string_expression(reason),
                );
                format!("Action::SameConstant({value},{reason})")
            }
            Action::RefuseConstant(reason) => {
                format!(
                    "Action::OtherConstant({})",
                    self.pool.string_expression(reason)
                )
            }
            Action::NewConstant(value, envelope) => {
                format!(
                    "Action::NewConstant({},{envelope})",
                    self.pool.string_expression(value)
                )
            }
            Action::NewOptional(session) => format!("Action::NewOptional({session})"),
            Action::NewRequired(fill) => {
                format!(
                    "Action::NewRequired({})",
                    self.default_value_row(step, up, fill)
                )
            }
        };
        format!("({},{action})", member.target)
    }

    /// Returns the Rust expression for the source of a missing value.
    fn default_value_row(&mut self, step: usize, up: bool, fill: &DefaultValue) -> String {
        match fill {
            DefaultValue::Value(value, means, reason) => {
                let (value, reason) = (
                    self.pool.string_expression(value),
                    self.pool.string_expression(reason),
                );
                format!("DefaultValue::Value({value},{means},{reason})")
            }
            DefaultValue::Session(value, reason) => {
                let (value, reason) = (
                    self.pool.string_expression(value),
                    self.pool.string_expression(reason),
                );
                format!("DefaultValue::Session({value},{reason})")
            }
            DefaultValue::EmptyObject(value) => {
                let source = if up { step } else { step + 1 };
                format!(
                    "DefaultValue::EmptyObject({})",
                    self.type_index(source, &value.0)
                )
            }
            DefaultValue::RequestId => "DefaultValue::RequestId".to_owned(),
            DefaultValue::Missing(reason) => {
                format!(
                    "DefaultValue::Missing({})",
                    self.pool.string_expression(reason)
                )
            }
        }
    }

    /// Returns the Rust expression for the removal of a member that only the source has.
    fn removal_row(&mut self, kind: &RemovalKind) -> String {
        let pool = &mut self.pool;
        match kind {
            RemovalKind::Refuse { reason, absence } | RemovalKind::Drop { reason, absence } => {
                let (reason, absence) = (
                    pool.string_expression(reason),
                    absence.as_deref().unwrap_or_default(),
                );
                let absence = pool.string_expression(absence);
                match kind {
                    RemovalKind::Refuse { .. } => format!("Removal::Refuse({reason},{absence})"),
                    _ => format!("Removal::Drop({reason},{absence})"),
                }
            }
            RemovalKind::Id => "Removal::Id".to_owned(),
            RemovalKind::Constant { with_id, envelope } => {
                format!("Removal::Constant({with_id},{envelope})")
            }
            RemovalKind::Newer { reason } => {
                format!("Removal::Newer({})", pool.string_expression(reason))
            }
            RemovalKind::Default {
                since,
                other_value_reason,
                text,
                reason,
                refuses_other_values,
                required,
            } => {
                let other = pool.string_expression(if *refuses_other_values {
                    since
                } else {
                    other_value_reason
                });
                let (value, reason) =
                    (pool.string_expression(text), pool.string_expression(reason));
                format!(
                    "Removal::Default({other},{value},{reason},{refuses_other_values},{required})"
                )
            }
        }
    }

    /// Returns all rules, in the order of their indexes.
    pub fn rule_rows(&mut self, steps: &[[Step<'_, 'i>; 2]]) -> Vec<String> {
        let mut rows = vec![String::new(); self.rules.len()];
        for (at, directions) in steps.iter().enumerate() {
            for of in directions {
                for pair in of.plan.pairs.iter().filter(|pair| of.is_effective(**pair)) {
                    let (source, target) = of.order_by_direction(pair.0, pair.1);
                    let key = (at, of.up, source.to_owned(), target.to_owned());
                    let place = self.rules[&key];
                    rows[place] = self.rule_row(at, of.up, of, pair);
                }
            }
        }
        rows
    }

    /// Returns one row per distinct definition.
    pub fn definition_rows(&mut self) -> Vec<String> {
        let distinct_definitions = self.distinct_definitions.clone();
        distinct_definitions
            .iter()
            .map(|(at, definition)| self.definition_row(*at, definition))
            .collect()
    }

    /// Returns the rows of a table by the name of the table.
    pub fn direct_rows(&self, table: &str) -> &[String] {
        match table {
            "TYPES" => self.types.as_slice(),
            "UNIONS" => self.unions.as_slice(),
            "DISPATCHES" => self.dispatches.as_slice(),
            "DOCUMENTS" => self.documents.as_slice(),
            "OPS" => self.operations.as_slice(),
            "CALLS" => self.calls.as_slice(),
            "CONDITIONS" => self.conditions.as_slice(),
            "STRINGS" => self.pool.strings(),
            "BOUNDS" => self.pool.bounds_rows(),
            table => self.pool.table_rows(table),
        }
    }

    /// Returns the table row for the path between two revisions: the types and definitions whose values its steps can
    /// change.
    pub fn path_row(&mut self, steps: &[[Step<'_, 'i>; 2]], from: usize, to: usize) -> String {
        let active = self.active_types(steps, from, to);
        let active: Vec<String> = active.iter().map(|bits| format!("{bits:#x}")).collect();
        let mut watched = vec![0; self.distinct_definitions.len()];
        for definition in &self.irs[from].definitions {
            let place = self.definitions.get(&(from, definition.name.as_str()));
            let Some(place) = place.filter(|_| is_active(steps, &definition.name, from, to)) else {
                continue;
            };
            if let Some(watch) = PathChanges::of(steps, definition, from, to) {
                let row = watch.row(definition, &mut self.pool);
                watched[*place] = self.conditions.index_of(row) + 1;
            }
        }
        let first = watched.iter().position(|row| *row != 0).unwrap_or(0);
        let end = watched.iter().rposition(|row| *row != 0);
        let watched = &watched[first..end.map_or(first, |end| end + 1)];
        format!(
            "PathRow{{active:[{}],first:{first},conditions:{}}}",
            active.join(","),
            self.pool.number_list("PLACES", watched.iter().copied())
        )
    }

    /// Returns the set of types with a part that a path of steps changes: one bit per type.
    fn active_types(&self, steps: &[[Step<'_, 'i>; 2]], from: usize, to: usize) -> Vec<u64> {
        let mut bits = vec![0_u64; self.types.as_slice().len().div_ceil(64)];
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
        for (at, row) in self.types.as_slice().iter().enumerate() {
            let inner = row
                .split(['(', ',', ')'])
                .nth(1)
                .and_then(|n| n.parse::<usize>().ok());
            let is_active = match (row.split('(').next(), inner) {
                (Some("Type::Definition"), Some(place)) => active.contains(&place),
                // Rows refer only to rows before them.
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
        .map(|pair| (pair, of.order_by_direction(pair.0, pair.1)));
    let is_paired = pairs.clone().any(|(_, (source, _))| source == name);
    if !is_paired {
        // Only manual conversions use this definition, and they need the variants of its union.
        let definition = of.source().get(name);
        return definition.is_some_and(|d| matches!(d.shape, Shape::Union(_)));
    }
    pairs.any(|(pair, (source, target))| {
        source == name && (of.is_effective(*pair) || is_active(steps, target, next, to))
    })
}

/// Returns the Rust expression for an optional index.
fn index_or_none(at: Option<usize>) -> String {
    at.map_or_else(|| "NONE".to_owned(), |at| at.to_string())
}

/// Creates both directions of the steps between neighbouring revisions.
pub fn create_steps<'p, 'i>(
    plans: &'p [Plan<'i>],
    table: &'p super::table::Table,
) -> Vec<[Step<'p, 'i>; 2]> {
    plans
        .iter()
        .map(|plan| [Step::new(plan, true, table), Step::new(plan, false, table)])
        .collect()
}
