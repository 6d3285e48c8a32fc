//! Compares the generated types of every revision with its official schema, with errata applied. Inputs are seeded
//! instances and mutants of every definition, and hand-written cases. A JSON Schema validator determines the expected
//! verdict; a closed list of named rules contains the cases that the types refuse in addition.
#![allow(clippy::print_stdout, reason = "what was compared is worth reading")]

mod all_of;
mod definitions;
mod expected;
mod extension;
mod inspection;
mod json_schemas;
mod open_json;
mod revision_table;
mod revisions;
mod right_variant;
mod round_trip;
mod rules;
mod schema_agreement;
mod tables;
mod traversal;
mod unions;
