//! Authorization: behaviour of clients and resource servers if the peer is hostile.

mod choices;
mod client;
mod processes;
mod resource;
mod secrets;
mod server;
mod third_party;
