//! Helpers for unit tests of the passes: build schemas from definitions and run the preceding passes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::Result;
use crate::input::names::Name;
use crate::input::schema::Schema;
use crate::ir::RustIr;
use crate::notice::Notices;
use crate::passes::lift::LiftedDefinition;

/// Creates a schema with these definitions.
pub fn schema(definitions: Value) -> Schema {
    let mut root = json!({ "definitions": definitions });
    root.sort_all_objects();
    Schema {
        revision: "test".to_owned(),
        root,
        definitions: "definitions",
    }
}

/// Normalises and lifts a schema; returns it with the lifted definitions.
pub fn lift_schema(definitions: Value, names: &[Name]) -> Result<(Schema, Vec<LiftedDefinition>)> {
    let mut schema = schema(definitions);
    crate::passes::normalise::normalise(&mut schema, &mut Notices::default())?;
    let lifted = crate::passes::lift::lift(&mut schema, names, &mut Notices::default())?;
    Ok((schema, lifted))
}

/// Builds the intermediate representation of a schema, without the comparison with typify's model.
pub fn build_ir(definitions: Value) -> Result<RustIr> {
    let (schema, lifted) = lift_schema(definitions, &[])?;
    let mut ir = crate::passes::lower::build(&schema, &lifted, &mut Notices::default())?;
    crate::passes::recursion::check_aliases(&schema, &ir)?;
    crate::passes::methods::find(&mut ir);
    crate::passes::outcomes::find(&mut ir);
    let unions = crate::passes::dispatch::plan(&schema, &ir, &mut Notices::default())?;
    Ok(RustIr {
        ir,
        unions,
        boxed: BTreeSet::new(),
    })
}

/// Formats a value as JSON with sorted members.
pub fn to_sorted_json(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    format!("{value:#}\n")
}
