//! Clients of every revision use servers of every other one through the bridge.

mod changes;
mod common;
mod isolation;
mod matrix;
mod upstream_faults;
