//! Authorization: what clients and resource servers do when the other side is hostile.

mod choices;
mod client;
mod processes;
mod resource;
mod secrets;
mod server;
mod third_party;
