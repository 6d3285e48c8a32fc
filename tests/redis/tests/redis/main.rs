//! Tests of several server processes that share their sessions on a Redis server. The tests start Redis.

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
mod tasks;
mod tokens;
mod unavailable;

/// Path of the server program.
const SERVER_PROGRAM: &str = env!("CARGO_BIN_EXE_redis_server_process");
