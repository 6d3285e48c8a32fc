//! Several server processes that share their sessions through a Redis server, which the tests start.

mod balancing;
mod chaos;
mod cost;
mod sdks;
mod stores;

/// Path of the server program.
const SERVER: &str = env!("CARGO_BIN_EXE_redis_server_process");
