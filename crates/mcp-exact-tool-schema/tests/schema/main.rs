//! Shapes that hosts refuse, and equivalent schemas without them.

mod equivalence;
mod shapes;
