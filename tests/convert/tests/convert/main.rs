//! Compares the conversions between all revisions with the official schemas, with errata applied. Inputs are seeded
//! instances of every definition and hand-written messages. Two checks that do not use generated code verify the
//! outputs: a JSON Schema validator, and a comparison of the JSON before and after the conversion.
#![allow(clippy::print_stdout, reason = "what was compared is worth reading")]

mod checker;
mod checks;
mod chosen;
mod dynamic;
mod golden;
mod hostile;
mod meaning;
mod pairs;
mod repair;
mod revisions;
mod versions;
