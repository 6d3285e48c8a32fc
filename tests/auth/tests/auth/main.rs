//! Authorization: what clients and resource servers do when the other side is hostile.

mod client;
mod processes;
mod resource;
mod secrets;
mod server;
