//! Shapes that hosts refuse, and equivalent schemas without them.

mod catalogue;
mod equivalence;
mod shapes;
