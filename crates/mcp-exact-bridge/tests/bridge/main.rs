//! Clients of every revision use servers of every revision through the bridge.

mod answers;
mod attacks;
mod changes;
mod client_tasks;
mod common;
mod faults;
mod headers;
mod interleavings;
mod isolation;
mod leaving;
mod load;
mod many;
mod matrix;
mod peers;
mod relaying;
mod restart;
mod scripted;
mod shared;
mod starting;
mod subscriptions;
mod task_server;
mod tasks;
mod undeclared;
mod updates;
mod upstream_faults;
mod waiting_calls;
