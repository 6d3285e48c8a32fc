//! Holds the generated types of every revision against its official schema, errata applied. Takes seeded instances and
//! mutants of every definition, and hand-made cases where a generator cannot go. A JSON Schema validator decides; a closed
//! list of named rules allows the types to refuse more.
#![allow(clippy::print_stdout, reason = "what was compared is worth reading")]

mod all_of;
mod definitions;
mod expected;
mod extension;
mod json_schemas;
mod open_json;
mod revision_table;
mod revisions;
mod right_variant;
mod round_trip;
mod rules;
mod schema_agreement;
mod tables;
mod unions;
mod walk;
