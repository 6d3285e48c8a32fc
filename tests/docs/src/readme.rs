//! Compiles the Rust blocks of the workspace's README as doc tests of this package.
#![doc = ""]
#![doc = include_str!("../../../README.md")]
