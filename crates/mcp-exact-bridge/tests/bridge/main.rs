//! Clients of every revision use servers of every other one through the bridge.

mod changes;
mod common;
mod isolation;
mod many;
mod matrix;
mod upstream_faults;
