//! Compiles the code of the workspace's README: its Rust blocks are doc tests of this package.
#![doc = ""]
#![doc = include_str!("../../../README.md")]
