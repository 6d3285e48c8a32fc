//! Tests of the transports with real endpoints, sockets and processes.

mod memory;
#[cfg(unix)]
mod stdio;
#[cfg(unix)]
mod unix;
