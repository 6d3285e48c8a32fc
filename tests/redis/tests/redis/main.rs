//! Several server processes that share their sessions through a Redis server, which the tests start.

mod access;
mod balancing;
mod chaos;
mod complete;
mod compose;
mod cost;
mod example;
mod gateway;
mod model;
mod operator;
mod sdks;
mod stores;
mod unavailable;

/// Path of the server program.
const SERVER_PROGRAM: &str = env!("CARGO_BIN_EXE_redis_server_process");
