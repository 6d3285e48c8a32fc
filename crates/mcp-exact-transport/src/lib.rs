//! Transports of the Model Context Protocol, client and server, for every revision.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod event_log;
pub mod sse;
pub mod store;
