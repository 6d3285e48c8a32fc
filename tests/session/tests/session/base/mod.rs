//! Base protocol: JSON-RPC in each revision (`basic`).

mod ids;
mod requirements;
mod rpc;
