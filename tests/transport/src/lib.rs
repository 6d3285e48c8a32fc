//! Test server and test client for the transports. The executables of this package run the test server and the test
//! client.
#![allow(missing_docs, clippy::missing_panics_doc)]

pub mod echo;
pub mod file_store;
pub mod http;
pub mod process;
pub mod proxy;
pub mod replaced;
pub mod shared;
pub mod soak;
