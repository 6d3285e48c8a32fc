//! Compares the conversions between all revisions with the official schemas, with errata applied. Inputs are seeded
//! instances of every definition and hand-written messages. A JSON Schema validator and a checker of JSON differences,
//! which are independent of the generator, verify the outputs.
#![allow(clippy::print_stdout, reason = "what was compared is worth reading")]

mod checker;
mod checks;
mod chosen;
mod dynamic;
mod golden;
mod hostile;
mod meaning;
mod pairs;
mod revisions;
