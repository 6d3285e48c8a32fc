//! Sessions: who agrees on what, what the specification requires of both sides, and that nothing hostile does harm.

mod lifecycle;
mod matrix;
