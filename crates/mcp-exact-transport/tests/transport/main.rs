//! Tests of the transports with real endpoints, sockets and processes.

mod echo;
mod memory;
