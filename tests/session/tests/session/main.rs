//! Sessions: who agrees on what, what the specification requires of both sides, and that nothing hostile does harm.

mod base;
mod client_features;
mod hostile_peers;
mod lifecycle;
mod limits;
mod multi_round_trip;
mod properties;
mod requirements;
mod simulated_network;
mod snapshots;
mod transports;
mod utilities;
mod views;
