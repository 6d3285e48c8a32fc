//! Messages of every direction, and results of several types, in one program.

mod messages;
mod outcomes;
