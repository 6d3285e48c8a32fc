//! A server and a client for the tests of the transports. The programs of this package serve it on standard streams.
#![allow(missing_docs, clippy::missing_panics_doc)]

pub mod echo;
pub mod file_store;
pub mod http;
pub mod process;
pub mod proxy;
pub mod shared;
pub mod soak;
