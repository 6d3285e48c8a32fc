//! Holds the code of the workspace's README against the crates: its Rust blocks are doc tests of this package.
//!
//! Has no code of its own.
#![doc = ""]
#![doc = include_str!("../../../README.md")]
