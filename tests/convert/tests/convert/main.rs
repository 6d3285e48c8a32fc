//! Holds the conversions between all revisions against the official schemas, errata applied.
//! Takes seeded instances of every definition and hand-made messages; judges by a JSON Schema validator and by a checker
//! that compares JSON before and after and knows nothing of the generator.
#![allow(clippy::print_stdout, reason = "what was compared is worth reading")]

mod checker;
mod chosen;
mod dynamic;
mod golden;
mod hostile;
mod meaning;
mod pairs;
mod revisions;
