//! The base protocol: JSON-RPC as the revisions have it (`basic`).

mod ids;
mod requirements;
mod rpc;
